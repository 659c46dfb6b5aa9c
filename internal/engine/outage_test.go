package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
)

func TestAStoreThatFailsForAMinuteStopsNothingForLonger(t *testing.T) {
	for name, state := range map[string]linkState{"fails": down, "hangs": hanging} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				const from, to, jobs = 10 * time.Second, 70 * time.Second, 1000
				a := w.audit()
				n := w.start(a.watch(lasting(50*time.Millisecond)), shards(5))
				synctest.Wait()

				for i := range jobs {
					w.push(fmt.Sprintf("job-%d", i), "x")
					w.sleep(100 * time.Millisecond)
					switch w.elapsed() {
					case from:
						n.link.set(state)
					case to:
						n.link.set(up)
					case to + 2*time.Second:
						for shard := range 5 {
							if a.startedSince(to, shard) == 0 {
								w.Errorf("nothing of shard %d ran within 2 s of the store's return", shard)
							}
						}
					}
				}

				w.sleep(time.Minute)
				w.wantCounts(0, 0, jobs, 0)
			})
		})
	}
}

// startedSince counts the executions of a shard of 5 since a time.
func (a *audit) startedSince(since time.Duration, shard int) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, runs := range a.runs {
		if core.ShardOf(id, 5) == shard && runs[len(runs)-1].at >= since {
			n++
		}
	}
	return n
}

func TestAShortOutageCostsNoLease(t *testing.T) {
	for name, state := range map[string]linkState{"fails": down, "hangs": hanging} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				a := w.audit()
				n := w.start(a.watch(lasting(ttl)))
				w.sleep(poll)
				w.push("job", "x")
				w.sleep(poll)
				n.link.set(state)
				w.sleep(ttl / 2)
				n.link.set(up)
				w.sleep(ttl)
				a.wantRuns("job", 1)
				w.wantCounts(0, 0, 1, 0)
				if n.link.count("Acquire") != 1 {
					w.Errorf("the lease was lost; the log:\n%v", n.log)
				}
			})
		})
	}
}

func TestAStoreThatLostItsDataIsUsedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(succeed))
		w.sleep(poll)
		w.push("job-0", "x")
		w.store = memory.New(memory.Options{})
		n.link.swap(w.store)
		w.sleep(ttl/3 + 2*time.Second)
		w.push("job-1", "x")
		w.sleep(10 * poll) // the wake-ups are still those of the other store
		a.wantHandledOnce(2, "x")
	})
}

func TestAtShutdownAStoreThatFailsIsWaitedForNoLongerThanTheLeaseLasts(t *testing.T) {
	for name, state := range map[string]linkState{"fails": down, "hangs": hanging} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(each(lasting(time.Second)))
				w.sleep(poll)
				w.push("job", "x")
				n.link.set(state)
				asked := w.elapsed()
				n.stop()
				w.within("Run returned", w.elapsed(), asked+time.Second, asked+ttl)
			})
		})
	}
}
