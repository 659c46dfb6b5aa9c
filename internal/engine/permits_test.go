package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

func TestNoMoreBatchesRunOverAllNodesThanMaxRunning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                 string
		limit, nodes, shards int
		jobs                 int
		took                 time.Duration
		options              []func(*setup)
	}{
		{"three nodes", 5, 3, 6, 600, 20 * time.Millisecond, nil},
		{"without wake-ups", 5, 3, 6, 600, 20 * time.Millisecond, []func(*setup){noWakeups}},
		{"one permit", 1, 3, 6, 200, 20 * time.Millisecond, nil},
		{"one permit without wake-ups", 1, 2, 6, 200, 20 * time.Millisecond, []func(*setup){noWakeups}},
		{"one shard", 5, 1, 1, 300, 20 * time.Millisecond, nil},
		{"fewer permits than nodes", 2, 5, 10, 300, 30 * time.Millisecond, nil},
		{"more than all lanes", 100, 3, 6, 3000, 20 * time.Millisecond, nil},
		{"pinned lanes", 5, 2, 8, 300, 20 * time.Millisecond, []func(*setup){pinned}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				l := w.permitLedger(c.limit)
				l.startNodes(c.nodes, c.shards, c.took, c.options...)
				w.pushEach(c.jobs)

				most := min(c.limit, 10*c.nodes)
				ideal := time.Duration(c.jobs) * c.took / time.Duration(most)
				w.sleep(3*ideal + 10*poll)

				w.wantCounts(0, 0, int64(c.jobs), 0)
				if c.name != "pinned lanes" && l.most != most {
					w.Errorf("%d batches ran at once at most, want %d", l.most, most)
				}
				if held, holders := w.held(); held > 0 || len(holders) > 0 {
					w.Errorf("idle nodes hold permits: %v", holders)
				}
			})
		})
	}
}

// pinned is an option: the shards of a node's part are pinned to its lanes.
func pinned(s *setup) {
	by := s.Splitter.(core.NodeSplitter)
	by.Share = false
	s.Splitter = by
}

// Whatever jobs there are, all permits are in use.
func TestAllPermitsAreUsedWhileThereIsWork(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]func(*setup){"wake-ups": nil, "polls": {noWakeups}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				const limit, jobs = 5, 3000
				l := w.permitLedger(limit)
				l.startNodes(3, 6, 50*time.Millisecond, options...)
				w.pushEach(jobs)
				w.sleep(2 * poll) // all nodes have some
				l.mu.Lock()
				clear(l.busy)
				l.since = time.Now()
				l.mu.Unlock()
				w.sleep(20 * poll)
				l.change(0, 0)
				if used := l.busy[limit]; used < 18*poll {
					w.Errorf("in 20 s all permits were in use for %v: %v", used, l.busy)
				}
			})
		})
	}
}

// Two nodes with work have half of the permits each, whichever came first.
func TestNodesSharePermits(t *testing.T) {
	inWorld(t, func(w *world) {
		const limit, shards = 6, 4
		l := w.permitLedger(limit)
		l.startNodes(2, shards, 100*time.Millisecond)

		push := func(node, jobs int) {
			for shard := node; shard < shards; shard += 2 {
				for _, id := range idsIn(shard, shards, jobs) {
					w.pushEntries(entry(id))
				}
			}
		}

		push(0, 1000)
		w.sleep(5 * poll)
		if running := l.peak(0); running != limit {
			w.Errorf("a node alone runs %d batches, want %d", running, limit)
		}

		push(1, 1000)
		halved := func() bool {
			for node := range 2 {
				if running := l.peak(node); running < limit/2-1 || running > limit/2 {
					return false
				}
			}
			return true
		}

		for asked := 0; asked < 10 && (asked < 3 || !halved()); asked++ { // how soon depends on who asks first
			w.sleep(poll)
		}
		if _, holders := w.held(); !halved() {
			w.Errorf("not half of %d permits each: %v", limit, holders)
		}

		_, before := l.of(1)
		w.sleep(10 * poll)
		if _, after := l.of(1); after-before < 280 {
			w.Errorf("the second node has done %d jobs in 10 s, want about 300", after-before)
		}
	})
}

// Where there are fewer permits than nodes, they take turns.
func TestNodesTakeTurnsWithOnePermit(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]func(*setup){"wake-ups": nil, "polls": {noWakeups}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				l := w.permitLedger(1)
				l.startNodes(3, 6, 30*time.Millisecond, options...)
				w.pushEach(6000)
				w.sleep(60 * poll)
				for node := range 3 {
					if _, ended := l.of(node); ended < 200 {
						w.Errorf("node %d has done %d jobs in a minute", node, ended)
					}
				}
			})
		})
	}
}

// The permits of a node that is killed are free after its TTL.
func TestPermitsOfADeadNodeAreFreeAfterItsTTL(t *testing.T) {
	inWorld(t, func(w *world) {
		const shards = 4
		l := w.permitLedger(4)
		nodes := l.startNodes(2, shards, 50*time.Millisecond)
		w.push(idIn(0, shards), "x")
		w.pushEach(8000)
		w.sleep(3 * poll)
		nodes[0].cutOff()
		died := w.elapsed()
		w.sleep(ttl*4/5 + poll)
		if running, _ := l.of(0); running != 0 {
			w.Errorf("the dead node runs %d batches %v after it was cut off", running, w.elapsed()-died)
		}
		w.sleep(ttl/5 + poll)
		if running := l.peak(1); running != 4 {
			w.Errorf("the other node runs %d batches %v after the first was cut off, want all 4",
				running, w.elapsed()-died)
		}
	})
}

// A node whose calls for permits get no answer, though its leases are renewed, cancels its
// handlers before another node may have its permits. Then it continues.
func TestHandlersAreCancelledBeforePermitsRunOut(t *testing.T) {
	inWorld(t, func(w *world) {
		const shards = 2
		l := w.permitLedger(3)

		nodes := l.startNodes(2, shards, time.Hour)
		for _, id := range idsIn(0, shards, 3) {
			w.pushEntries(entry(id))
		}
		w.sleep(poll)
		if running, _ := l.of(0); running != 3 {
			w.Fatalf("%d batches run, want 3", running)
		}
		nodes[0].link.change(func() { nodes[0].link.refuse = func(method string) bool { return method == "Permit" } })
		for _, id := range idsIn(1, shards, 3) {
			w.pushEntries(entry(id))
		}
		w.sleep(ttl + 2*poll)
		if running, _ := l.of(1); running != 3 || l.lost != 3 {
			w.Errorf("the second node runs %d batches, and %d of the first were cancelled; want 3 of both",
				running, l.lost)
		}
		w.wantCounts(3, 3, 0, 0) // put back untouched
		if told := nodes[0].log.count("permits lost"); told != 1 {
			w.Errorf("the log says %d times that permits are lost", told)
		}
		nodes[0].link.change(func() { nodes[0].link.refuse = func(string) bool { return false } })
		nodes[1].cutOff()
		w.sleep(ttl + 2*poll)
		if running, _ := l.of(0); running != 3 {
			w.Errorf("the first node runs %d batches again, want 3", running)
		}
	})
}

// A node that stops gives its permits back when its last batch has ended.
func TestANodeThatStopsGivesItsPermitsBack(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.permitLedger(3)
		nodes := l.startNodes(2, 2, 3*time.Second)
		w.pushEntries(entry(idsIn(0, 2, 2)[0]), entry(idsIn(0, 2, 2)[1]))
		w.sleep(poll)
		nodes[0].cancel()
		w.sleep(time.Second)
		if held, holders := w.held(); held != 2 {
			w.Errorf("while its batches run: %v", holders)
		}
		w.sleep(time.Second + 10*time.Millisecond)
		if held, holders := w.held(); held != 0 {
			w.Errorf("when they have ended: %v", holders)
		}
	})
}

// Unused permits are given back within a poll interval, and another queue needs no permit.
func TestIdleNodesHoldNoPermits(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.record()
		limited, free := r.queue(queueName, 2, lasting(100*time.Millisecond)), r.queue("mail", 2, lasting(time.Second))
		limited.MaxRunning = 2
		n := w.start(nil, serving(limited, free), pooled(10))
		w.sleep(2 * poll)
		w.pushEach(10)
		w.fill("mail", 2, 8)
		w.sleep(250 * time.Millisecond)
		if limited, free := r.runningNow(queueName), r.runningNow("mail"); limited != 2 || free != 8 {
			w.Errorf("%d batches run with the limit and %d without, want 2 and 8", limited, free)
		}
		w.sleep(3 * poll)
		if _, holders := w.held(); len(holders) > 0 {
			w.Errorf("idle: %v", holders)
		}
		before := n.link.count("Permit")
		w.sleep(time.Minute)
		if calls := n.link.count("Permit") - before; calls > 0 {
			w.Errorf("an idle node has made %d calls for permits in a minute", calls)
		}
	})
}

// A call for permits that arrives after its sender has given it up changes nothing.
func TestALateCallForPermitsCountsForNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.permitLedger(3)
		nodes := l.startNodes(2, 2, 40*time.Second)
		ids := idsIn(0, 2, 4)
		late := nodes[0].link.delayNext("Permit") // which requests one
		w.pushEntries(entry(ids[0]))
		w.sleep(ttl/3 + poll)
		w.pushEntries(entry(ids[1]), entry(ids[2]))
		w.sleep(poll)
		if err := (<-late)(); !errors.Is(err, ports.ErrStaleAttempt) {
			w.Errorf("the late call returned %v", err)
		}
		w.pushEntries(entry(idsIn(1, 2, 1)[0]))
		w.sleep(poll)
		if running, _ := l.of(0); running != 3 {
			w.Errorf("the first node runs %d batches, want 3", running)
		}
	})
}

// Nodes of all kinds, whose links fail, hang and lose replies, never run more batches than there
// are permits, and all jobs are done.
func TestPermitsHoldInRandomHistories(t *testing.T) {
	t.Parallel()
	for seed := range tier.Count(3, 8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, func(w *world) { permitHistory(w, uint64(seed)) })
		})
	}
}
