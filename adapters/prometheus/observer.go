package prometheus

import (
	"context"
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/metrics"
	"github.com/skeinq/skein/ports"
)

// turnSeries are the series that no queue has.
type turnSeries struct {
	duration, claimed, settled      prometheus.Observer
	results, wakeups, leases, nodes map[string]prometheus.Counter
	failures                        map[string]map[string]prometheus.Counter
}

func newTurnSeries(v *vectors) turnSeries {
	row, _ := metrics.Of("skein_store_errors_total")
	failures := make(map[string]map[string]prometheus.Counter)
	for _, call := range row.Labels[0].Values {
		failures[call] = v.counted(row.Name, []string{call}, nil)
	}
	return turnSeries{
		duration: v.histogram("skein_turn_duration_seconds"),
		claimed:  v.histogram("skein_turn_jobs", "claimed"), settled: v.histogram("skein_turn_jobs", "settled"),
		results: v.counted("skein_turns_total", nil, nil), wakeups: v.counted("skein_wakeups_total", nil, nil),
		leases: v.counted("skein_lease_changes_total", nil, nil), nodes: v.counted("skein_node_changes_total", nil, nil),
		failures: failures,
	}
}

// add counts in a series, and leaves out what the table does not have, such as an outcome of a newer version.
func add(series map[string]prometheus.Counter, value string, n int) {
	if c := series[value]; c != nil && n > 0 {
		c.Add(float64(n))
	}
}

// Pushed implements [ports.Observer].
func (m *Metrics) Pushed(_ context.Context, e ports.PushEvent) {
	q := m.queue(e.Queue)
	add(q.pushes, pushResult(e.Err), 1)
	add(q.met, "new", e.New)
	add(q.met, "merged", e.Merged)
	add(q.met, "duplicate", e.Duplicate)
	q.pushDuration.Observe(e.Took.Seconds())
}

func pushResult(err error) string {
	if err == nil {
		return "stored"
	}
	switch ports.FailureOf(err) {
	case ports.FailureRefused:
		return "refused"
	case ports.FailureFull:
		return "full"
	}
	return "unknown"
}

// BatchStart implements [ports.Observer]. The context is the handler's as it is.
func (m *Metrics) BatchStart(ctx context.Context, e ports.BatchEvent) context.Context {
	jobs := m.jobsOf(e.Shard)
	payloads := 0
	for i := range e.Claims {
		n := len(e.Claims[i].Payloads)
		payloads += n
		jobs.payloadsEach.Observe(float64(n))
		jobs.wait.Observe(e.Wait(i).Seconds())
	}
	jobs.started.Add(float64(len(e.Claims)))
	jobs.payloads.Add(float64(payloads))
	return ctx
}

// BatchEnd implements [ports.Observer].
func (m *Metrics) BatchEnd(_ context.Context, e ports.BatchEvent) {
	jobs := m.jobsOf(e.Shard)
	if slices.ContainsFunc(e.Outcomes, bad) {
		jobs.failed.Observe(e.Took.Seconds())
		return
	}
	jobs.ok.Observe(e.Took.Seconds())
}

// bad reports whether a job, or one of its payloads, failed or was buried.
func bad(o core.Outcome) bool {
	if o.Kind == core.Failed || o.Kind == core.Buried {
		return true
	}
	return slices.ContainsFunc(o.Payloads, func(p core.PayloadOutcome) bool { return p.Bury })
}

// JobsEnded implements [ports.Observer].
func (m *Metrics) JobsEnded(e ports.EndEvent) {
	jobs := m.jobsOf(e.Shard)
	for _, job := range e.Jobs {
		add(jobs.outcomes, job.End.String(), 1)
		if job.Buried > 0 {
			jobs.buried.Add(float64(job.Buried))
		}
	}
}

// HandlerOverran implements [ports.Observer].
func (m *Metrics) HandlerOverran(e ports.OverrunEvent) {
	add(m.jobsOf(e.Shard).overruns, e.Cause.String(), 1)
}

// TurnEnd implements [ports.Observer].
func (m *Metrics) TurnEnd(e ports.TurnEvent) {
	m.turns.duration.Observe(e.Took.Seconds())
	add(m.turns.results, turnResult(e.Err), 1)
	if e.Err != nil {
		return
	}
	m.turns.claimed.Observe(float64(e.Claimed))
	m.turns.settled.Observe(float64(e.Settled))
	if e.Woken && e.Claimed > 0 {
		add(m.turns.wakeups, "work", 1)
	} else if e.Woken {
		add(m.turns.wakeups, "spurious", 1)
	}
	if e.Recovered > 0 {
		m.jobsOf(e.Shard).recovered.Add(float64(e.Recovered))
	}
}

func turnResult(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, ports.ErrLeaseLost):
		return "lost"
	case errors.Is(err, ports.ErrStaleTurn):
		return "stale"
	}
	return "unknown"
}

// StoreFailed implements [ports.Observer].
func (m *Metrics) StoreFailed(e ports.FailureEvent) {
	add(m.turns.failures[e.Call], e.Kind.String(), 1)
}

// LeaseChanged implements [ports.Observer].
func (m *Metrics) LeaseChanged(e ports.LeaseEvent) {
	add(m.turns.leases, e.Change.String(), 1)
	jobs := m.jobsOf(e.Shard)
	if e.Orphans > 0 {
		jobs.recovered.Add(float64(e.Orphans))
	}
}

// NodeChanged implements [ports.Observer].
func (m *Metrics) NodeChanged(e ports.NodeEvent) { add(m.turns.nodes, e.Change.String(), 1) }

// ShardsAssigned implements [ports.Observer]. Leases say what came of it.
func (m *Metrics) ShardsAssigned(ports.AssignEvent) {}
