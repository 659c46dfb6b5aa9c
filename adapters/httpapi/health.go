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

// How long a probe may ask the store, and how long an answer is kept, so that many probes cost as
// much as one.
const (
	probeTime = 2 * time.Second
	probeKept = time.Second
)

// Livez answers 200 as long as the process serves HTTP at all. It asks nothing, the store least: a process that is
// started anew because its store is down helps nobody. Mount it without rights, as /livez.
func Livez() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { probed(w, r, nil, "alive") })
}

// HealthOptions are the options of [Readyz]. The zero value asks only for the store.
type HealthOptions struct {
	// Server says that this process runs a server. It is ready once the server has announced itself, and not while
	// the server can't renew its announcement or its leases. It is found by host name and process id. One
	// that drains is ready: it does what it was asked.
	Server bool
	// Detail adds the store's errors to the answer, which may name addresses and users: for probes that only
	// operators reach.
	Detail bool
}

// Readyz answers 200 if the store answers and can be used as it is set up, by this version, and a server of this process
// renews its leases in time; and else 503 with a line for each of these that is not so: "store", "format", "server" or
// "leases", a colon and why. Shards that can't be reached make nothing unready, since the others are worked. Mount it
// without rights, as /readyz. It asks the store once a second at most.
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
		// The result is for other probes too, so the look does not end with this request.
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
		respond(w, r, http.StatusMethodNotAllowed, []byte("it is for GET\n"))
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
			return []string{h.line("format", "the store answers and can't be used as it is set up, or holds another version's format", err)}
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
	return []string{fmt.Sprintf("server: none of host %s with process %d announces itself; it has not started, has stopped, or does not reach the store in time", h.host, h.pid)}
}

// overdue reports whether a server has leases that have ended without a release.
func (h *readiness) overdue(ctx context.Context, n *inspect.Node) []string {
	if len(n.Queues) == 0 {
		return nil
	}
	stats, err := h.inspector.Stats(ctx, n.Queues...)
	var lacks *inspect.PartialError
	if err != nil && (!errors.As(err, &lacks) || ctx.Err() != nil) {
		return []string{h.line("store", h.silence(ctx, "it does not say who has which shard"), err)}
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
	return []string{fmt.Sprintf("leases: %d of %d have ended before they were renewed; the first is that of %s", over, held, first)}
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
