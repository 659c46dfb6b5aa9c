package report

import (
	"context"
	"fmt"
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
		log:         log,
		failures:    sums(),
		panics:      sums(),
		refusals:    sums(),
		burials:     logs.NewRate(rateWindow, ratePassed),
		recovered:   logs.NewRate(rateWindow, ratePassed),
		takeovers:   logs.NewRate(rateWindow, ratePassed),
		holds:       logs.NewRate(rateWindow, ratePassed),
		full:        logs.NewOnce(fullWindow, fullIDs),
		failedHooks: logs.NewRate(rateWindow, ratePassed),
		missedHooks: logs.NewRate(rateWindow, ratePassed),
		mishaps:     logs.NewOnce(sumWindow, mostMishaps),
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

// FlushAll logs all that was counted. No window is longer than that of sums.
func (l *Jobs) FlushAll() { l.Flush(time.Now().Add(sumWindow)) }

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

// JobAttrs returns the attributes that name a job.
func JobAttrs(shard core.Shard, id string) []slog.Attr {
	return []slog.Attr{
		slog.String(keyQueue, shard.Queue),
		slog.String(keyShard, shard.String()),
		slog.String(keyID, id),
	}
}

// error returns the message of the event's error: the one that its stored text stands for or, of a
// panic, its value.
func (e *Event) error() string {
	if e.Panicked != nil {
		return core.CutText(fmt.Sprintf("panic: %v", e.Panicked.Value), core.MaxErrorBytes)
	}
	return e.Stored(e.Text)
}

// attemptAttrs returns the attributes of an execution that failed.
func (e *Event) attemptAttrs() []slog.Attr {
	attrs := append(JobAttrs(e.Shard, e.ID), slog.Int("attempt", e.Attempt), slog.Int("of", e.Of))
	if e.RetryIn >= 0 {
		attrs = append(attrs, slog.Duration("retry_in", e.RetryIn))
	}
	return append(attrs, slog.String(keyError, e.error()))
}

// each writes the line of one failure.
func (l *Jobs) each(e *Event) {
	l.log.LogAttrs(context.Background(), slog.LevelDebug, "job failed", e.attemptAttrs()...)
}

// failed writes the line of one or more failures of a group.
func (l *Jobs) failed(e *Event, group string, count int) {
	l.log.LogAttrs(context.Background(), slog.LevelWarn, "job failed",
		append(e.attemptAttrs(), slog.String("group", group), slog.Int(keyCount, count))...)
}

// panickedAt writes the line of one or more panics at a place.
func (l *Jobs) panickedAt(e *Event, place string, count int) {
	l.log.LogAttrs(context.Background(), slog.LevelError, "handler panicked",
		append(
			e.attemptAttrs(),
			slog.String("place", place),
			slog.Int(keyCount, count),
			slog.String("stack", string(e.Panicked.Stack)),
		)...)
}

// refused writes the line of one or more payloads that the codec refuses.
func (l *Jobs) refused(e *Event, group string, count int) {
	l.log.LogAttrs(context.Background(), slog.LevelWarn, "payload refused by the codec",
		append(
			JobAttrs(e.Shard, e.ID),
			slog.Int("bytes", e.Bytes),
			slog.String(keyError, e.error()),
			slog.String("group", group),
			slog.Int(keyCount, count),
		)...)
}

// buried writes the line of a burial.
func (l *Jobs) buried(e *Event) {
	l.log.LogAttrs(context.Background(), slog.LevelWarn, "job buried",
		append(JobAttrs(e.Shard, e.ID), slog.Int("attempts", e.Attempt), slog.Int(keyPayloads, e.Payloads),
			slog.String("by", e.Reason.String()), slog.String(keyError, e.error()))...)
}

// holdsJob writes the line of a job that is held.
func (l *Jobs) holdsJob(e *Event) {
	l.log.LogAttrs(context.Background(), slog.LevelWarn, "job held",
		append(
			JobAttrs(e.Shard, e.ID),
			slog.Int("attempts", e.Attempt),
			slog.String("by", e.Reason.String()),
			slog.String(keyError, e.error()),
		)...)
}

// Mishap reports whether to log now that a user's function has panicked or is misused. It is true
// once in a while for a key.
func (l *Jobs) Mishap(key string) bool { return l.mishaps.Pass(time.Now(), key) }

// TookOver writes the line of a lease that recovers jobs of an earlier one, within the rate.
func (l *Jobs) TookOver(shard core.Shard, from string, token int64, jobs int) {
	if l.takeovers.Pass(time.Now(), shard.Queue) {
		attrs := []slog.Attr{
			slog.String(keyQueue, shard.Queue),
			slog.String(keyShard, shard.String()),
			slog.Int64("token", token),
			slog.Int("jobs", jobs),
		}
		l.log.LogAttrs(context.Background(), slog.LevelInfo, "lease taken over", append(attrs, fromNode(from)...)...)
	}
}

// Recovers writes a line for each job that a shard's new owner recovers, within the rate. A job may
// be recovered most times; one more recovery buries its first payload or holds it.
func (l *Jobs) Recovers(shard core.Shard, from string, claims []core.Claim, most int) {
	now := time.Now()
	for i := range claims {
		if !l.recovered.Pass(now, shard.Queue) {
			continue
		}

		recoveries := claims[i].RecoveriesWithNext()
		attrs := append(JobAttrs(shard, claims[i].ID), slog.Int("recoveries", recoveries), slog.Int("of", most))
		attrs = append(attrs, fromNode(from)...)

		if recoveries > most {
			l.log.LogAttrs(context.Background(), slog.LevelWarn, "job recovered too often", attrs...)
		} else {
			l.log.LogAttrs(context.Background(), slog.LevelWarn, "job recovered", attrs...)
		}
	}
}

// fromNode returns the attribute that names the earlier owner. It returns no attribute if the name
// is unknown: a node learns it only from a refused acquire.
func fromNode(name string) []slog.Attr {
	if name == "" {
		return nil
	}
	return []slog.Attr{slog.String("from_node", name)}
}

// Claimed writes a line for each entity whose payloads fill a claim, which takes perJob of them, as
// often as full allows.
func (l *Jobs) Claimed(shard core.Shard, claims []core.Claim, perJob int) {
	if perJob < manyPayloads {
		return
	}
	for i := range claims {
		if c := &claims[i]; len(c.Payloads) >= perJob && l.full.Pass(time.Now(), shard.String()+" "+c.ID) {
			l.log.LogAttrs(context.Background(), slog.LevelWarn, "entity has more payloads than a claim takes",
				append(JobAttrs(shard, c.ID), slog.Int(keyPayloads, len(c.Payloads)))...)
		}
	}
}
