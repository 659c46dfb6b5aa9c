package memory

import (
	"bytes"
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// morgue is the dead letters of a shard. Its payload lists are replaced, never changed, so replies
// may share them.
type morgue struct {
	shard       *shard
	deadLetters map[string]*core.DeadLetter
	byTime      sorted[*core.DeadLetter]
	byID        sorted[*core.DeadLetter]
	// byGroup has the dead letters of each group by time, and groups their counts.
	byGroup map[string]*sorted[*core.DeadLetter]
	groups  core.Groups
}

// Revive implements [ports.Operator].
func (s *Store) Revive(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return s.b.step(ctx, r.Shard, r.Validate(), func(sh *shard, now core.Instant) ports.StepReply {
		return sh.morgue.step(&r, func(d *core.DeadLetter, payloads []core.Payload) {
			if r.Unmark && sh.past.mark(d.ID).Covers(payloads[0].Score) {
				sh.past.unmark(d.ID)
			}
			sh.revive(d, payloads, now)
		})
	})
}

// revive puts payloads of a dead letter back into the queue.
func (s *shard) revive(d *core.DeadLetter, payloads []core.Payload, now core.Instant) {
	e := s.entity(d.ID)
	s.superseded += int64(e.payloads.MergeBy(s.rule(), payloads))
	if e.queued {
		s.restate(e, core.MergeRevive(e.State, d.Tags, now))
		return
	}
	s.enqueue(e, core.Revived(d.Tags, now))
}

// Purge implements [ports.Operator].
func (s *Store) Purge(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return s.b.step(ctx, r.Shard, r.Validate(), func(sh *shard, _ core.Instant) ports.StepReply {
		return sh.morgue.step(&r, func(*core.DeadLetter, []core.Payload) {})
	})
}

// Edit implements [ports.Operator].
func (s *Store) Edit(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
	return s.b.step(ctx, r.Shard, r.Validate(), func(sh *shard, now core.Instant) ports.StepReply {
		if r.Queued {
			return ports.StepReply{Handled: sh.edit(&r)}
		}
		return ports.StepReply{Handled: sh.morgue.edit(&r, now)}
	})
}

// edit replaces a payload of a queued job, and returns the number of replaced ones.
func (s *shard) edit(r *ports.EditRequest) int {
	e := s.queued(r.ID)
	if e == nil {
		return 0
	}
	list := e.payloads.List()
	at := slices.IndexFunc(list, func(p core.Payload) bool { return bytes.Equal(p.Data, r.Old) })
	if at < 0 {
		return 0
	}

	edited := list[at]
	e.payloads.Remove([]core.Payload{edited})
	edited.Data = r.New
	s.superseded += int64(e.payloads.MergeBy(s.rule(), []core.Payload{edited}))
	return 1
}

func (m *morgue) edit(r *ports.EditRequest, now core.Instant) int {
	d := m.deadLetters[r.ID]
	if d == nil {
		return 0
	}
	at := slices.IndexFunc(d.Payloads, func(p core.Payload) bool { return bytes.Equal(p.Data, r.Old) })
	if at < 0 {
		return 0
	}

	edited := d.Payloads[at]
	edited.Data = r.New
	remaining := slices.Concat(d.Payloads[:at], d.Payloads[at+1:])
	merged, superseded := m.shard.rule().Merge(remaining, []core.Payload{edited})
	m.shard.superseded += int64(superseded)

	changed := *d
	changed.Payloads, changed.ChangedAt = merged, now
	m.replace(d, changed)
	return 1
}

// isStale reports whether a named payload of a dead letter is stale, or any for nil.
func (m *morgue) isStale(d *core.DeadLetter, named [][]byte) bool {
	mark := m.shard.past.mark(d.ID)
	return slices.ContainsFunc(d.Payloads, func(p core.Payload) bool {
		return mark.Covers(p.Score) && (named == nil ||
			slices.ContainsFunc(named, func(data []byte) bool { return bytes.Equal(data, p.Data) }))
	})
}

// step removes the payloads that a step chooses, up to its bounds, and calls use with those of
// each dead letter.
func (m *morgue) step(r *ports.DeadLetterStep, use func(d *core.DeadLetter, payloads []core.Payload)) ports.StepReply {
	var (
		reply ports.StepReply
		bound core.Bound
	)

	remove := func(d *core.DeadLetter, named [][]byte) (changed, finished bool) {
		taken, finished := m.remove(d, named, &bound)
		if len(taken) > 0 {
			use(d, taken)
		}
		return len(taken) > 0, finished
	}

	if r.DeadLetters != nil {
		stale := 0
		reply = namedStep(len(r.DeadLetters), func(at int) (changed, finished bool) {
			ref := &r.DeadLetters[at]
			d := m.deadLetters[ref.ID]
			if d == nil || r.Before > 0 && d.ChangedAt >= r.Before {
				return false, true
			}
			if r.Fresh && m.isStale(d, ref.Payloads) {
				stale++
				return false, true
			}
			return remove(d, ref.Payloads)
		})
		reply.Stale = stale
		return reply
	}

	for d, ok := m.oldest(r); ok; d, ok = m.oldest(r) {
		reply.More = reply.Handled == r.Size()
		if !reply.More {
			_, finished := remove(d, nil)
			reply.More = !finished
		}
		if reply.More {
			break
		}
		reply.Handled++
	}
	return reply
}

// oldest returns the dead letter that has been unchanged for longest, among those that a step
// without named dead letters selects and does not keep.
func (m *morgue) oldest(r *ports.DeadLetterStep) (*core.DeadLetter, bool) {
	if int64(len(m.deadLetters)) <= r.Keep {
		return nil, false
	}
	d, ok := m.listByTime(r.Group).First()
	return d, ok && d.ChangedAt < r.Before
}

// remove removes the named payloads, or all if named is nil, from a dead letter, up to a bound. It
// returns the removed payloads, and reports whether these are all that it should remove. A dead
// letter without payloads is dropped.
func (m *morgue) remove(d *core.DeadLetter, named [][]byte, bound *core.Bound) (taken []core.Payload, finished bool) {
	chosen, remaining := d.Payloads, []core.Payload(nil)
	if named != nil {
		chosen, remaining = partition(d.Payloads, named)
	}

	n := bound.Take(chosen)
	taken, finished = chosen[:n:n], n == len(chosen)
	switch {
	case finished && len(remaining) == 0:
		delete(m.deadLetters, d.ID)
		m.unlist(d)
		m.byID.Delete(deadLetterByID(d))
		m.groups.Leave(d.Group)
	case finished:
		d.Payloads = remaining
	case len(remaining) == 0:
		d.Payloads = chosen[n:]
	default:
		d.Payloads = core.MergePayloads(chosen[n:], remaining)
	}
	return taken, finished
}

// partition splits payloads into those that are named and the others, in order.
func partition(payloads []core.Payload, named [][]byte) (in, out []core.Payload) {
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

func deadLetterByTime(d *core.DeadLetter) place { return place{int64(d.ChangedAt), d.ID} }
func deadLetterByID(d *core.DeadLetter) place   { return place{0, d.ID} }

// bury adds a dead letter, merged with the one of its id if there is one.
func (m *morgue) bury(d core.DeadLetter) {
	if known := m.deadLetters[d.ID]; known != nil {
		d.Group = m.groups.Bury(known.Group, d.Group, d.ChangedAt)
		merged, superseded := core.MergeDeadLetters(*known, d, m.shard.rule())
		m.shard.superseded += int64(superseded)
		m.replace(known, merged)
		return
	}
	m.addNew(d)
}

// addNew adds a dead letter of an id that has none, as much of it as the merge rule keeps.
func (m *morgue) addNew(d core.DeadLetter) {
	payloads, superseded := m.shard.rule().Merge(nil, d.Payloads)
	m.shard.superseded += int64(superseded)
	d.Payloads, d.Group = payloads, m.groups.Bury("", d.Group, d.ChangedAt)
	m.add(d)
}

// add adds a dead letter of an id that has none.
func (m *morgue) add(d core.DeadLetter) {
	if m.deadLetters == nil {
		m.deadLetters = make(map[string]*core.DeadLetter)
	}
	m.deadLetters[d.ID] = &d
	m.byID.Insert(deadLetterByID(&d), &d)
	m.list(&d)
}

// replace changes a dead letter; its id stays.
func (m *morgue) replace(d *core.DeadLetter, by core.DeadLetter) {
	m.unlist(d)
	*d = by
	m.list(d)
}
