package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleOnce = "Inspector: an entry that does not change meanwhile appears exactly once"

func pageOtherCases() []namedCase {
	return []namedCase{
		{"claimed jobs and dead letters begin at a value, both ways", "PageRequest: the list begins at the value From, inclusive, in its direction", pageFromOthers},
		{"a prefix limits each list by id, after any cursor", "PageRequest: Prefix limits a list by id to the ids that begin with it", pagePrefixOthers},
		{"jobs that stay are listed once while others come and go", ruleOnce, pageJobsThatStay},
		{"claimed jobs that stay are listed once while others come and go", ruleOnce, pageClaimsThatStay},
		{"dead letters that stay are listed once while others come and go", ruleOnce, pageLettersThatStay},
	}
}

// wideShards declares a queue with three shards and an index, and returns a holder for each shard.
func wideShards(e *env, queue string) (holders []*holder) {
	e.tb.Helper()
	e.declareWith(ports.DeclareRequest{Queue: queue, Shards: 3, IndexIDs: true})
	for _, s := range core.Shards(queue, 3) {
		holders = append(holders, e.acquireBy(e.acquireRequest(s, "n1")))
	}
	return holders
}

func pageFromOthers(e *env) {
	holders := wideShards(e, "wide")
	var at []int64
	for _, ids := range [][]string{{"f"}, {"a", "c", "b", "d"}, {"e"}} { // some at the same time, in several shards
		for _, id := range ids {
			e.pushTo("wide", entryAt(id, "p", 1, 7))
		}
		for _, h := range holders {
			h.claim(9)
		}
		at = append(at, int64(e.now()))
		e.clock.Advance(time.Second)
	}
	lists := func(what string, pages pager) {
		from := func(key int64, descending bool) []string {
			return allPages(ports.PageRequest{Queue: "wide", From: &ports.Cursor{Key: key, ID: "c"}, Descending: descending, Limit: 2}, pages, 6)
		}
		e.same(what+" from a time", from(at[1], false), []string{"a", "b", "c", "d", "e"})
		e.same(what+" down from it", from(at[1], true), []string{"d", "c", "b", "a", "f"})
		e.same(what+" from behind it", from(at[1]+1, false), []string{"e"})
		e.same(what+" down from in front of it", from(at[1]-1, true), []string{"f"})
		e.same(what+" from the first instant", from(0, false), []string{"f", "a", "b", "c", "d", "e"})
		e.same(what+" down from the last instant", from(int64(core.MaxInstant), true), []string{"e", "d", "c", "b", "a", "f"})
	}
	lists("claimed jobs", e.claimedPages)
	for i, ids := range [][]string{{"f"}, {"a", "c", "b", "d"}, {"e"}} {
		for _, id := range ids {
			h := holders[core.ShardOf(id, 3)]
			h.settle(buried(e.claimedIn("wide", id), "no use"))
		}
		at[i] = int64(e.now())
		e.clock.Advance(time.Second)
	}
	lists("dead letters", e.morguePages(false))
	byID := func(id string, descending bool) []string {
		return allPages(ports.PageRequest{Queue: "wide", From: &ports.Cursor{Key: 99, ID: id}, Descending: descending, Limit: 2}, e.morguePages(true), 6)
	}
	e.same("dead letters by id from one", byID("d", false), []string{"d", "e", "f"})
	e.same("dead letters by id down from one", byID("c", true), []string{"c", "b", "a"})
	e.same("dead letters by id down from one that is not there", byID("cc", true), []string{"c", "b", "a"})
}

// claimedIn returns the claim of an id.
func (e *env) claimedIn(queue, id string) core.Claim {
	e.tb.Helper()
	found := e.findIn(queue, id)
	if found.Claim == nil {
		e.errorf("%q is not claimed", id)
		return core.Claim{}
	}
	return found.Claim.Claim
}

func pagePrefixOthers(e *env) {
	holders := wideShards(e, "wide")
	ids := []string{"a", "ab", "ab-1", "ab-2", "ab:", "abé", "ab\U0010FFFF", "ac", "b", "%b", "_b", "[b", "(b"}
	for _, id := range ids {
		e.pushTo("wide", entryAt(id, "p", 1, 7))
	}
	var fresh, retrying []string
	for _, h := range holders {
		for i, c := range h.claim(len(ids)) {
			if i%2 == 0 {
				h.settle(failed(c, "boom", time.Hour))
				retrying = append(retrying, c.ID)
				continue
			}
			h.settle(done(c))
			e.pushTo("wide", entryAt(c.ID, "p", 1, 7))
			fresh = append(fresh, c.ID)
		}
	}
	freshPages := func(r ports.PageRequest) listed {
		page, err := e.store.Jobs(e.ctx, ports.JobsRequest{PageRequest: r, SortBy: ports.ByID, Fresh: true})
		e.must(err, "Jobs")
		l := listed{next: page.Next}
		for _, j := range page.Jobs {
			l.ids = append(l.ids, j.ID)
		}
		return l
	}
	for _, list := range []struct {
		what  string
		pages pager
		ids   []string
	}{{"retries", e.jobPages(ports.RetryingByID), retrying}, {"fresh jobs", freshPages, fresh}, {"jobs", e.jobPages(ports.ByID), ids}} {
		for _, prefix := range []string{"ab", "a", "%", "_", "[", "(", "ab\U0010FFFF"} {
			want := startingWith(list.ids, prefix)
			e.pagesOf(fmt.Sprintf("%s with %q", list.what, prefix), ports.PageRequest{Queue: "wide", Prefix: prefix}, list.pages, want, 1, 3, 100)
			for _, after := range []string{"Z", "ab-1", "ab-10", "ab\U0010FFFF", "z"} {
				up := slices.DeleteFunc(slices.Clone(want), func(id string) bool { return id <= after })
				down := slices.DeleteFunc(slices.Clone(want), func(id string) bool { return id >= after })
				slices.Reverse(down)
				r := ports.PageRequest{Queue: "wide", Prefix: prefix, After: ports.Cursor{ID: after}, Limit: 2}
				e.same(fmt.Sprintf("%s with %q behind %q", list.what, prefix, after), allPages(r, list.pages, len(ids)), up)
				r.Descending = true
				e.same(fmt.Sprintf("%s with %q down behind %q", list.what, prefix, after), allPages(r, list.pages, len(ids)), down)
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
	pages  pager
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
func (m movingList) check(e *env, what, queue string, descending bool) {
	e.tb.Helper()
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
	want := stays(allPages(r, m.pages, movingEntries))
	e.same(what+": how many stay", len(want), movingEntries/2)
	var got []string
	for n := range 20 * movingEntries {
		page := m.pages(r)
		got = append(got, stays(page.ids)...)
		if r.After = page.next; page.next == (ports.Cursor{}) {
			break
		}
		gone := page.next.ID
		if !strings.HasSuffix(gone, "goes") {
			gone = fmt.Sprintf("%02d-goes", 2*n%movingEntries+1)
		}
		m.remove(gone)
		if n < 6 {
			m.add(fmt.Sprintf("%02d-new-%d", 7*n%movingEntries, n))
		}
	}
	e.same(fmt.Sprintf("%s, descending %t: those that stay", what, descending), got, want)
}

func pageJobsThatStay(e *env) {
	for order := ports.ByTime; order <= ports.RetryingByCount; order++ {
		for _, descending := range []bool{false, true} {
			queue := fmt.Sprintf("wide-%v-%t", order, descending)
			holders := wideShards(e, queue)
			movingList{e.jobPages(order), func(ids ...string) {
				for _, id := range ids {
					e.pushTo(queue, entryAt(id, "p", 1, 7))
				}
				for _, h := range holders {
					h.settle(settleAll(h.claim(len(ids)), func(c core.Claim) core.Settlement {
						k := movingNumber(c.ID)
						s := failed(c, "boom", time.Hour+time.Duration(k%4)*time.Second)
						s.PutBack.RetryCount = k % 3
						return s
					})...)
				}
			}, func(id string) {
				_, err := e.store.Delete(e.ctx, ports.JobStep{Shard: core.Shard{Queue: queue, Index: core.ShardOf(id, 3)}, IDs: []string{id}})
				e.must(err, "Delete")
			}}.check(e, fmt.Sprintf("jobs in order %v", order), queue, descending)
		}
	}
}

func pageClaimsThatStay(e *env) {
	for _, descending := range []bool{false, true} {
		queue := fmt.Sprintf("wide-%t", descending)
		holders := wideShards(e, queue)
		movingList{e.claimedPages, func(ids ...string) {
			for some := range slices.Chunk(ids, 8) { // claimed at the same time
				for _, id := range some {
					e.pushTo(queue, entryAt(id, "p", 1, 7))
				}
				for _, h := range holders {
					h.claim(len(some))
				}
				e.clock.Advance(time.Millisecond)
			}
		}, func(id string) {
			if found := e.findIn(queue, id); found.Claim != nil {
				holders[found.Shard.Index].settle(done(found.Claim.Claim))
			}
		}}.check(e, "claimed jobs", queue, descending)
	}
}

func pageLettersThatStay(e *env) {
	for _, byID := range []bool{false, true} {
		for _, descending := range []bool{false, true} {
			queue := fmt.Sprintf("wide-%t-%t", byID, descending)
			wideShards(e, queue)
			movingList{e.morguePages(byID), func(ids ...string) {
				for some := range slices.Chunk(ids, 8) { // buried at the same time
					for _, id := range some {
						e.pushTo(queue, entryAt(id, "p", 1, 7))
					}
					for _, s := range core.Shards(queue, 3) {
						_, err := e.store.Bury(e.ctx, ports.JobStep{Shard: s, IDs: some})
						e.must(err, "Bury")
					}
					e.clock.Advance(time.Millisecond)
				}
			}, func(id string) {
				s := core.Shard{Queue: queue, Index: core.ShardOf(id, 3)}
				_, err := e.store.Purge(e.ctx, ports.DeadLetterStep{Shard: s, DeadLetters: []ports.DeadLetterRef{whole(id)}})
				e.must(err, "Purge")
			}}.check(e, fmt.Sprintf("dead letters, by id %t", byID), queue, descending)
		}
	}
}
