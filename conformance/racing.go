package conformance

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// testRacing uses handles on one backend from several goroutines at once and checks the invariants
// afterwards. store shows which optional interfaces the stores of f implement.
func testRacing(t *testing.T, f Factory, store ports.ShardStore) {
	for _, race := range races(store) {
		t.Run(race.Name, func(t *testing.T) {
			t.Parallel()
			race.run(t, f)
		})
	}
}

// races returns the racing cases for a store, also those of transactions if it is a Transactor.
func races(store ports.ShardStore) []namedCase {
	all := []namedCase{
		{"declares agree", "Declare is atomic for the queue", declaresAgree},
		{"one acquire wins", "a shard has at most one owner by its lease, and tokens only grow", oneAcquireWins},
		{"pushes lose nothing", "Push is atomic for each shard; payloads that meet are united (RULES 2)", pushesLoseNothing},
		{"a turn is carried out once", "a turn that was carried out is repeated, not carried out again", turnsCountOnce},
		{"revive and purge duplicate nothing", "nothing is duplicated if it is revived twice, or while a purge runs (RULES 5)", revivePurge},
		{"permits stay within their limit", rulePermits, permitsStayWithin},
		{"a working day", "each accepted copy of a payload is in exactly one place; executions for one id never overlap", workingDay},
		{"counts match the lists", ruleCounts, countsHold},
	}
	if _, ok := store.(Transactor); ok {
		all = append(all, namedCase{"transactions keep an id's order", ruleCommitted, transactionsInOrder},
			namedCase{"a working day of transactions", "each accepted copy of a payload is in exactly one place; executions for one id never overlap", dayOfTransactions})
	}
	return all
}

func declaresAgree(e *env) {
	for round := range 10 {
		name := "queue-" + strconv.Itoa(round)
		errs := make([]error, racers)
		e.race(func(i int, store ports.ShardStore) {
			_, errs[i] = store.Declare(e.ctx, ports.DeclareRequest{Queue: name, Shards: 1 + i%2})
		})
		for i, err := range errs {
			if (err == nil) != (errs[i%2] == nil) || err != nil && !errors.Is(err, ports.ErrShardCountMismatch) {
				e.errorf("a racing Declare of %d shards: %v", 1+i%2, err)
			}
		}
		if (errs[0] == nil) == (errs[1] == nil) {
			e.errorf("racing Declares of 1 and 2 shards returned %v and %v", errs[0], errs[1])
		}
	}
}

func oneAcquireWins(e *env) {
	var last int64
	for round := range 20 {
		replies, errs := make([]ports.AcquireReply, racers), make([]error, racers)
		e.race(func(i int, store ports.ShardStore) {
			replies[i], errs[i] = store.Acquire(e.ctx, ports.AcquireRequest{
				Shard: e.shard, Shards: 1, Generation: e.declared[orders].Generation,
				Owner: "n" + strconv.Itoa(i), Attempt: int64(round + 1), TTL: ttl,
			})
		})
		winners := 0
		for i, err := range errs {
			if err == nil {
				winners++
				if replies[i].Token <= last {
					e.errorf("token %d after %d", replies[i].Token, last)
				}
				last = replies[i].Token
			} else {
				e.refused("a racing Acquire", err, ports.ErrLeaseHeld)
			}
		}
		if winners != 1 {
			e.errorf("%d of %d racing Acquires won, want 1", winners, racers)
		}
		e.clock.Advance(ttl)
	}
}

func pushesLoseNothing(e *env) {
	const each = 10
	e.race(func(i int, store ports.ShardStore) {
		for k := range each {
			n := i*each + k
			_, err := store.Push(e.ctx, e.pushRequest(orders,
				entry("a", "common", float64(racers*each-n)), entry("a", strconv.Itoa(n), float64(n+2))))
			e.check(err, "a racing Push")
		}
	})
	want := []core.Payload{pay("common", 1)}
	for n := range racers * each {
		want = append(want, pay(strconv.Itoa(n), float64(n+2)))
	}
	e.same("what racing pushes left", e.queued("a").Payloads, want)
}

func turnsCountOnce(e *env) {
	e.pushIDs("a", "b", "c", "d")
	h := e.acquire("n1")
	first := h.claim(2)
	r := h.request(2, done(first[0]), buried(first[1], "bad"))
	replies := make([]ports.TurnReply, racers)
	e.race(func(i int, store ports.ShardStore) {
		var err error
		replies[i], err = store.Turn(e.ctx, r)
		e.check(err, "a racing Turn")
	})
	for _, reply := range replies {
		e.same("the claims of a racing Turn", ids(reply.Claims), []string{"c", "d"})
	}
	counts := e.counts()
	e.same("processed and failed", []int64{counts.Processed, counts.Failed}, []int64{1, 1})
	e.same("dead payloads", len(e.deadLetter(first[1].ID).Payloads), 1)
}

func revivePurge(e *env) {
	const entries = 40
	var all []string
	for n := range entries {
		all = append(all, fmt.Sprintf("%02d", n))
	}
	buryAll(e, all...)
	var mu sync.Mutex
	handled := map[bool]int{}
	before, since := e.now(), e.repeats.Lossy.Load()
	e.race(func(i int, store ports.ShardStore) {
		step, revives := store.Purge, i%2 == 0
		if revives {
			step = store.Revive
		}
		n := takeAll(e, step, before)
		mu.Lock()
		defer mu.Unlock()
		handled[revives] += n
	})
	e.giveUpIfRepeated(since)
	e.same("the number of dead letters handled", handled[true]+handled[false], entries)
	e.same("jobs queued by racing revives", len(e.jobs()), handled[true])
	e.same("dead letters left", len(e.deadIDs()), 0)
	for _, job := range e.jobs() {
		e.same("a revived job's payloads", job.Payloads, []core.Payload{pay("p", 1), pay("q", 2)})
	}
}

// takeAll steps through the morgue until nothing is left.
func takeAll(e *env, step func(context.Context, ports.DeadLetterStep) (ports.StepReply, error), before core.Instant) (handled int) {
	for {
		reply, err := step(e.ctx, ports.DeadLetterStep{Shard: e.shard, Before: before, Limit: 3})
		if !e.check(err, "a racing step") || !reply.More {
			return handled + reply.Handled
		}
		handled += reply.Handled
	}
}

const ruleCounts = "Counts: fresh, retrying, claimed and dead are the present numbers; processed and failed count jobs (RULES 7)"

// countsHold makes turns that claim jobs, while pushes merge into the queued jobs and an operator
// acts on them. The turns end jobs in different ways, so that each count changes.
func countsHold(e *env) {
	const pushes, turns, jobs, want = 60, 150, 24, 8
	entries := func(push int) []core.Entry {
		list := make([]core.Entry, jobs)
		for i := range list {
			payload := "p"
			if i >= jobs-4 { // the last jobs have several payloads
				payload = fmt.Sprint(push % 3)
			}
			list[i] = entry(fmt.Sprintf("job-%02d", i), payload, 1)
		}
		return list
	}
	e.push(entries(0)...)
	h := e.acquire("n1")
	var processed, failures int64
	e.race(func(i int, store ports.ShardStore) {
		switch i {
		case 0:
			worker := *h
			worker.e = e.with(store)
			processed, failures = worker.endInEveryWay(turns, want)
		case 1:
			for range pushes {
				e.stepOver(store)
			}
		default:
			for push := range pushes {
				_, err := store.Push(e.ctx, e.pushRequest(orders, entries(push)...))
				e.check(err, "a racing Push")
			}
		}
	})
	e.countsMatch(orders, processed, failures)
}

// endInEveryWay makes turns that claim jobs and settle the claims of the turn before: as done,
// untouched, buried and failed. It returns the numbers of processed and failed jobs.
func (h *holder) endInEveryWay(turns, want int) (processed, failures int64) {
	var claims []core.Claim
	for range turns {
		var settle []core.Settlement
		for i, c := range claims {
			switch i % 5 {
			case 0:
				settle = append(settle, done(c))
			case 1:
				settle = append(settle, untouched(c))
			case 2:
				settle = append(settle, buried(c, "bad"))
			default:
				settle = append(settle, failed(c, "boom", 0))
			}
		}
		h.e.clock.Advance(time.Microsecond) // so that failed jobs come last
		reply, err := h.e.store.Turn(h.e.ctx, h.request(want, settle...))
		if !h.e.check(err, "a racing Turn") {
			return processed, failures
		}
		if reply.Last > h.number {
			h.number, claims = reply.Last, reply.Claims
			for _, s := range settle {
				processed += count(s.Processed)
				failures += count(s.Failed)
			}
		}
	}
	return processed, failures
}

func count(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// stepOver buries jobs with a failure, revives dead letters and makes jobs due, as an operator
// does.
func (e *env) stepOver(store ports.ShardStore) {
	first := func(by ports.SortBy, limit int) (ids []string) {
		page, err := store.Jobs(e.ctx, ports.JobsRequest{PageRequest: ports.PageRequest{Queue: orders, Limit: limit}, SortBy: by})
		e.check(err, "racing Jobs")
		for i := range page.Jobs {
			ids = append(ids, page.Jobs[i].ID)
		}
		return ids
	}
	_, err := store.Bury(e.ctx, ports.JobStep{Shard: e.shard, IDs: first(ports.RetryingByTime, 2), Failed: true})
	e.check(err, "a racing Bury")
	_, err = store.Revive(e.ctx, ports.DeadLetterStep{Shard: e.shard, Before: core.MaxInstant, Limit: 3})
	e.check(err, "a racing Revive")
	_, err = store.Expedite(e.ctx, ports.JobStep{Shard: e.shard, IDs: first(ports.ByTime, 3)})
	e.check(err, "a racing Expedite")
}
