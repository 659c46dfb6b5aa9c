package report

import (
	"context"
	"log/slog"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/guard"
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

// Jobs logs the events of jobs. It is safe for concurrent use.
type Jobs struct {
	log *slog.Logger
	// failures and refusals are summed by group of their errors, panics by place, each for a queue.
	failures, panics, refusals *logs.Sums[Event]
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

// NewJobs returns an empty log of jobs.
func NewJobs(log *slog.Logger) *Jobs {
	sums := func() *logs.Sums[Event] { return logs.NewSums[Event](sumWindow, sumKeys) }
	return &Jobs{
		log: log, failures: sums(), panics: sums(), refusals: sums(),
		burials: logs.NewRate(rateWindow, ratePassed), recovered: logs.NewRate(rateWindow, ratePassed),
		takeovers: logs.NewRate(rateWindow, ratePassed), holds: logs.NewRate(rateWindow, ratePassed), full: logs.NewOnce(fullWindow, fullIDs),
		failedHooks: logs.NewRate(rateWindow, ratePassed), missedHooks: logs.NewRate(rateWindow, ratePassed),
		mishaps: logs.NewOnce(sumWindow, mostMishaps),
	}
}

// Event is an event of a job that may be logged. It holds no payloads. If Payloads is set, payloads
// were buried. Otherwise the job is held if Reason is set, and an execution failed if not.
type Event struct {
	Shard core.Shard
	ID    string
	// Attempt is the number of the execution, and Of how many the queue allows. RetryIn is the time
	// until the next one; it is below 0 if there is no next one.
	Attempt, Of int
	RetryIn     time.Duration
	// Text is the error as it is stored, and Group its group. Stored returns the message that a text
	// stands for. Panicked is the panic, or nil. Refused is set if the codec refused a payload, and
	// Bytes is the size of that payload.
	Text, Group string
	Stored      func(text string) string
	Panicked    *guard.PanicError
	Refused     bool
	Bytes       int
	// Payloads is the number of buried payloads, and Reason why they were buried or the job is held.
	Payloads int
	Reason   BuryReason
}

// Take logs events, or counts them.
func (l *Jobs) Take(events []Event) {
	if len(events) == 0 {
		return
	}
	now := time.Now()
	for i := range events {
		e := &events[i]
		if e.Reason == 0 && l.log.Enabled(context.Background(), slog.LevelDebug) {
			l.each(e)
		}
		switch queue := e.Shard.Queue; {
		case e.Payloads > 0:
			if l.burials.Pass(now, queue) {
				l.buried(e)
			}
		case e.Reason != 0:
			if l.holds.Pass(now, queue) {
				l.holdsJob(e)
			}
		case e.Refused:
			if group, first := l.refusals.Add(now, queue, e.Group, *e); first {
				l.refused(e, group, 1)
			}
		case e.Panicked != nil:
			if place, first := l.panics.Add(now, queue, guard.Place(e.Panicked), *e); first {
				l.panickedAt(e, place, 1)
			}
		default:
			if group, first := l.failures.Add(now, queue, e.Group, *e); first {
				l.failed(e, group, 1)
			}
		}
	}
}

// Flush logs what was counted and is due.
func (l *Jobs) Flush(now time.Time) {
	l.summed(l.failures.Due(now), l.panics.Due(now), l.refusals.Due(now))
	l.more(l.burials.Due(now), l.holds.Due(now), l.recovered.Due(now), l.takeovers.Due(now))
	l.hooks(l.failedHooks.Due(now), l.missedHooks.Due(now))
}

// FlushAll logs all that was counted.
func (l *Jobs) FlushAll() {
	l.summed(l.failures.Rest(), l.panics.Rest(), l.refusals.Rest())
	l.more(l.burials.Rest(), l.holds.Rest(), l.recovered.Rest(), l.takeovers.Rest())
	l.hooks(l.failedHooks.Rest(), l.missedHooks.Rest())
}

func (l *Jobs) summed(failures, panics, refusals []logs.Sum[Event]) {
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

func (l *Jobs) more(burials, holds, recovered, takeovers []logs.Held) {
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

func (l *Jobs) hooks(failed, missed []logs.Held) {
	for _, h := range failed {
		l.log.Error("more calls of OnBuried failed", keyQueue, h.Key, keyCount, h.Count)
	}
	for _, h := range missed {
		l.log.Error("more burials without a call of OnBuried", keyQueue, h.Key, keyCount, h.Count)
	}
}
