package redis_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

var (
	slowJobs  = flag.Int("slow.jobs", 5000, "how many jobs TestRedisSlowest loads a shard with")
	slowLimit = flag.Duration("slow.limit", 0, "the processor time that TestRedisSlowest allows a script; 0 is any")
)

// TestRedisSlowest prints how long each script takes when it does the most that
// it may, with payloads of 100 bytes, on a loaded shard. SLOWLOG has the
// server's time from a script's start to its end, so the shortest of the repeats
// is the processor's.
func TestRedisSlowest(t *testing.T) {
	tier.Long(t, "measures")
	s := newSlow(t)
	for len(s.claims) < core.MaxTurnJobs {
		s.turn(nil, core.MaxTurnJobs)
	}
	s.timePushes()
	s.timeTurns()
	s.timeSteps()
	s.timePages()
	slices.SortFunc(s.rows, func(a, b slowCall) int { return int(b.times[0] - a.times[0]) })
	for _, row := range s.rows {
		t.Logf("%-50s %8v to %8v", row.name, row.times[0], row.times[len(row.times)-1])
		if *slowLimit > 0 && row.times[0] > *slowLimit {
			t.Errorf("%s takes a script over %v", row.name, *slowLimit)
		}
	}
}

// slow is a shard under load, and the holder of its lease.
type slow struct {
	t      *testing.T
	client goredis.UniversalClient
	store  *redis.Store
	lease  ports.Lease
	last   int64
	claims []core.Claim
	pushed int
	// ids are those of the next step.
	ids  []string
	rows []slowCall
}

// slowCall is a call, and how long its slowest script took in each repeat, the shortest time first.
type slowCall struct {
	name  string
	times []time.Duration
}

func newSlow(t *testing.T) *slow {
	client := testservers.OwnRedis(t, "--slowlog-log-slower-than", "0", "--slowlog-max-len", "1000")
	s := &slow{t: t, client: client, store: redis.New(client, redis.Options{})}
	s.lease = ports.Lease{Shard: core.Shard{Queue: "orders"}, Owner: "test"}
	ctx := t.Context()
	_, err := s.store.Declare(ctx, ports.DeclareRequest{Queue: "orders", Shards: 1, IndexIDs: true})
	s.must(err)
	s.acquire(1)
	for s.pushed < *slowJobs {
		s.push(s.fresh(ports.MaxPush, core.When{}))
	}
	return s
}

func (s *slow) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// slowRepeats is how often each call is made: often if there is a limit, so that the shortest time
// is the script's own.
func slowRepeats() int {
	if *slowLimit == 0 {
		return 2
	}
	return 15
}

// time makes a call several times. Its preparation is not timed.
func (s *slow) time(name string, prepare, do func()) {
	s.t.Helper()
	row := slowCall{name: name}
	for range slowRepeats() {
		prepare()
		s.must(s.client.Do(s.t.Context(), "SLOWLOG", "RESET").Err())
		do()
		log, err := s.client.SlowLogGet(s.t.Context(), -1).Result()
		s.must(err)
		slowest := time.Duration(-1)
		for _, entry := range log {
			if strings.HasPrefix(strings.ToLower(entry.Args[0]), "eval") {
				slowest = max(slowest, entry.Duration)
			}
		}
		if slowest < 0 {
			s.t.Fatalf("%s ran no script", name)
		}
		row.times = append(row.times, slowest)
	}
	slices.Sort(row.times)
	s.rows = append(s.rows, row)
}

func nothing() {}

// fresh are entries with ids of 12 bytes that nobody has pushed.
func (s *slow) fresh(n int, when core.When) []core.Entry {
	entries := make([]core.Entry, n)
	for i := range entries {
		entries[i] = s.entry(fmt.Sprintf("order-%06d", s.pushed), when)
	}
	return entries
}

// entry is a payload of 100 bytes that nobody has pushed.
func (s *slow) entry(id string, when core.When) core.Entry {
	s.pushed++
	data := fmt.Appendf(nil, "%0100d", s.pushed)
	return core.Entry{
		ID: id, When: when, Payload: core.Payload{Data: data, Score: float64(time.Now().UnixMicro()) / 1e6},
	}
}

func (s *slow) push(entries []core.Entry) {
	s.t.Helper()
	for some := range slices.Chunk(entries, ports.MaxPush) {
		_, err := s.store.Push(s.t.Context(),
			ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: some})
		s.must(err)
	}
}

func (s *slow) acquire(attempt int64) {
	s.t.Helper()
	reply, err := s.store.Acquire(s.t.Context(), ports.AcquireRequest{
		Shard: s.lease.Shard, Shards: 1, Generation: 1, Owner: s.lease.Owner, Attempt: attempt, TTL: time.Hour})
	s.must(err)
	s.lease.Token, s.last = reply.Token, 0
}

// turn ends all claims in one way and claims as many as wanted.
func (s *slow) turn(outcome *core.Outcome, want int) {
	s.t.Helper()
	r := ports.TurnRequest{Lease: s.lease, Number: s.last + 1, TTL: time.Hour, Want: want, Node: "node"}
	if outcome != nil {
		policy := core.RetryPolicy{MaxRetries: 25, MaxRecoveries: 3}
		for i := range s.claims {
			r.Settlements = append(r.Settlements, policy.Settlement(&s.claims[i], outcome, 0))
		}
		s.claims = nil
	}
	reply, err := s.store.Turn(s.t.Context(), r)
	s.must(err)
	s.last, s.claims = reply.Last, append(s.claims, reply.Claims...)
}

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
	for name, step := range map[string]jobStep{
		"expedite": s.store.Expedite,
		"bury":     s.store.Bury,
		"delete":   s.store.Delete,
	} {
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
		r := ports.JobsRequest{
			SortBy: order, PageRequest: ports.PageRequest{Queue: "orders", Limit: ports.MaxPage, Payloads: 1},
		}
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
		r := ports.MorgueRequest{
			ByID: byID, PageRequest: ports.PageRequest{Queue: "orders", Limit: ports.MaxPage, Payloads: 1},
		}
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
