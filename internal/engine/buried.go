package engine

import (
	"fmt"

	"github.com/skeinq/skein/core"
)

// BuryReason is why payloads went to the morgue.
type BuryReason uint8

const (
	// Exhausted means that the retries of the payload's job were used up.
	Exhausted BuryReason = iota + 1
	// ByHandler means that a handler has buried the payload.
	ByHandler
	// Undecodable means that the codec refuses the payload.
	Undecodable
	// Recovered means that the payload's job has lost its process too often.
	Recovered
)

// String returns the reason in a word, as it is logged.
func (r BuryReason) String() string {
	switch r {
	case Exhausted:
		return "retries"
	case ByHandler:
		return "handler"
	case Undecodable:
		return "codec"
	case Recovered:
		return "recovery"
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Buried has the payloads of one job that went to the morgue at once, for one reason.
type Buried struct {
	Shard    core.Shard
	ID       string
	Payloads []core.Payload
	Reason   BuryReason
	// Error is the text that is stored with the payloads, and Group the group of their dead letters.
	Error string
	Group string
}

// burials lists what outcome o of job i sends to the morgue: first the payloads that are buried by
// themselves, then those that the job's own outcome buries.
func (b *Batch) burials(i int, o *core.Outcome) []Buried {
	c := &b.Claims[i]
	var list []Buried
	for _, m := range o.Payloads {
		if !m.Bury {
			continue
		}
		reason := ByHandler
		if b.undecodable[payloadOf{i, m.Position}] {
			reason = Undecodable
		}
		list = append(list, b.shard.buried(c, c.Payloads[m.Position:m.Position+1], reason, m.Error, m.Group))
	}
	switch o.Kind {
	case core.Buried:
		if open := unmarked(c.Payloads, o.Payloads); len(open) > 0 {
			list = append(list, b.shard.buried(c, open, ByHandler, o.Error, o.Group))
		}
	case core.Failed:
		if at, ok := b.shard.queue.Policy.Exhausts(c, o); ok {
			reason := Exhausted
			if b.decodeFailures[i].failed {
				reason = Undecodable
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

func (s *shardInfo) buried(c *core.Claim, payloads []core.Payload, reason BuryReason, text, group string) Buried {
	return Buried{Shard: s.id, ID: c.ID, Payloads: payloads, Reason: reason, Error: text, Group: group}
}
