package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func pageCases() []namedCase {
	return []namedCase{
		{"lists continue after the end of a shard", "Inspector: an entry that does not change meanwhile appears exactly once", pageManyInFewShards},
		{"lists and stats cover the given shards only", "PageRequest: Shards are the indexes of the shards to list, in any order; nil means all shards, an empty list means no shard", pageShards},
		{"lists begin at a value, both ways", "PageRequest: the list begins at the value From, inclusive, in its direction", pageFrom},
		{"a cursor takes precedence over a value", "PageRequest: From is ignored if After is set", pageFromAfter},
		{"lists by id can be limited to a prefix", "PageRequest: Prefix limits a list by id to the ids that begin with it", pagePrefix},
		{"fresh jobs can be listed alone", "JobsRequest: Fresh leaves out jobs with a failure, in lists ByTime and ByID", pageFresh},
		{"payloads are counted up to the limit asked for", "PageRequest: MaxCount is the largest number of payloads of each entry to count", pageCounts},
		{"error texts are truncated at the limit asked for", "PageRequest: ErrorBytes is the largest number of bytes of each error text to return", pageErrors},
		{"invalid requests are refused", "Inspector: every method returns ErrInvalidRequest for a request that its Validate refuses or a shard that the queue does not have", pageRefused},
	}
}

// pageManyInFewShards lists entries that are spread unevenly over shards, many of them at the same
// time. So pages take more entries from one shard than from another, and end in the middle of a
// shard.
func pageManyInFewShards(e *env) {
	e.declareWith(ports.DeclareRequest{Queue: "wide", Shards: 3, IndexIDs: true})
	var byTime []core.Entry
	for i, s := range core.Shards("wide", 3) {
		for k, id := range idsOf(s, 3, []int{40, 3, 1}[i]) {
			byTime = append(byTime, entryAt(id, "p", 1, core.Instant(100+k/8)))
		}
	}
	e.pushTo("wide", byTime...)
	for i, s := range core.Shards("wide", 3) {
		h := e.acquireBy(e.acquireRequest(s, "n1"))
		h.settle(settleAll(h.claim([]int{20, 2, 1}[i]), func(c core.Claim) core.Settlement { return failed(c, "boom", time.Hour) })...)
		h.release()
	}
	var all, retries, byCount []string
	for _, en := range byTime {
		all = append(all, en.ID)
	}
	for _, j := range e.jobsOf("wide") {
		if !j.Fresh() {
			retries = append(retries, j.ID)
		}
	}
	byCount = slices.Clone(retries)
	slices.Sort(byCount)
	sorted := slices.Sorted(slices.Values(all))
	var times []string
	for _, j := range e.jobsOf("wide") {
		times = append(times, j.ID)
	}
	for order, want := range map[ports.SortBy][]string{ports.ByTime: times, ports.ByID: sorted, ports.RetryingByTime: retries, ports.RetryingByCount: byCount} {
		e.pagesOf(fmt.Sprintf("jobs in order %v", order), ports.PageRequest{Queue: "wide"}, e.jobPages(order), want, 1, 2, 7, 39, 43, 44, 45)
	}
}

// pagesOf checks a list in pages of the given sizes, in both directions.
func (e *env) pagesOf(what string, r ports.PageRequest, pages pager, want []string, sizes ...int) {
	e.tb.Helper()
	for _, r.Descending = range []bool{false, true} {
		for _, r.Limit = range sizes {
			e.same(fmt.Sprintf("%s, descending %t, %d a page", what, r.Descending, r.Limit), allPages(r, pages, len(want)), want)
		}
		want = slices.Clone(want)
		slices.Reverse(want)
	}
}

func pageShards(e *env) {
	variedJobs(e)
	claimOneOfEach(e)
	in := func(index ...int) func(id string) bool {
		return func(id string) bool { return !slices.Contains(index, core.ShardOf(id, 3)) }
	}
	lists := map[string]pager{
		"jobs by time": e.jobPages(ports.ByTime), "jobs by id": e.jobPages(ports.ByID), "claimed jobs": e.claimedPages,
		"the morgue": e.morguePages(false), "the morgue by id": e.morguePages(true),
	}
	for what, pages := range lists {
		all := allPages(ports.PageRequest{Queue: "wide", Limit: 2}, pages, 8)
		for _, some := range [][]int{{0}, {2, 1}, {1, 2, 0}, {1, 1}} {
			want := slices.DeleteFunc(slices.Clone(all), in(some...))
			e.pagesOf(fmt.Sprintf("%s of shards %v", what, some), ports.PageRequest{Queue: "wide", Shards: some}, pages, want, 1, 3)
		}
		e.same(what+" of no shards", pages(ports.PageRequest{Queue: "wide", Shards: []int{}}).ids, nil)
	}
	whole := e.stats("wide")
	for _, some := range [][]int{{0}, {2, 1}, {}} {
		got, err := e.store.Stats(e.ctx, ports.StatsRequest{Queues: []string{"wide"}, Shards: some})
		if !e.check(err, "Stats of some shards") || len(got) != 1 {
			continue
		}
		var want []ports.ShardStats
		var sum ports.Counts
		for _, s := range whole.Shards {
			if slices.Contains(some, s.Shard.Index) {
				want, sum = append(want, s), ports.SumCounts(sum, s.Counts)
			}
		}
		e.same(fmt.Sprintf("the stats of shards %v", some), got[0].Shards, want)
		e.same("their sums", got[0].Counts, sum)
	}
}

// claimOneOfEach buries a job of each shard of wide, and claims another one.
func claimOneOfEach(e *env) {
	e.tb.Helper()
	e.clock.Advance(time.Minute)
	for _, s := range core.Shards("wide", 3) {
		h := e.acquireBy(e.acquireRequest(s, "n1"))
		if c := h.claim(1); len(c) == 1 {
			h.settle(buried(c[0], "no use"))
		}
		h.claim(1)
	}
}

func pageFrom(e *env) {
	variedJobs(e)
	from := func(order ports.SortBy, from ports.Cursor, descending bool) []string {
		r := ports.PageRequest{Queue: "wide", From: &from, Descending: descending, Limit: 2}
		return allPages(r, e.jobPages(order), 8)
	}
	at := int64(start.Add(3 * time.Second))
	e.same("from a time that some jobs have", from(ports.ByTime, ports.Cursor{Key: at, ID: "zz"}, false), []string{"c", "d", "f", "b", "a", "h"})
	e.same("down from a time that some jobs have", from(ports.ByTime, ports.Cursor{Key: at, ID: "a"}, true), []string{"f", "d", "c", "e", "g"})
	e.same("from a time that no job has", from(ports.ByTime, ports.Cursor{Key: at + 1}, false), []string{"b", "a", "h"})
	e.same("down from a time that no job has", from(ports.ByTime, ports.Cursor{Key: at - 1}, true), []string{"e", "g"})
	e.same("by time from the first instant", from(ports.ByTime, ports.Cursor{}, false), []string{"g", "e", "c", "d", "f", "b", "a", "h"})
	e.same("by time down from the first instant", from(ports.ByTime, ports.Cursor{}, true), nil)
	e.same("retries from a time", from(ports.RetryingByTime, ports.Cursor{Key: at}, false), []string{"c", "d", "b", "a"})
	e.same("by count", from(ports.RetryingByCount, ports.Cursor{Key: 1}, false), []string{"c", "a", "e"})
	e.same("down by count", from(ports.RetryingByCount, ports.Cursor{Key: 1}, true), []string{"c", "d", "b"})
	e.same("by id from one that is there", from(ports.ByID, ports.Cursor{Key: 99, ID: "f"}, false), []string{"f", "g", "h"})
	e.same("down by id", from(ports.ByID, ports.Cursor{ID: "c"}, true), []string{"c", "b", "a"})
	e.same("by id from one that is not there", from(ports.ByID, ports.Cursor{ID: "ee"}, false), []string{"f", "g", "h"})
	e.same("retries down by id from one that is not there", from(ports.RetryingByID, ports.Cursor{ID: "cc"}, true), []string{"c", "b", "a"})
}

func pageFromAfter(e *env) {
	variedJobs(e)
	r := ports.PageRequest{Queue: "wide", From: &ports.Cursor{ID: "b"}, After: ports.Cursor{ID: "d"}}
	e.same("by id", e.jobPages(ports.ByID)(r).ids, []string{"e", "f", "g", "h"})
	at := int64(start.Add(3 * time.Second))
	r = ports.PageRequest{Queue: "wide", From: &ports.Cursor{Key: at}, After: ports.Cursor{Key: at, ID: "d"}}
	e.same("by time", e.jobPages(ports.ByTime)(r).ids, []string{"f", "b", "a", "h"})
}

func pagePrefix(e *env) {
	e.declareWith(ports.DeclareRequest{Queue: "wide", Shards: 3, IndexIDs: true})
	ids := []string{"a", "ab", "ab-1", "ab-2", "ab:", "abc", "abé", "ac", "b", "Ab", "é", "éa", "\U0010FFFF", "a\U0010FFFF", "ab\U0010FFFFx"}
	for _, id := range ids {
		e.pushTo("wide", entryAt(id, "p", 1, 7))
	}
	for _, s := range core.Shards("wide", 3) { // so that each id has a dead letter beside the job below
		_, err := e.store.Bury(e.ctx, ports.JobStep{Shard: s, IDs: ids})
		e.must(err, "Bury")
	}
	for _, id := range ids {
		e.pushTo("wide", entryAt(id, "p", 1, 7))
	}
	for _, prefix := range []string{"ab", "a", "ab-", "é", "\U0010FFFF", "nothing", strings.Repeat("a", core.MaxIDBytes+1)} {
		var want []string
		for _, id := range slices.Sorted(slices.Values(ids)) {
			if strings.HasPrefix(id, prefix) {
				want = append(want, id)
			}
		}
		for what, pages := range map[string]pager{"jobs": e.jobPages(ports.ByID), "dead letters": e.morguePages(true)} {
			e.pagesOf(fmt.Sprintf("%s with %.20q", what, prefix), ports.PageRequest{Queue: "wide", Prefix: prefix}, pages, want, 1, 3, 100)
		}
	}
	from := ports.PageRequest{Queue: "wide", Prefix: "ab", From: &ports.Cursor{ID: "ab-2"}, Limit: 2}
	e.same("from one of them", allPages(from, e.jobPages(ports.ByID), 9), []string{"ab-2", "ab:", "abc", "abé", "ab\U0010FFFFx"})
	from.From = &ports.Cursor{ID: "aa"}
	e.same("from before them", e.jobPages(ports.ByID)(from).ids, []string{"ab", "ab-1"})
	from.From, from.Descending = &ports.Cursor{ID: "b"}, true
	e.same("down from behind them", e.jobPages(ports.ByID)(from).ids, []string{"ab\U0010FFFFx", "abé"})
	from.From = &ports.Cursor{ID: "ab-2"}
	e.same("down from one of them", allPages(from, e.jobPages(ports.ByID), 9), []string{"ab-2", "ab-1", "ab"})
}

func pageFresh(e *env) {
	variedJobs(e)
	for order, want := range map[ports.SortBy][]string{ports.ByTime: {"g", "f", "h"}, ports.ByID: {"f", "g", "h"}} {
		pages := func(r ports.PageRequest) listed {
			page, err := e.store.Jobs(e.ctx, ports.JobsRequest{PageRequest: r, SortBy: order, Fresh: true})
			e.must(err, "Jobs")
			l := listed{next: page.Next}
			for _, j := range page.Jobs {
				l.ids = append(l.ids, j.ID)
			}
			return l
		}
		e.pagesOf(fmt.Sprintf("fresh jobs in order %v", order), ports.PageRequest{Queue: "wide"}, pages, want, 1, 2, 3, 8)
	}
}

func pageCounts(e *env) {
	for _, id := range []string{"a", "b", "c"} {
		e.push(entry(id, "p", 1), entry(id, "q", 2), entry(id, "r", 3))
	}
	h := e.acquire("n1")
	claims := h.claim(2)
	h.settle(buried(claims[0], "boom"))
	for most, want := range map[int]int{0: 3, -1: 0, 1: 1, 2: 2, 3: 3, 4: 3} {
		r := ports.PageRequest{Queue: orders, MaxCount: most, Payloads: 2}
		jobs, err := e.store.Jobs(e.ctx, ports.JobsRequest{PageRequest: r})
		if e.check(err, "Jobs") && len(jobs.Jobs) == 1 {
			e.same(fmt.Sprintf("the payloads of a job, counted to %d, and how many come", most), []int{jobs.Jobs[0].Count, len(jobs.Jobs[0].Payloads)}, []int{want, 2})
		}
		claimed, err := e.store.Claimed(e.ctx, r)
		if e.check(err, "Claimed") && len(claimed.Claims) == 1 {
			e.same(fmt.Sprintf("the payloads of a claim, counted to %d", most), claimed.Claims[0].Count, want)
		}
		dead, err := e.store.Morgue(e.ctx, ports.MorgueRequest{PageRequest: r})
		if e.check(err, "Morgue") && len(dead.DeadLetters) == 1 {
			e.same(fmt.Sprintf("the payloads of a dead letter, counted to %d", most), dead.DeadLetters[0].Count, want)
		}
		e.same("how many entries", []int{len(jobs.Jobs), len(claimed.Claims), len(dead.DeadLetters)}, []int{1, 1, 1})
	}
}

func pageErrors(e *env) {
	e.pushIDs("a", "b", "c")
	h := e.acquire("n1")
	claims := h.claim(2)
	h.settle(failed(claims[0], "boomé!", 0), buried(claims[1], "boomé!"))
	h.claim(1) // "c"
	h.claim(1) // "a", whose failure stays with the claim
	e.push(entry("d", "p", 1))
	again := e.claimed("a")
	h.settle(failed(again, "boomé!", time.Hour))
	for bytes, want := range map[int]string{0: "boomé!", -1: "", 4: "boom", 5: "boom", 6: "boomé", 7: "boomé!", 9: "boomé!", 1: "b"} {
		r := ports.PageRequest{Queue: orders, ErrorBytes: bytes}
		jobs, err := e.store.Jobs(e.ctx, ports.JobsRequest{PageRequest: r, SortBy: ports.RetryingByID})
		if e.check(err, "Jobs") && len(jobs.Jobs) == 1 {
			e.same(fmt.Sprintf("%d bytes of a job's error", bytes), jobs.Jobs[0].Error, want)
		}
		e.same("how many jobs", len(jobs.Jobs), 1)
		dead, err := e.store.Morgue(e.ctx, ports.MorgueRequest{PageRequest: r})
		if e.check(err, "Morgue") && len(dead.DeadLetters) == 1 {
			e.same(fmt.Sprintf("%d bytes of a dead letter's error", bytes), dead.DeadLetters[0].Error, want)
		}
		e.same("how many dead letters", len(dead.DeadLetters), 1)
	}
	e.clock.Advance(2 * time.Hour)
	h = e.acquire("n1")
	h.claim(9)
	claimed, err := e.store.Claimed(e.ctx, ports.PageRequest{Queue: orders, ErrorBytes: 5})
	e.must(err, "Claimed")
	for _, c := range claimed.Claims {
		if c.ID == "a" {
			e.same("5 bytes of a claim's error", c.Error, "boom")
		}
	}
}

func pageRefused(e *env) {
	e.declareWith(ports.DeclareRequest{Queue: "wide", Shards: 3, IndexIDs: true})
	page := func(change func(r *ports.PageRequest)) ports.PageRequest {
		r := ports.PageRequest{Queue: "wide"}
		change(&r)
		return r
	}
	shards := func(index ...int) ports.PageRequest {
		return page(func(r *ports.PageRequest) { r.Shards = index })
	}
	prefix := func(text string) ports.PageRequest { return page(func(r *ports.PageRequest) { r.Prefix = text }) }
	errs := map[string]error{}
	jobs := func(what string, r ports.JobsRequest) { _, errs[what] = e.store.Jobs(e.ctx, r) }
	jobs("jobs of shard 3 of 3", ports.JobsRequest{PageRequest: shards(0, 3)})
	jobs("jobs of shard -1", ports.JobsRequest{PageRequest: shards(-1)})
	jobs("jobs by time with a prefix", ports.JobsRequest{PageRequest: prefix("a")})
	jobs("jobs by count with a prefix", ports.JobsRequest{PageRequest: prefix("a"), SortBy: ports.RetryingByCount})
	jobs("a prefix that is no text", ports.JobsRequest{PageRequest: prefix("a\xff"), SortBy: ports.ByID})
	jobs("a prefix with a NUL", ports.JobsRequest{PageRequest: prefix("a\x00"), SortBy: ports.ByID})
	jobs("from an id that is no text", ports.JobsRequest{SortBy: ports.ByID, PageRequest: page(func(r *ports.PageRequest) { r.From = &ports.Cursor{ID: "\xff"} })})
	jobs("fresh ones of the failed", ports.JobsRequest{PageRequest: shards(), SortBy: ports.RetryingByTime, Fresh: true})
	_, errs["claimed jobs with a prefix"] = e.store.Claimed(e.ctx, prefix("a"))
	_, errs["claimed jobs of shard 3"] = e.store.Claimed(e.ctx, shards(3))
	_, errs["the morgue by time with a prefix"] = e.store.Morgue(e.ctx, ports.MorgueRequest{PageRequest: prefix("a")})
	_, errs["the morgue of shard 3"] = e.store.Morgue(e.ctx, ports.MorgueRequest{PageRequest: shards(3)})
	_, errs["the stats of shard 3"] = e.store.Stats(e.ctx, ports.StatsRequest{Queues: []string{"wide"}, Shards: []int{3}})
	_, errs["the stats of a shard of two queues"] = e.store.Stats(e.ctx, ports.StatsRequest{Queues: []string{"wide", orders}, Shards: []int{0}})
	for what, err := range errs {
		if !errors.Is(err, ports.ErrInvalidRequest) {
			e.errorf("%s: %v, want ErrInvalidRequest", what, err)
		}
	}
}
