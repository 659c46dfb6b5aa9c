package engine

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/skeinq/skein/core"
)

// logLine is a line for the log. It is collected while a lock is held and written after the lock
// is released.
type logLine struct {
	level   slog.Level
	message string
	attrs   []slog.Attr
}

// logLines writes lines to the log.
func (n *node) logLines(lines []logLine) {
	for i := range lines {
		n.log.LogAttrs(context.Background(), lines[i].level, lines[i].message, lines[i].attrs...)
	}
}

// jobAttrs returns the attributes that name a job.
func (s *shardInfo) jobAttrs(id string) []slog.Attr {
	return []slog.Attr{slog.String(keyQueue, s.id.Queue), slog.String(keyShard, s.id.String()), slog.String(keyID, id)}
}

// error returns the message of the event's error: the one that its stored text stands for or, of a
// panic, its value.
func (e *jobEvent) error() string {
	if e.panicked != nil {
		return core.CutText(fmt.Sprintf("panic: %v", e.panicked.Value), core.MaxErrorBytes)
	}
	return e.shard.queue.Stored(e.text)
}

// attemptAttrs returns the attributes of an execution that failed.
func (e *jobEvent) attemptAttrs() []slog.Attr {
	attrs := append(e.shard.jobAttrs(e.id), slog.Int("attempt", e.attempt), slog.Int("of", e.shard.queue.Policy.MaxRetries+1))
	if e.retryIn >= 0 {
		attrs = append(attrs, slog.Duration("retry_in", e.retryIn))
	}
	return append(attrs, slog.String(keyError, e.error()))
}

// each writes the line of one failure.
func (l *jobLog) each(e *jobEvent) {
	l.log.LogAttrs(context.Background(), slog.LevelDebug, "job failed", e.attemptAttrs()...)
}

// failed writes the line of one or more failures of a group.
func (l *jobLog) failed(e *jobEvent, group string, count int) {
	l.log.LogAttrs(context.Background(), slog.LevelWarn, "job failed",
		append(e.attemptAttrs(), slog.String("group", group), slog.Int(keyCount, count))...)
}

// panickedAt writes the line of one or more panics at a place.
func (l *jobLog) panickedAt(e *jobEvent, place string, count int) {
	l.log.LogAttrs(context.Background(), slog.LevelError, "handler panicked",
		append(e.attemptAttrs(), slog.String("place", place), slog.Int(keyCount, count), slog.String("stack", string(e.panicked.Stack)))...)
}

// refused writes the line of one or more payloads that the codec refuses.
func (l *jobLog) refused(e *jobEvent, group string, count int) {
	l.log.LogAttrs(context.Background(), slog.LevelWarn, "payload refused by the codec",
		append(e.shard.jobAttrs(e.id), slog.Int("bytes", e.bytes), slog.String(keyError, e.error()), slog.String("group", group), slog.Int(keyCount, count))...)
}

// buried writes the line of a burial.
func (l *jobLog) buried(e *jobEvent) {
	l.log.LogAttrs(context.Background(), slog.LevelWarn, "job buried",
		append(e.shard.jobAttrs(e.id), slog.Int("attempts", e.attempt), slog.Int(keyPayloads, e.payloads),
			slog.String("by", e.reason.String()), slog.String(keyError, e.error()))...)
}

// holdsJob writes the line of a job that is held.
func (l *jobLog) holdsJob(e *jobEvent) {
	l.log.LogAttrs(context.Background(), slog.LevelWarn, "job held",
		append(e.shard.jobAttrs(e.id), slog.Int("attempts", e.attempt), slog.String("by", e.reason.String()), slog.String(keyError, e.error()))...)
}

// tookOver writes the line of a lease that recovers jobs of an earlier one, within the rate.
func (l *jobLog) tookOver(s *shardInfo, from string, token int64, jobs int) {
	if l.takeovers.Pass(time.Now(), s.id.Queue) {
		attrs := []slog.Attr{slog.String(keyQueue, s.id.Queue), slog.String(keyShard, s.id.String()), slog.Int64("token", token), slog.Int("jobs", jobs)}
		l.log.LogAttrs(context.Background(), slog.LevelInfo, "lease taken over", append(attrs, fromNode(from)...)...)
	}
}

// recovers writes a line for each job that a shard's new owner recovers, within the rate.
func (l *jobLog) recovers(s *shardInfo, from string, claims []core.Claim) {
	now := time.Now()
	for i := range claims {
		if !l.recovered.Pass(now, s.id.Queue) {
			continue
		}
		attrs := append(s.jobAttrs(claims[i].ID), slog.Int("recoveries", claims[i].Recoveries+1), slog.Int("of", s.queue.Policy.MaxRecoveries))
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

// claimed writes a line for each entity whose payloads fill a claim, as often as full allows.
func (l *jobLog) claimed(s *shardInfo, claims []core.Claim) {
	if s.queue.PerJob < manyPayloads {
		return
	}
	for i := range claims {
		if c := &claims[i]; len(c.Payloads) >= s.queue.PerJob && l.full.Pass(time.Now(), s.id.String()+" "+c.ID) {
			l.log.LogAttrs(context.Background(), slog.LevelWarn, "entity has more payloads than a claim takes",
				append(s.jobAttrs(c.ID), slog.Int(keyPayloads, len(c.Payloads)))...)
		}
	}
}
