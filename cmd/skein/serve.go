package main

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"

	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/adapters/prometheus"
	"github.com/skeinq/skein/inspect"
)

// serving has the settings of a server, which its flags set.
type serving struct {
	listen   string
	hosts    []string
	origins  []string
	readOnly bool
	metrics  bool
	// push makes the server a gateway, which takes pushes alone, from the programs in the file tokens.
	push   bool
	tokens string
	// maxBody and maxPayload are limits of requests in bytes; 0 means those of httpapi.
	maxBody    int64
	maxPayload int
}

// tokenVariable is the environment variable with the token that requests must carry.
const tokenVariable = "SKEIN_TOKEN"

func (s *serving) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.listen, "listen", "localhost:8080", "the `ADDRESS` to serve at")
	f.StringSliceVar(&s.hosts, "host", nil,
		"a host `NAME` that requests may have, without port. Without the flag: "+
			"any name if there is a token, otherwise localhost, 127.0.0.1 and ::1")
	f.StringSliceVar(&s.origins, "trusted-origin", nil,
		"an `ORIGIN` whose pages may act, such as https://ops.example.com, behind a proxy that changes Host")
	f.BoolVar(&s.readOnly, "read-only", false, "serve nothing that changes the store")
	f.BoolVar(&s.metrics, "metrics", false, "serve the store's metrics at /metrics too")
}

// gatewayFlags are the flags of pushes through the server.
func (s *serving) gatewayFlags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&s.push, "push", false,
		"be a gateway: take pushes at /api/v1/queues/QUEUE/jobs, and serve nothing else but /livez and /readyz")
	f.StringVar(&s.tokens, "push-tokens", "",
		"with --push: a `FILE` whose lines have the name of a program, its token, and the queues that it may push to, or *")
	f.Int64Var(&s.maxBody, "max-body", 0, "the maximum size of a request's body in `BYTES`; by default 1 MiB")
	f.IntVar(&s.maxPayload, "max-payload", 0, "the maximum size of a pushed payload in `BYTES`; by default 512 KiB")
}

// apiOptions returns the options of the API that the flags set.
func (s *serving) apiOptions() httpapi.Options {
	return httpapi.Options{
		ReadOnly:        s.readOnly,
		TrustedOrigins:  s.origins,
		Hosts:           s.hosts,
		MaxBodyBytes:    s.maxBody,
		MaxPayloadBytes: s.maxPayload,
	}
}

func (a *app) serveCommand() *cobra.Command {
	var s serving
	c := a.command(
		"serve",
		"Serve the dashboard and the HTTP API, for this machine alone unless "+tokenVariable+" is set",
		tokenVariable+"=$(openssl rand -hex 32) skein serve --listen :8080 --read-only",
		cobra.NoArgs,
		func(ctx context.Context, _ *inspect.Inspector, _ []string) error {
			log := a.log()
			acting := inspect.New(a.backend.Store, inspect.Options{Logger: log})
			handler, err := s.handler(acting, a.title(), a.env(tokenVariable))
			if err != nil {
				return err
			}

			return a.serveStore(ctx, log, acting, s.listen, handler)
		},
	)

	c.Long = c.Short + ".\n\n" + tokenText + "\n\n" + gatewayText
	s.flags(c)
	s.gatewayFlags(c)
	return c
}

const tokenText = "Clients that send the token of " + tokenVariable + " may read, " +
	"and may act and push unless --read-only is given.\n" +
	"They send it as Authorization: Bearer, or from a browser as the password of any user, whose name the\n" +
	"audit then has as the actor, unproven. TLS is for a proxy in front, which may strip a prefix. /livez\n" +
	"and /readyz are for probes."

const gatewayText = "With --push it takes pushes and serves nothing else, for programs in other languages. Each line of the\n" +
	"file of --push-tokens has the name of a program, its token, and the queues that it may push to. Without\n" +
	"the file the token of " + tokenVariable + " may push to all queues. Queues must exist: programs in Go declare\n" +
	"them, or skein job push with --shards. docs/guide/http-pushes.md has the requests."

// log returns the logger of a serving command.
func (a *app) log() *slog.Logger { return slog.New(slog.NewTextHandler(a.stderr, nil)) }

// title returns the scheme and the host of the store's URL, for the title of the dashboard.
func (a *app) title() string {
	text, err := a.storeURL()
	if err != nil {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Scheme + " " + u.Host
}

// userName returns the user name of a request, unless somebody has given the token as that too.
func userName(r *http.Request, token string) string {
	name, _, _ := r.BasicAuth()
	if subtle.ConstantTimeCompare([]byte(name), []byte(token)) == 1 {
		return ""
	}
	return name
}

// handler returns the handler of the server: the dashboard with the API, the probes, and metrics if
// the flag requests them; or a gateway.
func (s *serving) handler(i *inspect.Inspector, title, token string) (http.Handler, error) {
	if s.push {
		return s.gateway(i, token)
	}
	if s.tokens != "" {
		return nil, fmt.Errorf("%w: --push-tokens without --push; its tokens are for a gateway", errUsage)
	}

	options := s.apiOptions()
	if token != "" {
		options.Authorize = func(r *http.Request, _ httpapi.Action) error { return allowed(r, token) }
		options.Actor = func(r *http.Request) string { return userName(r, token) }
	}

	board, err := dashboard.New(i, dashboard.Options{API: options, Title: title})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}

	mux := http.NewServeMux()
	mux.Handle("/", asked(board, token))
	mux.Handle("GET /livez", httpapi.Livez())
	mux.Handle("GET /readyz", httpapi.Readyz(i, httpapi.HealthOptions{}))

	if s.metrics {
		metrics, err := metricsOf(i)
		if err != nil {
			return nil, err
		}
		door, err := httpapi.New(i, options)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUsage, err)
		}
		mux.Handle("GET /metrics", asked(door.Guard(metrics), token))
	}
	return mux, nil
}

// allowed returns an error for a request without the token.
func allowed(r *http.Request, token string) error {
	if subtle.ConstantTimeCompare([]byte(tokenOf(r)), []byte(token)) != 1 {
		return httpapi.ErrUnauthenticated
	}
	return nil
}

// tokenOf returns the token of a request, or "". A request carries it as a bearer token or, from a
// browser, as a password.
func tokenOf(r *http.Request) string {
	given, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found {
		_, given, _ = r.BasicAuth()
	}
	return given
}

// asked makes a browser ask for the token: without the token, a page is answered with a challenge.
// The API has a problem for that, with the same status.
func asked(next http.Handler, token string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Also for a wrong token, which browsers would otherwise send again and again.
		if token != "" && !strings.HasPrefix(r.URL.Path, "/api/") && allowed(r, token) != nil {
			w.Header().Set("WWW-Authenticate", httpapi.Challenge)
			http.Error(w, "log in with any user name, and with the token as the password", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func metricsOf(i *inspect.Inspector) (http.Handler, error) {
	collector, err := prometheus.NewCollector(i, prometheus.CollectorOptions{})
	if err != nil {
		return nil, err
	}
	return scraped(collector)
}

// scraped returns the route that serves the metrics of a collector, and no others.
func scraped(collector prom.Collector) (http.Handler, error) {
	registry := prom.NewRegistry()
	if err := registry.Register(collector); err != nil {
		return nil, err
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}

func (a *app) exporterCommand() *cobra.Command {
	var listen string
	c := a.command(
		"exporter",
		"Serve the store's metrics to Prometheus at /metrics; one for a store is enough",
		"skein exporter --listen :9180",
		cobra.NoArgs,
		func(ctx context.Context, i *inspect.Inspector, _ []string) error {
			metrics, err := metricsOf(i)
			if err != nil {
				return err
			}

			mux := http.NewServeMux()
			mux.Handle("GET /metrics", metrics)
			mux.Handle("GET /livez", httpapi.Livez())
			return a.serveStore(ctx, a.log(), i, listen, mux)
		},
	)

	c.Flags().StringVar(&listen, "listen", "localhost:9180", "the `ADDRESS` to serve at")
	return c
}

// Bounds of a server.
const (
	readTime  = 10 * time.Second
	writeTime = time.Minute
	endTime   = 5 * time.Second
)

// serve listens at an address and serves until ctx ends.
func serve(ctx context.Context, log *slog.Logger, address string, handler http.Handler) error {
	listener, err := listen(ctx, address)
	if err != nil {
		return err
	}
	return serveAt(ctx, log, listener, handler)
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		// Not %w: the kind of err would be taken for a failure of the store.
		return nil, fmt.Errorf("can't serve at %s: %v", address, err)
	}
	return listener, nil
}

func urlOf(listener net.Listener) string { return "http://" + listener.Addr().String() }

// serveAt serves until ctx ends. Then it waits for running requests, for endTime at most.
func serveAt(ctx context.Context, log *slog.Logger, listener net.Listener, handler http.Handler) error {
	log.Info("serving", "url", urlOf(listener))

	var silent sync.Map // connections without a request so far
	server := &http.Server{
		Handler:      handler,
		ReadTimeout:  readTime,
		WriteTimeout: writeTime,
		IdleTimeout:  writeTime,
		ErrorLog:     slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ConnState: func(c net.Conn, state http.ConnState) {
			if silent.Delete(c); state == http.StateNew {
				silent.Store(c, nil)
			}
		},
	}

	// Browsers open connections in advance, and Shutdown would wait for them.
	server.RegisterOnShutdown(func() {
		silent.Range(func(c, _ any) bool {
			_ = c.(net.Conn).Close()
			return true
		})
	})

	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}

	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		log.Warn("some requests had not ended and were cut off", "after", endTime)
		return server.Close()
	}
	return err
}
