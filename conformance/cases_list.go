package conformance

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func listCases() []namedCase {
	return []namedCase{
		{"jobs are listed in every order, both ways", "SortBy: all queued jobs by (PerformAt, id) or by id; jobs with a failure by (PerformAt, id), by id or by (RetryCount, id)", listJobs},
		{"jobs are listed beside one that waits for a claim", "Cursor: an entry that does not change meanwhile is listed exactly once", listBesideWaiting},
		{"jobs are listed page by page", "Cursor is a place in a list: the sort key and the id of the last entry seen", listJobsPaged},
		{"pages start after any cursor", "Cursor is a place in a list", listJobsFrom},
		{"pages have their default and largest size", "PageRequest: Limit: 0 means DefaultPage, above MaxPage means MaxPage", listPageSizes},
		{"payloads are listed up to the limit, lowest first", "PageRequest: Payloads is the largest number of payloads of each entry to return, lowest scores first; the view's Count is the number of all", listPayloads},
		{"jobs by id need the index", "Jobs returns ErrQueueMismatch for ByID if the queue was not declared with IndexIDs", listNeedsIndex},
		{"claimed jobs are listed by (Since, id), both ways", "Claimed pages through the claimed jobs, in order of (Since, id)", listClaimed},
		{"claimed jobs show owner, server and since", "ClaimView: Owner and Node are those of the lease and the turn that claimed it", listClaimViews},
		{"claimed jobs show the server that claimed them again", "ClaimView: Owner and Node are those of the lease and the turn that claimed it", listClaimedAgain},
		{"dead letters are listed by time and by id, both ways", "MorgueRequest: by id instead of by (ChangedAt, id)", listMorgue},
		{"dead letters are listed with their payloads", "DeadLetterView is a dead letter with the first of its payloads", listDeadPayloads},
	}
}

// variedJobs declares the queue wide with three shards and an index. It queues the jobs a to h,
// which differ in time and retry count.
func variedJobs(e *env) {
	e.tb.Helper()
	e.declareWith(ports.DeclareRequest{Queue: "wide", Shards: 3, IndexIDs: true})
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		e.pushTo("wide", entryAt(id, "p", 1, 0))
	}
	retries := map[string]int{"a": 2, "b": 0, "c": 1, "d": 0, "e": 10}
	delay := map[string]time.Duration{"a": 5 * time.Second, "b": 4 * time.Second, "c": 3 * time.Second, "d": 3 * time.Second, "e": -time.Hour}
	for _, s := range core.Shards("wide", 3) {
		h := e.acquireBy(e.acquireRequest(s, "n1"))
		h.settle(settleAll(h.claim(10), func(c core.Claim) core.Settlement {
			s := failed(c, "boom", delay[c.ID])
			s.PutBack.RetryCount = retries[c.ID]
			return s
		})...)
		h.release()
	}
	e.pushTo("wide", entryAt("f", "p", 1, start.Add(3*time.Second)), entryAt("g", "p", 1, 7), entryAt("h", "p", 1, start.Add(9*time.Second)))
}

func listJobs(e *env) {
	variedJobs(e)
	for order, want := range map[ports.SortBy][]string{
		ports.ByTime:          {"g", "e", "c", "d", "f", "b", "a", "h"},
		ports.ByID:            {"a", "b", "c", "d", "e", "f", "g", "h"},
		ports.RetryingByTime:  {"e", "c", "d", "b", "a"},
		ports.RetryingByID:    {"a", "b", "c", "d", "e"},
		ports.RetryingByCount: {"b", "d", "c", "a", "e"},
	} {
		e.lists(fmt.Sprintf("jobs in order %d", order), "wide", e.jobPages(order), want)
	}
}

// listBesideWaiting lists jobs. One of them waits for the end of a claim of its id. A store may
// keep such a job apart from the others of its shard.
func listBesideWaiting(e *env) {
	e.declare("wide", 3)
	var ids []string // of shard 0
	for n := 0; len(ids) < 24; n++ {
		if id := fmt.Sprintf("id-%03d", n); core.ShardOf(id, 3) == 0 {
			ids = append(ids, id)
		}
	}
	for _, waits := range []int{len(ids) - 1, 0} {
		id := ids[waits]
		e.pushTo("wide", entryAt(id, "p", 1, 0))
		h := e.acquireBy(e.acquireRequest(core.Shard{Queue: "wide"}, "n1"))
		c := h.claim(1)
		for n, id := range ids {
			e.pushTo("wide", entryAt(id, "p", 1, start.Add(time.Hour+time.Duration(n)*time.Second)))
		}
		e.lists(fmt.Sprintf("jobs while job %d waits for a claim", waits), "wide", e.jobPages(ports.ByTime), ids)
		h.settle(settleAll(c, func(c core.Claim) core.Settlement { return done(c) })...)
		h.release()
	}
}

func listJobsPaged(e *env) {
	variedJobs(e)
	for order, want := range map[ports.SortBy]ports.Cursor{
		ports.ByTime:          {Key: int64(start.Add(-time.Hour)), ID: "e"},
		ports.RetryingByTime:  {Key: int64(start.Add(3 * time.Second)), ID: "c"},
		ports.RetryingByCount: {Key: 0, ID: "d"},
	} {
		got := e.jobPages(order)(ports.PageRequest{Queue: "wide", Limit: 2}).next
		e.same(fmt.Sprintf("the cursor in order %d", order), got, want)
	}
	for _, order := range []ports.SortBy{ports.ByID, ports.RetryingByID} {
		got := e.jobPages(order)(ports.PageRequest{Queue: "wide", Limit: 2}).next
		e.same(fmt.Sprintf("the cursor's id in order %d", order), got.ID, "b")
	}
}

func listJobsFrom(e *env) {
	variedJobs(e)
	from := func(order ports.SortBy, after ports.Cursor, descending bool) []string {
		return e.jobPages(order)(ports.PageRequest{Queue: "wide", After: after, Descending: descending}).ids
	}
	at := int64(start.Add(3 * time.Second))
	e.same("by time behind an id that is not there", from(ports.ByTime, ports.Cursor{Key: at, ID: "cc"}, false), []string{"d", "f", "b", "a", "h"})
	e.same("by time before it", from(ports.ByTime, ports.Cursor{Key: at, ID: "cc"}, true), []string{"c", "e", "g"})
	e.same("by id, whatever the key", from(ports.ByID, ports.Cursor{Key: 99, ID: "f"}, false), []string{"g", "h"})
	e.same("by count", from(ports.RetryingByCount, ports.Cursor{Key: 1}, false), []string{"c", "a", "e"})
	e.same("behind the end", from(ports.ByTime, ports.Cursor{Key: int64(core.MaxInstant), ID: "z"}, false), nil)
}

func listPageSizes(e *env) {
	pushMany(e, ports.MaxPage+1)
	for limit, want := range map[int]int{
		-1: ports.DefaultPage, 0: ports.DefaultPage, 7: 7, ports.MaxPage: ports.MaxPage, ports.MaxPage + 1: ports.MaxPage,
	} {
		got := e.jobPages(ports.ByTime)(ports.PageRequest{Queue: orders, Limit: limit})
		e.same(fmt.Sprintf("the jobs of a page of %d", limit), len(got.ids), want)
	}
}

func listPayloads(e *env) {
	e.push(entry("a", "p", 1), entry("a", "q", 2), entry("a", "r", 3))
	all := []core.Payload{pay("p", 1), pay("q", 2), pay("r", 3)}
	for limit := range 5 {
		page, err := e.store.Jobs(e.ctx, ports.JobsRequest{PageRequest: ports.PageRequest{Queue: orders, Payloads: limit}})
		e.must(err, "Jobs")
		want := job("a", fresh(start), all[:min(limit, 3)]...)
		e.same(fmt.Sprintf("the page with %d payloads", limit), page.Jobs, []ports.JobView{{Job: want, Count: 3}})
	}
}

func listNeedsIndex(e *env) {
	_, err := e.store.Jobs(e.ctx, ports.JobsRequest{PageRequest: ports.PageRequest{Queue: orders}, SortBy: ports.ByID})
	e.refused("Jobs by id without the index", err, ports.ErrQueueMismatch)
	e.same("retries by id", e.jobPages(ports.RetryingByID)(ports.PageRequest{Queue: orders}).ids, nil)
}

// payloadsInWide declares the queue wide with three shards, and pushes two payloads for each of six
// ids.
func payloadsInWide(e *env) {
	e.tb.Helper()
	e.declare("wide", 3)
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		e.pushTo("wide", entryAt(id, "p", 1, 0), entryAt(id, "q", 2, 0))
	}
}

func listClaimed(e *env) {
	payloadsInWide(e)
	since := map[string]core.Instant{}
	for i, s := range core.Shards("wide", 3) {
		h := e.acquireBy(e.acquireRequest(s, "n1"))
		for range 2 {
			for _, c := range h.claim(1) {
				since[c.ID] = e.now()
			}
			e.clock.Advance(time.Duration(i) * time.Second)
		}
	}
	want := slices.SortedFunc(maps.Keys(since), func(a, b string) int {
		return cmp.Or(cmp.Compare(since[a], since[b]), cmp.Compare(a, b))
	})
	e.lists("claimed jobs", "wide", e.claimedPages, want)
}

func listClaimViews(e *env) {
	e.push(entry("a", "p", 1), entry("a", "q", 2))
	c := claimAndCrash(e, "n1")[0]
	e.acquire("n2")
	c.Payloads = c.Payloads[:1]
	want := ports.ClaimView{
		Claim: c, Count: 2, Shard: e.shard, Owner: "n1", Node: "node of n1", Since: start,
		LeaseOver: true,
	}
	page, err := e.store.Claimed(e.ctx, ports.PageRequest{Queue: orders, Payloads: 1})
	e.must(err, "Claimed")
	e.same("the page", page.Claims, []ports.ClaimView{want})
}

// listClaimedAgain lets a server crash, and the next server recover and claim its job.
func listClaimedAgain(e *env) {
	e.pushIDs("a")
	claimAndCrash(e, "n1")
	h := e.acquire("n2")
	c := h.one(settleAll(h.orphans(), recovered)...)
	page, err := e.store.Claimed(e.ctx, ports.PageRequest{Queue: orders, Payloads: 1})
	e.must(err, "Claimed")
	e.same("the page", page.Claims, []ports.ClaimView{{
		Claim: c, Count: 1, Shard: e.shard, Owner: "n2", Node: "node of n2", Since: e.now(), LeaseUntil: e.now().Add(ttl),
	}})
}

func listMorgue(e *env) {
	payloadsInWide(e)
	want := []string{"f", "b", "c", "a", "d", "e"}
	for _, id := range want {
		e.pushTo("wide", entryAt(id, "r", 3, 0))
	}
	for i, id := range want {
		s := core.Shard{Queue: "wide", Index: core.ShardOf(id, 3)}
		_, err := e.store.Bury(e.ctx, ports.JobStep{Shard: s, IDs: []string{id}})
		e.must(err, "Bury")
		if i != 1 {
			e.clock.Advance(time.Second)
		}
	}
	e.lists("dead letters by time", "wide", e.morguePages(false), want)
	e.lists("dead letters by id", "wide", e.morguePages(true), []string{"a", "b", "c", "d", "e", "f"})
	got := e.morguePages(false)(ports.PageRequest{Queue: "wide", Limit: 1}).next
	e.same("the cursor by time", got, ports.Cursor{Key: int64(start), ID: "f"})
}

func listDeadPayloads(e *env) {
	h, c := claimedJob(e)
	h.settle(buried(c, "no use"))
	for limit := range 5 {
		page, err := e.store.Morgue(e.ctx, ports.MorgueRequest{PageRequest: ports.PageRequest{Queue: orders, Payloads: limit}})
		e.must(err, "Morgue")
		want := core.DeadLetter{ID: "a", ChangedAt: e.now(), Error: "no use", Group: core.OtherGroup, Payloads: threePayloads()[:min(limit, 3)]}
		e.same(fmt.Sprintf("the page with %d payloads", limit), page.DeadLetters, []ports.DeadLetterView{{DeadLetter: want, Count: 3}})
	}
}
