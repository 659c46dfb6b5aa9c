// Package racing uses handles on one backend from several goroutines at once and checks the
// invariants afterwards.
//
//   - racing.go has the door, [Test], and the small races.
//   - day.go lets producers, workers that crash, and an operator act at once, and audit.go knows
//     where each payload may be then.
//   - transactions.go adds the transactions of callers.
package racing

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Test uses handles on one backend from several goroutines at once and checks the invariants
// afterwards. store shows which optional interfaces the stores of f implement.
func Test(t *testing.T, f env.Factory, store ports.ShardStore) {
	for _, race := range Cases(store) {
		t.Run(race.Name, func(t *testing.T) {
			t.Parallel()
			race.Run(t, f)
		})
	}
}

// Cases returns the racing cases for a store, also those of transactions if it is a Transactor.
func Cases(store ports.ShardStore) []env.Case {
	all := []env.Case{
		{Name: "declares agree", Rule: "Declare is atomic for the queue", Check: declaresAgree},
		{
			Name:  "one acquire wins",
			Rule:  "a shard has at most one owner by its lease, and tokens only grow",
			Check: oneAcquireWins,
		},
		{
			Name:  "pushes lose nothing",
			Rule:  "Push is atomic for each shard; payloads that meet are united (RULES 2)",
			Check: pushesLoseNothing,
		},
		{
			Name:  "a turn is carried out once",
			Rule:  "a turn that was carried out is repeated, not carried out again",
			Check: turnsCountOnce,
		},
		{
			Name:  "revive and purge duplicate nothing",
			Rule:  "nothing is duplicated if it is revived twice, or while a purge runs (RULES 5)",
			Check: revivePurge,
		},
		{Name: "permits stay within their limit", Rule: env.RulePermits, Check: permitsStayWithin},
		{Name: "grants stay within the rate", Rule: env.RuleLimiter, Check: grantsStayWithin},
		{
			Name:  "a working day",
			Rule:  "each accepted copy of a payload is in exactly one place; executions for one id never overlap",
			Check: workingDay,
		},
		{Name: "counts match the lists", Rule: ruleCounts, Check: countsHold},
	}

	if _, ok := store.(env.Transactor); ok {
		all = append(all,
			env.Case{Name: "transactions keep an id's order", Rule: env.RuleCommitted, Check: transactionsInOrder},
			env.Case{
				Name:  "a working day of transactions",
				Rule:  "each accepted copy of a payload is in exactly one place; executions for one id never overlap",
				Check: dayOfTransactions,
			})
	}
	return all
}

func declaresAgree(e *env.Env) {
	for round := range 10 {
		name := "queue-" + strconv.Itoa(round)
		errs := make([]error, racers)
		race(e, func(i int, store ports.ShardStore) {
			_, errs[i] = store.Declare(e.Ctx, ports.DeclareRequest{Queue: name, Shards: 1 + i%2})
		})

		for i, err := range errs {
			if (err == nil) != (errs[i%2] == nil) || err != nil && !errors.Is(err, ports.ErrShardCountMismatch) {
				e.Errorf("a racing Declare of %d shards: %v", 1+i%2, err)
			}
		}

		if (errs[0] == nil) == (errs[1] == nil) {
			e.Errorf("racing Declares of 1 and 2 shards returned %v and %v", errs[0], errs[1])
		}
	}
}

func oneAcquireWins(e *env.Env) {
	var last int64
	for round := range 20 {
		replies, errs := make([]ports.AcquireReply, racers), make([]error, racers)
		race(e, func(i int, store ports.ShardStore) {
			replies[i], errs[i] = store.Acquire(e.Ctx, ports.AcquireRequest{
				Shard:      e.Shard,
				Shards:     1,
				Generation: e.Declared[env.Orders].Generation,
				Owner:      "n" + strconv.Itoa(i),
				Attempt:    int64(round + 1),
				TTL:        env.TTL,
			})
		})

		winners := 0
		for i, err := range errs {
			if err == nil {
				winners++
				if replies[i].Token <= last {
					e.Errorf("token %d after %d", replies[i].Token, last)
				}
				last = replies[i].Token
			} else {
				e.Refused("a racing Acquire", err, ports.ErrLeaseHeld)
			}
		}

		if winners != 1 {
			e.Errorf("%d of %d racing Acquires won, want 1", winners, racers)
		}

		e.Clock.Advance(env.TTL)
	}
}

func pushesLoseNothing(e *env.Env) {
	const each = 10
	race(e, func(i int, store ports.ShardStore) {
		for k := range each {
			n := i*each + k
			_, err := store.Push(e.Ctx, e.PushRequest(env.Orders,
				env.Entry("a", "common", float64(racers*each-n)), env.Entry("a", strconv.Itoa(n), float64(n+2))))
			e.Check(err, "a racing Push")
		}
	})

	want := []core.Payload{env.Pay("common", 1)}
	for n := range racers * each {
		want = append(want, env.Pay(strconv.Itoa(n), float64(n+2)))
	}
	e.Same("what racing pushes left", e.Queued("a").Payloads, want)
}

func turnsCountOnce(e *env.Env) {
	e.PushIDs("a", "b", "c", "d")

	h := e.Acquire("n1")
	first := h.Claim(2)
	r := h.Request(2, env.Done(first[0]), env.Buried(first[1], "bad"))

	replies := make([]ports.TurnReply, racers)
	race(e, func(i int, store ports.ShardStore) {
		var err error
		replies[i], err = store.Turn(e.Ctx, r)
		e.Check(err, "a racing Turn")
	})

	for _, reply := range replies {
		e.Same("the claims of a racing Turn", env.IDs(reply.Claims), []string{"c", "d"})
	}

	counts := e.Counts()
	e.Same("processed and failed", []int64{counts.Processed, counts.Failed}, []int64{1, 1})
	e.Same("dead payloads", len(e.DeadLetter(first[1].ID).Payloads), 1)
}

func revivePurge(e *env.Env) {
	const entries = 40
	var all []string
	for n := range entries {
		all = append(all, fmt.Sprintf("%02d", n))
	}
	e.BuryAll(all...)

	var mu sync.Mutex
	handled := map[bool]int{}
	before, since := e.Now(), e.Repeats.Lossy.Load()

	race(e, func(i int, store ports.ShardStore) {
		step, revives := store.Purge, i%2 == 0
		if revives {
			step = store.Revive
		}
		n := takeAll(e, step, before)
		mu.Lock()
		defer mu.Unlock()
		handled[revives] += n
	})

	e.GiveUpIfRepeated(since)
	e.Same("the number of dead letters handled", handled[true]+handled[false], entries)
	e.Same("jobs queued by racing revives", len(e.Jobs()), handled[true])
	e.Same("dead letters left", len(e.DeadIDs()), 0)

	for _, job := range e.Jobs() {
		e.Same("a revived job's payloads", job.Payloads, []core.Payload{env.Pay("p", 1), env.Pay("q", 2)})
	}
}

// takeAll steps through the morgue until nothing is left.
func takeAll(
	e *env.Env,
	step func(context.Context, ports.DeadLetterStep) (ports.StepReply, error),
	before core.Instant,
) (handled int) {
	for {
		reply, err := step(e.Ctx, ports.DeadLetterStep{Shard: e.Shard, Before: before, Limit: 3})
		if !e.Check(err, "a racing step") || !reply.More {
			return handled + reply.Handled
		}
		handled += reply.Handled
	}
}

const ruleCounts = "Counts: fresh, retrying, claimed and dead are the present numbers; " +
	"processed and failed count jobs (RULES 7)"

// countsHold makes turns that claim jobs, while pushes merge into the queued jobs and an operator
// acts on them. The turns end jobs in different ways, so that each count changes.
func countsHold(e *env.Env) {
	const pushes, turns, jobs, want = 60, 150, 24, 8
	entries := func(push int) []core.Entry {
		list := make([]core.Entry, jobs)
		for i := range list {
			payload := "p"
			if i >= jobs-4 { // the last jobs have several payloads
				payload = fmt.Sprint(push % 3)
			}
			list[i] = env.Entry(fmt.Sprintf("job-%02d", i), payload, 1)
		}
		return list
	}

	e.Push(entries(0)...)
	h := e.Acquire("n1")
	var processed, failures int64

	race(e, func(i int, store ports.ShardStore) {
		switch i {
		case 0:
			worker := *h
			worker.Env = e.With(store)
			processed, failures = endInEveryWay(&worker, turns, want)
		case 1:
			for range pushes {
				stepOver(e, store)
			}
		default:
			for push := range pushes {
				_, err := store.Push(e.Ctx, e.PushRequest(env.Orders, entries(push)...))
				e.Check(err, "a racing Push")
			}
		}
	})

	e.CountsMatch(env.Orders, processed, failures)
}

// endInEveryWay makes turns that claim jobs and settle the claims of the turn before: as done,
// untouched, buried and failed. It returns the numbers of processed and failed jobs.
func endInEveryWay(h *env.Holder, turns, want int) (processed, failures int64) {
	var claims []core.Claim
	for range turns {
		var settle []core.Settlement
		for i, c := range claims {
			switch i % 5 {
			case 0:
				settle = append(settle, env.Done(c))
			case 1:
				settle = append(settle, env.Untouched(c))
			case 2:
				settle = append(settle, env.Buried(c, "bad"))
			default:
				settle = append(settle, env.Failed(c, "boom", 0))
			}
		}

		h.Env.Clock.Advance(time.Microsecond) // so that failed jobs come last
		reply, err := h.Env.Store.Turn(h.Env.Ctx, h.Request(want, settle...))
		if !h.Env.Check(err, "a racing Turn") {
			return processed, failures
		}

		if reply.Last > h.Number {
			h.Number, claims = reply.Last, reply.Claims
			for _, s := range settle {
				processed += env.Count(s.Processed)
				failures += env.Count(s.Failed)
			}
		}
	}
	return processed, failures
}

// stepOver buries jobs with a failure, revives dead letters and makes jobs due, as an operator
// does.
func stepOver(e *env.Env, store ports.ShardStore) {
	first := func(by ports.SortBy, limit int) (ids []string) {
		page, err := store.Jobs(e.Ctx, ports.JobsRequest{
			PageRequest: ports.PageRequest{Queue: env.Orders, Limit: limit},
			SortBy:      by,
		})
		e.Check(err, "racing Jobs")
		for i := range page.Jobs {
			ids = append(ids, page.Jobs[i].ID)
		}
		return ids
	}

	_, err := store.Bury(e.Ctx, ports.JobStep{Shard: e.Shard, IDs: first(ports.RetryingByTime, 2), Failed: true})
	e.Check(err, "a racing Bury")
	_, err = store.Revive(e.Ctx, ports.DeadLetterStep{Shard: e.Shard, Before: core.MaxInstant, Limit: 3})
	e.Check(err, "a racing Revive")
	_, err = store.Expedite(e.Ctx, ports.JobStep{Shard: e.Shard, IDs: first(ports.ByTime, 3)})
	e.Check(err, "a racing Expedite")
}

// permitsStayWithin lets racers request permits and return them. It counts the permits that each
// racer may use.
func permitsStayWithin(e *env.Env) {
	var mu sync.Mutex
	used := make([]int, racers)

	use := func(i, n int) {
		mu.Lock()
		defer mu.Unlock()
		used[i] = n

		sum := 0
		for _, n := range used {
			sum += n
		}
		if sum > env.FivePermits {
			e.Errorf("racers may use %d permits at once, want at most %d", sum, env.FivePermits)
		}
	}

	race(e, func(i int, store ports.ShardStore) {
		for round := range 20 {
			hold := (i + round) % 4

			mu.Lock()
			had := used[i]
			mu.Unlock()
			use(i, min(had, hold)) // a racer stops using permits before it returns them

			reply, err := store.Permit(e.Ctx, ports.PermitRequest{
				Queue:   env.Orders,
				Owner:   fmt.Sprint("n", i),
				Attempt: int64(round + 1),
				Limit:   env.FivePermits,
				Hold:    hold,
				Want:    4,
				TTL:     env.TTL,
			})

			if !e.Check(err, "a racing Permit") {
				return
			}
			use(i, reply.Held)
		}
	})
}

// grantsStayWithin takes grants of two limiters, which the racers name in different orders, and uses
// late slots of a third one.
func grantsStayWithin(e *env.Env) {
	rate := core.Rate{Count: 1, Per: time.Hour, Burst: 4}
	keys := []string{"a", "b", "used"}
	granted := [racers][3]int{}
	since := e.Repeats.Lossy.Load()

	race(e, func(i int, store ports.ShardStore) {
		for range 10 {
			first := i % 2
			reply, err := store.Take(e.Ctx, ports.TakeRequest{Queue: env.Orders, Takes: []ports.Take{
				{Key: keys[first], Rate: rate, Want: 1},
				{Key: keys[1-first], Rate: rate, Want: 1},
				{Key: keys[2], Rate: rate, Use: 1},
			}})
			if !e.Check(err, "a racing Take") {
				return
			}
			granted[i][first] += reply.Grants[0].Granted
			granted[i][1-first] += reply.Grants[1].Granted
			granted[i][2] += reply.Grants[2].Used
		}
	})

	for k, key := range keys {
		sum := 0
		for i := range racers {
			sum += granted[i][k]
		}
		lost := e.Repeats.Lossy.Load() > since // the grants of a reply that was lost
		most := rate.Burst + 1
		if sum > most || sum < most && !lost {
			e.Errorf("racers were granted %d starts of the limiter %s, want %d", sum, key, most)
		}
	}
}

// racers is the number of goroutines in a race.
const racers = 8

// race runs one goroutine for each racer, with a handle of its own.
func race(e *env.Env, run func(racer int, store ports.ShardStore)) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range racers {
		store := e.Open()
		wg.Go(func() {
			<-begin
			run(i, store)
		})
	}
	close(begin)
	wg.Wait()
}
