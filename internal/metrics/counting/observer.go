// Package counting counts the events of clients and servers in series of the table of metrics, for
// any exporter.
package counting

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/metrics"
	"github.com/skeinq/skein/ports"
)

// Counter is a series that only grows.
type Counter interface{ Add(n int) }

// Measure is a series of values by size.
type Measure interface{ Observe(float64) }

// Series makes the series of a metric of the table with these values of its labels, in their order.
// If the series are by shard and the metric is Sharded, the shard is the last value.
type Series interface {
	Counter(name string, labels ...string) Counter
	Measure(name string, labels ...string) Measure
}

// Observer is a [ports.Observer] that counts. It is safe for concurrent use.
type Observer struct {
	maker maker
	// queues is replaced as a whole when a queue is first seen.
	queues atomic.Pointer[map[string]*queueSeries]
	turns  turnSeries
	mu     sync.Mutex
}

var _ ports.Observer = (*Observer)(nil)

// New returns an Observer that counts in these series. With perShard, sharded metrics are counted
// by shard. The series of the given queues exist from the start.
func New(series Series, perShard bool, queues ...string) *Observer {
	o := &Observer{maker: maker{series, perShard}}
	o.turns = newTurnSeries(o.maker)
	o.queues.Store(&map[string]*queueSeries{})
	for _, name := range queues {
		o.queue(name)
	}
	return o
}

// Queues returns the names of the queues that had events or were given to New, without
// [InvalidQueue].
func (o *Observer) Queues() []string {
	var names []string
	for name := range *o.queues.Load() {
		if name != InvalidQueue {
			names = append(names, name)
		}
	}
	return names
}

// turnSeries are the series that have no label queue.
type turnSeries struct {
	duration, claimed, settled      Measure
	results, wakeups, leases, nodes map[string]Counter
	failures                        map[string]map[string]Counter
}

func newTurnSeries(v maker) turnSeries {
	row, _ := metrics.Of("skein_store_errors_total")
	failures := make(map[string]map[string]Counter)
	for _, call := range row.Labels[0].Values {
		failures[call] = v.counted(row.Name, []string{call}, nil)
	}

	return turnSeries{
		duration: v.Measure("skein_turn_duration_seconds"),
		claimed:  v.Measure("skein_turn_jobs", "claimed"),
		settled:  v.Measure("skein_turn_jobs", "settled"),
		results:  v.counted("skein_turns_total", nil, nil),
		wakeups:  v.counted("skein_wakeups_total", nil, nil),
		leases:   v.counted("skein_lease_changes_total", nil, nil),
		nodes:    v.counted("skein_node_changes_total", nil, nil),
		failures: failures,
	}
}

// add counts in the series of a value. It ignores values that the table does not have, such as an
// outcome of a newer version.
func add(series map[string]Counter, value string, n int) {
	if c := series[value]; c != nil && n > 0 {
		c.Add(n)
	}
}

// Pushed implements [ports.Observer].
func (o *Observer) Pushed(_ context.Context, e ports.PushEvent) {
	q := o.queue(e.Queue)
	add(q.pushes, pushResult(&e), 1)
	add(q.met, "new", e.New)
	add(q.met, "merged", e.Merged)
	add(q.met, "duplicate", e.Duplicate+e.Superseded+e.Stale+e.Repeated)
	q.pushDuration.Observe(e.Took.Seconds())
}

func pushResult(e *ports.PushEvent) string {
	switch {
	case e.Err == nil && e.Entries > 0 && e.New+e.Merged+e.Duplicate+e.Superseded+e.Stale+e.Repeated == 0:
		return "in_tx" // other pushes report for each entry what it met
	case e.Err == nil:
		return "stored"
	}
	switch ports.FailureOf(e.Err) {
	case ports.FailureRefused:
		return "refused"
	case ports.FailureFull:
		return "full"
	}
	return "unknown"
}

// BatchStart implements [ports.Observer]. It returns ctx unchanged.
func (o *Observer) BatchStart(ctx context.Context, e ports.BatchEvent) context.Context {
	jobs := o.jobsOf(e.Shard)
	payloads := 0
	for i := range e.Claims {
		n := len(e.Claims[i].Payloads)
		payloads += n
		jobs.payloadsEach.Observe(float64(n))
		jobs.wait.Observe(e.Wait(i).Seconds())
	}
	jobs.started.Add(len(e.Claims))
	jobs.payloads.Add(payloads)
	return ctx
}

// BatchEnd implements [ports.Observer].
func (o *Observer) BatchEnd(_ context.Context, e ports.BatchEvent) {
	jobs := o.jobsOf(e.Shard)
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
func (o *Observer) JobsEnded(e ports.EndEvent) {
	var buried int
	var ends [ports.EndHeld + 1]int
	for _, job := range e.Jobs {
		buried += job.Buried
		if int(job.End) < len(ends) {
			ends[job.End]++
		}
	}

	jobs := o.jobsOf(e.Shard)
	for end, n := range ends {
		if n > 0 {
			add(jobs.outcomes, ports.JobEnd(end).String(), n)
		}
	}
	if buried > 0 {
		jobs.buried.Add(buried)
	}
}

// TicksFired implements [ports.Observer].
func (o *Observer) TicksFired(e ports.TickEvent) {
	ticks := o.queue(e.Shard.Queue).ticks()
	add(ticks.outcomes, "fired", e.Fired)
	add(ticks.outcomes, "missed", e.Missed)
	add(ticks.outcomes, "skipped", e.Skipped)
	add(ticks.outcomes, "broken", e.Broken)
	for _, late := range e.Late {
		ticks.late.Observe(late.Seconds())
	}
}

// DeadLettersExpired implements [ports.Observer].
func (o *Observer) DeadLettersExpired(e ports.ExpiryEvent) {
	o.queue(e.Shard.Queue).expired().Add(e.Expired)
}

// SlotsTaken implements [ports.Observer].
func (o *Observer) SlotsTaken(e ports.SlotEvent) {
	slots := o.queue(e.Queue).rate().slots
	add(slots, "granted", e.Granted)
	add(slots, "delayed", e.Want-e.Granted)
}

// QueueSlowed implements [ports.Observer].
func (o *Observer) QueueSlowed(e ports.SlowEvent) { o.queue(e.Queue).rate().stops.Add(1) }

// HandlerOverran implements [ports.Observer].
func (o *Observer) HandlerOverran(e ports.OverrunEvent) {
	add(o.jobsOf(e.Shard).overruns, e.Cause.String(), 1)
}

// TurnEnd implements [ports.Observer].
func (o *Observer) TurnEnd(e ports.TurnEvent) {
	o.turns.duration.Observe(e.Took.Seconds())
	add(o.turns.results, turnResult(e.Err), 1)
	if e.Err != nil {
		return
	}

	o.turns.claimed.Observe(float64(e.Claimed))
	o.turns.settled.Observe(float64(e.Settled))
	if e.Woken && e.Claimed > 0 {
		add(o.turns.wakeups, "work", 1)
	} else if e.Woken {
		add(o.turns.wakeups, "spurious", 1)
	}

	if e.Recovered > 0 {
		o.jobsOf(e.Shard).recovered.Add(e.Recovered)
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
func (o *Observer) StoreFailed(e ports.FailureEvent) {
	add(o.turns.failures[e.Call], e.Kind.String(), 1)
}

// LeaseChanged implements [ports.Observer].
func (o *Observer) LeaseChanged(e ports.LeaseEvent) {
	add(o.turns.leases, e.Change.String(), 1)
	jobs := o.jobsOf(e.Shard)
	if e.Orphans > 0 {
		jobs.recovered.Add(e.Orphans)
	}
}

// NodeChanged implements [ports.Observer].
func (o *Observer) NodeChanged(e ports.NodeEvent) { add(o.turns.nodes, e.Change.String(), 1) }

// ShardsAssigned implements [ports.Observer]. Events of leases report the outcome.
func (o *Observer) ShardsAssigned(ports.AssignEvent) {}
