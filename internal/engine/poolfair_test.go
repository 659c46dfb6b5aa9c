package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// While all shards have work, each other one is granted lanes at most once before a shard is: as
// many as are free or will be soon.
func TestNoSchedulerStarvesAShard(t *testing.T) {
	t.Parallel()
	for name, scheduler := range map[string]core.SchedulerFunc{
		"lag": core.Lag, "seq": core.Seq, "strict": core.StrictBy(queueName), "weighted": core.WeightedBy(nil),
	} {
		for _, lanes := range []int{1, 10} {
			t.Run(fmt.Sprintf("%s, %d lanes", name, lanes), func(t *testing.T) {
				inWorld(t, func(w *world) {
					const queueShards, length = 50, 10 * time.Millisecond
					grant := lanes + lanes*int(lookAhead/length)
					most := queueShards*grant + grant
					r := w.record()
					w.start(r.watch(lasting(length)), shards(queueShards), pooled(lanes), roundTrip(time.Millisecond),
						scheduled(scheduler))
					w.sleep(2 * poll)
					w.fill(queueName, queueShards, 3*most)
					w.sleep(poll + time.Duration(2*most/lanes)*length)
					r.wantGapsBelow(most, queueShards)
				})
			})
		}
	}
}

// wantGapsBelow checks how many batches of others start between two of a shard, or before its
// first one, while it has work.
func (r *record) wantGapsBelow(most, shards int) {
	r.Helper()
	starts := r.all()
	last := make(map[int]int)
	worst, of := 0, 0
	for i, s := range starts {
		if gap := i - last[s.shard.Index]; gap > worst {
			worst, of = gap, s.shard.Index
		}
		last[s.shard.Index] = i
	}
	if len(last) < shards || worst > most {
		r.Errorf("%d of %d shards have run in %d starts; shard %d waited for %d others, want at most %d",
			len(last), shards, len(starts), of, worst, most)
	}
}

// Weights share the starts, however many lanes there are and however short handlers are, as long
// as lanes are scarce. Handlers of no length would leave them free, and so would a Prefetch below
// the number of a shard's jobs that start while its next ones are claimed. Shares are those of
// many grants, each of which is up to a full turn. For some exchanges at first, whichever shard
// has jobs claimed starts: how many of each depends on which lane comes first.
func TestWeightsShareTheStarts(t *testing.T) {
	t.Parallel()
	const blank = 10 * time.Microsecond
	for _, c := range []struct {
		lanes  int
		length time.Duration
		starts int
	}{
		{1, blank, 4000}, {10, 10 * blank, 4000}, {100, 100 * blank, 4000},
		{1, 10 * time.Millisecond, 4000}, {10, 10 * time.Millisecond, 4000}, {100, 10 * time.Millisecond, 12500},
	} {
		for _, perQueue := range []int{1, 5} {
			t.Run(fmt.Sprintf("%d lanes, %v, %d shards", c.lanes, c.length, perQueue), func(t *testing.T) {
				inWorld(t, func(w *world) {
					r := w.record()
					run := lasting(c.length)
					w.fill("heavy", perQueue, c.starts)
					w.fill("light", perQueue, c.starts)
					w.start(nil, serving(r.queue("heavy", perQueue, run), r.queue("light", perQueue, run)),
						pooled(c.lanes),
						roundTrip(time.Millisecond), scheduled(core.WeightedBy(map[string]int{"heavy": 3, "light": 1})),
						func(s *setup) { s.Prefetch = c.starts })

					w.sleep(poll/2 + time.Duration(c.starts/c.lanes)*c.length*5/4)
					settled := int(25*time.Millisecond/c.length) * c.lanes
					r.wantShare("heavy", 0.75, max(settled, c.starts/5), c.starts)
				})
			})
		}
	}
}

// wantShare checks the share of a queue in the starts from one until another.
func (r *record) wantShare(queue string, want float64, from, to int) {
	r.Helper()
	starts := r.all()
	if len(starts) < to {
		r.Fatalf("%d starts, want %d at least", len(starts), to)
	}
	n := 0
	for _, s := range starts[from:to] {
		if s.shard.Queue == queue {
			n++
		}
	}
	if got := float64(n) / float64(to-from); got < want-0.03 || got > want+0.03 {
		r.Errorf("%s has %.3f of the starts, want %.2f", queue, got, want)
	}
}

// With Strict, a job of the first queue that becomes due starts after no more of the other queue
// than is claimed already.
func TestStrictStartsTheFirstQueueNext(t *testing.T) {
	t.Parallel()
	for _, lanes := range []int{1, 10, 100} {
		t.Run(fmt.Sprintf("%d lanes", lanes), func(t *testing.T) {
			inWorld(t, func(w *world) {
				const length, urgent = 10 * time.Millisecond, 20
				r := w.record()
				run := lasting(length)

				w.start(nil, serving(r.queue("later", 5, run), r.queue("first", 5, run)), pooled(lanes),
					roundTrip(time.Millisecond), scheduled(core.StrictBy("first", "later")))
				w.sleep(2 * poll)
				w.fill("later", 5, 400*lanes)
				w.sleep(500 * time.Millisecond)

				ahead := lanes * int(lookAhead/length)
				for i := range urgent {
					before, at := len(r.of("later")), w.elapsed()
					w.pushTo("first", 5, fmt.Sprintf("first-%d", i))
					for range 1000 {
						if w.sleep(time.Millisecond); len(r.of("first")) > i {
							break
						}
					}

					if passed := len(r.of("later")) - before; passed > ahead+2*lanes {
						w.Errorf("%d jobs of the other queue, in %v, started before the urgent one; "+
							"at most %d were claimed",
							passed, w.elapsed()-at, ahead)
					}
					w.sleep(7 * time.Millisecond)
				}
			})
		})
	}
}
