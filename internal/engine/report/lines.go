package report

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/skeinq/skein/core"
)

// JobAttrs returns the attributes that name a job.
func JobAttrs(shard core.Shard, id string) []slog.Attr {
	return []slog.Attr{slog.String(keyQueue, shard.Queue), slog.String(keyShard, shard.String()), slog.String(keyID, id)}
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
		append(e.attemptAttrs(), slog.String("place", place), slog.Int(keyCount, count), slog.String("stack", string(e.Panicked.Stack)))...)
}

// refused writes the line of one or more payloads that the codec refuses.
func (l *Jobs) refused(e *Event, group string, count int) {
	l.log.LogAttrs(context.Background(), slog.LevelWarn, "payload refused by the codec",
		append(JobAttrs(e.Shard, e.ID), slog.Int("bytes", e.Bytes), slog.String(keyError, e.error()), slog.String("group", group), slog.Int(keyCount, count))...)
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
		append(JobAttrs(e.Shard, e.ID), slog.Int("attempts", e.Attempt), slog.String("by", e.Reason.String()), slog.String(keyError, e.error()))...)
}

// Mishap reports whether to log now that a user's function has panicked or is misused. It is true
// once in a while for a key.
func (l *Jobs) Mishap(key string) bool { return l.mishaps.Pass(time.Now(), key) }

// TookOver writes the line of a lease that recovers jobs of an earlier one, within the rate.
func (l *Jobs) TookOver(shard core.Shard, from string, token int64, jobs int) {
	if l.takeovers.Pass(time.Now(), shard.Queue) {
		attrs := []slog.Attr{slog.String(keyQueue, shard.Queue), slog.String(keyShard, shard.String()), slog.Int64("token", token), slog.Int("jobs", jobs)}
		l.log.LogAttrs(context.Background(), slog.LevelInfo, "lease taken over", append(attrs, fromNode(from)...)...)
	}
}

// Recovers writes a line for each job that a shard's new owner recovers, within the rate. A job may
// be recovered most times.
func (l *Jobs) Recovers(shard core.Shard, from string, claims []core.Claim, most int) {
	now := time.Now()
	for i := range claims {
		if !l.recovered.Pass(now, shard.Queue) {
			continue
		}
		attrs := append(JobAttrs(shard, claims[i].ID), slog.Int("recoveries", claims[i].Recoveries+1), slog.Int("of", most))
		l.log.LogAttrs(context.Background(), slog.LevelWarn, "job recovered", append(attrs, fromNode(from)...)...)
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
