package conformance

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleCounts = "Counts: fresh, retrying, claimed and dead are how many there are; processed and failed count jobs (RULES 7)"

// countsHold has turns claim jobs while pushes merge into them and an operator acts on
// them. Some of the jobs have failed before, so that each way to count takes part.
func countsHold(e *env) {
	const pushes, turns, jobs, want = 60, 150, 24, 8
	entries := func(push int) []core.Entry {
		list := make([]core.Entry, jobs)
		for i := range list {
			payload := "p"
			if i >= jobs-4 { // some have several payloads
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

// endInEveryWay makes turns that claim jobs and settle those of the turn before, each by
// another outcome. It returns how many it processed and how many failed.
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
		h.e.clock.Advance(time.Microsecond) // so that jobs put back come last
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

// stepOver makes the operator's steps that move jobs between the queue and the morgue.
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
