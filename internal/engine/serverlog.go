package engine

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// ending counts what becomes of a node's jobs: those settled since it started, and those put back
// and overdue while it stops.
type ending struct {
	settled, putBack, overdue atomic.Int64
}

// countEnding counts settlements. Put-back jobs count only while the node stops: before that,
// handlers put them back.
func (n *node) countEnding(settled []core.Settlement) {
	back := int64(0)
	for i := range settled {
		if !settled[i].Processed && !settled[i].Failed {
			back++
		}
	}
	if n.stopping() {
		n.ending.putBack.Add(back)
	}
	n.ending.settled.Add(int64(len(settled)) - back)
}

// logStarted logs that the server works, with its configuration.
func (e *Engine) logStarted() {
	cfg := &e.cfg
	names := make([]string, len(cfg.Queues))
	for i, q := range cfg.Queues {
		names[i] = q.Name
	}

	e.log.Info(
		"server started",
		"node", cfg.Node,
		"owner", cfg.Owner,
		"version", cfg.Version,
		"store", storeName(e.store),
		"lanes", cfg.Lanes,
		"queues", names,
		"ttl", cfg.LeaseTTL,
	)
}

// logStopped logs how the stop went.
func (e *Engine) logStopped() {
	e.log.Info(
		"server stopped",
		"node", e.cfg.Node,
		"owner", e.cfg.Owner,
		"took", time.Since(e.stoppedAt).Round(time.Millisecond),
		"settled", e.ending.settled.Load(),
		"put_back", e.ending.putBack.Load(),
		"still_running", e.ending.overdue.Load(),
	)
}

// storeName returns the store's own description, or the name of its package.
func storeName(store Store) string {
	if s, ok := store.(fmt.Stringer); ok {
		return s.String()
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(fmt.Sprintf("%T", store), "*"), ".")
	return name
}

// kubernetesGrace is how long Kubernetes waits before it kills a pod that sets no grace period.
const kubernetesGrace = 30 * time.Second

// checkSettings logs, in one line, harmful settings of the server, and of the store if the store
// can report them.
func (e *Engine) checkSettings() {
	var found []ports.Check
	if e.cfg.ShutdownTimeout >= kubernetesGrace && os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		found = append(found, ports.Check{
			Name:  "shutdown_timeout",
			Value: e.cfg.ShutdownTimeout.String(),
			Advice: "set terminationGracePeriodSeconds, 30 by default, to a longer time, " +
				"or jobs are killed before they are put back",
		})
	}
	found = append(found, e.checkStore()...)
	if len(found) > 0 {
		e.logFound(found)
	}
}

// checkStore returns the rows that warn or fail.
func (e *Engine) checkStore() (found []ports.Check) {
	checker, ok := e.store.(ports.Checker)
	if !ok {
		return nil
	}
	ctx, cancel := e.callContext()
	defer cancel()
	rows, err := checker.Check(ctx)
	if err != nil {
		e.log.Debug("the store can't be checked", "error", err)
		return nil
	}
	return slices.DeleteFunc(rows, func(r ports.Check) bool { return r.Status < ports.CheckWarn })
}

// logFound logs the findings in one line. The line names each setting, where it was found, its
// value and the cure. A finding that several servers share, such as the masters of a Cluster, is
// named once.
func (e *Engine) logFound(found []ports.Check) {
	var names, servers, values, advice []string
	add := func(to *[]string, text string) {
		if text != "" && !slices.Contains(*to, text) {
			*to = append(*to, text)
		}
	}

	for _, r := range found {
		add(&names, r.Name)
		add(&servers, r.Server)
	}

	for _, r := range found {
		value := r.Value
		if len(names) > 1 {
			value = r.Name + ": " + value
		}
		if len(servers) > 1 && r.Server != "" {
			value += " (" + r.Server + ")"
		}
		add(&values, value)
		add(&advice, r.Advice)
	}

	e.log.Warn("needs attention", "check", strings.Join(names, ", "), "server", strings.Join(servers, ", "),
		"value", strings.Join(values, "; "), "advice", strings.Join(advice, "; "))
}

// checkPool logs, once, that the store's pool has too few connections for handlers that settle in
// its transactions. Whether they do is known when the first handler does.
func (n *node) checkPool() {
	n.poolChecked.Do(func() {
		pooled, ok := n.store.(ports.Pooled)
		if !ok {
			return
		}

		if most, lanes := pooled.Connections(), n.cfg.Lanes; most > 0 && most <= lanes {
			n.log.Warn(
				"needs attention",
				"check", "pool",
				"server", "",
				"value", fmt.Sprintf("%d connections, %d lanes", most, lanes),
				"advice", fmt.Sprintf(
					"handlers settle in transactions; if the transactions use the store's pool, "+
						"each lane may hold a connection, and none is left to renew leases: set its size to %d",
					lanes+4,
				),
			)
		}
	})
}

// logDraining logs that the server stops, and how many batches it waits for.
func (e *Engine) logDraining() {
	running, _ := runningBatches(e.shards(), time.Now())
	e.log.Info("shutting down", "running", running)
}

// draining logs, each waitingEach, that a stop waits for handlers.
func (w *watcher) draining(now time.Time) {
	if !w.node.stopping() {
		return
	}
	if w.saidWaiting.IsZero() {
		w.saidWaiting = now
	}
	running, longest := runningBatches(w.shards(), now)
	if longest == nil || now.Sub(w.saidWaiting) < waitingEach {
		return
	}
	w.saidWaiting = now
	w.node.log.Warn("still waiting for handlers", "running", running, "longest", slog.GroupValue(longest...))
}

// runningBatches returns how many batches run, and the attributes of the one that has run longest,
// or nil.
func runningBatches(shards []*shard, now time.Time) (running int, longest []slog.Attr) {
	var oldest *runningBatch
	for _, s := range shards {
		s.mu.Lock()
		running += len(s.claims.running)
		for _, b := range s.claims.running {
			if oldest == nil || b.Started().Before(oldest.Started()) {
				oldest = b
			}
		}
		s.mu.Unlock()
	}

	if oldest == nil {
		return 0, nil
	}
	return running, append(
		report.JobAttrs(oldest.Shard(), oldest.Claims[0].ID),
		slog.Duration("took", now.Sub(oldest.Started())),
	)
}
