package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// memberTTL is the TTL of nodes that share a queue, and announceInterval follows from it.
const (
	memberTTL        = 6 * time.Second
	announceInterval = memberTTL / 3
)

// spread is an option: nodes share a queue's shards by membership.
func spread(s *setup) {
	s.Splitter, s.LeaseTTL, s.Lanes = core.SpreadSplitter{}, memberTTL, 20
}

// owners counts the shards of each owner whose lease lasts.
func (w *world) owners() map[string]int {
	w.Helper()
	stats := w.stats()
	count := make(map[string]int)
	for _, s := range stats.Shards {
		if s.Owner != "" && s.ExpiresAt > stats.Now {
			count[s.Owner]++
		}
	}
	return count
}

// wantOwners checks how many shards each node works.
func (w *world) wantOwners(want map[string]int) {
	w.Helper()
	if diff := cmp.Diff(want, w.owners()); diff != "" {
		w.Errorf("at %v: shards of each owner (-want +got):\n%s", w.elapsed(), diff)
	}
}

// even is the number of shards of each node if they share them evenly.
func even(shards int, nodes ...*node) map[string]int {
	want := make(map[string]int)
	for _, n := range nodes {
		want[n.owner] = shards / len(nodes)
	}
	return want
}

func TestANodeAloneHasAllShardsAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), spread, shards(24), roundTrip(2*time.Millisecond))
		w.sleep(10 * time.Millisecond)
		w.wantOwners(even(24, n))
	})
}

func TestNodesShareAQueueEvenlyAndHandOverAsTheyComeAndGo(t *testing.T) {
	for name, options := range map[string][]func(*setup){
		"with wake-ups":    {spread, shards(24)},
		"without wake-ups": {spread, shards(24), noWakeups},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				a := w.audit()
				nodes := make([]*node, 4)
				for i := range nodes {
					nodes[i] = w.start(a.watch(lasting(time.Millisecond)), options...)
					w.sleep(time.Second)
				}

				w.sleep(4 * memberTTL)
				w.wantOwners(even(24, nodes...))

				nodes[3].stop()
				w.sleep(2*announceInterval + maxHeldPause)
				w.wantOwners(even(24, nodes[:3]...))
				nodes[2].cutOff()
				w.sleep(memberTTL + 2*announceInterval + maxHeldPause)
				w.wantOwners(even(24, nodes[:2]...))

				w.pushEach(200)
				w.sleep(5 * poll)
				w.wantCounts(0, 0, 200, 0)
				a.wantHandledOnce(200, "x")
			})
		})
	}
}

// maxHeldPause is the longest pause between two acquires of a shard that another node holds.
const maxHeldPause = 4 * poll

// When a fifth node joins four, it gets a fifth of the shards, and hardly another moves.
func TestFewShardsMoveBesideThoseThatANodeGets(t *testing.T) {
	inWorld(t, func(w *world) {
		for range 4 {
			w.start(each(succeed), spread, shards(20))
		}
		w.sleep(4 * memberTTL)
		before := w.stats().Shards
		const most = 2 // beside those that have to move
		fifth := w.start(each(succeed), spread, shards(20))
		w.sleep(4 * memberTTL)
		got, others := 0, 0
		for i, s := range w.stats().Shards {
			switch s.Owner {
			case before[i].Owner:
			case fifth.owner:
				got++
			default:
				others++
			}
		}
		if got != 4 || others > most {
			w.Errorf("of 20 shards the new node got %d and %d moved among the others, want 4 and at most %d",
				got, others, most)
		}
	})
}

// A node that is to lose a shard claims on for an announce interval; then it lets the handlers
// that run return, and starts no other.
func TestAShardChangesHandsWhenItsHandlersHaveReturned(t *testing.T) {
	inWorld(t, func(w *world) {
		const long = 20 * time.Second

		a := w.audit()
		first := w.start(a.watch(func(ctx context.Context, c *core.Claim) error {
			if c.ID == "long" {
				return lasting(long)(ctx, c)
			}
			return nil
		}), spread, shards(1))

		w.sleep(poll)
		w.push("long", "x")
		began := w.elapsed()

		// One of the nodes that join gets the only shard.
		for w.ownedNext() == first.owner {
			w.start(a.watch(lasting(time.Millisecond)), spread, shards(1))
			w.sleep(100 * time.Millisecond)
		}

		w.sleep(announceInterval - 500*time.Millisecond)
		w.push("early", "x")
		w.wantCounts(0, 1, 1, 0) // the first still works it

		w.sleepUntil(began + 10*time.Second)
		w.push("late", "x")
		w.sleep(5 * time.Second)
		w.wantCounts(1, 1, 1, 0) // the shard waits for the long handler
		w.wantOwners(map[string]int{first.owner: 1})

		w.sleepUntil(began + long + 300*time.Millisecond)
		w.wantCounts(0, 0, 3, 0)
		if owner := w.stats().Shards[0].Owner; owner == first.owner {
			w.Errorf("the shard still belongs to the first node")
		}
		a.wantHandledOnce(0, "x")
	})
}

// ownedNext returns the node that should work the queue's only shard, by the nodes that the store
// lists.
func (w *world) ownedNext() string {
	w.Helper()
	reply, err := w.store.Nodes(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	return spreadOver(w, queueName, 1, reply.Nodes)[0]
}

// spreadOver returns the owner to whom each shard of a queue belongs, as each of the nodes that
// serve it computes for itself.
func spreadOver(t testing.TB, queue string, shards int, nodes []ports.Node) []string {
	t.Helper()
	r := core.SplitRequest{Shards: core.Shards(queue, shards)}
	for _, n := range nodes {
		r.Nodes = append(r.Nodes, core.SplitNode{ID: n.Owner, Lanes: n.Lanes, Queues: []string{queue}})
	}
	owners := make([]string, shards)
	for _, n := range r.Nodes {
		r.Self, r.Lanes = n.ID, n.Lanes
		split, err := core.SpreadSplitter{}.Split(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, shard := range split.Shared {
			owners[shard.Index] = n.ID
		}
	}
	return owners
}

// A node that stops announces it, so that others take its shards as it releases them.
func TestAStoppedNodesShardsAreTakenAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		rec := w.record()
		stays := w.start(rec.watch(lasting(10*time.Millisecond)), spread, shards(8), roundTrip(time.Millisecond))
		goes := w.start(rec.watch(lasting(10*time.Millisecond)), spread, shards(8), roundTrip(time.Millisecond))
		w.sleep(3 * memberTTL)
		w.wantOwners(even(8, stays, goes))
		w.pushEach(2000)
		w.sleep(100 * time.Millisecond)
		stopped := w.elapsed()
		goes.stop()
		w.sleepUntil(stopped + 100*time.Millisecond)
		w.wantOwners(map[string]int{stays.owner: 8})
	})
}

func TestMoreNodesThanShards(t *testing.T) {
	inWorld(t, func(w *world) {
		var nodes []*node
		for range 3 {
			nodes = append(nodes, w.start(each(succeed), spread, shards(2)))
		}
		w.sleep(2 * memberTTL)
		owners := w.owners()
		at := slices.IndexFunc(nodes, func(n *node) bool { return owners[n.owner] == 0 })
		if len(owners) != 2 || at < 0 {
			w.Fatalf("owners are %v, want two of the three", owners)
		}
		standby, working := nodes[at], nodes[(at+1)%3]
		if n := standby.log.count("more servers than shards; it is a standby"); n != 1 {
			w.Errorf("the log says %d times that the node stands by, want once", n)
		}
		working.cutOff()
		w.sleep(memberTTL + time.Second)
		if w.owners()[standby.owner] != 1 {
			w.Errorf("%v after a node died the one that stood by works %d shards, want 1",
				memberTTL+time.Second, w.owners()[standby.owner])
		}
	})
}

// While nodes come and go faster than they announce themselves nothing is given up.
func TestNothingMovesWhileTheListChanges(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), spread, shards(8))
		w.sleep(poll)
		for range 10 {
			flap := w.start(each(succeed), spread, shards(8))
			w.sleep(announceInterval / 2)
			flap.stop()
			w.sleep(announceInterval / 2)
			w.wantOwners(even(8, n))
		}
	})
}

// Nodes serve the queues that they have handlers for, and each queue is shared among its servers.
func TestQueuesAreSharedAmongTheNodesThatServeThem(t *testing.T) {
	inWorld(t, func(w *world) {
		rec := w.record()
		red, blue := rec.queue("red", 4, succeed), rec.queue("blue", 4, succeed)
		both := w.start(nil, spread, serving(red, blue))
		one := w.start(nil, spread, serving(rec.queue("red", 4, succeed)))
		w.sleep(3 * memberTTL)
		got := make(map[string]int)
		stats, err := w.store.Stats(w.Context(), ports.StatsRequest{Queues: []string{"red", "blue"}})
		if err != nil {
			w.Fatal(err)
		}
		for _, q := range stats {
			for _, s := range q.Shards {
				got[q.Queue.Name+" "+s.Owner]++
			}
		}
		want := map[string]int{"red " + both.owner: 2, "red " + one.owner: 2, "blue " + both.owner: 4}
		if diff := cmp.Diff(want, got); diff != "" {
			w.Errorf("shards of each queue and owner (-want +got):\n%s", diff)
		}
	})
}
