package memory

import (
	"bytes"
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// morgue is the dead letters of a shard. Payload lists in it are replaced, never
// changed, so replies may share them.
type morgue struct {
	entries map[string]*core.DeadLetter
	byTime  sorted[*core.DeadLetter]
	byID    sorted[*core.DeadLetter]
}

func deadByTime(d *core.DeadLetter) place { return place{int64(d.ChangedAt), d.ID} }
func deadByID(d *core.DeadLetter) place   { return place{0, d.ID} }

// bury unites an entry with what is there for its id.
func (m *morgue) bury(d core.DeadLetter) {
	if there := m.entries[d.ID]; there != nil {
		m.replace(there, core.MergeDeadLetters(*there, d))
		return
	}
	if m.entries == nil {
		m.entries = make(map[string]*core.DeadLetter)
	}
	m.entries[d.ID] = &d
	m.byTime.Insert(deadByTime(&d), &d)
	m.byID.Insert(deadByID(&d), &d)
}

func (m *morgue) replace(there *core.DeadLetter, by core.DeadLetter) {
	m.byTime.Delete(deadByTime(there))
	*there = by
	m.byTime.Insert(deadByTime(there), there)
}

// take removes the payloads that are named, nil for all, and returns them.
func (m *morgue) take(d *core.DeadLetter, named [][]byte) []core.Payload {
	taken := d.Payloads
	if named != nil {
		var rest []core.Payload
		taken, rest = split(d.Payloads, named)
		if len(rest) > 0 {
			d.Payloads = rest
			return taken
		}
	}
	delete(m.entries, d.ID)
	m.byTime.Delete(deadByTime(d))
	m.byID.Delete(deadByID(d))
	return taken
}

// split parts payloads into those that are named and the rest, in order.
func split(payloads []core.Payload, named [][]byte) (in, out []core.Payload) {
	set := make(map[string]bool, len(named))
	for _, data := range named {
		set[string(data)] = true
	}
	for _, p := range payloads {
		if set[string(p.Data)] {
			in = append(in, p)
		} else {
			out = append(out, p)
		}
	}
	return in, out
}

// step takes payloads out of the entries that a step chooses and hands them to
// use with their id.
func (m *morgue) step(r *ports.DeadLetterStep, use func(id string, payloads []core.Payload)) ports.StepReply {
	var reply ports.StepReply
	if r.DeadLetters != nil {
		for _, ref := range r.DeadLetters {
			d := m.entries[ref.ID]
			if d == nil {
				continue
			}
			if taken := m.take(d, ref.Payloads); len(taken) > 0 {
				reply.Handled++
				use(ref.ID, taken)
			}
		}
		return reply
	}
	for d, ok := m.oldest(r.Before); ok; d, ok = m.oldest(r.Before) {
		if reply.Handled == r.Size() {
			reply.More = true
			return reply
		}
		reply.Handled++
		use(d.ID, m.take(d, nil))
	}
	return reply
}

// oldest is the entry longest unchanged, if that was before an instant.
func (m *morgue) oldest(before core.Instant) (*core.DeadLetter, bool) {
	d, ok := m.byTime.First()
	return d, ok && d.ChangedAt < before
}

// Revive implements ports.Operator.
func (s *Store) Revive(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	return s.b.step(ctx, r.Shard, func(sh *shard, now core.Instant) ports.StepReply {
		return sh.morgue.step(&r, func(id string, payloads []core.Payload) {
			sh.revive(id, payloads, now)
		})
	})
}

func (s *shard) revive(id string, payloads []core.Payload, now core.Instant) {
	e := s.entity(id)
	e.payloads.Merge(payloads)
	if e.queued {
		s.restate(e, core.MergeRevive(e.State, now))
		return
	}
	s.enqueue(e, core.Revived(now))
}

// Purge implements ports.Operator.
func (s *Store) Purge(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	return s.b.step(ctx, r.Shard, func(sh *shard, _ core.Instant) ports.StepReply {
		return sh.morgue.step(&r, func(string, []core.Payload) {})
	})
}

// Edit implements ports.Operator.
func (s *Store) Edit(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	return s.b.step(ctx, r.Shard, func(sh *shard, now core.Instant) ports.StepReply {
		return ports.StepReply{Handled: sh.morgue.edit(&r, now)}
	})
}

func (m *morgue) edit(r *ports.EditRequest, now core.Instant) int {
	d := m.entries[r.ID]
	if d == nil {
		return 0
	}
	at := slices.IndexFunc(d.Payloads, func(p core.Payload) bool { return bytes.Equal(p.Data, r.Old) })
	if at < 0 {
		return 0
	}
	edited := d.Payloads[at]
	edited.Data = r.New
	rest := slices.Concat(d.Payloads[:at], d.Payloads[at+1:])
	m.replace(d, core.DeadLetter{
		ID:        d.ID,
		Payloads:  core.MergePayloads(rest, []core.Payload{edited}),
		ChangedAt: now,
		Error:     d.Error,
	})
	return 1
}
