package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// A server asks the store for no more than it takes: jobs with a key start also if the server polls
// rarely, and if they have waited for days.
func TestJobsWithAKeyStartAfterDaysAndWithARarePoll(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		rate := core.Rate{Count: 1, Per: time.Minute}
		w.declare(1)
		w.pushTenant("a", 0, 4)
		w.sleep(72 * time.Hour)
		w.start(s.handler(0), shards(1), polling(5*time.Minute), ratedBy(map[string]core.Rate{"a": rate}))
		w.sleep(15 * time.Minute)
		w.wantCounts(0, 0, 4, 0)
		s.of("a").wantRate(w, rate, 0)
	})
}

// RunDue holds no job for a slot that comes soon: it puts the job back until then.
func TestRunDueHoldsNoJobForASlot(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		w.declare(1)
		w.pushTenant("a", 0, 2)
		q := newQueue(queueName, s.handler(0))
		q.BatchSize = 2
		q.KeyOf = func(*core.Claim) (string, core.Rate) { return "a", core.Rate{Count: 100, Per: time.Second} }
		if jobs, err := w.runDue(newLink(w.store.Open()), q, "runner"); jobs != 1 || err != nil {
			t.Errorf("%d jobs ran, want one; error %v", jobs, err)
		}
		w.wantCounts(1, 0, 1, 0)
		for i := range 2 {
			job := w.find(fmt.Sprint("a/", i)).Queued
			if job != nil && (job.Slot != "a" || job.PerformAt.Sub(w.stats().Now) != 10*time.Millisecond) {
				t.Errorf("the job is %+v, want it to wait for its slot in 10 ms", job)
			}
		}
	})
}

// A job that does not run, since it was recovered too often, takes no start.
func TestAJobThatIsBuriedUnrunTakesNoStart(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		w.declare(1)
		w.placeRecovered(1, "a/0", "a/1")
		w.start(s.handler(0), shards(1), batches(10), ratedBy(map[string]core.Rate{"a": {Count: 1, Per: time.Hour}}),
			func(s *setup) { s.queue.Policy.MaxRecoveries = 0 })
		w.sleep(10 * poll)
		w.wantCounts(0, 0, 0, 2)
		reply, err := w.store.Limits(w.Context(), ports.LimitsRequest{Queue: queueName})
		w.must(err)
		if len(reply.Limits) > 0 || len(s.of("a").at) > 0 {
			t.Errorf("%d jobs ran, and the limiters are %+v; want none", len(s.of("a").at), reply.Limits)
		}
	})
}

// A job keeps its slot while takes fail, and gets none from a key that can't be told.
func TestWithoutAnAnswerAJobHasTheSlotThatItHad(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		refused := false
		n := w.start(s.handler(0), shards(1), func(o *setup) {
			o.queue.KeyOf = func(c *core.Claim) (string, core.Rate) {
				if c.ID == "bad" {
					panic("no tenant")
				}
				return "a", core.Rate{Count: 1, Per: time.Minute}
			}
			o.link.refuse = func(method string) bool { return method == "Take" && refused }
		})
		w.sleep(announces)
		w.push("bad", "x")
		w.push("a/0", "x")
		w.sleep(time.Second)
		w.push("a/1", "x")
		w.sleep(time.Second)

		n.link.change(func() { refused = true })
		w.sleep(2 * time.Minute)
		for id, slot := range map[string]string{"a/1": "a", "bad": ""} {
			if job := w.find(id).Queued; job == nil || job.Slot != slot {
				t.Errorf("%s is %+v, want it queued with the slot %q", id, job, slot)
			}
		}
		n.link.change(func() { refused = false })
		w.sleep(5 * time.Second)
		w.wantCounts(1, 0, 2, 0)
	})
}

// A job that has its start waits for a lane no longer than a poll interval and a half, so no more
// starts are late than come in that time.
func TestStartsThatWaitForALaneAreBounded(t *testing.T) {
	for _, took := range []time.Duration{100 * time.Millisecond, 500 * time.Millisecond, 950 * time.Millisecond} {
		inWorld(t, func(w *world) {
			var s tenantStarts
			rate := core.Rate{Count: 10, Per: time.Second}
			run := each(func(_ context.Context, c *core.Claim) error {
				s.note(c.ID)
				if tenantOf(c.ID) != "hot" {
					time.Sleep(took)
				}
				return nil
			})
			w.start(run, shards(4), lanes(4), ratedBy(map[string]core.Rate{"hot": rate}))
			w.sleep(announces)
			w.pushTenant("hot", 0, 2000)
			began := time.Now()
			for range 60 {
				w.pushMore(int(4 * 800 * time.Millisecond / took))
				w.sleep(time.Second)
			}
			late := int(3 * poll / 2 / rate.Interval())
			s.of("hot").wantRate(w, rate, late)
			if got := s.of("hot").since(began); got < 60*10/3 {
				t.Errorf("%d jobs started in a minute beside jobs of %v, of 600 that may", got, took)
			}
		})
	}
}

// Many keys with slow rates share few lanes, so most slots are used late. A slot that is late by less
// than an interval costs no other: once the backlog is spread, nearly all starts are used.
func TestManySlowRatesUseTheirStarts(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		const keys, minutes = 200, 10
		rate := core.Rate{Count: 1, Per: time.Minute}
		rates := make(map[string]core.Rate)
		for i := range keys {
			rates[fmt.Sprint("t", i)] = rate
		}
		w.start(s.handler(time.Second), shards(4), lanes(4), ratedBy(rates))
		w.sleep(announces)

		for tenant := range rates {
			w.pushTenant(tenant, 0, 2*minutes)
		}
		w.sleep(time.Minute)
		began := time.Now()
		w.sleep(minutes * time.Minute)

		total := 0
		for tenant := range rates {
			total += s.of(tenant).since(began)
			s.of(tenant).wantRate(w, rate, 0)
		}
		if total < keys*minutes*9/10 {
			t.Errorf("%d jobs started, of the %d that the rates allow", total, keys*minutes)
		}
	})
}
