package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// partlyReached is a store that can't be asked for the head of one shard while it is active.
type partlyReached struct {
	*memory.Store
	missing core.Shard
	active  func() bool
}

func (p partlyReached) Heads(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
	reply, err := p.Store.Heads(ctx, shards)
	if i := slices.Index(shards, p.missing); err == nil && i >= 0 && p.active() {
		reply.Heads[i], reply.Unreached = core.Head{}, []core.Shard{p.missing}
	}
	return reply, err
}

func TestAShardThatAPollDoesNotReachIsAskedAgainAndStopsNoOther(t *testing.T) {
	inWorld(t, func(w *world) {
		const from = 10*time.Second + poll/2
		active := false

		a := w.audit()
		n := w.start(a.watch(succeed), shards(3), noWakeups, func(s *setup) {
			s.link.ShardStore = partlyReached{s.link.ShardStore.(*memory.Store), shardOfQueue(1),
				func() bool { return active }}
		})

		w.sleepUntil(from)
		n.link.change(func() { active = true })
		turns := len(n.link.turnsSent())
		w.sleepUntil(from + 3*poll)
		if more := n.link.turnsSent()[turns:]; len(more) > 0 {
			w.Errorf("the poll missed a shard and %d turns were made, want none: %+v", len(more), more)
		}

		for i := range 3 {
			w.push(idIn(i, 3), "x")
		}
		w.sleep(poll + poll/4)
		for _, i := range []int{0, 2} {
			w.within("a job beside it", a.wantRuns(idIn(i, 3), 1)[0].at, from+3*poll, from+4*poll)
		}
		a.wantRuns(idIn(1, 3), 0)

		w.sleepUntil(from + 6*poll)
		n.wantLines(1, "the store fails", "1 of 3 shards", "orders/1")
		n.link.change(func() { active = false })
		w.sleep(poll + poll/4)
		a.wantRuns(idIn(1, 3), 1)
		n.wantLines(1, "answers again", "doing=poll")
	})
}
