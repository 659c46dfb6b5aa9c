package look

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func pageCases() []env.Case {
	return []env.Case{
		{
			Name:  "lists continue after the end of a shard",
			Rule:  "Inspector: an entry that does not change meanwhile appears exactly once",
			Check: pageManyInFewShards,
		},
		{
			Name: "lists and stats cover the given shards only",
			Rule: "PageRequest: Shards are the indexes of the shards to list, in any order; " +
				"nil means all shards, an empty list means no shard",
			Check: pageShards,
		},
		{
			Name:  "lists begin at a value, both ways",
			Rule:  "PageRequest: the list begins at the value From, inclusive, in its direction",
			Check: pageFrom,
		},
		{
			Name:  "a cursor takes precedence over a value",
			Rule:  "PageRequest: From is ignored if After is set",
			Check: pageFromAfter,
		},
		{
			Name:  "lists by id can be limited to a prefix",
			Rule:  "PageRequest: Prefix limits a list by id to the ids that begin with it",
			Check: pagePrefix,
		},
		{
			Name:  "fresh jobs can be listed alone",
			Rule:  "JobsRequest: Fresh leaves out jobs with a failure, in lists ByTime and ByID",
			Check: pageFresh,
		},
		{
			Name:  "payloads are counted up to the limit asked for",
			Rule:  "PageRequest: MaxCount is the largest number of payloads of each entry to count",
			Check: pageCounts,
		},
		{
			Name:  "error texts are truncated at the limit asked for",
			Rule:  "PageRequest: ErrorBytes is the largest number of bytes of the newest error text to return; 0 returns all failures",
			Check: pageErrors,
		},
		{
			Name: "invalid requests are refused",
			Rule: "Inspector: every method returns ErrInvalidRequest " +
				"for a request that its Validate refuses or a shard that the queue does not have",
			Check: pageRefused,
		},
	}
}

// pageManyInFewShards lists entries that are spread unevenly over shards, many of them at the same
// time. So pages take more entries from one shard than from another, and end in the middle of a
// shard.
func pageManyInFewShards(e *env.Env) {
	e.DeclareWith(ports.DeclareRequest{Queue: "wide", Shards: 3, IndexIDs: true})

	var byTime []core.Entry
	for i, s := range core.Shards("wide", 3) {
		for k, id := range env.IDsOf(s, 3, []int{40, 3, 1}[i]) {
			byTime = append(byTime, env.EntryAt(id, "p", 1, core.Instant(100+k/8)))
		}
	}
	e.PushTo("wide", byTime...)

	for i, s := range core.Shards("wide", 3) {
		h := e.AcquireBy(e.AcquireRequest(s, "n1"))
		h.Settle(env.SettleAll(h.Claim([]int{20, 2, 1}[i]), func(c core.Claim) core.Settlement {
			return env.Failed(c, "boom", time.Hour)
		})...)
		h.Release()
	}

	var all, retries, byCount []string
	for _, en := range byTime {
		all = append(all, en.ID)
	}
	for _, j := range e.JobsOf("wide") {
		if !j.Fresh() {
			retries = append(retries, j.ID)
		}
	}

	byCount = slices.Clone(retries)
	slices.Sort(byCount)
	sorted := slices.Sorted(slices.Values(all))
	var times []string
	for _, j := range e.JobsOf("wide") {
		times = append(times, j.ID)
	}

	for order, want := range map[ports.SortBy][]string{
		ports.ByTime:          times,
		ports.ByID:            sorted,
		ports.RetryingByTime:  retries,
		ports.RetryingByCount: byCount,
	} {
		pagesOf(e, fmt.Sprintf("jobs in order %v", order),
			ports.PageRequest{Queue: "wide"}, e.JobPages(order), want, 1, 2, 7, 39, 43, 44, 45)
	}
}

// pagesOf checks a list in pages of the given sizes, in both directions.
func pagesOf(e *env.Env, what string, r ports.PageRequest, pages env.Pager, want []string, sizes ...int) {
	e.TB.Helper()
	for _, r.Descending = range []bool{false, true} {
		for _, r.Limit = range sizes {
			e.Same(fmt.Sprintf("%s, descending %t, %d a page", what, r.Descending, r.Limit),
				env.AllPages(r, pages, len(want)), want)
		}
		want = slices.Clone(want)
		slices.Reverse(want)
	}
}

func pageShards(e *env.Env) {
	variedJobs(e)
	claimOneOfEach(e)

	in := func(index ...int) func(id string) bool {
		return func(id string) bool { return !slices.Contains(index, core.ShardOf(id, 3)) }
	}

	lists := map[string]env.Pager{
		"jobs by time": e.JobPages(ports.ByTime), "jobs by id": e.JobPages(ports.ByID), "claimed jobs": e.ClaimedPages,
		"the morgue": e.MorguePages(false), "the morgue by id": e.MorguePages(true),
	}

	for what, pages := range lists {
		all := env.AllPages(ports.PageRequest{Queue: "wide", Limit: 2}, pages, 8)
		for _, some := range [][]int{{0}, {2, 1}, {1, 2, 0}, {1, 1}} {
			want := slices.DeleteFunc(slices.Clone(all), in(some...))
			pagesOf(e, fmt.Sprintf("%s of shards %v", what, some),
				ports.PageRequest{Queue: "wide", Shards: some}, pages, want, 1, 3)
		}
		e.Same(what+" of no shards", pages(ports.PageRequest{Queue: "wide", Shards: []int{}}).IDs, nil)
	}

	whole := e.Stats("wide")
	for _, some := range [][]int{{0}, {2, 1}, {}} {
		got, err := e.Store.Stats(e.Ctx, ports.StatsRequest{Queues: []string{"wide"}, Shards: some})
		if !e.Check(err, "Stats of some shards") || len(got) != 1 {
			continue
		}

		var want []ports.ShardStats
		var sum ports.Counts
		for _, s := range whole.Shards {
			if slices.Contains(some, s.Shard.Index) {
				want, sum = append(want, s), ports.SumCounts(sum, s.Counts)
			}
		}

		e.Same(fmt.Sprintf("the stats of shards %v", some), got[0].Shards, want)
		e.Same("their sums", got[0].Counts, sum)
	}
}

// claimOneOfEach buries a job of each shard of wide, and claims another one.
func claimOneOfEach(e *env.Env) {
	e.TB.Helper()
	e.Clock.Advance(time.Minute)
	for _, s := range core.Shards("wide", 3) {
		h := e.AcquireBy(e.AcquireRequest(s, "n1"))
		if c := h.Claim(1); len(c) == 1 {
			h.Settle(env.Buried(c[0], "no use"))
		}
		h.Claim(1)
	}
}

func pageFrom(e *env.Env) {
	variedJobs(e)
	from := func(order ports.SortBy, from ports.Cursor, descending bool) []string {
		r := ports.PageRequest{Queue: "wide", From: &from, Descending: descending, Limit: 2}
		return env.AllPages(r, e.JobPages(order), 8)
	}

	at := int64(env.Start.Add(3 * time.Second))
	e.Same("from a time that some jobs have",
		from(ports.ByTime, ports.Cursor{Key: at, ID: "zz"}, false), []string{"c", "d", "f", "b", "a", "h"})
	e.Same("down from a time that some jobs have",
		from(ports.ByTime, ports.Cursor{Key: at, ID: "a"}, true), []string{"f", "d", "c", "e", "g"})
	e.Same("from a time that no job has", from(ports.ByTime, ports.Cursor{Key: at + 1}, false), []string{"b", "a", "h"})
	e.Same("down from a time that no job has", from(ports.ByTime, ports.Cursor{Key: at - 1}, true), []string{"e", "g"})

	e.Same("by time from the first instant",
		from(ports.ByTime, ports.Cursor{}, false), []string{"g", "e", "c", "d", "f", "b", "a", "h"})
	e.Same("by time down from the first instant", from(ports.ByTime, ports.Cursor{}, true), nil)

	e.Same("retries from a time",
		from(ports.RetryingByTime, ports.Cursor{Key: at}, false), []string{"c", "d", "b", "a"})
	e.Same("by count", from(ports.RetryingByCount, ports.Cursor{Key: 1}, false), []string{"c", "a", "e"})
	e.Same("down by count", from(ports.RetryingByCount, ports.Cursor{Key: 1}, true), []string{"c", "d", "b"})

	e.Same("by id from one that is there",
		from(ports.ByID, ports.Cursor{Key: 99, ID: "f"}, false), []string{"f", "g", "h"})
	e.Same("down by id", from(ports.ByID, ports.Cursor{ID: "c"}, true), []string{"c", "b", "a"})
	e.Same("by id from one that is not there", from(ports.ByID, ports.Cursor{ID: "ee"}, false), []string{"f", "g", "h"})
	e.Same("retries down by id from one that is not there",
		from(ports.RetryingByID, ports.Cursor{ID: "cc"}, true), []string{"c", "b", "a"})
}

func pageFromAfter(e *env.Env) {
	variedJobs(e)
	r := ports.PageRequest{Queue: "wide", From: &ports.Cursor{ID: "b"}, After: ports.Cursor{ID: "d"}}
	e.Same("by id", e.JobPages(ports.ByID)(r).IDs, []string{"e", "f", "g", "h"})
	at := int64(env.Start.Add(3 * time.Second))
	r = ports.PageRequest{Queue: "wide", From: &ports.Cursor{Key: at}, After: ports.Cursor{Key: at, ID: "d"}}
	e.Same("by time", e.JobPages(ports.ByTime)(r).IDs, []string{"f", "b", "a", "h"})
}

func pagePrefix(e *env.Env) {
	e.DeclareWith(ports.DeclareRequest{Queue: "wide", Shards: 3, IndexIDs: true})

	ids := []string{
		"a", "ab", "ab-1", "ab-2", "ab:", "abc", "abé", "ac", "b", "Ab", "é", "éa", "\U0010FFFF", "a\U0010FFFF",
		"ab\U0010FFFFx",
	}
	for _, id := range ids {
		e.PushTo("wide", env.EntryAt(id, "p", 1, 7))
	}

	for _, s := range core.Shards("wide", 3) { // so that each id has a dead letter beside the job below
		_, err := e.Store.Bury(e.Ctx, ports.JobStep{Shard: s, IDs: ids})
		e.Must(err, "Bury")
	}
	for _, id := range ids {
		e.PushTo("wide", env.EntryAt(id, "p", 1, 7))
	}

	for _, prefix := range []string{
		"ab", "a", "ab-", "é", "\U0010FFFF", "nothing", strings.Repeat("a", core.MaxIDBytes+1),
	} {
		var want []string
		for _, id := range slices.Sorted(slices.Values(ids)) {
			if strings.HasPrefix(id, prefix) {
				want = append(want, id)
			}
		}

		for what, pages := range map[string]env.Pager{
			"jobs":         e.JobPages(ports.ByID),
			"dead letters": e.MorguePages(true),
		} {
			pagesOf(e, fmt.Sprintf("%s with %.20q", what, prefix),
				ports.PageRequest{Queue: "wide", Prefix: prefix}, pages, want, 1, 3, 100)
		}
	}

	from := ports.PageRequest{Queue: "wide", Prefix: "ab", From: &ports.Cursor{ID: "ab-2"}, Limit: 2}
	e.Same("from one of them",
		env.AllPages(from, e.JobPages(ports.ByID), 9), []string{"ab-2", "ab:", "abc", "abé", "ab\U0010FFFFx"})

	from.From = &ports.Cursor{ID: "aa"}
	e.Same("from before them", e.JobPages(ports.ByID)(from).IDs, []string{"ab", "ab-1"})

	from.From, from.Descending = &ports.Cursor{ID: "b"}, true
	e.Same("down from behind them", e.JobPages(ports.ByID)(from).IDs, []string{"ab\U0010FFFFx", "abé"})
	from.From = &ports.Cursor{ID: "ab-2"}
	e.Same("down from one of them", env.AllPages(from, e.JobPages(ports.ByID), 9), []string{"ab-2", "ab-1", "ab"})
}

func pageFresh(e *env.Env) {
	variedJobs(e)
	for order, want := range map[ports.SortBy][]string{ports.ByTime: {"g", "f", "h"}, ports.ByID: {"f", "g", "h"}} {
		pages := func(r ports.PageRequest) env.Listed {
			page, err := e.Store.Jobs(e.Ctx, ports.JobsRequest{PageRequest: r, SortBy: order, Fresh: true})
			e.Must(err, "Jobs")
			l := env.Listed{Next: page.Next}
			for _, j := range page.Jobs {
				l.IDs = append(l.IDs, j.ID)
			}
			return l
		}

		pagesOf(e, fmt.Sprintf("fresh jobs in order %v", order),
			ports.PageRequest{Queue: "wide"}, pages, want, 1, 2, 3, 8)
	}
}

func pageCounts(e *env.Env) {
	for _, id := range []string{"a", "b", "c"} {
		e.Push(env.Entry(id, "p", 1), env.Entry(id, "q", 2), env.Entry(id, "r", 3))
	}

	h := e.Acquire("n1")
	claims := h.Claim(2)
	h.Settle(env.Buried(claims[0], "boom"))

	for most, want := range map[int]int{0: 3, -1: 0, 1: 1, 2: 2, 3: 3, 4: 3} {
		r := ports.PageRequest{Queue: env.Orders, MaxCount: most, Payloads: 2}
		jobs, err := e.Store.Jobs(e.Ctx, ports.JobsRequest{PageRequest: r})
		if e.Check(err, "Jobs") && len(jobs.Jobs) == 1 {
			e.Same(fmt.Sprintf("the payloads of a job, counted to %d, and how many come", most),
				[]int{jobs.Jobs[0].Count, len(jobs.Jobs[0].Payloads)}, []int{want, 2})
		}

		claimed, err := e.Store.Claimed(e.Ctx, r)
		if e.Check(err, "Claimed") && len(claimed.Claims) == 1 {
			e.Same(fmt.Sprintf("the payloads of a claim, counted to %d", most), claimed.Claims[0].Count, want)
		}

		dead, err := e.Store.Morgue(e.Ctx, ports.MorgueRequest{PageRequest: r})
		if e.Check(err, "Morgue") && len(dead.DeadLetters) == 1 {
			e.Same(fmt.Sprintf("the payloads of a dead letter, counted to %d", most), dead.DeadLetters[0].Count, want)
		}

		e.Same("how many entries", []int{len(jobs.Jobs), len(claimed.Claims), len(dead.DeadLetters)}, []int{1, 1, 1})
	}
}

func pageErrors(e *env.Env) {
	e.PushIDs("a", "b", "c")
	h := e.Acquire("n1")
	claims := h.Claim(2)
	h.Settle(env.Failed(claims[0], "boomé!", 0), env.Buried(claims[1], "boomé!"))

	h.Claim(1) // "c"
	h.Claim(1) // "a", whose failure stays with the claim
	e.Push(env.Entry("d", "p", 1))
	again := e.Claimed("a")
	h.Settle(env.Failed(again, "boomé!", time.Hour))

	for bytes, want := range map[int]string{
		0:  "boomé!",
		-1: "",
		4:  "boom",
		5:  "boom",
		6:  "boomé",
		7:  "boomé!",
		9:  "boomé!",
		1:  "b",
	} {
		of := env.Failures(want)
		if bytes == 0 {
			of = env.Failures(want, want) // of "a", which has failed twice
		}
		r := ports.PageRequest{Queue: env.Orders, ErrorBytes: bytes}
		jobs, err := e.Store.Jobs(e.Ctx, ports.JobsRequest{PageRequest: r, SortBy: ports.RetryingByID})
		if e.Check(err, "Jobs") && len(jobs.Jobs) == 1 {
			e.Same(fmt.Sprintf("%d bytes of a job's error", bytes), jobs.Jobs[0].Failures, of)
		}
		e.Same("how many jobs", len(jobs.Jobs), 1)

		dead, err := e.Store.Morgue(e.Ctx, ports.MorgueRequest{PageRequest: r})
		if e.Check(err, "Morgue") && len(dead.DeadLetters) == 1 {
			e.Same(fmt.Sprintf("%d bytes of a dead letter's error", bytes), dead.DeadLetters[0].Failures, env.Failures(want))
		}
		e.Same("how many dead letters", len(dead.DeadLetters), 1)
	}

	e.Clock.Advance(2 * time.Hour)
	h = e.Acquire("n1")
	h.Claim(9)
	claimed, err := e.Store.Claimed(e.Ctx, ports.PageRequest{Queue: env.Orders, ErrorBytes: 5})
	e.Must(err, "Claimed")

	for _, c := range claimed.Claims {
		if c.ID == "a" {
			e.Same("5 bytes of a claim's error", c.Failures, env.Failures("boom"))
		}
	}
}

func pageRefused(e *env.Env) {
	e.DeclareWith(ports.DeclareRequest{Queue: "wide", Shards: 3, IndexIDs: true})

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
	jobs := func(what string, r ports.JobsRequest) { _, errs[what] = e.Store.Jobs(e.Ctx, r) }

	jobs("jobs of shard 3 of 3", ports.JobsRequest{PageRequest: shards(0, 3)})
	jobs("jobs of shard -1", ports.JobsRequest{PageRequest: shards(-1)})
	jobs("jobs by time with a prefix", ports.JobsRequest{PageRequest: prefix("a")})
	jobs("jobs by count with a prefix", ports.JobsRequest{PageRequest: prefix("a"), SortBy: ports.RetryingByCount})
	jobs("a prefix that is no text", ports.JobsRequest{PageRequest: prefix("a\xff"), SortBy: ports.ByID})
	jobs("a prefix with a NUL", ports.JobsRequest{PageRequest: prefix("a\x00"), SortBy: ports.ByID})
	jobs("from an id that is no text", ports.JobsRequest{
		SortBy:      ports.ByID,
		PageRequest: page(func(r *ports.PageRequest) { r.From = &ports.Cursor{ID: "\xff"} }),
	})
	jobs("fresh ones of the failed",
		ports.JobsRequest{PageRequest: shards(), SortBy: ports.RetryingByTime, Fresh: true})

	_, errs["claimed jobs with a prefix"] = e.Store.Claimed(e.Ctx, prefix("a"))
	_, errs["claimed jobs of shard 3"] = e.Store.Claimed(e.Ctx, shards(3))
	_, errs["the morgue by time with a prefix"] = e.Store.Morgue(e.Ctx, ports.MorgueRequest{PageRequest: prefix("a")})
	_, errs["the morgue of shard 3"] = e.Store.Morgue(e.Ctx, ports.MorgueRequest{PageRequest: shards(3)})

	_, errs["the stats of shard 3"] = e.Store.Stats(e.Ctx, ports.StatsRequest{
		Queues: []string{"wide"},
		Shards: []int{3},
	})
	_, errs["the stats of a shard of two queues"] = e.Store.Stats(e.Ctx, ports.StatsRequest{
		Queues: []string{"wide", env.Orders},
		Shards: []int{0},
	})

	for what, err := range errs {
		if !errors.Is(err, ports.ErrInvalidRequest) {
			e.Errorf("%s: %v, want ErrInvalidRequest", what, err)
		}
	}
}
