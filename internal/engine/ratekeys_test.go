package engine_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// tenantOf is the key of the tests: what stands before the slash of an id. It is empty without one.
func tenantOf(id string) string {
	tenant, _, ok := strings.Cut(id, "/")
	if !ok {
		return ""
	}
	return tenant
}

// ratedBy is an option: each tenant has its rate, and others have none.
func ratedBy(rates map[string]core.Rate) func(*setup) {
	return func(s *setup) {
		s.queue.KeyOf = func(c *core.Claim) (string, core.Rate) {
			tenant := tenantOf(c.ID)
			rate, limited := rates[tenant]
			if !limited {
				return "", core.Rate{}
			}
			return tenant, rate
		}
	}
}

// tenantStarts notes when jobs start, by tenant.
type tenantStarts struct {
	mu       sync.Mutex
	byTenant map[string]*starts
	ids      map[string]time.Time
	runs     map[string]int
	claims   int
}

func (s *tenantStarts) handler(took time.Duration) handler {
	return each(func(_ context.Context, c *core.Claim) error {
		s.note(c.ID)
		time.Sleep(took)
		return nil
	})
}

func (s *tenantStarts) note(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byTenant == nil {
		s.byTenant, s.ids, s.runs = make(map[string]*starts), make(map[string]time.Time), make(map[string]int)
	}
	t := s.byTenant[tenantOf(id)]
	if t == nil {
		t = new(starts)
		s.byTenant[tenantOf(id)] = t
	}
	t.mu.Lock()
	t.at = append(t.at, time.Now())
	t.mu.Unlock()
	s.ids[id] = time.Now()
	s.runs[id]++
}

// startOf returns when a job has started, or zero.
func (s *tenantStarts) startOf(id string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids[id]
}

// claimed returns how many jobs were claimed.
func (s *tenantStarts) claimed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims
}

// of returns the starts of a tenant.
func (s *tenantStarts) of(tenant string) *starts {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.byTenant[tenant]; t != nil {
		return t
	}
	return new(starts)
}

// counting is an option: it counts the claims of a server.
func (s *tenantStarts) counting(o *setup) { o.Observer = claimCounter{s: s} }

type claimCounter struct {
	ports.NopObserver
	s *tenantStarts
}

func (c claimCounter) TurnEnd(e ports.TurnEvent) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.claims += e.Claimed
}

// pushTenant pushes a job for each of n ids of a tenant, numbered from a number.
func (w *world) pushTenant(tenant string, from, n int) {
	w.Helper()
	entries := make([]core.Entry, n)
	for i := range entries {
		entries[i] = entry(fmt.Sprint(tenant, "/", from+i))
	}
	w.pushEntries(entries...)
}

// lateStarts returns how many starts of a key may come late in one period: a start counts when it
// is taken, and its job may wait for a lane for one and a half poll intervals.
func lateStarts(r core.Rate) int { return int(1500*time.Millisecond/r.Interval()) + 3 }

func TestARateByKeyHoldsAndLetsOthersPass(t *testing.T) {
	for _, c := range []struct {
		rate  core.Rate
		lasts time.Duration
	}{
		{core.Rate{Count: 5, Per: time.Second}, time.Minute},
		{core.Rate{Count: 10, Per: time.Minute, Burst: 3}, 10 * time.Minute},
		{core.Rate{Count: 500, Per: time.Second}, 10 * time.Second},
	} {
		t.Run(c.rate.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				var s tenantStarts
				for range 4 {
					w.start(s.handler(10*time.Millisecond), spread, shards(8), lanes(5), s.counting, roundTrip(time.Millisecond),
						ratedBy(map[string]core.Rate{"hot": c.rate}))
				}
				w.sleep(announces)
				slots := int(c.lasts/c.rate.Interval()) + c.rate.Burst
				w.pushTenant("hot", 0, 2*slots)

				began := time.Now()
				for i := range 10 {
					w.sleep(c.lasts / 10)
					pushed := time.Now()
					w.pushTenant("cold", i, 1)
					w.sleep(time.Second)
					if wait := s.startOf(fmt.Sprint("cold/", i)).Sub(pushed); wait < 0 || wait > 100*time.Millisecond {
						t.Errorf("at %v a job without a rate waits %v behind those that have one", w.elapsed(), wait)
					}
				}

				hot := s.of("hot")
				hot.wantRate(w, c.rate, 4)
				if got := hot.since(began); got < slots*95/100 {
					t.Errorf("%d jobs started in %v, of %d that may", got, c.lasts, slots)
				}
				if most := 2*2*slots + 10; s.claimed() > most {
					t.Errorf("%d claims for %d jobs, want two a job at most", s.claimed(), 2*slots+10)
				}
			})
		})
	}
}

// A queue whose shards have a lag claims each job late. The rate is used all the same.
func TestARateByKeyIsUsedInAQueueWithALag(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		rate := core.Rate{Count: 5, Per: time.Second}
		w.start(s.handler(10*time.Millisecond), shards(4), lanes(4), ratedBy(map[string]core.Rate{"hot": rate}))
		w.sleep(announces)
		w.pushMore(4000) // ten seconds of work, and more comes than is done
		w.pushTenant("hot", 0, 1000)
		began := time.Now()
		for range 120 {
			w.pushMore(410)
			w.sleep(time.Second)
		}

		hot := s.of("hot")
		hot.wantRate(w, rate, lateStarts(rate))
		if got := hot.since(began.Add(20 * time.Second)); got < 100*5*8/10 {
			t.Errorf("%d jobs started in 100 s, of 500 that may", got)
		}
	})
}

// Jobs that a key has no slot for ask again after an hour, and those that wait longest first get the
// next slots: none is overtaken by one that was pushed much later.
func TestJobsOfAnOverloadedKeyStartInTheOrderOfTheirPushes(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		rate := core.Rate{Count: 1, Per: 4 * time.Second}
		w.start(s.handler(time.Millisecond), shards(3), lanes(4), s.counting, ratedBy(map[string]core.Rate{"hot": rate}))
		w.sleep(announces)
		pushed, began := make(map[string]time.Time), time.Now()
		push := func(n int) {
			w.pushTenant("hot", len(pushed), n)
			for range n {
				pushed[fmt.Sprint("hot/", len(pushed))] = time.Now()
			}
		}
		push(4500) // five hours
		for range 420 {
			w.sleep(time.Minute)
			push(10)
		}

		hot := s.of("hot")
		hot.wantRate(w, rate, 1)
		if got := hot.since(began); got < 420*15*95/100 {
			t.Errorf("%d jobs started in seven hours, of %d that may", got, 420*15)
		}
		if most := 2*len(pushed) + 8*len(pushed); s.claimed() > most {
			t.Errorf("%d claims for %d jobs, want two a job and one more for each hour", s.claimed(), len(pushed))
		}

		s.mu.Lock()
		started := maps.Clone(s.ids)
		s.mu.Unlock()
		ran := slices.SortedFunc(maps.Keys(started), func(a, b string) int { return started[a].Compare(started[b]) })
		newest := began
		for _, id := range ran {
			if by := newest.Sub(pushed[id]); by > 2*time.Hour+5*time.Minute {
				t.Fatalf("%s starts behind a job that was pushed %v later", id, by)
			}
			if pushed[id].After(newest) {
				newest = pushed[id]
			}
		}
		for id, at := range pushed {
			if wait := began.Add(7 * time.Hour).Sub(at); s.startOf(id).IsZero() && newest.Sub(at) > 2*time.Hour+5*time.Minute {
				t.Fatalf("%s waits for %v, and a job that was pushed at %v ran", id, wait, newest.Sub(began))
			}
		}
	})
}

// Jobs that one turn claims see as far ahead as each may, and the oldest get the first slots.
func TestAYoungJobSeesNoFurtherAheadBesideAnOldOne(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		const old, young = 10, 20
		rate := core.Rate{Count: 1, Per: 10 * time.Minute}
		w.declare(1)
		w.pushTenant("old/hot", 0, old)
		w.sleep(5 * time.Hour)
		w.pushTenant("hot", 0, young)
		w.start(s.handler(0), shards(1), batches(old+young), s.counting, func(s *setup) {
			s.queue.KeyOf = func(*core.Claim) (string, core.Rate) { return "hot", rate }
		})
		w.sleep(announces)

		var last, first time.Duration
		for i := range old {
			id, now := fmt.Sprint("old/hot/", i), w.stats().Now
			if job := w.find(id).Queued; job != nil {
				last = max(last, job.PerformAt.Sub(now))
				if job.Slot == "" {
					t.Errorf("%s has waited for five hours and has no slot in the next one and a half", id)
				}
			}
		}
		for i := range young {
			job := w.find(fmt.Sprint("hot/", i)).Queued
			first = job.PerformAt.Sub(w.stats().Now)
			if job.Slot != "" || first > time.Hour {
				t.Errorf("hot/%d waits for %v and the slot of %q, want to ask again in an hour", i, first, job.Slot)
			}
		}
		if last < 80*time.Minute || s.claimed() != old+young {
			t.Errorf("the last old job starts in %v after %d claims, want 90 minutes and one claim a job", last, s.claimed())
		}
	})
}

// A job that asks a second time, since it may see further ahead than others of its turn, does not start
// if another server has taken what it asked for.
func TestAnOldJobThatIsGrantedNothingDoesNotStart(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		const old, young = 10, 20
		rate := core.Rate{Count: 1, Per: 10 * time.Minute}
		w.declare(1)
		w.pushTenant("old/hot", 0, old)
		w.sleep(5 * time.Hour)
		w.pushTenant("hot", 0, young)
		takes := 0
		w.start(s.handler(0), shards(1), batches(old+young), s.counting, func(o *setup) {
			o.queue.KeyOf = func(*core.Claim) (string, core.Rate) { return "hot", rate }
			o.link.swap(storekit.Intercept(w.store.Open(), func(
				ctx context.Context, call storekit.Call, next func(context.Context) error,
			) error {
				err := next(ctx)
				if reply, ok := call.Reply.(*ports.TakeReply); ok && err == nil {
					if takes++; takes == 2 {
						reply.Grants[0].Granted = 0
					}
				}
				return err
			}))
		})
		w.sleep(announces)

		if n := s.of("old").since(w.began) + s.of("hot").since(w.began); n != 1 || takes != 2 {
			t.Errorf("%d jobs start after %d takes, want one, whose slot is now, after two", n, takes)
		}
	})
}

// While servers die, lose their store and stop, no key exceeds its rate, and no job is lost. After a
// pause and an outage that are longer than an hour, no burst follows.
func TestARateByKeyHoldsThroughFaults(t *testing.T) {
	for seed := range uint64(tier.Count(2, 20)) {
		inWorld(t, func(w *world) { keyHistory(w, seed) })
	}
}

func keyHistory(w *world, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 12))
	rates := map[string]core.Rate{
		"a": {Count: 20, Per: time.Second},
		"b": {Count: 10, Per: time.Minute, Burst: random.IntN(3)},
		"c": {Count: 3, Per: time.Second, Burst: 5},
	}
	var s tenantStarts
	h := ratedHistory{world: w, seed: seed, random: random, handler: s.handler, rated: ratedBy(rates)}

	w.declare(6)
	h.start()
	h.start()
	pushed := 0
	push := func() {
		for _, tenant := range slices.Sorted(maps.Keys(rates)) {
			w.pushTenant(tenant, pushed, random.IntN(8))
		}
		pushed += 8
	}
	for range 60 {
		push()
		h.step("a")
	}

	w.must(w.store.Pause(w.Context(), queueName))
	w.sleep(65 * time.Minute)
	w.must(w.store.Resume(w.Context(), queueName))
	push()
	w.sleep(10 * time.Second)
	h.outage(65 * time.Minute)
	h.finish(4 * time.Hour)
	for tenant, rate := range rates {
		s.of(tenant).wantRate(w, rate, lateStarts(rate))
	}
}

func TestSlowDownStopsTheKeyOfItsJobAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		rate := core.Rate{Count: 10, Per: time.Second}
		var slowed atomic.Bool
		run := func(_ context.Context, b *execution.Batch) error {
			id := b.Claims[0].ID
			s.note(id)
			if id == "a/20" && !slowed.Swap(true) {
				return slowDown{30 * time.Second}
			}
			return nil
		}
		for range 3 {
			w.start(run, spread, shards(6), slows, roundTrip(time.Millisecond),
				ratedBy(map[string]core.Rate{"a": rate, "b": rate}))
		}
		w.sleep(announces)
		w.pushTenant("b", 0, 1000)
		w.pushTenant("a", 0, 300)
		w.sleep(65 * time.Second)

		a := s.of("a")
		a.mu.Lock()
		stops, at := 0, slices.Clone(a.at)
		a.mu.Unlock()
		for i := 1; i < len(at); i++ {
			if at[i].Sub(at[i-1]) > 29*time.Second {
				stops++
			}
		}
		if stops != 1 || len(at) < 200 {
			t.Errorf("the key has %d stops of 30 s and %d starts, want one stop, and 300 starts less a few", stops, len(at))
		}
		s.of("a").wantRate(w, rate, 1)
		s.of("b").wantRate(w, rate, 1)
		if got := s.of("b").since(w.began); got < 600 {
			t.Errorf("%d jobs of the other key started in 65 s, want 650", got)
		}
	})
}

// A job keeps its slot whatever is pushed for it, until an operator runs it now: then it asks anew.
func TestASlotIsKeptUntilRunNow(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		rate := core.Rate{Count: 1, Per: 10 * time.Minute}
		w.start(s.handler(0), shards(1), s.counting, ratedBy(map[string]core.Rate{"a": rate}))
		w.sleep(announces)
		w.push("a/0", "x")
		w.sleep(time.Second)
		w.push("a/1", "x")
		w.push("a/2", "x")
		w.sleep(time.Second)

		slot := w.find("a/1").Queued
		if slot == nil || slot.Slot != "a" || slot.PerformAt.Sub(w.stats().Now) < 9*time.Minute {
			t.Fatalf("the job is %+v, want a slot of its key in ten minutes", slot)
		}
		_, err := w.store.Push(w.Context(), ports.PushRequest{
			Queue: queueName, Shards: 1, Generation: 1, Rule: core.PushRule{Kind: core.Earliest},
			Entries: []core.Entry{{ID: "a/1", Payload: core.Payload{Data: []byte("y")}}},
		})
		w.must(err)
		if at := w.find("a/1").Queued; at.PerformAt != slot.PerformAt || at.Slot != "a" {
			t.Errorf("after a push the job is %+v, want its slot at %v", at, slot.PerformAt)
		}

		before := s.claimed()
		_, err = w.store.Expedite(w.Context(), ports.JobStep{Shard: shardOfQueue(0), IDs: []string{"a/1"}})
		w.must(err)
		w.sleep(2 * time.Second)
		after := w.find("a/1").Queued
		if s.claimed() != before+1 || after == nil || after.PerformAt.Sub(slot.PerformAt) < 15*time.Minute {
			t.Errorf("run now, the job is claimed %d times and then %+v; want once, and the slot behind the others",
				s.claimed()-before, after)
		}
		s.of("a").wantRate(w, rate, 1)
	})
}

// A job that has its start and is put back, since its server stops, comes before others again.
func TestAJobThatIsReleasedKeepsItsSlot(t *testing.T) {
	inWorld(t, func(w *world) {
		rate := core.Rate{Count: 1, Per: 10 * time.Minute}
		blocked := each(func(ctx context.Context, _ *core.Claim) error {
			<-ctx.Done()
			return ctx.Err()
		})
		n := w.start(blocked, shards(1), ratedBy(map[string]core.Rate{"a": rate}))
		w.sleep(announces)
		w.push("a/0", "x")
		w.sleep(time.Second)
		w.pushTenant("a", 1, 5)
		w.sleep(time.Second)
		n.stop()
		if job := w.find("a/0").Queued; job == nil || job.Slot != "a" {
			t.Errorf("the job is %+v, want it queued with its slot", job)
		}

		var s tenantStarts
		w.start(s.handler(0), shards(1), ratedBy(map[string]core.Rate{"a": rate}))
		w.sleep(11 * time.Minute)
		if at := s.startOf("a/0"); at.IsZero() || at.Sub(w.began) > 15*time.Minute {
			t.Errorf("the job starts at %v, want before those behind it", at.Sub(w.began))
		}
	})
}

func TestAKeyThatCanNotBeToldKeepsItsJobBack(t *testing.T) {
	for name, keyOf := range map[string]func(c *core.Claim) (string, core.Rate){
		"panic":        func(*core.Claim) (string, core.Rate) { panic("no tenant") },
		"invalid rate": func(*core.Claim) (string, core.Rate) { return "a", core.Rate{Count: -1} },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var s tenantStarts
				n := w.start(s.handler(0), shards(1), s.counting, func(o *setup) {
					o.queue.KeyOf = func(c *core.Claim) (string, core.Rate) {
						if c.ID == "bad" {
							return keyOf(c)
						}
						return "a", core.Rate{Count: 100, Per: time.Second}
					}
				})
				w.sleep(announces)
				w.push("bad", "x")
				w.push("good", "x")
				w.sleep(30 * time.Second)
				w.wantCounts(1, 0, 1, 0)
				n.wantLines(1, "level=ERROR", "RateBy gave no usable key and rate", "id=bad")
				w.sleep(3 * time.Minute)
				if s.claimed() > 6 {
					t.Errorf("%d claims in three minutes, want one a minute", s.claimed())
				}
			})
		})
	}
}

// A key that no limiter can have is one all the same.
func TestAnyTextIsAKey(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		rate := core.Rate{Count: 1, Per: time.Minute}
		keys := []string{strings.Repeat("k", 513), strings.Repeat("k", 514), "a\x00b", "\xff", strings.Repeat("é", 256)}
		w.start(s.handler(0), shards(1), func(o *setup) {
			o.queue.KeyOf = func(c *core.Claim) (string, core.Rate) { return keys[int(c.ID[0]-'0')], rate }
		})
		w.sleep(announces)
		for i := range keys {
			w.push(fmt.Sprint(i, "/1"), "x")
			w.push(fmt.Sprint(i, "/2"), "x")
		}
		w.sleep(10 * time.Second)
		w.wantCounts(int64(len(keys)), 0, int64(len(keys)), 0)
		w.sleep(2 * time.Minute)
		w.wantCounts(0, 0, 2*int64(len(keys)), 0)
	})
}

// If the store takes turns and refuses takes, as a full Redis does, jobs with a key wait, and others
// start.
func TestJobsWithAKeyWaitWhileTakesFail(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		refused := true
		n := w.start(s.handler(0), shards(1), s.counting, ratedBy(map[string]core.Rate{"a": {Count: 100, Per: time.Second}}),
			func(o *setup) {
				o.link.lose = func(method string) bool { return method == "Take" && refused }
			})
		w.sleep(announces)
		w.push("a/0", "x")
		w.push("free", "x")
		w.sleep(10 * time.Second)
		w.wantCounts(1, 0, 1, 0)
		if s.claimed() > 20 {
			t.Errorf("%d claims in ten seconds, want about one in each poll interval", s.claimed())
		}
		n.wantLines(1, "level=WARN", "start jobs by a rate")

		n.link.change(func() { refused = false })
		w.sleep(5 * time.Second)
		w.wantCounts(0, 0, 2, 0)
	})
}

func TestRunDueHoldsTheRatesOfKeys(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushTenant("a", 0, 5)
		w.pushTenant("b", 0, 5)
		var s tenantStarts
		q := newQueue(queueName, s.handler(0))
		q.KeyOf = func(c *core.Claim) (string, core.Rate) {
			return tenantOf(c.ID), core.Rate{Count: cmp.Compare(tenantOf(c.ID), "a")*99 + 1, Per: time.Minute, Burst: 1}
		}
		if jobs, err := w.runDue(newLink(w.store.Open()), q, "runner"); jobs != 4 || err != nil {
			t.Errorf("%d jobs ran, want two of each tenant; error %v", jobs, err)
		}
		w.wantCounts(6, 0, 4, 0)
	})
}
