package dispatch_test

import (
	"math"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/dispatch"
)

// belt is a pool with one shard that never runs out of jobs.
type belt struct {
	node    dispatch.Node
	pool    *dispatch.Pool
	shard   *dispatch.Shard
	lanes   []dispatch.Lane
	actions []dispatch.Action
	waiting int
	now     dispatch.Now
}

func newBelt(lanes int) *belt {
	b := &belt{lanes: make([]dispatch.Lane, lanes), now: dispatch.Now{Local: scriptStart, Store: 1}}
	b.node.Config = dispatch.Config{PollInterval: time.Second, LeaseTTL: 30 * time.Second, Prefetch: 256}
	b.pool = b.node.NewPool(nil, lanes)
	limit := b.node.NewLimit()
	limit.Change(dispatch.Bounds{Lanes: lanes}, nil, b.now)
	b.shard = b.pool.NewShard(nil, 1, limit)
	c := core.SchedulerConfig{Shards: core.Shards("orders", 1), PollInterval: time.Second}
	order, _ := dispatch.NewOrder(core.Lag, c)
	b.pool.SetShards([]*dispatch.Shard{b.shard}, order, b.now)
	return b
}

func (b *belt) view() dispatch.View {
	head := core.Head{Due: 1, OK: true}
	return dispatch.View{Run: core.Head{Due: 1, OK: b.waiting > 0}, Waiting: b.waiting, Free: math.MaxInt32, Stock: 256, Claim: head}
}

// round lets each lane run a batch, and makes the turns for that.
func (b *belt) round() {
	b.now.Local = b.now.Local.Add(time.Millisecond)
	for i := range b.lanes {
		l := &b.lanes[i]
		b.pool.BatchEnded(l, true, true, time.Millisecond, b.now)
		step := b.pool.Next(l, b.now)
		if step.Run == nil {
			b.pool.Wait(l, b.now)
			b.waiting += b.pool.Carry(b.shard, b.now)
			b.pool.Answered(b.shard, 1, true, b.view(), b.now)
			if step = b.pool.Next(l, b.now); step.Run == nil {
				continue
			}
		}
		b.waiting--
		b.pool.Taken(b.shard, true, true, b.view(), b.now)
	}
	b.actions = b.node.Actions(b.actions[:0])
}

func TestTheUsualEventsAllocateNothing(t *testing.T) {
	b := newBelt(4)
	for range 100 {
		b.round()
	}
	if n := testing.AllocsPerRun(1000, b.round); n > 0 {
		t.Errorf("a round of %d lanes allocates %v times", len(b.lanes), n)
	}
}

// BenchmarkBatch is all events of one batch.
func BenchmarkBatch(b *testing.B) {
	belt := newBelt(100)
	b.ReportAllocs()
	for n := 0; n < b.N; n += len(belt.lanes) {
		belt.round()
	}
}
