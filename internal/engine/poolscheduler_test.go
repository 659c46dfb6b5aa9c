package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// usersScheduler is a user's scheduler: it keeps no heads. It notes the engine's calls.
type usersScheduler struct {
	core.Scheduler
	t      *testing.T
	inside atomic.Int32
	// dawdle is called by each Next.
	dawdle func()

	mu     sync.Mutex
	chosen map[int]int
	// ran and succeeded count the reports.
	ran       map[int]int
	succeeded int
}

func (w *world) usersScheduler(dawdle func()) (*usersScheduler, func(*setup)) {
	u := &usersScheduler{t: w.T, dawdle: dawdle, chosen: make(map[int]int), ran: make(map[int]int)}
	return u, scheduled(func(c core.SchedulerConfig) core.Scheduler {
		u.Scheduler = core.Lag(c)
		return u
	})
}

// enter fails the test if another lane is in the scheduler.
func (u *usersScheduler) enter() (leave func()) {
	if u.inside.Add(1) != 1 {
		u.t.Error("two lanes call the scheduler at once")
	}
	return func() { u.inside.Add(-1) }
}

func (u *usersScheduler) Next(now core.Instant, heads []core.Head) core.Choice {
	defer u.enter()()
	u.dawdle()
	choice := u.Scheduler.Next(now, heads)
	u.mu.Lock()
	defer u.mu.Unlock()
	if choice.Index >= 0 {
		u.chosen[choice.Index]++
	}
	return choice
}

func (u *usersScheduler) Ran(index int, ok bool) {
	defer u.enter()()
	u.Scheduler.Ran(index, ok)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ran[index]++
	if ok {
		u.succeeded++
	}
}

func TestAUsersSchedulerIsCalledByOneLaneAtATime(t *testing.T) {
	for _, lanes := range []int{1, 20} {
		t.Run(fmt.Sprintf("%d lanes", lanes), func(t *testing.T) {
			inWorld(t, func(w *world) {
				const jobs = 500
				u, with := w.usersScheduler(func() { time.Sleep(rand.N(200 * time.Microsecond)) })
				r := w.record()
				w.fill(queueName, 3, jobs)
				w.start(r.watch(func(context.Context, *core.Claim) error {
					time.Sleep(rand.N(5 * time.Millisecond))
					return nil
				}), shards(3), pooled(lanes), roundTrip(time.Millisecond), with)
				w.sleep(30 * time.Second)
				w.wantCounts(0, 0, jobs, 0)
				u.wantAReportForEachChoice(jobs)
			})
		})
	}
}

// wantAReportForEachChoice checks that each choice of a shard was answered by one Ran, and that
// the given number of batches succeeded.
func (u *usersScheduler) wantAReportForEachChoice(succeeded int) {
	u.t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	for index, chosen := range u.chosen {
		if open := chosen - u.ran[index]; open != 0 {
			u.t.Errorf("shard %d was chosen %d times, and Ran was called %d times", index, chosen, u.ran[index])
		}
	}
	if u.succeeded != succeeded {
		u.t.Errorf("%d batches were reported to succeed, want %d", u.succeeded, succeeded)
	}
}

// While a scheduler thinks, handlers end, their jobs are settled, and leases are renewed.
func TestAUsersSchedulerThatDawdlesHoldsUpNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		const lanes, think, ttl = 4, time.Minute, 6 * time.Second
		var thinking atomic.Bool
		_, with := w.usersScheduler(func() {
			if thinking.Load() {
				time.Sleep(think)
			}
		})

		a := w.audit()
		n := w.start(a.watch(lasting(10*time.Second)), shards(3), pooled(lanes), roundTrip(time.Millisecond), with,
			func(s *setup) { s.LeaseTTL = ttl })

		w.sleep(poll)
		for shard := range 3 {
			w.push(idIn(shard, 3), "x")
		}
		w.sleep(poll)

		thinking.Store(true)
		w.push("another", "x")
		w.sleep(10*time.Second + poll)
		w.wantCounts(1, 0, 3, 0)

		w.sleep(think / 2)
		thinking.Store(false)
		w.sleep(think)

		a.wantRuns("another", 1)
		w.wantCounts(0, 0, 4, 0)
		if n.link.count("Acquire") != 3 {
			w.Errorf("leases were lost; the log:\n%v", n.log)
		}
	})
}

func TestANodeEndsThoughItsUsersSchedulerDawdles(t *testing.T) {
	inWorld(t, func(w *world) {
		_, with := w.usersScheduler(func() { time.Sleep(10 * time.Second) })
		n := w.start(each(succeed), shards(3), pooled(4), with)
		w.sleep(poll)
		asked := w.elapsed()
		n.stop()
		w.within("Run returned", w.elapsed(), asked, asked+20*time.Second)
	})
}

func TestBuiltInSchedulersKeepTheHeads(t *testing.T) {
	for name, build := range map[string]core.SchedulerFunc{
		"Lag": core.Lag, "Seq": core.Seq, "StrictBy": core.StrictBy("orders"), "WeightedBy": core.WeightedBy(nil),
	} {
		if _, ok := build(core.SchedulerConfig{Shards: core.Shards("orders", 2)}).(core.HeadScheduler); !ok {
			t.Errorf("%s looks at each shard for each choice", name)
		}
	}
}
