package conformance

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// testRandom drives a store and the model with the same random calls in the same
// time and compares all that can be seen. What differs is shrunk to a few
// calls. The flags are rapid's: -rapid.checks for the runs, -rapid.steps for the
// calls of one.
func testRandom(t *testing.T, f Factory) {
	rapid.Check(t, func(rt *rapid.T) { newDuel(t, rt, f).run() })
}

// duel is one run: a store, the model, and what their callers know.
type duel struct {
	t     *rapid.T
	ctx   context.Context
	clock *clock
	// handles are of the store under test, all on one backend.
	handles []ports.ShardStore
	// worlds are all that the backend may be like: more than one since a call was
	// repeated, until an answer decides. Draws are made from the first.
	worlds []*model

	queues []ports.Queue
	policy core.RetryPolicy
	// attempts are the owners' last at each shard.
	attempts map[contender]int64
	// holders hold the shards now, and former have held one; the model may
	// disagree by now.
	holders map[core.Shard]*tenure
	former  []*tenure
}

type contender struct {
	shard core.Shard
	owner string
}

// tenure is what the holder of a lease knows.
type tenure struct {
	lease ports.Lease
	// last is the number of its last turn, and sent that turn.
	last int64
	sent ports.TurnRequest
	// claims are those it was given and has not settled.
	claims []core.Claim
}

// runTB gives a Factory's clean-up to the run instead of the whole test.
type runTB struct {
	testing.TB
	run *rapid.T
}

func (tb runTB) Cleanup(f func()) { tb.run.Cleanup(f) }

func newDuel(t *testing.T, rt *rapid.T, f Factory) *duel {
	c := newClock()
	open := f(runTB{t, rt}, c.Now)
	return &duel{
		t:        rt,
		ctx:      t.Context(),
		clock:    c,
		handles:  []ports.ShardStore{open(), open()},
		worlds:   []*model{newModel(c.Now).(*model)},
		attempts: map[contender]int64{},
		holders:  map[core.Shard]*tenure{},
	}
}

func (d *duel) run() {
	d.policy = core.RetryPolicy{
		MaxRetries:    rapid.IntRange(0, 3).Draw(d.t, "MaxRetries"),
		MaxRecoveries: rapid.IntRange(0, 2).Draw(d.t, "MaxRecoveries"),
	}
	for _, name := range []string{"orders", "mail"}[:pick(d, "queues", 1, 1, 2)] {
		q := ports.Queue{Name: name, Shards: pick(d, "shards", 1, 1, 2, 3), IndexIDs: rapid.Bool().Draw(d.t, "IndexIDs")}
		reply, _ := ask(d, "Declare", declaration(q), ports.ShardStore.Declare)
		q.Generation = reply.Generation
		d.queues = append(d.queues, q)
	}
	d.t.Repeat(map[string]func(*rapid.T){
		"push":     func(*rapid.T) { d.push() },
		"fill":     func(*rapid.T) { d.push(); d.push() },
		"acquire":  func(*rapid.T) { d.acquire(d.shard()) },
		"turn":     func(*rapid.T) { d.turn(d.tenure()) },
		"work":     func(*rapid.T) { d.work(d.shard()) },
		"succeed":  func(*rapid.T) { d.succeed(d.shard()) },
		"lease":    func(*rapid.T) { d.renewOrRelease(d.tenure()) },
		"operate":  func(*rapid.T) { d.operate() },
		"registry": func(*rapid.T) { d.registry() },
		"time":     func(*rapid.T) { d.move() },
		"look":     func(*rapid.T) { d.look() },
		"":         func(*rapid.T) { d.glance() },
	})
	d.look()
}

// move moves the clock. Whether a node whose time ran out is known again once
// the clock stepped back is up to the store, so it is retired.
func (d *duel) move() {
	d.clock.Advance(pick(d, "move",
		time.Microsecond, 1500*time.Nanosecond, time.Millisecond, time.Second, 10*time.Second,
		ttl, time.Minute, 5*time.Minute, -time.Microsecond, -time.Second, -time.Minute))
	d.t.Logf("the clock says %d", d.model().now())
	d.lookAtNodes()
	for _, node := range sorted(d.model().nodes, byName) {
		if node.ExpiresAt <= d.model().now() {
			tell(d, "Retire", node.Owner, ports.ShardStore.Retire)
		}
	}
}

func (d *duel) queue() ports.Queue { return pick(d, "queue", d.queues...) }

func (d *duel) shard() core.Shard {
	q := d.queue()
	return core.Shard{Queue: q.Name, Index: rapid.IntRange(0, q.Shards-1).Draw(d.t, "shard")}
}

func (d *duel) model() *model { return d.worlds[0] }

// modelShard is what the model has of a shard, to draw what is there.
func (d *duel) modelShard(at core.Shard) *modelShard {
	return d.model().queues[at.Queue].shards[at.Index]
}

// handle is any of the handles: it must not matter which.
func (d *duel) handle() ports.ShardStore {
	return d.handles[rapid.IntRange(0, len(d.handles)-1).Draw(d.t, "handle")]
}

// pick draws one of the values; repeat one to have it more often.
func pick[V any](d *duel, label string, values ...V) V {
	return rapid.SampledFrom(values).Draw(d.t, label)
}

// rarely is true one time in eight.
func rarely(d *duel, label string) bool {
	return rapid.IntRange(0, 7).Draw(d.t, label) == 7
}
