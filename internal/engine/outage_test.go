package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
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

func TestTheLogSaysThatTheStoreIsBackAlsoWhenNothingIsPolled(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed))
		w.sleep(10 * poll)
		n.link.set(down)
		w.sleep(5 * poll) // polls fail
		n.link.set(up)
		for range 200 { // the shard is never quiet enough for a poll
			w.push("job", "x")
			w.sleep(100 * time.Millisecond)
		}
		fails, back := len(n.log.lines("the store fails", "doing=poll")), len(n.log.lines("answers again", "doing=poll"))
		if fails != 1 || back != 1 {
			w.Errorf("the log says %d times that the store fails and %d that it is back, want once each", fails, back)
		}
	})
}

func TestATurnThatHangsIsRepeated(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(succeed))
		w.sleep(poll)
		late := n.link.delayNext("Turn")
		w.push("job", "x")
		w.sleep(ttl * 4 / 5)
		a.wantRuns("job", 1)
		if n.link.count("Acquire") != 1 {
			w.Errorf("the lease was lost; the log:\n%v", n.log)
		}
		if err := (<-late)(); !errors.Is(err, ports.ErrStaleTurn) {
			w.Errorf("the turn that came late: %v, want ErrStaleTurn", err)
		}
		w.wantCounts(0, 0, 1, 0)
	})
}

func TestALaneGoesOnWithOtherShardsWhileOneFails(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(succeed), shards(2), lanes(1))
		w.sleep(poll)
		n.link.change(func() { n.link.broken[shardOfQueue(0)] = errDown })
		w.push(idIn(0, 2), "x")
		w.sleep(poll)
		w.push(idIn(1, 2), "x")
		w.sleep(poll)
		a.wantRuns(idIn(0, 2), 0)
		a.wantRuns(idIn(1, 2), 1)
		n.link.change(func() { clear(n.link.broken) })
		w.sleep(2 * poll)
		a.wantRuns(idIn(0, 2), 1)
	})
}

func TestAServerWaitsForAStoreThatIsAbsentWhenItStarts(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.push("job", "x")
		a := w.audit()
		n := w.start(a.watch(succeed), func(s *setup) { s.link.state = down })
		w.sleep(10 * time.Minute)
		n.link.set(up)
		w.sleep(2 * time.Second)
		a.wantRuns("job", 1)
		if fails, back := n.log.count("the store fails"), n.log.count("answers again"); fails != 20 || back != 1 {
			w.Errorf("the log says %d times that the store fails and %d that it is back, want 20 in 10 minutes, and once", fails, back)
		}
	})
}

func TestAServerThatWaitsForItsStoreStopsWhenAsked(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), func(s *setup) { s.link.state = down })
		w.sleep(time.Minute)
		asked := w.elapsed()
		n.stop()
		w.within("Run returned", w.elapsed(), asked, asked)
	})
}

func TestAQueueWithAnotherShardCountEndsRunAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(3)
		queue := newQueue(queueName, each(succeed))
		e := engine.New(w.store, engine.Config{
			Queues: []*engine.Queue{queue}, Owner: "owner", Lanes: 1, PollInterval: poll, LeaseTTL: ttl,
			Splitter: core.LaneSplitter{}, Scheduler: core.Lag,
		})
		if err := e.Run(w.Context()); !errors.Is(err, ports.ErrShardCountMismatch) {
			w.Errorf("Run: %v, want ErrShardCountMismatch", err)
		}
		w.within("Run returned", w.elapsed(), 0, 0)
	})
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
		w.sleep(2 * poll)
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

func TestAReplyThatComesAfterTheLeaseEndedChangesNothing(t *testing.T) {
	for _, method := range []string{"Turn", "Renew", "Release"} {
		t.Run(method, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(each(lasting(poll)))
				w.sleep(poll)
				n.link.change(func() { n.link.linger[method] = 2 * ttl })
				w.push("job", "x")
				n.cancel()
				w.sleep(4 * ttl)
				n.awaitEnd()
				n.link.change(func() { clear(n.link.linger) })
				w.start(each(succeed))
				w.sleep(ttl)
				w.wantCounts(0, 0, 1, 0)
			})
		})
	}
}
