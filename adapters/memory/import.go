package memory

import (
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Import implements [ports.Operator].
func (s *Store) Import(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	q, err := s.b.queue(ctx, r.Shard.Queue)
	if err != nil {
		return ports.StepReply{}, err
	}

	q.forgetMu.RLock()
	defer q.forgetMu.RUnlock()
	if err := q.checkLayout(r.Shards, r.Generation); err != nil {
		return ports.StepReply{}, err
	}

	running := false
	reply, err := s.b.step(ctx, r.Shard, nil, func(sh *shard, now core.Instant) ports.StepReply {
		if running = r.OnlyPaused && !q.paused.Load(); running {
			return ports.StepReply{}
		}

		reply := ports.StepReply{Reached: r.Entries(), Handled: r.Entries() - len(r.DeadLetters)}
		for i := range r.Jobs {
			sh.bringIn(r.Jobs[i], now)
		}
		for i := range r.Past {
			sh.past.bringIn(r.Past[i].Stored(r.Past[i].ID, r.Past[i].DoneAt))
		}
		for _, m := range r.Marks {
			sh.past.bringInMark(m)
		}
		for _, d := range r.DeadLetters {
			d.Payloads = normal(d.Payloads)
			if sh.morgue.bringIn(d) {
				reply.Handled++
			}
		}
		return reply
	})

	if running {
		return ports.StepReply{}, storekit.NotPaused(r.Shard)
	}
	return reply, err
}

// normal returns a copy of payloads with their scores as they are stored.
func normal(payloads []core.Payload) []core.Payload {
	payloads = slices.Clone(payloads)
	for i := range payloads {
		payloads[i].Score = core.NormalScore(payloads[i].Score)
	}
	return payloads
}

// bringIn adds a job of another queue.
func (s *shard) bringIn(j core.Job, now core.Instant) {
	j.FirstPush, j.Slot = min(j.FirstPush, now), ""
	e := s.entity(j.ID)
	s.superseded += int64(e.payloads.MergeBy(s.rule(), normal(j.Payloads)))
	if e.queued {
		s.restate(e, core.MergeImport(e.State, j.State))
		return
	}
	s.enqueue(e, j.State)
}

// bringIn adds a dead letter of another store, and reports whether that changed anything.
func (m *morgue) bringIn(d core.DeadLetter) bool {
	known := m.deadLetters[d.ID]
	if known == nil {
		m.addNew(d)
		return true
	}

	merged, changed, superseded := core.MergeImported(*known, d, m.shard.rule())
	m.shard.superseded += int64(superseded)
	if !changed {
		return false
	}
	if merged.ChangedAt > known.ChangedAt {
		merged.Group = m.groups.Bury(known.Group, d.Group, d.ChangedAt)
	}

	m.replace(known, merged)
	return true
}
