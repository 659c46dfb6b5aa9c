package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// counts returns how many jobs of a queue wait, are claimed and are done.
func (w *world) counts(queue string) (waiting, claimed, done int64) {
	w.Helper()
	stats, err := w.store.Stats(w.Context(), ports.StatsRequest{Queues: []string{queue}})
	if err != nil {
		w.Fatal(err)
	}
	c := stats[0].Counts
	return c.Fresh + c.Retrying, c.Claimed, c.Processed
}

func (w *world) wantQueue(queue string, waiting, claimed, done int64) {
	w.Helper()
	gotWaiting, gotClaimed, gotDone := w.counts(queue)
	want, got := [3]int64{waiting, claimed, done}, [3]int64{gotWaiting, gotClaimed, gotDone}
	if got != want {
		w.Errorf("at %v: of queue %s wait, are claimed and are done %v, want %v", w.elapsed(), queue, got, want)
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func TestAQueueIsAddedToARunningNode(t *testing.T) {
	inWorld(t, func(w *world) {
		rec := w.record()
		n := w.start(nil, spread, serving(rec.queue("red", 4, lasting(10*time.Millisecond))))
		w.fill("red", 4, 1000)
		w.sleep(100 * time.Millisecond)
		w.fill("blue", 2, 50)
		w.must(n.engine.AddQueue(rec.queue("blue", 2, lasting(10*time.Millisecond))))
		w.sleep(time.Second)
		w.wantQueue("red", 0, 0, 1000)
		w.wantQueue("blue", 0, 0, 50)
		w.pushTo("blue", 2, "one more")
		w.sleep(100 * time.Millisecond) // it listens for the queue's wake-ups
		w.wantQueue("blue", 0, 0, 51)
	})
}

func TestARemovedQueuesHandlersFinishAndItsJobsStayForOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		rec := w.record()
		red, blue := rec.queue("red", 4, lasting(10*time.Millisecond)), rec.queue("blue", 2, lasting(5*time.Second))
		n := w.start(nil, spread, serving(red, blue))
		w.fill("blue", 2, 50)

		w.sleep(time.Second) // 20 lanes run jobs of blue
		began := w.elapsed()
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		if err := n.engine.RemoveQueue(ctx, "blue"); !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "the removal continues") {
			w.Errorf("a removal whose handlers run on: %v, want %v, and that it continues",
				err, context.DeadlineExceeded)
		}
		if err := n.engine.AddQueue(rec.queue("blue", 2, succeed)); !errors.Is(err, core.ErrInvalidOptions) {
			w.Errorf("the queue is added while handlers of it run: %v, want %v", err, core.ErrInvalidOptions)
		}

		w.fill("red", 4, 100)
		w.sleepUntil(began + 6*time.Second)
		w.wantQueue("blue", 30, 0, 20)
		w.wantQueue("red", 0, 0, 100)

		other := w.start(nil, spread, serving(rec.queue("blue", 2, lasting(10*time.Millisecond))))
		w.sleep(time.Second)
		w.wantQueue("blue", 0, 0, 50)
		other.stop()

		w.fill("blue", 2, 3)
		w.sleep(time.Second)
		w.must(n.engine.AddQueue(rec.queue("blue", 2, succeed)))
		w.sleep(time.Second)
		w.wantQueue("blue", 0, 0, 53)
	})
}

// The shards of a removed queue in which nothing runs are another's at once.
func TestARemovedQueueThatIsIdleIsReleasedAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		rec := w.record()
		n := w.start(nil, spread, serving(rec.queue("red", 4, succeed), rec.queue(queueName, 4, succeed)))
		other := w.start(nil, spread, serving(rec.queue(queueName, 4, succeed)))
		w.sleep(3 * memberTTL)
		w.wantOwners(even(4, n, other))
		began := w.elapsed()
		w.must(n.engine.RemoveQueue(w.Context(), queueName))
		w.within("the removal ended", w.elapsed()-began, 0, 50*time.Millisecond)
		w.sleep(50 * time.Millisecond)
		w.wantOwners(even(4, other))
	})
}

// The store knows the last attempt of each shard, so those of a queue that is added again go on: each
// of its shards is acquired by one call.
func TestAQueueThatIsAddedAgainIsAcquiredAtOnce(t *testing.T) {
	const rounds = 12
	inWorld(t, func(w *world) {
		rec := w.record()
		n := w.start(nil, spread, serving(rec.queue("red", 4, succeed)))
		w.sleep(time.Second)
		for range rounds {
			w.must(n.engine.AddQueue(rec.queue("blue", 2, succeed)))
			w.fill("blue", 2, 10)
			w.sleep(time.Second)
			w.must(n.engine.RemoveQueue(w.Context(), "blue"))
		}
		w.wantQueue("blue", 0, 0, 10*rounds)

		calls := make(map[core.Shard]int)
		for _, r := range n.link.acquiresSent() {
			calls[r.Shard]++
		}
		for _, s := range core.Shards("blue", 2) {
			if calls[s] != rounds {
				w.Errorf("%d acquires of %v, want one each time that its queue was added: %d", calls[s], s, rounds)
			}
		}
	})
}

func TestLanesChangeOnARunningNode(t *testing.T) {
	t.Parallel()
	inWorld(t, func(w *world) {
		rec := w.record()
		n := w.start(nil, spread, serving(rec.queue("red", 4, lasting(100*time.Millisecond))))
		w.sleep(poll)
		w.fill("red", 4, 5000)
		for _, lanes := range []int{20, 50, 3, 1, 10, 200} {
			w.must(n.engine.SetLanes(lanes))
			w.sleep(time.Second + 50*time.Millisecond)
			if got := rec.runningNow("red"); got != lanes {
				w.Errorf("with %d lanes %d batches run", lanes, got)
			}
		}
		w.sleep(time.Minute)
		w.wantQueue("red", 0, 0, 5000)
		if err := n.engine.SetLanes(0); !errors.Is(err, core.ErrInvalidOptions) {
			w.Errorf("0 lanes: %v, want %v", err, core.ErrInvalidOptions)
		}
	})
}

func TestWhatCannotChangeOnARunningNode(t *testing.T) {
	inWorld(t, func(w *world) {
		rec := w.record()
		queue := func(name string) *engine.Queue { return rec.queue(name, 2, succeed) }
		pinned := w.start(nil, serving(queue("red"), queue("blue")))
		shared := w.start(nil, spread, serving(queue("red"), queue("blue")))
		stopped := w.start(nil, spread, serving(queue("red")))
		onePinned := w.start(nil, serving(queue("red")), lanes(1))
		idle := w.start(nil, serving(queue("red")),
			func(s *setup) { s.Splitter = core.NodeSplitter{Nodes: 3, Node: 2} })

		w.sleep(poll)
		stopped.stop()

		got := make(map[string]bool)
		for name, change := range map[string]error{
			"a queue beside pinned lanes":   pinned.engine.AddQueue(queue("green")),
			"a removal beside pinned lanes": pinned.engine.RemoveQueue(w.Context(), "blue"),
			"pinned lanes":                  pinned.engine.SetLanes(7),
			"one pinned lane":               onePinned.engine.SetLanes(7),
			"a node without shards":         idle.engine.SetLanes(7),
			"a queue that is there":         shared.engine.AddQueue(queue("red")),
			"a queue that is not there":     shared.engine.RemoveQueue(w.Context(), "green"),
			"a node that has stopped":       stopped.engine.SetLanes(7),
			"the queue of one that does":    stopped.engine.AddQueue(queue("green")),
		} {
			got[name] = errors.Is(change, core.ErrInvalidOptions)
		}

		for name, refused := range got {
			if !refused {
				w.Errorf("%s: not refused with %v", name, core.ErrInvalidOptions)
			}
		}

		w.must(shared.engine.RemoveQueue(w.Context(), "blue"))
		if err := shared.engine.RemoveQueue(w.Context(), "red"); !errors.Is(err, core.ErrInvalidOptions) {
			w.Errorf("the last queue: %v, want %v", err, core.ErrInvalidOptions)
		}

		w.fill("blue", 2, 10)
		w.sleep(poll)
		w.wantQueue("blue", 0, 0, 10) // the others work it
	})
}

// Queues and lanes come and go while jobs flow, and each job runs once.
func TestJobsRunOnceWhileANodeIsReconfigured(t *testing.T) {
	t.Parallel()
	for name, scheduler := range map[string]func(*setup){
		"lag": scheduled(core.Lag), "seq": scheduled(core.Seq), "a user's": choose(firstDue),
		"weighted": scheduled(core.WeightedBy(map[string]int{"red": 2})),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				random := rand.New(rand.NewPCG(3, 4))
				rec := w.record()
				queue := func(i int) *engine.Queue {
					return rec.queue(fmt.Sprintf("queue-%d", i), 1+i, lasting(time.Duration(i*5)*time.Millisecond))
				}
				n := w.start(nil, spread,
					serving(rec.queue("red", 3, lasting(3*time.Millisecond)), queue(0)), scheduler)

				w.sleep(poll)
				has := map[int]bool{0: true}
				pushed := make(map[string]int64)

				for step := range 200 {
					w.pushTo("red", 3, fmt.Sprintf("id-%d", step))
					pushed["red"]++
					for i := range 4 {
						if has[i] {
							name := fmt.Sprintf("queue-%d", i)
							w.pushTo(name, 1+i, fmt.Sprintf("id-%d", step))
							pushed[name]++
						}
					}

					switch i := random.IntN(4); random.IntN(6) {
					case 0:
						w.must(n.engine.SetLanes(1 + random.IntN(30)))
					case 1:
						if has[i] {
							w.must(n.engine.RemoveQueue(w.Context(), fmt.Sprintf("queue-%d", i)))
						} else {
							w.must(n.engine.AddQueue(queue(i)))
						}
						has[i] = !has[i]
					}
					w.sleep(time.Duration(random.IntN(20)) * time.Millisecond)
				}

				for i := range 4 {
					if !has[i] {
						w.must(n.engine.AddQueue(queue(i)))
					}
				}

				w.sleep(10 * poll)
				got := make(map[string]int64)
				for name := range pushed {
					waiting, claimed, done := w.counts(name)
					got[name] = done
					if waiting+claimed != 0 {
						w.Errorf("of %s %d jobs wait and %d are claimed", name, waiting, claimed)
					}
				}

				if diff := cmp.Diff(pushed, got); diff != "" {
					w.Errorf("jobs done of each queue (-want +got):\n%s", diff)
				}
				if starts := int64(len(rec.all())); starts != sum(pushed) {
					w.Errorf("%d batches started, want %d", starts, sum(pushed))
				}
			})
		})
	}
}

func sum(of map[string]int64) (n int64) {
	for _, v := range of {
		n += v
	}
	return n
}
