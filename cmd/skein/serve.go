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

	c.Long = c.Short + ".\n\n" + tokenText
	s.flags(c)
	return c
}

const tokenText = "Clients that send the token of " + tokenVariable + " may read, " +
	"and may act unless --read-only is given.\n" +
	"They send it as Authorization: Bearer, or from a browser as the password of any user, whose name the\n" +
	"audit then has as the actor, unproven. TLS is for a proxy in front, which may strip a prefix. /livez\n" +
	"and /readyz are for probes."

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
// the flag requests them.
func (s *serving) handler(i *inspect.Inspector, title, token string) (http.Handler, error) {
	options := httpapi.Options{ReadOnly: s.readOnly, TrustedOrigins: s.origins, Hosts: s.hosts}
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

// allowed returns an error for a request without the token. A request carries the token as a bearer
// token or, from a browser, as a password.
func allowed(r *http.Request, token string) error {
	given, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found {
		_, given, found = r.BasicAuth()
	}
	if !found || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
		return httpapi.ErrUnauthenticated
	}
	return nil
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
