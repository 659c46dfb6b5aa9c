package engine_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// With handlers that wait 10 ms, the lanes of a node are at work, in however many shards the jobs
// are.
func TestLanesAreAtWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ lanes, shards int }{{100, 5}, {100, 1}, {1000, 5}, {1000, 1}} {
		t.Run(fmt.Sprintf("%d lanes, %d shards", c.lanes, c.shards), func(t *testing.T) {
			inWorld(t, func(w *world) {
				const length, measured = 10 * time.Millisecond, 200 * time.Millisecond
				r := w.record()
				w.start(r.watch(lasting(length)), shards(c.shards), pooled(c.lanes), roundTrip(time.Millisecond))
				w.sleep(2 * poll)
				at := w.elapsed()
				w.fill(queueName, c.shards, c.lanes*int(2*measured/length))
				w.sleep(2 * measured)
				ideal := c.lanes * int(measured/length)
				if got := between(r.all(), at+measured/2, at+measured*3/2); got < ideal*9/10 {
					w.Errorf("%d jobs started in %v, want at least 90 %% of %d", got, measured, ideal)
				}
				if got := between(r.all(), at, at+measured); got < ideal*8/10 {
					w.Errorf("%d jobs started in the first %v, want at least 80 %% of %d", got, measured, ideal)
				}
			})
		})
	}
}

// At four fifths of the lanes' capacity, long jobs among short ones do not delay these.
func TestFewLongJobsDelayNoShortOnes(t *testing.T) {
	t.Parallel()
	for _, queueShards := range []int{5, 16} {
		t.Run(fmt.Sprintf("%d shards", queueShards), func(t *testing.T) {
			inWorld(t, func(w *world) {
				const lanes, jobs, oneIn = 100, 6000, 100
				const short, long = 10 * time.Millisecond, time.Second
				mean := (short*(oneIn-1) + long) / oneIn

				r := w.record()
				isLong := func(id string) bool {
					n, _ := strconv.Atoi(id)
					return n%oneIn == 0
				}

				w.start(r.watch(func(_ context.Context, c *core.Claim) error {
					if isLong(c.ID) {
						time.Sleep(long)
					} else {
						time.Sleep(short)
					}
					return nil
				}), shards(queueShards), pooled(lanes), roundTrip(time.Millisecond))
				w.sleep(2 * poll)

				pushed := make(map[string]time.Duration, jobs)
				random := rand.New(rand.NewPCG(1, 2))
				for i, at := 0, w.elapsed(); i < jobs; i++ {
					at += time.Duration(random.ExpFloat64() * float64(mean) / lanes / 0.8)
					time.Sleep(at - w.elapsed())
					id := strconv.Itoa(i)
					pushed[id] = w.elapsed()
					w.pushTo(queueName, queueShards, id)
				}

				w.sleep(5 * poll)
				var waits []time.Duration
				for _, s := range r.all() {
					if !isLong(s.id) {
						waits = append(waits, s.at-pushed[s.id])
					}
				}

				slices.Sort(waits)
				if len(waits) != jobs*(oneIn-1)/oneIn {
					w.Fatalf("%d short jobs have started", len(waits))
				}

				p99 := waits[int(math.Ceil(0.99*float64(len(waits))))-1]
				w.Logf("p50 %v, p99 %v, most %v", waits[len(waits)/2], p99, waits[len(waits)-1])
				if p99 >= 50*time.Millisecond {
					w.Errorf("the 99th percentile of the waits of short jobs is %v, want below 50ms", p99)
				}
			})
		})
	}
}
