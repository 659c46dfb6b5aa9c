package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// splitterFunc is a splitter of a user's own.
type splitterFunc func(r core.SplitRequest) (core.Split, error)

func (f splitterFunc) Split(r core.SplitRequest) (core.Split, error) { return f(r) }

func TestABadSplitEndsRunBeforeAnythingIsDeclared(t *testing.T) {
	broken := errors.New("no idea")
	for name, c := range map[string]struct {
		split splitterFunc
		want  error
	}{
		"an error of its own": {func(core.SplitRequest) (core.Split, error) { return core.Split{}, broken }, broken},
		"a shard for nobody": {func(r core.SplitRequest) (core.Split, error) {
			return core.Split{Lanes: [][]core.Shard{r.Shards[1:]}}, nil
		}, core.ErrSplit},
		"a shard dealt twice": {func(r core.SplitRequest) (core.Split, error) {
			return core.Split{Lanes: [][]core.Shard{r.Shards, r.Shards[:1]}}, nil
		}, core.ErrSplit},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				queue := newQueue(queueName, each(succeed))
				queue.Shards = 3
				e := engine.New(w.store, engine.Config{
					Queues: []*engine.Queue{queue}, Owner: "owner", Lanes: 1, PollInterval: poll, LeaseTTL: ttl,
					Splitter: c.split, Scheduler: core.Lag,
				})

				if err := e.Run(w.Context()); !errors.Is(err, c.want) {
					w.Errorf("Run: %v, want %v", err, c.want)
				}
				if queues, err := w.store.Queues(w.Context()); err != nil || len(queues) != 0 {
					w.Errorf("Queues = %v, %v; want none", queues, err)
				}
			})
		})
	}
}

func TestASplitterMayLeaveALaneWithoutShards(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(succeed), func(s *setup) {
			s.Splitter = splitterFunc(func(r core.SplitRequest) (core.Split, error) {
				return core.Split{Lanes: [][]core.Shard{nil, r.Shards, nil}}, nil
			})
		})
		w.sleep(poll)
		w.push("job", "x")
		a.wantRuns("job", 1)
		n.stop()
	})
}

// inOrder runs 4 jobs of each of 3 queues on one lane and returns in which order
// their queues came.
func (w *world) inOrder(scheduler core.SchedulerFunc) []string {
	var mu sync.Mutex
	var order []string

	names := []string{"a", "b", "c"}
	var queues []*engine.Queue
	for _, name := range names {
		queues = append(queues, newQueue(name, each(func(context.Context, *core.Claim) error {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
			return nil
		})))

		if _, err := w.store.Declare(w.Context(), ports.DeclareRequest{Queue: name, Shards: 1}); err != nil {
			w.Fatal(err)
		}

		for i := range 4 {
			r := ports.PushRequest{
				Queue:      name,
				Shards:     1,
				Generation: 1,
				Entries:    []core.Entry{entry(string(rune('0' + i)))},
			}
			if _, err := w.store.Push(w.Context(), r); err != nil {
				w.Fatal(err)
			}
		}
	}

	w.start(nil, lanes(1), func(s *setup) {
		s.Queues, s.Scheduler = queues, func(c core.SchedulerConfig) core.Scheduler {
			// The lane is to see all queues from its first choice on.
			return startLate{scheduler(c), w.began.Add(poll / 2)}
		}
	})

	w.sleep(30 * time.Second)
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(order)
}

// startLate makes no choice before a time.
type startLate struct {
	core.Scheduler
	from time.Time
}

func (s startLate) Next(now core.Instant, heads []core.Head) core.Choice {
	if d := time.Until(s.from); d > 0 {
		return core.Choice{Index: -1, Wait: d, Sleep: true}
	}
	return s.Scheduler.Next(now, heads)
}

func TestALaneFollowsItsScheduler(t *testing.T) {
	for name, c := range map[string]struct {
		scheduler core.SchedulerFunc
		want      []string
	}{
		"strict":   {core.StrictBy("b", "a"), []string{"b", "b", "b", "b", "a", "a", "a", "a", "c", "c", "c", "c"}},
		"seq":      {core.Seq, []string{"a", "b", "c", "a", "b", "c", "a", "b", "c"}},
		"weighted": {core.WeightedBy(map[string]int{"a": 3, "b": 2, "c": 1}), []string{"a", "b", "a", "c", "b", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				got := w.inOrder(c.scheduler)
				if diff := cmp.Diff(c.want, got[:len(c.want)]); diff != "" {
					w.Errorf("order (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestLagTakesTheShardWhoseJobIsOldest(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		w.start(a.watch(lasting(10*time.Second)), shards(3), lanes(1))
		w.sleep(poll)
		w.push("first", "x") // the others come while it runs
		ids := []string{idIn(2, 3), idIn(0, 3), idIn(1, 3)}
		for _, id := range ids {
			w.sleep(time.Second)
			w.push(id, "x")
		}
		w.sleep(time.Minute)
		for i := range ids[1:] {
			if a.starts(ids[i])[0] >= a.starts(ids[i+1])[0] {
				w.Errorf("%q, pushed earlier, ran after %q", ids[i], ids[i+1])
			}
		}
	})
}

func TestSeqWaitsOnePollIntervalAfterARoundWithoutSuccess(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		w.start(a.watch(succeed), lanes(1), func(s *setup) { s.Scheduler = core.Seq })
		w.sleep(10*poll + poll/2)
		w.push("job", "x") // the wake-up does not end its wait
		a.wantRuns("job", 0)
		w.sleep(poll)
		w.within("the job", a.wantRuns("job", 1)[0].at, 11*poll, 11*poll)
	})
}

// misses counts choices that gave no batch after all.
type misses struct {
	core.Scheduler
	count *atomic.Int64
}

func (m misses) Ran(index int, ok bool) {
	if !ok {
		m.count.Add(1)
	}
	m.Scheduler.Ran(index, ok)
}

// A turn that was made while the lane was elsewhere claims nothing, which must not
// pass for the answer to a lane that has come meanwhile: Seq would take it for a
// shard without work.
func TestALaneIsAnsweredByATurnThatWasMadeForIt(t *testing.T) {
	inWorld(t, func(w *world) {
		const at = 10 * time.Second
		var missed atomic.Int64
		a := w.audit()
		here, elsewhere := idIn(0, 2), idIn(1, 2)

		w.start(a.watch(func(_ context.Context, c *core.Claim) error {
			if c.ID == elsewhere {
				w.sleepInHandler(at + 1150*time.Millisecond)
			}
			return nil
		}), roundTrip(100*time.Millisecond), shards(2), lanes(1), func(s *setup) {
			s.Scheduler = func(c core.SchedulerConfig) core.Scheduler { return misses{core.Lag(c), &missed} }
			s.link.deferSettlement = func(string) bool {
				return w.elapsed() > at+400*time.Millisecond && w.elapsed() < at+time.Second
			}
		})

		w.sleepUntil(at)
		w.push(here, "1")
		w.sleepUntil(at + 300*time.Millisecond)
		w.push(here, "2") // its settlement is deferred, at last until a turn of its own, at 11.1 s
		w.sleepUntil(at + 500*time.Millisecond)
		w.push(elsewhere, "x")
		w.sleepUntil(at + 800*time.Millisecond)
		w.push(here, "3")
		before := missed.Load()
		w.sleepUntil(at + 2*time.Second)

		runs := a.wantRuns(here, 3)
		w.within("the third job", runs[2].at, at+1300*time.Millisecond, at+1300*time.Millisecond)
		if got := missed.Load() - before; got != 0 {
			w.Errorf("the lane was sent away %d times from a shard that had work", got)
		}
	})
}

func TestSeqVisitsTheNextShardAlsoAfterAHandlerEndedItsGoroutine(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(2)
		bad, good := idIn(0, 2), idIn(1, 2)

		a := w.audit()
		run := a.watch(func(_ context.Context, c *core.Claim) error {
			time.Sleep(time.Millisecond)
			if c.ID != good {
				runtime.Goexit()
			}
			return nil
		})

		w.push(bad, "x")
		other := "other"
		for i := 0; core.ShardOf(other, 2) != 0; i++ {
			other = fmt.Sprintf("other-%d", i)
		}
		w.push(other, "x")
		w.push(good, "x")

		w.start(run, shards(2), lanes(1), func(s *setup) {
			s.Scheduler = func(c core.SchedulerConfig) core.Scheduler {
				return startLate{core.Seq(c), w.began.Add(poll / 2)}
			}
		})

		w.sleep(3 * poll)
		ran := a.starts(good)
		if len(ran) != 1 || ran[0] >= max(a.starts(bad)[0], a.starts(other)[0]) {
			w.Errorf("%q ran at %v, want it between %v and %v", good, ran, a.starts(bad), a.starts(other))
		}
	})
}
