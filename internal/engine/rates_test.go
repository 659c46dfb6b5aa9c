package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// starts notes when batches of a queue start.
type starts struct {
	mu sync.Mutex
	at []time.Time
}

// handler is a handler that takes so long.
func (s *starts) handler(took time.Duration) handler {
	return each(func(context.Context, *core.Claim) error {
		s.mu.Lock()
		s.at = append(s.at, time.Now())
		s.mu.Unlock()
		time.Sleep(took)
		return nil
	})
}

// since returns how many batches have started since a time.
func (s *starts) since(t time.Time) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.at {
		if !at.Before(t) {
			n++
		}
	}
	return n
}

// wantRate checks that in any period of the rate there are at most as many starts as it allows, and
// some more: slots that were granted and used late.
func (s *starts) wantRate(w *world, r core.Rate, more int) {
	w.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortFunc(s.at, time.Time.Compare)
	first := 0
	for last := range s.at {
		for s.at[last].Sub(s.at[first]) > r.Per {
			first++
		}
		if n := last - first + 1; n > r.Count+r.Burst+1+more {
			w.Fatalf("%d batches start from %v to %v, at a rate of %v", n,
				s.at[first].Sub(w.began), s.at[last].Sub(w.began), r)
		}
	}
}

// rated is an option: the queue has a rate.
func rated(r core.Rate) func(*setup) { return func(s *setup) { s.queue.Rate = r } }

func TestARateHoldsOverServersAndIsUsed(t *testing.T) {
	for _, c := range []struct {
		rate           core.Rate
		servers, lanes int
		took, lasts    time.Duration
		trip           time.Duration
	}{
		{core.Rate{Count: 50, Per: time.Second}, 4, 5, 10 * time.Millisecond, time.Minute, time.Millisecond},
		{core.Rate{Count: 50, Per: time.Second, Burst: 20}, 4, 5, 10 * time.Millisecond, time.Minute, time.Millisecond},
		{core.Rate{Count: 50, Per: time.Second}, 2, 20, 10 * time.Millisecond, time.Minute, 100 * time.Millisecond},
		{core.Rate{Count: 10, Per: time.Minute}, 4, 5, 10 * time.Millisecond, 10 * time.Minute, time.Millisecond},
		{core.Rate{Count: 10, Per: time.Minute}, 1, 1, 5 * time.Second, 10 * time.Minute, time.Millisecond},
		{core.Rate{Count: 10_000, Per: time.Second}, 2, 100, 5 * time.Millisecond, time.Second, time.Millisecond},
		{core.Rate{Count: 1, Per: time.Hour}, 2, 5, time.Second, time.Duration(tier.Count(3, 24)) * time.Hour, time.Millisecond},
	} {
		t.Run(fmt.Sprint(c.rate, " over ", c.servers, " in ", c.trip), func(t *testing.T) {
			inWorld(t, func(w *world) {
				var s starts
				for range c.servers {
					w.start(s.handler(c.took), spread, shards(8), lanes(c.lanes), rated(c.rate), roundTrip(c.trip))
				}
				w.sleep(announces)
				slots := int(c.lasts/c.rate.Interval()) + c.rate.Burst
				for left := 2 * slots; left > 0; left -= 10_000 {
					w.pushMore(min(left, 10_000))
				}

				began := time.Now()
				w.sleep(c.lasts)
				s.wantRate(w, c.rate, c.servers*int(2*c.trip/c.rate.Interval())+c.servers)
				if got := s.since(began); got < slots*95/100 {
					t.Errorf("%d batches started in %v, of %d that may", got, c.lasts, slots)
				}
			})
		})
	}
}

// pushMore pushes a job for each of n new ids.
func (w *world) pushMore(n int) {
	w.Helper()
	var entries []core.Entry
	for range n {
		entries = append(entries, entry(fmt.Sprint("id-", rand.Uint64())))
	}
	w.pushEntries(entries...)
}

// A job of an idle queue with a rate waits for one exchange more than without.
func TestAJobOfAnIdleRatedQueueWaitsForOneExchange(t *testing.T) {
	took := make(map[bool]time.Duration)
	for _, limited := range []bool{false, true} {
		inWorld(t, func(w *world) {
			var s starts
			rate := core.Rate{}
			if limited {
				rate = core.Rate{Count: 10, Per: time.Second}
			}
			w.start(s.handler(0), spread, shards(1), rated(rate), roundTrip(10*time.Millisecond))
			w.sleep(announces)
			pushed := time.Now()
			w.push("a", "x")
			w.sleep(time.Second)
			took[limited] = s.at[0].Sub(pushed)
		})
	}
	if more := took[true] - took[false]; more > 10*time.Millisecond {
		t.Errorf("a job waits for %v with a rate and %v without; one exchange takes 10ms", took[true], took[false])
	}
}

// Jobs that wait for the rate wait in the store, where pushes merge into them.
func TestJobsThatWaitForTheRateAreNotClaimed(t *testing.T) {
	inWorld(t, func(w *world) {
		var s starts
		w.start(s.handler(time.Millisecond), spread, shards(4), rated(core.Rate{Count: 1, Per: 10 * time.Second}))
		w.sleep(announces)
		w.pushEach(1000)
		for range 300 {
			w.sleep(100 * time.Millisecond)
			if claimed := w.stats().Claimed; claimed > 1 {
				t.Fatalf("at %v %d jobs are claimed, and one may start in 10 s", w.elapsed(), claimed)
			}
		}
	})
}

// While servers die, lose their store and stop, no more batches start than the rate allows. After an
// outage of an hour no burst follows.
func TestARateHoldsThroughFaults(t *testing.T) {
	for seed := range uint64(tier.Count(2, 20)) {
		inWorld(t, func(w *world) { rateHistory(w, seed) })
	}
}

// ratedHistory is servers of a queue with rates that start, lose their store and find it again.
type ratedHistory struct {
	*world
	seed    uint64
	random  *rand.Rand
	handler func(took time.Duration) handler
	rated   func(*setup)
	all     []*node
}

func (h *ratedHistory) start() {
	took := time.Duration(h.random.IntN(100)) * time.Millisecond
	h.all = append(h.all, h.world.start(h.handler(took), spread, shards(6), lanes(4),
		h.rated, roundTrip(time.Duration(h.random.IntN(5))*time.Millisecond), func(s *setup) {
			s.queue.MaxRunning = h.random.IntN(3) * 4
			loses := rand.New(rand.NewPCG(h.seed, uint64(len(h.all))))
			s.link.lose = func(method string) bool { return method == "Take" && loses.IntN(10) == 0 }
		}))
}

// step lets the servers work for up to two seconds. Then one starts, one loses or finds its store, or
// the limiter of a key is stopped.
func (h *ratedHistory) step(key string) {
	h.sleep(time.Duration(h.random.IntN(2000)) * time.Millisecond)
	switch n := h.all[h.random.IntN(len(h.all))]; h.random.IntN(8) {
	case 0:
		if len(h.all) < 5 {
			h.start()
		}
	case 1:
		n.link.set(down)
	case 2:
		n.link.set(hanging)
	case 3:
		h.must(h.store.Stop(h.Context(), ports.StopRequest{Queue: queueName, Key: key, For: time.Second}))
	default:
		n.link.set(up)
	}
}

// outage is a time in which no server has its store.
func (h *ratedHistory) outage(d time.Duration) {
	for _, n := range h.all {
		n.link.set(down)
	}
	h.sleep(d)
	for _, n := range h.all {
		n.link.set(up)
	}
}

// finish waits for the end of all jobs, for a time at most.
func (h *ratedHistory) finish(within time.Duration) {
	left, claimed := int64(1), int64(0)
	for end := time.Now().Add(within); left+claimed > 0 && time.Now().Before(end); {
		h.sleep(time.Minute)
		left, claimed, _ = h.counts(queueName)
	}
	if left+claimed > 0 {
		h.Errorf("seed %d: %d jobs are left after %v, and %d claimed", h.seed, left, within, claimed)
	}
}

func rateHistory(w *world, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 11))
	rate := core.Rate{Count: 20, Per: time.Second, Burst: random.IntN(3)}
	var s starts
	h := ratedHistory{world: w, seed: seed, random: random, handler: s.handler, rated: rated(rate)}

	w.declare(6)
	h.start()
	h.start()
	for range 60 {
		w.pushMore(30)
		h.step("")
	}

	h.outage(time.Hour)
	h.finish(20 * time.Minute)
	s.wantRate(w, rate, len(h.all))
}

// A rate and a bound over all servers hold together.
func TestARateHoldsBesideMaxRunning(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.permitLedger(3)
		rate := core.Rate{Count: 20, Per: time.Second}
		l.startNodes(3, 6, 50*time.Millisecond, func(s *setup) { s.Queues[0].Rate = rate })
		w.pushEach(2000)
		w.sleep(30 * time.Second)
		if _, _, done := w.counts(queueName); done > 20*30+4 || done < 20*30*9/10 {
			t.Errorf("%d jobs are done in 30 s at a rate of %v", done, rate)
		}
	})
}

// slowing is a handler whose nth call slows its queue down.
func (s *starts) slowing(nth int, d time.Duration) handler {
	return func(_ context.Context, b *execution.Batch) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.at = append(s.at, time.Now())
		if len(s.at) == nth {
			return slowDown{d}
		}
		return nil
	}
}

type slowDown struct{ d time.Duration }

func (slowDown) Error() string { return "slow down" }

// slows is an option: errors of slowing end as SlowDown does.
func slows(s *setup) {
	before := s.queue.Outcome
	s.queue.Outcome = func(err error) core.Outcome {
		if slow, ok := err.(slowDown); ok {
			return core.Outcome{Kind: core.Snoozed, Delay: slow.d, SlowDown: slow.d}
		}
		return before(err)
	}
}

func TestSlowDownStopsAllServers(t *testing.T) {
	inWorld(t, func(w *world) {
		var s starts
		rate := core.Rate{Count: 20, Per: time.Second}
		for range 3 {
			w.start(s.slowing(50, 30*time.Second), spread, shards(6), rated(rate), slows, roundTrip(time.Millisecond))
		}
		w.sleep(announces)
		w.pushMore(3000)
		w.sleep(10 * time.Second)

		// Slots of the next 50 ms were granted before.
		last := s.at[len(s.at)-1]
		if late := last.Sub(s.at[49]); late > 60*time.Millisecond {
			t.Errorf("a batch starts %v after the queue was slowed down", late)
		}
		stopped := s.at[49].Add(30 * time.Second)
		w.sleepUntil(stopped.Sub(w.began) - time.Millisecond)
		if n := s.since(last.Add(1)); n > 0 {
			t.Errorf("%d batches start while the queue is slowed down", n)
		}
		w.sleep(10 * time.Second)
		if n := s.since(stopped); n < 150 {
			t.Errorf("%d batches start in the 10 s after that, want 200", n)
		}
		s.wantRate(w, rate, 3)
	})
}

// rateSeen sums up the events of rates.
type rateSeen struct {
	ports.NopObserver
	mu            sync.Mutex
	want, granted int
	stops         []ports.SlowEvent
}

func (o *rateSeen) SlotsTaken(e ports.SlotEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.want, o.granted = o.want+e.Want, o.granted+e.Granted
}

func (o *rateSeen) QueueSlowed(e ports.SlowEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stops = append(o.stops, e)
}

func TestRunDueSlowsDown(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEach(5)
		var s starts
		q := newQueue(queueName, s.slowing(2, time.Hour))
		q.Rate = core.Rate{Count: 1, Per: time.Minute, Burst: 9}
		q.Outcome = func(error) core.Outcome {
			return core.Outcome{Kind: core.Snoozed, Delay: time.Hour, SlowDown: time.Hour}
		}
		if jobs, err := w.runDue(newLink(w.store.Open()), q, "runner"); jobs != 2 || err != nil {
			t.Errorf("%d jobs ran, of 2 until one slows the queue down; error %v", jobs, err)
		}
		w.wantStop(time.Hour)
	})
}

// wantStop checks how long the rate of the queue is stopped.
func (w *world) wantStop(want time.Duration) {
	w.Helper()
	reply, err := w.store.Limits(w.Context(), ports.LimitsRequest{Queue: queueName})
	w.must(err)
	if len(reply.Limits) != 1 || reply.Limits[0].Stopped.Sub(reply.Now) != want {
		w.Errorf("the limiters at %v are %+v, want a stop of %v", reply.Now, reply.Limits, want)
	}
}

// A handler that returns while its server stops still slows the other servers down.
func TestSlowDownAtTheEndOfAServerIsStored(t *testing.T) {
	inWorld(t, func(w *world) {
		slow := each(func(ctx context.Context, _ *core.Claim) error {
			time.Sleep(time.Second)
			return slowDown{time.Hour}
		})
		n := w.start(slow, spread, shards(1), rated(core.Rate{Count: 1, Per: time.Second}), slows)
		w.sleep(announces)
		w.push("a", "x")
		w.sleep(500 * time.Millisecond)
		n.stop()
		w.wantStop(time.Hour)
	})
}

func TestTakesAndStopsOfARateAreObserved(t *testing.T) {
	inWorld(t, func(w *world) {
		var s starts
		var o rateSeen
		rate := core.Rate{Count: 20, Per: time.Second}
		w.start(s.slowing(50, time.Minute), spread, shards(6), rated(rate), slows, func(s *setup) { s.Observer = &o })
		w.sleep(announces)
		w.pushMore(100)
		w.sleep(10 * time.Second)

		o.mu.Lock()
		defer o.mu.Unlock()
		if n := s.since(w.began); o.granted < n || o.granted > n+2 || o.want <= o.granted {
			t.Errorf("%d slots granted of %d for %d batches; want one for each batch, at most two more, and delays",
				o.granted, o.want, n)
		}
		if want := (ports.SlowEvent{Queue: queueName, For: time.Minute}); len(o.stops) != 1 || o.stops[0] != want {
			t.Errorf("the stops are %+v, want %+v", o.stops, want)
		}
	})
}

func TestSlowDownWithoutARateSnoozes(t *testing.T) {
	inWorld(t, func(w *world) {
		var s starts
		n := w.start(s.slowing(1, time.Minute), spread, shards(1), slows)
		w.sleep(time.Second)
		w.push("a", "x")
		w.push("b", "x")
		w.sleep(time.Second)
		w.wantCounts(1, 0, 1, 0)
		n.wantLines(1, "level=WARN", "SlowDown has only snoozed its job")
		w.sleep(2 * time.Minute)
		w.wantCounts(0, 0, 2, 0)
	})
}

func TestARateIsASetting(t *testing.T) {
	inWorld(t, func(w *world) {
		var s starts
		n := w.start(s.handler(time.Millisecond), spread, shards(4), rated(core.Rate{Count: 10, Per: time.Second}))
		w.sleep(announces)
		w.pushMore(2000)
		for _, step := range []struct {
			change    core.SettingChange
			from, to  int // starts in ten seconds
			announced string
		}{
			{core.SettingChange{Name: core.SettingRate, Value: "100/s"}, 950, 1003, "100/1s"},
			{core.SettingChange{Name: core.SettingRate, Value: "2/s"}, 19, 22, "2/1s"},
			{unset(core.SettingRate), 95, 102, "10/1s"},
			{core.SettingChange{Name: core.SettingRate, Value: "none"}, 2000, 20_000, ""},
		} {
			w.set(step.change)
			w.sleep(announces)
			w.pushMore(2000)
			began := time.Now()
			w.sleep(10 * time.Second)
			if got := s.since(began); got < step.from || got > step.to {
				t.Errorf("after %+v %d batches start in 10 s, want %d to %d", step.change, got, step.from, step.to)
			}
			if node, _ := w.announced(n); node.Status.Queues[0].Rate != step.announced {
				t.Errorf("after %+v the server announces the rate %q, want %q",
					step.change, node.Status.Queues[0].Rate, step.announced)
			}
		}
	})
}

func TestRunDueHoldsTheRate(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEach(5)
		q := newQueue(queueName, each(succeed))
		q.Rate = core.Rate{Count: 1, Per: time.Minute, Burst: 2}
		if jobs, err := w.runDue(newLink(w.store.Open()), q, "runner"); jobs != 3 || err != nil {
			t.Errorf("%d jobs ran, of 3 that may; error %v", jobs, err)
		}
	})
}

// Where lanes have shards of their own, each of them gets its part of the rate.
func TestPinnedLanesShareARate(t *testing.T) {
	for _, took := range []time.Duration{time.Millisecond, 150 * time.Millisecond} {
		inWorld(t, func(w *world) {
			rec := w.record()
			q := rec.queue(queueName, 10, lasting(took))
			q.Rate = core.Rate{Count: 10, Per: time.Second}
			w.start(nil, lanes(10), serving(q), roundTrip(time.Millisecond))
			w.sleep(announces)
			w.pushMore(3000)
			w.sleep(time.Minute)

			var starts [10]int
			for _, s := range rec.all() {
				starts[s.shard.Index]++
			}
			if slices.Min(starts[:]) < 55 || slices.Max(starts[:]) > 65 {
				t.Errorf("with jobs of %v the shards have %v starts, of 600 in all", took, starts)
			}
		})
	}
}

// With a rate, RunDue also sees the jobs that its handlers push for shards that had none.
func TestRunDueWithARateSeesWhatHandlersPush(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(3)
		w.push(idIn(2, 3), "x")
		next := map[string]string{idIn(2, 3): idIn(0, 3), idIn(0, 3): idIn(1, 3)}
		q := newQueue(queueName, each(func(_ context.Context, c *core.Claim) error {
			if id := next[c.ID]; id != "" {
				w.pushEntries(entry(id))
			}
			return nil
		}))
		q.Shards, q.Rate = 3, core.Rate{Count: 10, Per: time.Second, Burst: 10}
		if jobs, err := w.runDue(newLink(w.store.Open()), q, "runner"); jobs != 3 || err != nil {
			t.Errorf("%d jobs ran, want 3; error %v", jobs, err)
		}
	})
}

// While other queues use all lanes, a queue with a rate gets its starts: a slot waits for the next lane.
func TestARatedQueueDoesNotStarveBesideFullOnes(t *testing.T) {
	for _, lanes := range []int{1, 4} {
		inWorld(t, func(w *world) {
			rec := w.record()
			busy, rated := rec.queue("busy", 4, lasting(8*time.Second)), rec.queue(queueName, 4, succeed)
			rated.Rate = core.Rate{Count: 1, Per: 10 * time.Second}
			w.fill("busy", 4, 1000)
			w.start(nil, pooled(lanes), serving(busy, rated), scheduled(core.StrictBy(queueName, "busy")),
				roundTrip(time.Millisecond))
			w.sleep(announces)
			w.pushMore(1000)
			w.sleep(10 * time.Minute)

			n := 0
			for _, s := range rec.all() {
				if s.shard.Queue == queueName {
					n++
				}
			}
			if n < 55 || n > 62 {
				t.Errorf("%d of the 60 batches that may start have, beside a queue that uses %d lanes", n, lanes)
			}
		})
	}
}

// A slot that waits for a lane ends with a stop.
func TestASlotThatWaitsForALaneEndsWithAStop(t *testing.T) {
	inWorld(t, func(w *world) {
		rec := w.record()
		busy, rated := rec.queue("busy", 1, lasting(time.Minute)), rec.queue(queueName, 1, succeed)
		rated.Rate = core.Rate{Count: 1, Per: time.Second}
		w.fill("busy", 1, 10)
		n := w.start(nil, pooled(1), serving(busy, rated), scheduled(core.StrictBy(queueName, "busy")))
		w.sleep(10 * time.Second)
		w.push("a", "x")
		w.sleep(80 * time.Second) // since the first lane was free the server keeps a slot
		takes := n.link.count("Take")

		w.must(w.store.Stop(w.Context(), ports.StopRequest{Queue: queueName, For: time.Hour}))
		w.sleep(50 * time.Minute)
		w.wantCounts(1, 0, 0, 0)
		w.sleep(15 * time.Minute)
		w.wantCounts(0, 0, 1, 0)
		if takes < 5 || takes > 60 {
			t.Errorf("the server has called the store %d times for its one slot, want about one in a second", takes)
		}
	})
}
