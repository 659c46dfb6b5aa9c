package look

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func listCases() []env.Case {
	return []env.Case{
		{
			Name: "jobs are listed in every order, both ways",
			Rule: "SortBy: all queued jobs by (PerformAt, id) or by id; " +
				"jobs with a failure by (PerformAt, id), by id or by (RetryCount, id)",
			Check: listJobs,
		},
		{
			Name:  "jobs are listed beside one that waits for a claim",
			Rule:  "Cursor: an entry that does not change meanwhile is listed exactly once",
			Check: listBesideWaiting,
		},
		{
			Name:  "jobs are listed page by page",
			Rule:  "Cursor is a place in a list: the sort key and the id of the last entry seen",
			Check: listJobsPaged,
		},
		{Name: "pages start after any cursor", Rule: "Cursor is a place in a list", Check: listJobsFrom},
		{
			Name:  "pages have their default and largest size",
			Rule:  "PageRequest: Limit: 0 means DefaultPage, above MaxPage means MaxPage",
			Check: listPageSizes,
		},
		{
			Name: "payloads are listed up to the limit, lowest first",
			Rule: "PageRequest: Payloads is the largest number of payloads of each entry to return, " +
				"lowest scores first; the view's Count is the number of all",
			Check: listPayloads,
		},
		{
			Name:  "jobs by id need the index",
			Rule:  "Jobs returns ErrQueueMismatch for ByID if the queue was not declared with IndexIDs",
			Check: listNeedsIndex,
		},
		{
			Name:  "claimed jobs are listed by (Since, id), both ways",
			Rule:  "Claimed pages through the claimed jobs, in order of (Since, id)",
			Check: listClaimed,
		},
		{
			Name:  "claimed jobs show owner, server and since",
			Rule:  "ClaimView: Owner and Node are those of the lease and the turn that claimed it",
			Check: listClaimViews,
		},
		{
			Name:  "claimed jobs show the server that claimed them again",
			Rule:  "ClaimView: Owner and Node are those of the lease and the turn that claimed it",
			Check: listClaimedAgain,
		},
		{
			Name:  "dead letters are listed by time and by id, both ways",
			Rule:  "MorgueRequest: by id instead of by (ChangedAt, id)",
			Check: listMorgue,
		},
		{
			Name:  "dead letters are listed with their payloads",
			Rule:  "DeadLetterView is a dead letter with the first of its payloads",
			Check: listDeadPayloads,
		},
	}
}

// variedJobs declares the queue wide with three shards and an index. It queues the jobs a to h,
// which differ in time and retry count.
func variedJobs(e *env.Env) {
	e.TB.Helper()
	e.DeclareWith(ports.DeclareRequest{Queue: "wide", Shards: 3, IndexIDs: true})

	for _, id := range []string{"a", "b", "c", "d", "e"} {
		e.PushTo("wide", env.EntryAt(id, "p", 1, 0))
	}

	retries := map[string]int{"a": 2, "b": 0, "c": 1, "d": 0, "e": 10}
	delay := map[string]time.Duration{
		"a": 5 * time.Second,
		"b": 4 * time.Second,
		"c": 3 * time.Second,
		"d": 3 * time.Second,
		"e": -time.Hour,
	}

	for _, s := range core.Shards("wide", 3) {
		h := e.AcquireBy(e.AcquireRequest(s, "n1"))
		h.Settle(env.SettleAll(h.Claim(10), func(c core.Claim) core.Settlement {
			s := env.Failed(c, "boom", delay[c.ID])
			s.PutBack.RetryCount = retries[c.ID]
			return s
		})...)
		h.Release()
	}

	e.PushTo("wide", env.EntryAt("f", "p", 1, env.Start.Add(3*time.Second)),
		env.EntryAt("g", "p", 1, 7), env.EntryAt("h", "p", 1, env.Start.Add(9*time.Second)))
}

func listJobs(e *env.Env) {
	variedJobs(e)
	for order, want := range map[ports.SortBy][]string{
		ports.ByTime:          {"g", "e", "c", "d", "f", "b", "a", "h"},
		ports.ByID:            {"a", "b", "c", "d", "e", "f", "g", "h"},
		ports.RetryingByTime:  {"e", "c", "d", "b", "a"},
		ports.RetryingByID:    {"a", "b", "c", "d", "e"},
		ports.RetryingByCount: {"b", "d", "c", "a", "e"},
	} {
		e.Lists(fmt.Sprintf("jobs in order %d", order), "wide", e.JobPages(order), want)
	}
}

// listBesideWaiting lists jobs. One of them waits for the end of a claim of its id. A store may
// keep such a job apart from the others of its shard.
func listBesideWaiting(e *env.Env) {
	e.Declare("wide", 3)

	var ids []string // of shard 0
	for n := 0; len(ids) < 24; n++ {
		if id := fmt.Sprintf("id-%03d", n); core.ShardOf(id, 3) == 0 {
			ids = append(ids, id)
		}
	}

	for _, waits := range []int{len(ids) - 1, 0} {
		id := ids[waits]
		e.PushTo("wide", env.EntryAt(id, "p", 1, 0))
		h := e.AcquireBy(e.AcquireRequest(core.Shard{Queue: "wide"}, "n1"))
		c := h.Claim(1)

		for n, id := range ids {
			e.PushTo("wide", env.EntryAt(id, "p", 1, env.Start.Add(time.Hour+time.Duration(n)*time.Second)))
		}
		e.Lists(fmt.Sprintf("jobs while job %d waits for a claim", waits), "wide", e.JobPages(ports.ByTime), ids)

		h.Settle(env.SettleAll(c, func(c core.Claim) core.Settlement { return env.Done(c) })...)
		h.Release()
	}
}

func listJobsPaged(e *env.Env) {
	variedJobs(e)
	for order, want := range map[ports.SortBy]ports.Cursor{
		ports.ByTime:          {Key: int64(env.Start.Add(-time.Hour)), ID: "e"},
		ports.RetryingByTime:  {Key: int64(env.Start.Add(3 * time.Second)), ID: "c"},
		ports.RetryingByCount: {Key: 0, ID: "d"},
	} {
		got := e.JobPages(order)(ports.PageRequest{Queue: "wide", Limit: 2}).Next
		e.Same(fmt.Sprintf("the cursor in order %d", order), got, want)
	}
	for _, order := range []ports.SortBy{ports.ByID, ports.RetryingByID} {
		got := e.JobPages(order)(ports.PageRequest{Queue: "wide", Limit: 2}).Next
		e.Same(fmt.Sprintf("the cursor's id in order %d", order), got.ID, "b")
	}
}

func listJobsFrom(e *env.Env) {
	variedJobs(e)
	from := func(order ports.SortBy, after ports.Cursor, descending bool) []string {
		return e.JobPages(order)(ports.PageRequest{Queue: "wide", After: after, Descending: descending}).IDs
	}
	at := int64(env.Start.Add(3 * time.Second))
	e.Same("by time behind an id that is not there",
		from(ports.ByTime, ports.Cursor{Key: at, ID: "cc"}, false), []string{"d", "f", "b", "a", "h"})
	e.Same("by time before it", from(ports.ByTime, ports.Cursor{Key: at, ID: "cc"}, true), []string{"c", "e", "g"})
	e.Same("by id, whatever the key", from(ports.ByID, ports.Cursor{Key: 99, ID: "f"}, false), []string{"g", "h"})
	e.Same("by count", from(ports.RetryingByCount, ports.Cursor{Key: 1}, false), []string{"c", "a", "e"})
	e.Same("behind the end", from(ports.ByTime, ports.Cursor{Key: int64(core.MaxInstant), ID: "z"}, false), nil)
}

func listPageSizes(e *env.Env) {
	e.PushMany(ports.MaxPage + 1)
	for limit, want := range map[int]int{
		-1:                ports.DefaultPage,
		0:                 ports.DefaultPage,
		7:                 7,
		ports.MaxPage:     ports.MaxPage,
		ports.MaxPage + 1: ports.MaxPage,
	} {
		got := e.JobPages(ports.ByTime)(ports.PageRequest{Queue: env.Orders, Limit: limit})
		e.Same(fmt.Sprintf("the jobs of a page of %d", limit), len(got.IDs), want)
	}
}

func listPayloads(e *env.Env) {
	e.Push(env.Entry("a", "p", 1), env.Entry("a", "q", 2), env.Entry("a", "r", 3))
	all := []core.Payload{env.Pay("p", 1), env.Pay("q", 2), env.Pay("r", 3)}
	for limit := range 5 {
		page, err := e.Store.Jobs(e.Ctx,
			ports.JobsRequest{PageRequest: ports.PageRequest{Queue: env.Orders, Payloads: limit}})
		e.Must(err, "Jobs")
		want := env.Job("a", env.Fresh(env.Start), all[:min(limit, 3)]...)
		e.Same(fmt.Sprintf("the page with %d payloads", limit), page.Jobs, []ports.JobView{{Job: want, Count: 3}})
	}
}

func listNeedsIndex(e *env.Env) {
	_, err := e.Store.Jobs(e.Ctx, ports.JobsRequest{
		PageRequest: ports.PageRequest{Queue: env.Orders},
		SortBy:      ports.ByID,
	})
	e.Refused("Jobs by id without the index", err, ports.ErrQueueMismatch)
	e.Same("retries by id", e.JobPages(ports.RetryingByID)(ports.PageRequest{Queue: env.Orders}).IDs, nil)
}

// payloadsInWide declares the queue wide with three shards, and pushes two payloads for each of six
// ids.
func payloadsInWide(e *env.Env) {
	e.TB.Helper()
	e.Declare("wide", 3)
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		e.PushTo("wide", env.EntryAt(id, "p", 1, 0), env.EntryAt(id, "q", 2, 0))
	}
}

func listClaimed(e *env.Env) {
	payloadsInWide(e)

	since := map[string]core.Instant{}
	for i, s := range core.Shards("wide", 3) {
		h := e.AcquireBy(e.AcquireRequest(s, "n1"))
		for range 2 {
			for _, c := range h.Claim(1) {
				since[c.ID] = e.Now()
			}
			e.Clock.Advance(time.Duration(i) * time.Second)
		}
	}

	want := slices.SortedFunc(maps.Keys(since), func(a, b string) int {
		return cmp.Or(cmp.Compare(since[a], since[b]), cmp.Compare(a, b))
	})
	e.Lists("claimed jobs", "wide", e.ClaimedPages, want)
}

func listClaimViews(e *env.Env) {
	e.Push(env.Entry("a", "p", 1), env.Entry("a", "q", 2))
	c := e.ClaimAndCrash("n1")[0]
	e.Acquire("n2")
	c.Payloads = c.Payloads[:1]

	want := ports.ClaimView{
		Claim:     c,
		Count:     2,
		Shard:     e.Shard,
		Owner:     "n1",
		Node:      "node of n1",
		Since:     env.Start,
		LeaseOver: true,
	}

	page, err := e.Store.Claimed(e.Ctx, ports.PageRequest{Queue: env.Orders, Payloads: 1})
	e.Must(err, "Claimed")
	e.Same("the page", page.Claims, []ports.ClaimView{want})
}

// listClaimedAgain lets a server crash, and the next server recover and claim its job.
func listClaimedAgain(e *env.Env) {
	e.PushIDs("a")
	e.ClaimAndCrash("n1")
	h := e.Acquire("n2")
	c := h.One(env.SettleAll(h.Orphans(), env.Recovered)...)

	page, err := e.Store.Claimed(e.Ctx, ports.PageRequest{Queue: env.Orders, Payloads: 1})
	e.Must(err, "Claimed")
	e.Same("the page", page.Claims, []ports.ClaimView{{
		Claim:      c,
		Count:      1,
		Shard:      e.Shard,
		Owner:      "n2",
		Node:       "node of n2",
		Since:      e.Now(),
		LeaseUntil: e.Now().Add(env.TTL),
	}})
}

func listMorgue(e *env.Env) {
	payloadsInWide(e)

	want := []string{"f", "b", "c", "a", "d", "e"}
	for _, id := range want {
		e.PushTo("wide", env.EntryAt(id, "r", 3, 0))
	}

	for i, id := range want {
		s := core.Shard{Queue: "wide", Index: core.ShardOf(id, 3)}
		_, err := e.Store.Bury(e.Ctx, ports.JobStep{Shard: s, IDs: []string{id}})
		e.Must(err, "Bury")
		if i != 1 {
			e.Clock.Advance(time.Second)
		}
	}

	e.Lists("dead letters by time", "wide", e.MorguePages(false), want)
	e.Lists("dead letters by id", "wide", e.MorguePages(true), []string{"a", "b", "c", "d", "e", "f"})

	got := e.MorguePages(false)(ports.PageRequest{Queue: "wide", Limit: 1}).Next
	e.Same("the cursor by time", got, ports.Cursor{Key: int64(env.Start), ID: "f"})
}

func listDeadPayloads(e *env.Env) {
	h, c := e.ClaimedJob()
	h.Settle(env.Buried(c, "no use"))

	for limit := range 5 {
		page, err := e.Store.Morgue(e.Ctx,
			ports.MorgueRequest{PageRequest: ports.PageRequest{Queue: env.Orders, Payloads: limit}})
		e.Must(err, "Morgue")

		want := core.DeadLetter{
			ID:        "a",
			ChangedAt: e.Now(),
			Failures:  env.Failures("no use"),
			Group:     core.OtherGroup,
			Payloads:  env.ThreePayloads()[:min(limit, 3)],
		}
		e.Same(fmt.Sprintf("the page with %d payloads", limit),
			page.DeadLetters, []ports.DeadLetterView{{DeadLetter: want, Count: 3}})
	}
}
