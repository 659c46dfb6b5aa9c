package engine

import (
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/report"
)

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
		if at, ok := b.shard.queue.Policy.Exhausts(c, o); ok {
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

func (s *shardInfo) buried(c *core.Claim, payloads []core.Payload, reason report.BuryReason, text, group string) report.Buried {
	return report.Buried{Shard: s.id, ID: c.ID, Payloads: payloads, Reason: reason, Error: text, Group: group}
}
