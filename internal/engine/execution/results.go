package execution

import (
	"context"
	"log/slog"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// result returns how job i ended with outcome o.
func (b *Batch) result(i int, o *core.Outcome, settled *core.Settlement) Result {
	r := Result{Processed: settled.Processed, Failed: settled.Failed, ended: b.end(i, o, settled)}
	if settled.Failed {
		r.Buried = b.burials(i, o)
		r.Events = b.events(i, o, settled, r.Buried)
	}
	return r
}

// ignoredOutcome returns a log line if the handler, after it had settled job i in a transaction,
// gave it another outcome that can't count once that transaction has committed. An error alone is
// not such an outcome: the commit's answer may have been lost.
func (b *Batch) ignoredOutcome(i int, committed *core.Outcome) []func() {
	o := &b.outcomes[i]
	var name string
	switch {
	case o.Kind == core.Snoozed:
		name = "Snooze"
	case o.Kind == core.Awaiting:
		name = "Await"
	case o.Kind == core.Buried:
		name = "Bury"
	case o.Kind == core.Failed && o.OwnDelay:
		name = "RetryIn"
	}

	if name == "" || o.Kind == committed.Kind {
		return nil
	}

	return []func(){func() {
		b.shard.Server.Logger.LogAttrs(context.Background(), slog.LevelWarn,
			"a handler settled a job in a committed transaction and then gave it another outcome, "+
				"which is ignored; set the outcome with job.Settle before skein.SettleIn",
			append(report.JobAttrs(b.shard.ID, b.Claims[i].ID), slog.String("outcome", name))...)
	}}
}

// burials lists what outcome o of job i sends to the morgue: first the payloads that are buried by
// themselves, then those that the job's own outcome buries.
func (b *Batch) burials(i int, o *core.Outcome) []report.Buried {
	c := &b.Claims[i]
	var list []report.Buried

	for _, m := range o.Payloads {
		if !m.Bury {
			continue
		}
		reason := report.ByHandler
		if b.undecodable[payloadOf{i, m.Position}] {
			reason = report.Undecodable
		}
		list = append(list, b.shard.buried(c, c.Payloads[m.Position:m.Position+1], reason, m.Error, m.Group))
	}

	switch o.Kind {
	case core.Buried:
		if open := unmarked(c.Payloads, o.Payloads); len(open) > 0 {
			list = append(list, b.shard.buried(c, open, report.ByHandler, o.Error, o.Group))
		}
	case core.Failed:
		if at, ok := b.shard.Queue.Policy.Exhausts(c, o); ok {
			reason := report.Exhausted
			if b.decodeFailures[i].failed {
				reason = report.Undecodable
			}
			list = append(list, b.shard.buried(c, c.Payloads[at:at+1], reason, o.Error, o.Group))
		}
	}

	return list
}

// unmarked returns the payloads that have no outcome of their own.
func unmarked(payloads []core.Payload, marks []core.PayloadOutcome) []core.Payload {
	if len(marks) == 0 {
		return payloads
	}
	var open []core.Payload
	for i, p := range payloads {
		if len(marks) > 0 && marks[0].Position == i {
			marks = marks[1:]
			continue
		}
		open = append(open, p)
	}
	return open
}

// buried returns the burial of stored payloads of a job, with the payloads as they were pushed.
func (s *Shard) buried(
	c *core.Claim, payloads []core.Payload, reason report.BuryReason, text, group string,
) report.Buried {
	return report.Buried{
		Shard:    s.ID,
		ID:       c.ID,
		Payloads: s.Queue.Merge.PushedAll(payloads),
		Reason:   reason,
		Error:    text,
		Group:    group,
	}
}

// events returns the events of how job i ended.
func (b *Batch) events(i int, o *core.Outcome, settled *core.Settlement, buried []report.Buried) []report.Event {
	c := &b.Claims[i]
	event := b.shard.event(c.ID, b.attempt(i, o))

	var list []report.Event
	exhausted := false
	for k := range buried {
		exhausted = o.Kind == core.Failed && k == len(buried)-1 && exhausts(b.shard.Queue.Policy, c, o)
		if buried[k].Reason == report.Undecodable && !exhausted {
			refused := event
			refused.Refused, refused.Text, refused.Group = true, buried[k].Error, buried[k].Group
			refused.Bytes = len(buried[k].Payloads[0].Data)
			list = append(list, refused)
		}

		attempts := c.RetryCount + 2
		if exhausted {
			attempts = event.Attempt
		}
		list = append(list, b.shard.buriedEvent(&buried[k], attempts))
	}

	if o.Kind != core.Failed || len(o.Payloads) == len(c.Payloads) {
		return list
	}

	event.Text, event.Group, event.Panicked = o.Error, o.Group, b.panics[i]
	if refused := b.decodeFailures[i]; refused.failed {
		event.Refused, event.Bytes = true, len(b.shard.Queue.Merge.Pushed(c.Payloads[refused.position]).Data)
	}

	switch {
	case b.shard.Queue.Policy.Holds(c, o):
		reason := report.Exhausted
		if event.Refused {
			reason = report.Undecodable
		}
		list = append(list, b.shard.heldEvent(c.ID, event.Attempt, o.Error, reason))
	case !exhausted:
		event.RetryIn = settled.PutBack.Delay
	}

	return append(list, event)
}

// event returns an event without its error.
func (s *Shard) event(id string, attempt int) report.Event {
	return report.Event{
		Shard: s.ID, ID: id, Attempt: attempt, Of: s.Queue.Policy.MaxRetries + 1, RetryIn: -1, Stored: s.Queue.Stored,
	}
}

// heldEvent returns the event of a job that is held.
func (s *Shard) heldEvent(id string, attempts int, text string, reason report.BuryReason) report.Event {
	e := s.event(id, attempts)
	e.Text, e.Reason = text, reason
	return e
}

// buriedEvent returns the event of payloads that went to the morgue.
func (s *Shard) buriedEvent(b *report.Buried, attempts int) report.Event {
	e := s.event(b.ID, attempts)
	e.Text, e.Payloads, e.Reason = b.Error, len(b.Payloads), b.Reason
	return e
}

// exhausts reports whether a failure uses up the job's retries.
func exhausts(p core.RetryPolicy, c *core.Claim, o *core.Outcome) bool {
	_, ok := p.Exhausts(c, o)
	return ok
}

// recoveryResult returns the result of a job that has lost its owner too often.
func (s *Shard) recoveryResult(c *core.Claim, settled *core.Settlement) Result {
	r := Result{Failed: true, ended: ports.EndedJob{
		ID: c.ID, End: ports.EndHeld, Attempt: c.RetryCount + 1, Buried: buriedPayloads(settled, len(c.Payloads)),
	}}
	if r.ended.Buried > 0 {
		r.ended.End = ports.EndBuried
	}

	if !settled.Buries() {
		r.Events = []report.Event{s.heldEvent(c.ID, c.RetryCount+1, settled.PutBack.Failures.Newest().Text, report.Recovered)}
		return r
	}

	if len(c.Payloads) > 0 {
		letter := &settled.Letter
		r.Buried = []report.Buried{
			s.buried(c, c.Payloads[:1], report.Recovered, letter.Failures.Newest().Text, letter.Group),
		}
		r.Events = []report.Event{s.buriedEvent(&r.Buried[0], c.RetryCount+1)}
	}
	return r
}
