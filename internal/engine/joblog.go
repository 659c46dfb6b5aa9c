package engine

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/skeinq/skein/core"
)

// Keys of what is logged of jobs. They are stable: ServerOptions.Logger lists them for users.
const (
	keyQueue    = "queue"
	keyShard    = "shard"
	keyID       = "id"
	keyRetry    = "retry"
	keyNext     = "next"
	keyReason   = "reason"
	keyPayloads = "payloads"
	keyError    = "error"
	keyStack    = "stack"
)

// logLine is a line for the log, collected while a lock is held and written after it is released.
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

// resultLines returns the log lines for how job i ended: one if it failed, and one for each
// burial that its failure's line does not name.
func (b *Batch) resultLines(i int, o *core.Outcome, settled *core.Settlement, buried []Buried) []logLine {
	c := &b.Claims[i]
	var list []logLine
	exhausted := false
	for k := range buried {
		if o.Kind == core.Failed && k == len(buried)-1 && exhausts(b.shard.queue.Policy, c, o) {
			exhausted = true
			continue
		}
		list = append(list, b.shard.burialLine(&buried[k]))
	}
	if o.Kind != core.Failed || len(o.Payloads) == len(c.Payloads) {
		return list
	}
	return append(list, b.failureLine(i, o, settled, exhausted))
}

// failureLine is the line for a job that failed and is retried, or whose retries are used up.
func (b *Batch) failureLine(i int, o *core.Outcome, settled *core.Settlement, exhausted bool) logLine {
	c, panicked, refused := &b.Claims[i], b.panics[i], b.decodeFailures[i].failed
	n := logLine{level: slog.LevelWarn, message: "skein: a job failed"}
	if panicked != nil {
		n.level, n.message = slog.LevelError, "skein: a handler panicked"
	}
	if refused {
		n.message = "skein: a payload can't be decoded"
	}
	n.attrs = append(b.shard.jobAttrs(c.ID), slog.Int(keyRetry, c.RetryCount+1))
	if exhausted {
		reason := Exhausted
		if refused {
			reason = Undecodable
		}
		n.message += "; the retries are used up, and one payload goes to the morgue"
		n.attrs = append(n.attrs, slog.String(keyReason, reason.String()), slog.Int(keyPayloads, 1))
	} else {
		n.message += "; the job is retried"
		n.attrs = append(n.attrs, slog.Time(keyNext, b.shard.node.clock.now().Add(settled.PutBack.Delay).Time()))
	}
	n.attrs = append(n.attrs, b.errorAttrs(panicked, o.Error)...)
	return n
}

// exhausts reports whether a failure uses up the job's retries.
func exhausts(p core.RetryPolicy, c *core.Claim, o *core.Outcome) bool {
	_, ok := p.Exhausts(c, o)
	return ok
}

// errorAttrs returns the attributes of an error: the message that its stored text stands for or,
// of a panic, its value and its stack.
func (b *Batch) errorAttrs(panicked *PanicError, text string) []slog.Attr {
	if panicked == nil {
		return []slog.Attr{slog.String(keyError, b.shard.queue.Stored(text))}
	}
	return []slog.Attr{
		slog.String(keyError, fmt.Sprintf("panic: %v", panicked.Value)), slog.String(keyStack, string(panicked.Stack)),
	}
}

// burialLine is the line for payloads that went to the morgue other than by a failure.
func (s *shardInfo) burialLine(b *Buried) logLine {
	n := logLine{level: slog.LevelWarn, attrs: s.jobAttrs(b.ID)}
	switch b.Reason {
	case Undecodable:
		n.message = "skein: a payload can't be decoded and goes to the morgue"
	case Recovered:
		n.message = "skein: a job has lost its process too often, and one payload goes to the morgue"
	default:
		n.message = "skein: a handler buried payloads"
	}
	n.attrs = append(n.attrs, slog.String(keyReason, b.Reason.String()), slog.Int(keyPayloads, len(b.Payloads)),
		slog.String(keyError, s.queue.Stored(b.Error)))
	return n
}
