package memory

import (
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Push implements ports.Producer. It either stores all entries or none, though
// not all shards at one instant.
func (s *Store) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	if err := r.Validate(); err != nil {
		return ports.PushReply{}, err
	}
	q, err := s.b.queue(ctx, r.Queue)
	if err == nil {
		q.use.RLock()
		defer q.use.RUnlock()
		err = q.check(r.Shards, r.Generation)
	}
	if err != nil {
		return ports.PushReply{}, &ports.PushError{Entries: positions(len(r.Entries)), Err: err}
	}
	if len(r.Entries) == 0 {
		return ports.PushReply{Now: s.b.now()}, nil
	}
	var reply ports.PushReply
	var few [16]routed // spares small pushes the memory
	for rest := byShard(few[:0], r.Entries, r.Shards); len(rest) > 0; {
		index, n := rest[0].shard, 1
		for n < len(rest) && rest[n].shard == index {
			n++
		}
		reply.Now = s.b.pushTo(q.shards[index], &r, rest[:n])
		rest = rest[n:]
	}
	return reply, nil
}

// routed is an entry's shard and its position in the request.
type routed struct{ shard, entry int }

// byShard groups entries by shard, each group in the order of the request, and
// appends them to a list.
func byShard(list []routed, entries []core.Entry, shards int) []routed {
	list = slices.Grow(list, len(entries))
	for i := range entries {
		list = append(list, routed{core.ShardOf(entries[i].ID, shards), i})
	}
	slices.SortFunc(list, func(a, b routed) int {
		if a.shard != b.shard {
			return a.shard - b.shard
		}
		return a.entry - b.entry
	})
	return list
}

func (b *backend) pushTo(sh *shard, r *ports.PushRequest, entries []routed) core.Instant {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now, before := b.now(), sh.head()
	for _, at := range entries {
		sh.push(&r.Entries[at.entry], r.Rule, now)
	}
	sh.wakeIfEarlier(before)
	return now
}

func (s *shard) push(entry *core.Entry, rule core.PushRule, now core.Instant) {
	p := entry.Payload
	p.Score = core.NormalScore(p.Score)
	coming := core.Pushed(entry.When, now)
	e := s.entity(entry.ID)
	e.payloads.Add(p)
	if e.queued {
		s.restate(e, core.MergePush(e.State, coming, rule))
		return
	}
	s.enqueue(e, coming)
}

func positions(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
