// Package random compares a store with the model by random histories.
package random

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/conformance/internal/model"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/virtual"
	"github.com/skeinq/skein/ports"
)

// Test makes the same random calls, at the same times, on a store and on the model, and compares
// all replies. If they differ, rapid searches for a short history that shows the difference. The
// flags are those of rapid: -rapid.checks is the number of runs, and -rapid.steps the number of
// calls in a run.
func Test(t *testing.T, factory func(t testing.TB, clock func() time.Time) (open func() ports.ShardStore)) {
	rapid.Check(t, func(rt *rapid.T) {
		clock := harness.NewClock()
		open := factory(harness.CleanupTB(t, rt.Cleanup), clock.Now)
		d := &driver{
			t:          rt,
			ctx:        t.Context(),
			clock:      clock,
			handles:    []ports.ShardStore{open(), open()},
			candidates: []*model.Store{model.New(clock.Now)},
			attempts:   map[attemptKey]int64{},

			permitAttempts: map[permitKey]int64{},
			current:        map[core.Shard]*leaseView{},
		}
		d.run()
	})
}

// ttl is the TTL of most leases.
const ttl = 30 * time.Second

// driver is one run: a store, the model, and the callers' knowledge.
type driver struct {
	t     *rapid.T
	ctx   context.Context
	clock *virtual.Clock
	// handles are handles of the store under test, all on one backend.
	handles []ports.ShardStore
	// candidates are all states that the backend may have. After a repeated call there may be
	// several, until a reply decides. Draws use the first one.
	candidates []*model.Store

	queues []ports.Queue
	policy core.RetryPolicy
	// keep is what all turns keep of records.
	keep core.KeepPast
	// attempts are the last attempts of the owners at each shard.
	attempts map[attemptKey]int64
	// permitAttempts are the last attempts of the owners' calls for the permits of a queue.
	permitAttempts map[permitKey]int64
	// current has the leases of the shards as their holders know them, and former the leases that
	// are over. A current lease may be over without its holder's knowledge.
	current map[core.Shard]*leaseView
	former  []*leaseView
}

type attemptKey struct {
	shard core.Shard
	owner string
}

type permitKey struct{ queue, owner string }

// leaseView is the holder's knowledge of a lease.
type leaseView struct {
	lease ports.Lease
	// last is the number of its last turn, and sent is that turn.
	last int64
	sent ports.TurnRequest
	// claims are the claims that the holder has received and not settled.
	claims []core.Claim
}

func (d *driver) run() {
	d.policy = core.RetryPolicy{
		MaxRetries:    rapid.IntRange(0, 3).Draw(d.t, "MaxRetries"),
		MaxRecoveries: rapid.IntRange(0, 2).Draw(d.t, "MaxRecoveries"),
		Exhausted:     pick(d, "exhausted", core.BuryFirst, core.Hold),
	}

	// No record is old enough to go, since a store may look for old ones at different times.
	d.keep = pick(d, "keep", core.KeepPast{}, core.KeepPast{Age: core.MaxKeepAge},
		core.KeepPast{Age: core.MaxKeepAge, Count: 1}, core.KeepPast{Age: core.MaxKeepAge, Count: 3},
		core.KeepPast{Age: core.MaxKeepAge, Count: 5, Bytes: core.MaxResultBytes})

	for _, name := range []string{"orders", "mail"}[:pick(d, "queues", 1, 1, 2)] {
		q := ports.Queue{
			Name:     name,
			Shards:   pick(d, "shards", 1, 1, 2, 3),
			IndexIDs: rapid.Bool().Draw(d.t, "IndexIDs"),
		}
		q.Merge = d.mergeRule()

		reply, _ := compare(d, "Declare", declaration(q), ports.ShardStore.Declare)
		q.Generation = reply.Generation
		d.queues = append(d.queues, q)
	}

	d.t.Repeat(map[string]func(*rapid.T){
		"push":      func(*rapid.T) { d.push() },
		"fill":      func(*rapid.T) { d.push(); d.push() },
		"acquire":   func(*rapid.T) { d.acquire(d.shard()) },
		"turn":      func(*rapid.T) { d.turn(d.someLease()) },
		"work":      func(*rapid.T) { d.work(d.shard()) },
		"take over": func(*rapid.T) { d.takeOver(d.shard()) },
		"lease":     func(*rapid.T) { d.renewOrRelease(d.someLease()) },
		"operate":   func(*rapid.T) { d.operate() },
		"permits":   func(*rapid.T) { d.permit() },
		"limits":    func(*rapid.T) { d.limit() },
		"registry":  func(*rapid.T) { d.registry() },
		"schedules": func(*rapid.T) { d.changeSchedules() },
		"time":      func(*rapid.T) { d.moveClock() },
		"check":     func(*rapid.T) { d.checkAll() },
		"":          func(*rapid.T) { d.checkCounts() },
	})

	d.checkAll()
}

// mergeRule draws a merge rule, which is often the default.
func (d *driver) mergeRule() core.MergeRule {
	return pick(d, "merge rule", core.MergeRule{}, core.MergeRule{}, core.MergeRule{Stays: core.Highest},
		core.MergeRule{Stays: core.Highest, Keep: 1}, core.MergeRule{Stays: core.Highest, Keep: 2},
		core.MergeRule{Stays: core.Highest, Keep: 9})
}

func (d *driver) moveClock() {
	d.clock.Advance(pick(d, "move",
		time.Microsecond, 1500*time.Nanosecond, time.Millisecond, time.Second, 10*time.Second,
		ttl, time.Minute, 5*time.Minute, ports.NodeKept, -time.Microsecond, -time.Second, -time.Minute))
	d.t.Logf("the clock is at %d", d.model().Now())
	d.checkNodes()
}

func (d *driver) queue() ports.Queue { return pick(d, "queue", d.queues...) }

func (d *driver) shard() core.Shard {
	q := d.queue()
	return core.Shard{Queue: q.Name, Index: rapid.IntRange(0, q.Shards-1).Draw(d.t, "shard")}
}

// model returns the candidate that draws use.
func (d *driver) model() *model.Store { return d.candidates[0] }

// handle draws one of the handles. All must behave in the same way.
func (d *driver) handle() ports.ShardStore {
	return d.handles[rapid.IntRange(0, len(d.handles)-1).Draw(d.t, "handle")]
}

// pick draws one of the values. A value that is given twice is drawn more often.
func pick[V any](d *driver, label string, values ...V) V {
	return rapid.SampledFrom(values).Draw(d.t, label)
}

// rarely returns true one time in eight.
func rarely(d *driver, label string) bool {
	return rapid.IntRange(0, 7).Draw(d.t, label) == 7
}
