package memory

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Push implements [ports.Producer]. It stores all entries or none, one shard after
// another.
func (s *Store) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	if err := r.Validate(); err != nil {
		return ports.PushReply{}, err
	}

	q, err := s.b.queue(ctx, r.Queue)
	if err == nil {
		q.forgetMu.RLock()
		defer q.forgetMu.RUnlock()
		err = q.checkLayout(r.Shards, r.Generation)
	}
	if err != nil {
		return ports.PushReply{}, storekit.NothingStored(len(r.Entries), err)
	}
	if len(r.Entries) == 0 {
		return ports.PushReply{Now: s.b.now()}, nil
	}

	var reply ports.PushReply
	var room [16]storekit.Routed // so that small pushes don't allocate a list
	for remaining := storekit.Route(room[:0], r.Entries, r.Shards); len(remaining) > 0; {
		var entries []storekit.Routed
		entries, remaining = storekit.CutShard(remaining)
		s.b.pushTo(q.shards[entries[0].Shard], &r, entries, &reply)
	}
	return reply, nil
}

// pushTo pushes some of a request's entries to their shard, and adds what they met to the reply.
func (b *backend) pushTo(sh *shard, r *ports.PushRequest, entries []storekit.Routed, reply *ports.PushReply) {
	sh.mu.Lock()
	defer sh.mu.Unlock()

	before := sh.head()
	reply.Now = b.now()
	for _, entry := range entries {
		sh.push(&r.Entries[entry.Position], r, reply)
	}
	sh.once.prune(reply.Now)
	sh.wakeIfEarlier(before)
}

// push pushes one entry at the reply's now, and counts what it met there.
func (s *shard) push(entry *core.Entry, r *ports.PushRequest, reply *ports.PushReply) {
	now := reply.Now
	p := entry.Payload
	p.Score = core.NormalScore(p.Score)
	if r.DropStale && s.past.mark(entry.ID).Covers(p.Score) {
		s.stale++
		reply.Stale++
		return
	}
	if entry.OnceIn > 0 && !s.once.accept(entry, r.Stamped, now) {
		s.repeated++
		reply.Repeated++
		return
	}

	pushed := entry.State(now)

	e := s.entity(entry.ID)
	added, superseded := e.payloads.AddBy(s.rule(), p)
	s.superseded += int64(superseded)

	switch {
	case !e.queued:
		reply.New++
		s.enqueue(e, pushed)
		return
	case added:
		reply.Merged++
	case superseded > 0:
		reply.Superseded++
	default:
		reply.Duplicate++
	}

	s.restate(e, core.MergePush(e.State, pushed, entry.When.Rule(r.Rule)))
}
