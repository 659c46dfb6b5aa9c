package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// lateOrphans is a store that can't reach what earlier leases left when it is asked
// for a shard, and hands it over with the next turn.
type lateOrphans struct {
	*memory.Store
	left *[]core.Claim
}

func (l lateOrphans) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	reply, err := l.Store.Acquire(ctx, r)
	*l.left, reply.Claims = reply.Claims, nil
	return reply, err
}

func (l lateOrphans) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	reply, err := l.Store.Turn(ctx, r)
	if err == nil {
		reply.Orphans, *l.left = *l.left, nil
	}
	return reply, err
}

func TestWhatTheStoreHandsOverWithATurnIsRecovered(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(untilCancelled))
		w.sleep(poll)
		w.push("job", "x")
		n.cutOff()
		w.start(a.watch(succeed), func(s *setup) {
			s.link.ShardStore = lateOrphans{s.link.ShardStore.(*memory.Store), new([]core.Claim)}
		})
		w.sleep(2 * ttl)
		runs := a.wantRuns("job", 2)
		if runs[1].recoveries != 1 {
			w.Errorf("Recoveries %d, want 1", runs[1].recoveries)
		}
		w.within("the second execution", runs[1].at, ttl, ttl+5*time.Second+poll)
		w.wantCounts(0, 0, 1, 0)
	})
}
