package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// With Parallel 1 the batches of a shard run one after another, in the order of their times; with
// n, n run at once.
func TestParallelBoundsTheBatchesOfAShard(t *testing.T) {
	for _, parallel := range []int{0, 1, 3} {
		t.Run(fmt.Sprint(parallel), func(t *testing.T) {
			inWorld(t, func(w *world) {
				const lanes, queueShards, perShard = 20, 3, 60
				r := w.record()
				q := r.queue(queueName, queueShards, lasting(10*time.Millisecond))
				q.Parallel = parallel

				w.start(nil, serving(q), pooled(lanes), roundTrip(time.Millisecond))
				w.sleep(2 * poll)

				for i := range perShard { // each has a time of its own
					for shard := range queueShards {
						w.pushTo(queueName, queueShards, idsIn(shard, queueShards, perShard)[i])
					}
					time.Sleep(time.Millisecond)
				}

				w.sleep(10 * poll)
				w.wantCounts(0, 0, queueShards*perShard, 0)
				for shard, most := range r.most {
					if parallel > 0 && most != parallel || parallel == 0 && most <= 3 {
						w.Errorf("%v ran %d batches at once, with Parallel %d", shard, most, parallel)
					}
				}
				if parallel == 1 {
					r.wantInOrder(queueShards, perShard)
				}
			})
		})
	}
}

// wantInOrder checks that the jobs of each shard started in the order in which they were pushed.
func (r *record) wantInOrder(shards, perShard int) {
	r.Helper()
	next := make(map[int]int)
	for _, s := range r.all() {
		index := s.shard.Index
		if want := idsIn(index, shards, perShard)[next[index]]; s.id != want {
			r.Errorf("%v starts %s after %d others, want %s", s.shard, s.id, next[index], want)
		}
		next[index]++
	}
}

// A queue with MaxLanes, or whose shard is bounded by Parallel, leaves lanes to others, whose jobs
// are claimed although its own wait.
func TestASlowQueueThatIsBoundedLeavesLanesToOthers(t *testing.T) {
	for name, c := range map[string]struct {
		parallel, maxLanes, shards int
		// most is how many lanes the slow queue may have, of 10.
		most int
	}{
		"MaxLanes":               {maxLanes: 4, shards: 5, most: 4},
		"MaxLanes, one shard":    {maxLanes: 4, shards: 1, most: 4},
		"Parallel":               {parallel: 1, shards: 3, most: 3},
		"Parallel below its own": {parallel: 2, maxLanes: 3, shards: 3, most: 3},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				const lanes, jobs = 10, 300
				r := w.record()

				var length atomic.Int64
				length.Store(int64(10 * time.Millisecond))
				slow := r.queue("slow", c.shards, func(context.Context, *core.Claim) error {
					time.Sleep(time.Duration(length.Load()))
					return nil
				})
				slow.Parallel, slow.MaxLanes = c.parallel, c.maxLanes
				fast := r.queue("fast", 5, lasting(10*time.Millisecond))

				w.start(nil, serving(slow, fast), pooled(lanes), roundTrip(time.Millisecond))
				w.sleep(2 * poll)
				w.fill("slow", c.shards, 5*jobs)
				w.sleep(200 * time.Millisecond) // jobs are claimed ahead by now

				length.Store(int64(10 * time.Second))
				w.sleep(50 * time.Millisecond)
				from := w.elapsed()
				w.fill("fast", 5, jobs)

				w.sleep(5 * time.Second)
				if got := r.runningNow("slow"); got != c.most {
					w.Errorf("%d lanes run the slow queue, want %d", got, c.most)
				}

				ideal := jobs * 10 * time.Millisecond / time.Duration(lanes-c.most)
				if got := between(r.of("fast"), from, from+ideal*5/4+20*time.Millisecond); got != jobs {
					w.Errorf("%d of %d jobs of the fast queue have started within %v", got, jobs, ideal*5/4)
				}
			})
		})
	}
}
