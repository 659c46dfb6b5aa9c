package look

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleOnce = "Inspector: an entry that does not change meanwhile appears exactly once"

func pageOtherCases() []env.Case {
	return []env.Case{
		{
			Name:  "claimed jobs and dead letters begin at a value, both ways",
			Rule:  "PageRequest: the list begins at the value From, inclusive, in its direction",
			Check: pageFromOthers,
		},
		{
			Name:  "a prefix limits each list by id, after any cursor",
			Rule:  "PageRequest: Prefix limits a list by id to the ids that begin with it",
			Check: pagePrefixOthers,
		},
		{Name: "jobs that stay are listed once while others come and go", Rule: ruleOnce, Check: pageJobsThatStay},
		{
			Name:  "claimed jobs that stay are listed once while others come and go",
			Rule:  ruleOnce,
			Check: pageClaimsThatStay,
		},
		{
			Name:  "dead letters that stay are listed once while others come and go",
			Rule:  ruleOnce,
			Check: pageLettersThatStay,
		},
	}
}

// wideShards declares a queue with three shards and an index, and returns a holder for each shard.
func wideShards(e *env.Env, queue string) (holders []*env.Holder) {
	e.TB.Helper()
	e.DeclareWith(ports.DeclareRequest{Queue: queue, Shards: 3, IndexIDs: true})
	for _, s := range core.Shards(queue, 3) {
		holders = append(holders, e.AcquireBy(e.AcquireRequest(s, "n1")))
	}
	return holders
}

func pageFromOthers(e *env.Env) {
	holders := wideShards(e, "wide")

	var at []int64
	for _, ids := range [][]string{{"f"}, {"a", "c", "b", "d"}, {"e"}} { // some at the same time, in several shards
		for _, id := range ids {
			e.PushTo("wide", env.EntryAt(id, "p", 1, 7))
		}
		for _, h := range holders {
			h.Claim(9)
		}
		at = append(at, int64(e.Now()))
		e.Clock.Advance(time.Second)
	}

	lists := func(what string, pages env.Pager) {
		from := func(key int64, descending bool) []string {
			return env.AllPages(ports.PageRequest{
				Queue:      "wide",
				From:       &ports.Cursor{Key: key, ID: "c"},
				Descending: descending,
				Limit:      2,
			}, pages, 6)
		}

		e.Same(what+" from a time", from(at[1], false), []string{"a", "b", "c", "d", "e"})
		e.Same(what+" down from it", from(at[1], true), []string{"d", "c", "b", "a", "f"})
		e.Same(what+" from behind it", from(at[1]+1, false), []string{"e"})
		e.Same(what+" down from in front of it", from(at[1]-1, true), []string{"f"})
		e.Same(what+" from the first instant", from(0, false), []string{"f", "a", "b", "c", "d", "e"})
		e.Same(what+" down from the last instant", from(int64(core.MaxInstant), true),
			[]string{"e", "d", "c", "b", "a", "f"})
	}

	lists("claimed jobs", e.ClaimedPages)

	for i, ids := range [][]string{{"f"}, {"a", "c", "b", "d"}, {"e"}} {
		for _, id := range ids {
			h := holders[core.ShardOf(id, 3)]
			h.Settle(env.Buried(claimedIn(e, "wide", id), "no use"))
		}
		at[i] = int64(e.Now())
		e.Clock.Advance(time.Second)
	}
	lists("dead letters", e.MorguePages(false))

	byID := func(id string, descending bool) []string {
		return env.AllPages(ports.PageRequest{
			Queue:      "wide",
			From:       &ports.Cursor{Key: 99, ID: id},
			Descending: descending,
			Limit:      2,
		}, e.MorguePages(true), 6)
	}

	e.Same("dead letters by id from one", byID("d", false), []string{"d", "e", "f"})
	e.Same("dead letters by id down from one", byID("c", true), []string{"c", "b", "a"})
	e.Same("dead letters by id down from one that is not there", byID("cc", true), []string{"c", "b", "a"})
}

// claimedIn returns the claim of an id.
func claimedIn(e *env.Env, queue, id string) core.Claim {
	e.TB.Helper()
	found := e.FindIn(queue, id)
	if found.Claim == nil {
		e.Errorf("%q is not claimed", id)
		return core.Claim{}
	}
	return found.Claim.Claim
}

func pagePrefixOthers(e *env.Env) {
	holders := wideShards(e, "wide")

	ids := []string{"a", "ab", "ab-1", "ab-2", "ab:", "abé", "ab\U0010FFFF", "ac", "b", "%b", "_b", "[b", "(b"}
	for _, id := range ids {
		e.PushTo("wide", env.EntryAt(id, "p", 1, 7))
	}

	var fresh, retrying []string
	for _, h := range holders {
		for i, c := range h.Claim(len(ids)) {
			if i%2 == 0 {
				h.Settle(env.Failed(c, "boom", time.Hour))
				retrying = append(retrying, c.ID)
				continue
			}
			h.Settle(env.Done(c))
			e.PushTo("wide", env.EntryAt(c.ID, "p", 1, 7))
			fresh = append(fresh, c.ID)
		}
	}

	freshPages := func(r ports.PageRequest) env.Listed {
		page, err := e.Store.Jobs(e.Ctx, ports.JobsRequest{PageRequest: r, SortBy: ports.ByID, Fresh: true})
		e.Must(err, "Jobs")
		l := env.Listed{Next: page.Next}
		for _, j := range page.Jobs {
			l.IDs = append(l.IDs, j.ID)
		}
		return l
	}

	for _, list := range []struct {
		what  string
		pages env.Pager
		ids   []string
	}{
		{"retries", e.JobPages(ports.RetryingByID), retrying},
		{"fresh jobs", freshPages, fresh},
		{"jobs", e.JobPages(ports.ByID), ids},
	} {
		for _, prefix := range []string{"ab", "a", "%", "_", "[", "(", "ab\U0010FFFF"} {
			want := startingWith(list.ids, prefix)
			pagesOf(e, fmt.Sprintf("%s with %q", list.what, prefix),
				ports.PageRequest{Queue: "wide", Prefix: prefix}, list.pages, want, 1, 3, 100)

			for _, after := range []string{"Z", "ab-1", "ab-10", "ab\U0010FFFF", "z"} {
				up := slices.DeleteFunc(slices.Clone(want), func(id string) bool { return id <= after })
				down := slices.DeleteFunc(slices.Clone(want), func(id string) bool { return id >= after })
				slices.Reverse(down)

				r := ports.PageRequest{Queue: "wide", Prefix: prefix, After: ports.Cursor{ID: after}, Limit: 2}
				e.Same(fmt.Sprintf("%s with %q behind %q", list.what, prefix, after),
					env.AllPages(r, list.pages, len(ids)), up)
				r.Descending = true
				e.Same(fmt.Sprintf("%s with %q down behind %q", list.what, prefix, after),
					env.AllPages(r, list.pages, len(ids)), down)
			}
		}
	}
}

// startingWith returns the ids that begin with a prefix, in order.
func startingWith(ids []string, prefix string) []string {
	var with []string
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if strings.HasPrefix(id, prefix) {
			with = append(with, id)
		}
	}
	return with
}

// movingList is a list that changes while it is read: add adds ids, and remove removes an id.
type movingList struct {
	pages  env.Pager
	add    func(ids ...string)
	remove func(id string)
}

// movingEntries is the number of entries at first. Their ids begin with two digits.
const movingEntries = 24

func movingNumber(id string) (n int) {
	_, _ = fmt.Sscanf(id, "%02d", &n)
	return n
}

// check reads the list page by page. After each page an entry is removed, if possible the entry at
// the cursor. After some pages another entry is added, in front of the cursor or behind it.
func (m movingList) check(e *env.Env, what, queue string, descending bool) {
	e.TB.Helper()

	var first []string
	for k := range movingEntries {
		first = append(first, fmt.Sprintf("%02d-%s", k, []string{"stays", "goes"}[k%2]))
	}
	m.add(first...)

	stays := func(ids []string) (list []string) {
		for _, id := range ids {
			if strings.HasSuffix(id, "stays") {
				list = append(list, id)
			}
		}
		return list
	}

	r := ports.PageRequest{Queue: queue, Limit: 3, Descending: descending}
	want := stays(env.AllPages(r, m.pages, movingEntries))
	e.Same(what+": how many stay", len(want), movingEntries/2)

	var got []string
	for n := range 20 * movingEntries {
		page := m.pages(r)
		got = append(got, stays(page.IDs)...)
		if r.After = page.Next; page.Next == (ports.Cursor{}) {
			break
		}

		gone := page.Next.ID
		if !strings.HasSuffix(gone, "goes") {
			gone = fmt.Sprintf("%02d-goes", 2*n%movingEntries+1)
		}

		m.remove(gone)
		if n < 6 {
			m.add(fmt.Sprintf("%02d-new-%d", 7*n%movingEntries, n))
		}
	}

	e.Same(fmt.Sprintf("%s, descending %t: those that stay", what, descending), got, want)
}

func pageJobsThatStay(e *env.Env) {
	for order := ports.ByTime; order <= ports.RetryingByCount; order++ {
		for _, descending := range []bool{false, true} {
			queue := fmt.Sprintf("wide-%v-%t", order, descending)
			holders := wideShards(e, queue)

			movingList{e.JobPages(order), func(ids ...string) {
				for _, id := range ids {
					e.PushTo(queue, env.EntryAt(id, "p", 1, 7))
				}
				for _, h := range holders {
					h.Settle(env.SettleAll(h.Claim(len(ids)), func(c core.Claim) core.Settlement {
						k := movingNumber(c.ID)
						s := env.Failed(c, "boom", time.Hour+time.Duration(k%4)*time.Second)
						s.PutBack.RetryCount = k % 3
						return s
					})...)
				}
			}, func(id string) {
				_, err := e.Store.Delete(e.Ctx, ports.JobStep{
					Shard: core.Shard{Queue: queue, Index: core.ShardOf(id, 3)},
					IDs:   []string{id},
				})
				e.Must(err, "Delete")
			}}.check(e, fmt.Sprintf("jobs in order %v", order), queue, descending)
		}
	}
}

func pageClaimsThatStay(e *env.Env) {
	for _, descending := range []bool{false, true} {
		queue := fmt.Sprintf("wide-%t", descending)
		holders := wideShards(e, queue)

		movingList{e.ClaimedPages, func(ids ...string) {
			for some := range slices.Chunk(ids, 8) { // claimed at the same time
				for _, id := range some {
					e.PushTo(queue, env.EntryAt(id, "p", 1, 7))
				}
				for _, h := range holders {
					h.Claim(len(some))
				}
				e.Clock.Advance(time.Millisecond)
			}
		}, func(id string) {
			if found := e.FindIn(queue, id); found.Claim != nil {
				holders[found.Shard.Index].Settle(env.Done(found.Claim.Claim))
			}
		}}.check(e, "claimed jobs", queue, descending)
	}
}

func pageLettersThatStay(e *env.Env) {
	for _, byID := range []bool{false, true} {
		for _, descending := range []bool{false, true} {
			queue := fmt.Sprintf("wide-%t-%t", byID, descending)
			wideShards(e, queue)

			movingList{e.MorguePages(byID), func(ids ...string) {
				for some := range slices.Chunk(ids, 8) { // buried at the same time
					for _, id := range some {
						e.PushTo(queue, env.EntryAt(id, "p", 1, 7))
					}
					for _, s := range core.Shards(queue, 3) {
						_, err := e.Store.Bury(e.Ctx, ports.JobStep{Shard: s, IDs: some})
						e.Must(err, "Bury")
					}
					e.Clock.Advance(time.Millisecond)
				}
			}, func(id string) {
				s := core.Shard{Queue: queue, Index: core.ShardOf(id, 3)}
				_, err := e.Store.Purge(e.Ctx, ports.DeadLetterStep{
					Shard:       s,
					DeadLetters: []ports.DeadLetterRef{env.Whole(id)},
				})
				e.Must(err, "Purge")
			}}.check(e, fmt.Sprintf("dead letters, by id %t", byID), queue, descending)
		}
	}
}
