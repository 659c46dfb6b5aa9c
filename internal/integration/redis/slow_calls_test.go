package redis_test

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// timePushes and the methods below make the calls of TestRedisSlowest: each script does the most
// that it may.
func (s *slow) timePushes() {
	var entries []core.Entry
	s.time("push of 500 new jobs", func() { entries = s.fresh(ports.MaxPush, core.When{}) }, func() { s.push(entries) })
	s.time("push of 500 payloads for 500 queued jobs", func() {
		entries = s.fresh(ports.MaxPush, core.In(time.Hour))
		s.push(entries)
		for i := range entries {
			entries[i] = s.entry(entries[i].ID, core.When{})
		}
	}, func() { s.push(entries) })
	s.time("push of 500 payloads for one job", func() {
		id := s.fresh(1, core.When{})[0].ID
		for i := range entries {
			entries[i] = s.entry(id, core.In(time.Hour))
		}
	}, func() { s.push(entries) })
}

func (s *slow) timeTurns() {
	const most = core.MaxTurnJobs
	done := &core.Outcome{Kind: core.Done}
	refill := func() { s.push(s.fresh(most, core.When{})) }
	for _, o := range []core.Outcome{
		{Kind: core.Done}, {Kind: core.Untouched}, {Kind: core.Snoozed, Delay: time.Hour},
		{Kind: core.Failed, Error: "boom", OwnDelay: true, Delay: time.Hour}, {Kind: core.Buried, Error: "bad"},
	} {
		s.time(fmt.Sprintf("turn with 256 %v and 256 claimed", o.Kind), refill, func() { s.turn(&o, most) })
	}
	s.time("acquire with 256 claimed", nothing, func() { s.acquire(s.last + 1 + time.Now().UnixNano()) })
	s.turn(done, 0)
	// Jobs that are due at instant 0 are claimed before the other jobs of the shard.
	oldest := core.At(0)
	prepare := func(jobs, payloads int) func() {
		return func() {
			s.turn(done, 0)
			var all []core.Entry
			for _, e := range s.fresh(jobs, oldest) {
				for range payloads {
					all = append(all, s.entry(e.ID, oldest))
				}
			}
			s.push(all)
		}
	}
	s.time("turn that claims 250 jobs of 4 payloads", prepare(250, 4), func() { s.turn(nil, 250) })
	s.time("turn with these 250 done", prepare(0, 0), func() { s.turn(done, 0) })
	s.time("turn that claims a job of 1,000 payloads", prepare(1, 1000), func() { s.turn(nil, 1) })
	s.time("turn that puts 1,000 payloads back", prepare(1, 1000), func() {
		s.turn(nil, 1)
		s.must(s.client.Do(s.t.Context(), "SLOWLOG", "RESET").Err())
		s.turn(&core.Outcome{Kind: core.Snoozed, Delay: time.Hour}, 0)
	})
}

func (s *slow) timeSteps() {
	ctx, shard := s.t.Context(), s.lease.Shard
	type jobStep = func(context.Context, ports.JobStep) (ports.StepReply, error)
	for name, step := range map[string]jobStep{"expedite": s.store.Expedite, "bury": s.store.Bury, "delete": s.store.Delete} {
		s.time(fmt.Sprintf("%s of %d ids", name, ports.MaxStep), s.queueStep, func() {
			s.step(step(ctx, ports.JobStep{Shard: shard, IDs: s.ids}))
		})
		s.time(fmt.Sprintf("%s of %d failed ids", name, ports.MaxStep), s.failStep, func() {
			s.step(step(ctx, ports.JobStep{Shard: shard, IDs: s.ids, Failed: true}))
		})
	}
	type deadStep = func(context.Context, ports.DeadLetterStep) (ports.StepReply, error)
	for name, step := range map[string]deadStep{"revive": s.store.Revive, "purge": s.store.Purge} {
		s.time(fmt.Sprintf("%s of %d entries", name, ports.MaxStep), s.buryStep, func() {
			r := ports.DeadLetterStep{Shard: shard}
			for _, id := range s.ids {
				r.DeadLetters = append(r.DeadLetters, ports.DeadLetterRef{ID: id})
			}
			s.step(step(ctx, r))
		})
		s.time(fmt.Sprintf("%s of %d of all", name, ports.MaxStep), s.buryStep, func() {
			s.step(step(ctx, ports.DeadLetterStep{Shard: shard, Before: core.MaxInstant}))
		})
	}
	s.time("cancel of claimed jobs", s.claimStep, func() {
		s.step(s.store.Cancel(ctx, ports.CancelRequest{Shard: shard, IDs: s.ids}))
	})
}

// queueStep queues as many jobs as a step handles, for later.
func (s *slow) queueStep() {
	s.ids = nil
	entries := s.fresh(ports.MaxStep, core.In(time.Hour))
	for _, e := range entries {
		s.ids = append(s.ids, e.ID)
	}
	s.push(entries)
}

// buryStep buries as many jobs as a step handles.
func (s *slow) buryStep() {
	s.queueStep()
	s.step(s.store.Bury(s.t.Context(), ports.JobStep{Shard: s.lease.Shard, IDs: s.ids}))
}

// failStep fails as many jobs as a step handles.
func (s *slow) failStep() {
	s.ids = nil
	for range 2 {
		for _, c := range s.claims[:min(len(s.claims), ports.MaxStep-len(s.ids))] {
			s.ids = append(s.ids, c.ID)
		}
		s.turn(&core.Outcome{Kind: core.Failed, Error: "boom", OwnDelay: true, Delay: time.Hour}, core.MaxTurnJobs)
	}
}

// claimStep claims as many jobs as a turn can.
func (s *slow) claimStep() {
	s.turn(&core.Outcome{Kind: core.Done}, core.MaxTurnJobs)
	s.ids = nil
	for _, c := range s.claims[:min(len(s.claims), ports.MaxStep)] {
		s.ids = append(s.ids, c.ID)
	}
}

// step ends the test unless a step has handled something.
func (s *slow) step(reply ports.StepReply, err error) {
	s.t.Helper()
	s.must(err)
	if reply.Handled == 0 {
		s.t.Fatal("a step handled nothing")
	}
}

func (s *slow) timePages() {
	ctx := s.t.Context()
	for name, order := range map[string]ports.SortBy{
		"time": ports.ByTime, "id": ports.ByID, "retries by time": ports.RetryingByTime,
		"retries by id": ports.RetryingByID, "retries by count": ports.RetryingByCount,
	} {
		r := ports.JobsRequest{SortBy: order, PageRequest: ports.PageRequest{Queue: "orders", Limit: ports.MaxPage, Payloads: 1}}
		for _, r.Descending = range []bool{false, true} {
			r.After = ports.Cursor{}
			first, err := s.store.Jobs(ctx, r)
			s.must(err)
			r.After = first.Next
			s.time(fmt.Sprintf("second page of jobs by %s, descending %t", name, r.Descending), nothing, func() {
				page, err := s.store.Jobs(ctx, r)
				s.must(err)
				if len(page.Jobs) < ports.MaxPage {
					s.t.Fatalf("the page has %d jobs", len(page.Jobs))
				}
			})
		}
	}
	for _, byID := range []bool{false, true} {
		r := ports.MorgueRequest{ByID: byID, PageRequest: ports.PageRequest{Queue: "orders", Limit: ports.MaxPage, Payloads: 1}}
		s.time(fmt.Sprintf("pages of 1,000 dead, by id %t", byID), nothing, func() {
			_, err := s.store.Morgue(ctx, r)
			s.must(err)
		})
	}
	s.time("page of the claimed", nothing, func() {
		_, err := s.store.Claimed(ctx, ports.PageRequest{Queue: "orders", Limit: ports.MaxPage})
		s.must(err)
	})
}
