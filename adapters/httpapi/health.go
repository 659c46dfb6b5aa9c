package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
)

// probeTime is the maximum time for which a probe waits for the store. probeKept is how long its
// result is kept, so that many probes cost as much as one.
const (
	probeTime = 2 * time.Second
	probeKept = time.Second
)

// Livez returns a handler that responds 200 while the process serves HTTP. It does not contact the
// store, because restarting a process does not help if its store is down. Mount it without rights,
// as /livez.
func Livez() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { probed(w, r, nil, "alive") })
}

// HealthOptions are the options of [Readyz]. The zero value checks only the store.
type HealthOptions struct {
	// Server is true if this process runs a server. The process is then ready when that server has
	// announced itself, unless the server can't renew its announcement or its leases. The server is
	// found by host name and process id. A server that drains is ready, because it does what an
	// operator requested.
	Server bool
	// Detail adds the store's errors to the response. They may name addresses and users, so use
	// Detail only if only operators can reach the handler.
	Detail bool
}

// Readyz returns a handler that responds 200 if the store answers and this version can use it as it
// is configured and, with HealthOptions.Server, a server of this process renews its leases in time.
// Otherwise it responds 503, with a line for the reason: "store", "format", "server" or "leases", a
// colon and an explanation. Shards that can't be reached don't make the process unready, because
// servers still run the others. It asks the store at most once per second. Mount it without rights,
// as /readyz.
func Readyz(inspector *inspect.Inspector, o HealthOptions) http.Handler {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown" // as a server calls it then
	}
	return &readiness{inspector: inspector, o: o, host: host, pid: os.Getpid(), free: make(chan struct{}, 1)}
}

type readiness struct {
	inspector *inspect.Inspector
	o         HealthOptions
	host      string
	pid       int
	// free holds a value while a probe asks.
	free  chan struct{}
	lines []string
	until time.Time
}

func (h *readiness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case h.free <- struct{}{}:
		defer func() { <-h.free }()
	case <-r.Context().Done():
		return
	}
	if !time.Now().Before(h.until) {
		// The result is for other probes too, so the end of this request does not end the look.
		ctx, end := context.WithTimeout(context.WithoutCancel(r.Context()), probeTime)
		h.lines = h.unready(ctx)
		end()
		h.until = time.Now().Add(probeKept)
	}
	probed(w, r, h.lines, "ready")
}

// probed answers a probe: with the reasons against, or with the word if there are no reasons.
func probed(w http.ResponseWriter, r *http.Request, lines []string, word string) {
	h := w.Header()
	for name, value := range security {
		h.Set(name, value)
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")

	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", http.MethodGet)
		respond(w, r, http.StatusMethodNotAllowed, []byte("use GET\n"))
	case len(lines) > 0:
		respond(w, r, http.StatusServiceUnavailable, []byte(strings.Join(lines, "\n")+"\n"))
	default:
		respond(w, r, http.StatusOK, []byte(word+"\n"))
	}
}

// unready returns a line for each reason against readiness.
func (h *readiness) unready(ctx context.Context) []string {
	if err := h.inspector.Ping(ctx); err != nil {
		if errors.Is(err, inspect.ErrUnusable) {
			return []string{h.line("format", "the store answers, but its setup or its format can't be used", err)}
		}
		return []string{h.line("store", h.silence(ctx, "it does not answer"), err)}
	}

	if !h.o.Server {
		return nil
	}

	nodes, err := h.inspector.Nodes(ctx)
	if err != nil {
		return []string{h.line("store", h.silence(ctx, "it does not list the servers"), err)}
	}

	for at := range nodes {
		// An earlier process of the same host and number may be listed as gone.
		if n := &nodes[at]; n.Host == h.host && n.PID == h.pid && n.State != inspect.NodeGone {
			return h.overdue(ctx, n)
		}
	}

	return []string{fmt.Sprintf("server: no server of host %s with process %d is announced; it has not started, "+
		"has stopped, or can't reach the store in time",
		h.host, h.pid)}
}

// overdue reports whether a server has leases that have ended without a release.
func (h *readiness) overdue(ctx context.Context, n *inspect.Node) []string {
	if len(n.Queues) == 0 {
		return nil
	}

	stats, err := h.inspector.Stats(ctx, n.Queues...)
	var lacks *inspect.PartialError
	if err != nil && (!errors.As(err, &lacks) || ctx.Err() != nil) {
		return []string{h.line("store", h.silence(ctx, "it does not list the owners of shards"), err)}
	}

	held, over, first := 0, 0, ""
	for at := range stats {
		for shard := range stats[at].Shards {
			s := &stats[at].Shards[shard]
			if s.Owner != n.Owner {
				continue
			}
			held++
			if !s.ExpiresAt.After(stats[at].Now) {
				if over++; over == 1 {
					first = s.Shard.String()
				}
			}
		}
	}

	if over == 0 {
		return nil
	}
	return []string{fmt.Sprintf("leases: %d of %d expired before they were renewed; the first is that of %s",
		over, held, first)}
}

func (h *readiness) silence(ctx context.Context, what string) string {
	if ctx.Err() != nil {
		return fmt.Sprintf("%s within %v", what, probeTime)
	}
	return what
}

// line is a reason, with the error's text if that may be shown.
func (h *readiness) line(name, why string, err error) string {
	if h.o.Detail {
		why += ": " + strings.Join(strings.Fields(err.Error()), " ")
	}
	return name + ": " + why
}
