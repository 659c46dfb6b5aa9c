package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/logs"
)

// Attribute keys of log lines about jobs. They are stable: docs/reference/log.md lists them for
// users.
const (
	keyQueue    = "queue"
	keyShard    = "shard"
	keyID       = "id"
	keyPayloads = "payloads"
	keyError    = "error"
	keyCount    = "count"
)

// Bounds on log lines about frequent events.
const (
	sumWindow  = time.Minute // for failures that are like one that was logged
	sumKeys    = 16          // groups of a queue's failures, and places of its panics
	rateWindow = time.Second
	ratePassed = 10 // burials, recoveries and leases taken over of a queue in a rateWindow

	mostMishaps = 100 // panicking functions in a sumWindow

	manyPayloads = 100 // a smaller MaxPayloads is meant to be reached
	fullWindow   = time.Hour
	fullIDs      = 10
)

// jobLog logs the events of jobs. It is safe for concurrent use.
type jobLog struct {
	log *slog.Logger
	// failures and refusals are summed by group of their errors, panics by place, each for a queue.
	failures, panics, refusals *logs.Sums[jobEvent]
	// burials, holds, recovered and takeovers are rates of a queue.
	burials, holds, recovered, takeovers *logs.Rate
	// failedHooks and missedHooks are the rates of a queue's OnBuried calls that failed or were not
	// made.
	failedHooks, missedHooks *logs.Rate
	// mishaps has the user's functions that panic and are replaced by a default.
	mishaps *logs.Once
	// full has the entities whose payloads fill a claim.
	full *logs.Once
}

func newJobLog(log *slog.Logger) jobLog {
	sums := func() *logs.Sums[jobEvent] { return logs.NewSums[jobEvent](sumWindow, sumKeys) }
	return jobLog{
		log: log, failures: sums(), panics: sums(), refusals: sums(),
		burials: logs.NewRate(rateWindow, ratePassed), recovered: logs.NewRate(rateWindow, ratePassed),
		takeovers: logs.NewRate(rateWindow, ratePassed), holds: logs.NewRate(rateWindow, ratePassed), full: logs.NewOnce(fullWindow, fullIDs),
		failedHooks: logs.NewRate(rateWindow, ratePassed), missedHooks: logs.NewRate(rateWindow, ratePassed),
		mishaps: logs.NewOnce(sumWindow, mostMishaps),
	}
}

// jobEventKind is what happened to a job.
type jobEventKind uint8

const (
	jobFailed jobEventKind = iota
	jobPanicked
	payloadRefused
	jobBuried
	jobHeld
)

// jobEvent is an event of a job that may be logged. It holds no payloads.
type jobEvent struct {
	kind  jobEventKind
	shard *shardInfo
	id    string
	// attempt is the number of the execution. retryIn is the time until the next one; it is below 0 if
	// there is no next one.
	attempt int
	retryIn time.Duration
	// text is the error as it is stored, and group its group. panicked is the panic, or nil.
	text     string
	group    string
	panicked *PanicError
	// bytes is the size of a refused payload, payloads the number of buried ones, and reason why they
	// were buried or the job is held.
	bytes, payloads int
	reason          BuryReason
}

// events returns the events of how job i ended.
func (b *Batch) events(i int, o *core.Outcome, settled *core.Settlement, buried []Buried) []jobEvent {
	c := &b.Claims[i]
	event := jobEvent{shard: b.shard, id: c.ID, attempt: b.attempt(i, o), retryIn: -1}
	var list []jobEvent
	exhausted := false
	for k := range buried {
		exhausted = o.Kind == core.Failed && k == len(buried)-1 && exhausts(b.shard.queue.Policy, c, o)
		if buried[k].Reason == Undecodable && !exhausted {
			refused := event
			refused.kind, refused.text, refused.group = payloadRefused, buried[k].Error, buried[k].Group
			refused.bytes = len(buried[k].Payloads[0].Pushed().Data)
			list = append(list, refused)
		}
		attempts := c.RetryCount + 2
		if exhausted {
			attempts = event.attempt
		}
		list = append(list, buried[k].event(b.shard, attempts))
	}
	if o.Kind != core.Failed || len(o.Payloads) == len(c.Payloads) {
		return list
	}
	event.text, event.group, event.panicked = o.Error, o.Group, b.panics[i]
	switch refused := b.decodeFailures[i]; {
	case refused.failed:
		event.kind, event.bytes = payloadRefused, len(c.Payloads[refused.position].Pushed().Data)
	case event.panicked != nil:
		event.kind = jobPanicked
	}
	switch {
	case b.shard.queue.Policy.Holds(c, o):
		reason := Exhausted
		if event.kind == payloadRefused {
			reason = Undecodable
		}
		list = append(list, heldEvent(b.shard, c.ID, event.attempt, o.Error, reason))
	case !exhausted:
		event.retryIn = settled.PutBack.Delay
	}
	return append(list, event)
}

// heldEvent returns the event of a job that is held.
func heldEvent(s *shardInfo, id string, attempts int, text string, reason BuryReason) jobEvent {
	return jobEvent{kind: jobHeld, shard: s, id: id, attempt: attempts, text: text, reason: reason}
}

// event returns the event of payloads that went to the morgue.
func (b *Buried) event(s *shardInfo, attempts int) jobEvent {
	return jobEvent{
		kind: jobBuried, shard: s, id: b.ID, attempt: attempts, text: b.Error, payloads: len(b.Payloads), reason: b.Reason,
	}
}

// exhausts reports whether a failure uses up the job's retries.
func exhausts(p core.RetryPolicy, c *core.Claim, o *core.Outcome) bool {
	_, ok := p.Exhausts(c, o)
	return ok
}

// take logs events, or counts them.
func (l *jobLog) take(events []jobEvent) {
	if len(events) == 0 {
		return
	}
	now := time.Now()
	for i := range events {
		e := &events[i]
		if e.kind != jobBuried && e.kind != jobHeld && l.log.Enabled(context.Background(), slog.LevelDebug) {
			l.each(e)
		}
		switch queue := e.shard.id.Queue; e.kind {
		case jobFailed:
			if group, first := l.failures.Add(now, queue, e.group, *e); first {
				l.failed(e, group, 1)
			}
		case jobPanicked:
			if place, first := l.panics.Add(now, queue, e.panicked.place(), *e); first {
				l.panickedAt(e, place, 1)
			}
		case payloadRefused:
			if group, first := l.refusals.Add(now, queue, e.group, *e); first {
				l.refused(e, group, 1)
			}
		case jobBuried:
			if l.burials.Pass(now, queue) {
				l.buried(e)
			}
		case jobHeld:
			if l.holds.Pass(now, queue) {
				l.holdsJob(e)
			}
		}
	}
}

// flush logs what was counted and is due.
func (l *jobLog) flush(now time.Time) {
	l.summed(l.failures.Due(now), l.panics.Due(now), l.refusals.Due(now))
	l.more(l.burials.Due(now), l.holds.Due(now), l.recovered.Due(now), l.takeovers.Due(now))
	l.hooks(l.failedHooks.Due(now), l.missedHooks.Due(now))
}

// flushAll logs all that was counted.
func (l *jobLog) flushAll() {
	l.summed(l.failures.Rest(), l.panics.Rest(), l.refusals.Rest())
	l.more(l.burials.Rest(), l.holds.Rest(), l.recovered.Rest(), l.takeovers.Rest())
	l.hooks(l.failedHooks.Rest(), l.missedHooks.Rest())
}

func (l *jobLog) summed(failures, panics, refusals []logs.Sum[jobEvent]) {
	for i := range failures {
		l.failed(&failures[i].Last, failures[i].Key, failures[i].Count)
	}
	for i := range panics {
		l.panickedAt(&panics[i].Last, panics[i].Key, panics[i].Count)
	}
	for i := range refusals {
		l.refused(&refusals[i].Last, refusals[i].Key, refusals[i].Count)
	}
}

func (l *jobLog) more(burials, holds, recovered, takeovers []logs.Held) {
	for _, h := range burials {
		l.log.Warn("more jobs buried", keyQueue, h.Key, keyCount, h.Count)
	}
	for _, h := range holds {
		l.log.Warn("more jobs held", keyQueue, h.Key, keyCount, h.Count)
	}
	for _, h := range recovered {
		l.log.Warn("more jobs recovered", keyQueue, h.Key, keyCount, h.Count)
	}
	for _, h := range takeovers {
		l.log.Info("more leases taken over", keyQueue, h.Key, keyCount, h.Count)
	}
}

func (l *jobLog) hooks(failed, missed []logs.Held) {
	for _, h := range failed {
		l.log.Error("more calls of OnBuried failed", keyQueue, h.Key, keyCount, h.Count)
	}
	for _, h := range missed {
		l.log.Error("more burials without a call of OnBuried", keyQueue, h.Key, keyCount, h.Count)
	}
}
