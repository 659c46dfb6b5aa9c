package conformance

import (
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// allPayloads is more payloads than any job of the suite has.
const allPayloads = 1 << 20

// find finds an id of orders, with all its payloads.
func (e *env) find(id string) ports.Found {
	e.tb.Helper()
	return e.findIn(orders, id)
}

// findIn finds an id of a queue, and follows the cursors of its payloads to the last.
func (e *env) findIn(queue, id string) ports.Found {
	e.tb.Helper()
	found := e.findSome(ports.FindRequest{Queue: queue, ID: id, Payloads: core.MaxTurnPayloads})
	for len(found.Next) > 0 {
		at := found.Next[0]
		next := e.findSome(ports.FindRequest{Queue: queue, ID: id, Payloads: core.MaxTurnPayloads, After: &at})
		if len(*payloadsIn(&next, at.Place)) == 0 {
			break // the payloads have moved to another place
		}
		all := payloadsIn(&found, at.Place)
		*all = append(*all, *payloadsIn(&next, at.Place)...)
		found.Next = append(next.Next, found.Next[1:]...)
	}
	return found
}

func (e *env) findSome(r ports.FindRequest) ports.Found {
	e.tb.Helper()
	found, err := e.store.Find(e.ctx, r)
	e.must(err, "Find")
	return found
}

// payloadsIn returns the payloads that were found in a place.
func payloadsIn(found *ports.Found, place ports.Place) *[]core.Payload {
	switch {
	case place == ports.PlaceQueued && found.Queued != nil:
		return &found.Queued.Payloads
	case place == ports.PlaceClaimed && found.Claim != nil:
		return &found.Claim.Payloads
	case place == ports.PlaceDead && found.DeadLetter != nil:
		return &found.DeadLetter.Payloads
	}
	return new([]core.Payload)
}

// queued returns the queued job of an id, or an empty one.
func (e *env) queued(id string) core.Job {
	e.tb.Helper()
	if j := e.find(id).Queued; j != nil {
		return j.Job
	}
	return core.Job{}
}

// deadLetter returns the dead letter of an id, or an empty one.
func (e *env) deadLetter(id string) core.DeadLetter {
	e.tb.Helper()
	if d := e.find(id).DeadLetter; d != nil {
		return d.DeadLetter
	}
	return core.DeadLetter{}
}

// claimed returns the claimed job of an id, or an empty one.
func (e *env) claimed(id string) core.Claim {
	e.tb.Helper()
	if c := e.find(id).Claim; c != nil {
		return c.Claim
	}
	return core.Claim{}
}

// jobs returns all queued jobs of orders, by time.
func (e *env) jobs() []core.Job {
	e.tb.Helper()
	return e.jobsOf(orders)
}

func (e *env) jobsOf(queue string) []core.Job {
	e.tb.Helper()
	page, err := e.store.Jobs(e.ctx, ports.JobsRequest{PageRequest: wholePage(queue)})
	e.must(err, "Jobs")
	out := make([]core.Job, len(page.Jobs))
	for i := range page.Jobs {
		out[i] = page.Jobs[i].Job
	}
	return out
}

func wholePage(queue string) ports.PageRequest {
	return ports.PageRequest{Queue: queue, Limit: ports.MaxPage, Payloads: allPayloads}
}

// queuedIDs returns the ids of the queued jobs of orders, by time.
func (e *env) queuedIDs() []string {
	e.tb.Helper()
	jobs := e.jobs()
	out := make([]string, len(jobs))
	for i := range jobs {
		out[i] = jobs[i].ID
	}
	return out
}

func (e *env) stats(queue string) ports.QueueStats {
	e.tb.Helper()
	all, err := e.store.Stats(e.ctx, ports.StatsRequest{Queues: []string{queue}})
	e.must(err, "Stats")
	if len(all) != 1 {
		e.tb.Fatalf("Stats of one queue returned %d, want 1\nthe rule: %s", len(all), e.rule)
	}
	return all[0]
}

func (e *env) counts() ports.Counts {
	e.tb.Helper()
	return e.stats(orders).Counts
}

// snapshot has everything of a queue that the lists of package ports show.
type snapshot struct {
	Stats  ports.QueueStats
	Jobs   []core.Job
	Claims []ports.ClaimView
	Dead   []ports.DeadLetterView
	Groups []core.Group
	Heads  []core.Head
}

func (e *env) snapshot(queue string) snapshot {
	e.tb.Helper()
	claims, err := e.store.Claimed(e.ctx, wholePage(queue))
	e.must(err, "Claimed")
	dead, err := e.store.Morgue(e.ctx, ports.MorgueRequest{PageRequest: wholePage(queue)})
	e.must(err, "Morgue")
	return snapshot{
		Stats: e.stats(queue), Jobs: e.jobsOf(queue), Claims: claims.Claims, Dead: dead.DeadLetters,
		Groups: e.groups(ports.GroupsRequest{Queue: queue, Limit: ports.MaxPage}).Groups,
		Heads:  e.heads(core.Shards(queue, e.declared[queue].Shards)...),
	}
}

// heads returns the heads of the shards, as plain does.
func (e *env) heads(shards ...core.Shard) []core.Head {
	e.tb.Helper()
	reply, err := e.store.Heads(e.ctx, shards)
	e.must(err, "Heads")
	out := make([]core.Head, len(reply.Heads))
	for i, h := range reply.Heads {
		out[i] = plain(h)
	}
	return out
}

// head returns the head of the shard of orders.
func (e *env) head() core.Head {
	e.tb.Helper()
	return e.heads(e.shard)[0]
}

// plain returns the zero Head for a head that is not OK, and any other head unchanged.
func plain(h core.Head) core.Head {
	if !h.OK {
		return core.Head{}
	}
	return h
}

func due(at core.Instant) core.Head { return core.Head{Due: at, OK: true} }

// idsOf returns n ids, in order, of one shard of a queue with the given number of shards.
func idsOf(s core.Shard, shards, n int) []string {
	var out []string
	for i := 0; len(out) < n; i++ {
		if id := fmt.Sprintf("%06d", i); core.ShardOf(id, shards) == s.Index {
			out = append(out, id)
		}
	}
	return out
}

// history checks the history of a queue.
func (e *env) history(r ports.HistoryRequest, want ...ports.MinuteStats) {
	e.tb.Helper()
	got, err := e.store.History(e.ctx, r)
	e.must(err, "History")
	e.same("the history", got, ports.HistoryReply{Minutes: want})
}

// listed is a page of any list: the ids, and the cursor of the next page.
type listed struct {
	ids  []string
	next ports.Cursor
}

// pager returns one page of a list.
type pager func(r ports.PageRequest) listed

// listedOf returns a page of views.
func listedOf[V any](views []V, next ports.Cursor, id func(*V) string) listed {
	l := listed{next: next}
	for i := range views {
		l.ids = append(l.ids, id(&views[i]))
	}
	return l
}

func (e *env) jobPages(order ports.SortBy) pager {
	return func(r ports.PageRequest) listed {
		page, err := e.store.Jobs(e.ctx, ports.JobsRequest{PageRequest: r, SortBy: order})
		e.must(err, "Jobs")
		return listedOf(page.Jobs, page.Next, func(j *ports.JobView) string { return j.ID })
	}
}

func (e *env) claimedPages(r ports.PageRequest) listed {
	page, err := e.store.Claimed(e.ctx, r)
	e.must(err, "Claimed")
	return listedOf(page.Claims, page.Next, func(c *ports.ClaimView) string { return c.ID })
}

func (e *env) morguePages(byID bool) pager { return e.morgueBy(ports.MorgueRequest{ByID: byID}) }

// morgueOf lists the dead letters of a group.
func (e *env) morgueOf(group string) pager { return e.morgueBy(ports.MorgueRequest{Group: group}) }

func (e *env) morgueBy(m ports.MorgueRequest) pager {
	return func(r ports.PageRequest) listed {
		m.PageRequest = r
		page, err := e.store.Morgue(e.ctx, m)
		e.must(err, "Morgue")
		return listedOf(page.DeadLetters, page.Next, func(d *ports.DeadLetterView) string { return d.ID })
	}
}

// lists checks a list in pages of every size, up to one page with the whole list, in both
// directions.
func (e *env) lists(what, queue string, pages pager, want []string) {
	e.tb.Helper()
	for _, descending := range []bool{false, true} {
		for limit := 1; limit <= len(want)+1; limit++ {
			r := ports.PageRequest{Queue: queue, Descending: descending, Limit: limit}
			e.same(fmt.Sprintf("%s, descending %t, %d a page", what, descending, limit), allPages(r, pages, len(want)), want)
		}
		want = slices.Clone(want)
		slices.Reverse(want)
	}
}

// allPages follows the cursors to the last page, which has no cursor. Pages may be short, and even
// empty, so it gives up only after many more pages than entries.
func allPages(r ports.PageRequest, pages pager, entries int) []string {
	var got []string
	for range 20 + 20*entries {
		page := pages(r)
		if len(page.ids) > r.Limit {
			return append(got, "a page that is too long")
		}
		got = append(got, page.ids...)
		if page.next == (ports.Cursor{}) {
			return got
		}
		r.After = page.next
	}
	return append(got, "too many pages")
}

// countsMatch compares the counts of a queue with its lists, and with the given numbers of
// processed and failed jobs. No list may have more than ports.MaxPage entries, and no payload of
// the queue may be superseded or quarantined.
func (e *env) countsMatch(queue string, processed, failures int64) {
	e.tb.Helper()
	want := ports.Counts{Processed: processed, Failed: failures}
	for _, j := range e.jobsOf(queue) {
		if j.RetryCount < 0 {
			want.Fresh++
		} else {
			want.Retrying++
		}
		if j.Held() {
			want.Held++
		}
		want.Oldest = want.Oldest.Earlier(due(j.WaitsFrom()))
	}
	claimed, err := e.store.Claimed(e.ctx, wholePage(queue))
	e.must(err, "Claimed")
	want.Claimed = int64(len(claimed.Claims))
	dead, err := e.store.Morgue(e.ctx, ports.MorgueRequest{PageRequest: wholePage(queue)})
	e.must(err, "Morgue")
	want.Dead = int64(len(dead.DeadLetters))
	e.groupsMatch(queue, dead.DeadLetters)

	stats := e.stats(queue)
	got, sum := stats.Counts, ports.Counts{}
	for _, s := range stats.Shards {
		sum = ports.SumCounts(sum, s.Counts)
	}
	got.Oldest, sum.Oldest = plain(got.Oldest), plain(sum.Oldest)
	e.same("the counts of the queue, beside its lists", got, want)
	e.same("the sums of the counts of its shards", sum, want)
}

// groupsMatch compares the groups of a queue with its dead letters.
func (e *env) groupsMatch(queue string, dead []ports.DeadLetterView) {
	e.tb.Helper()
	want, got := map[string]int64{}, map[string]int64{}
	for i := range dead {
		want[dead[i].Group]++
	}
	for _, g := range e.groups(ports.GroupsRequest{Queue: queue, Limit: ports.MaxPage}).Groups {
		got[g.Name] = g.Count
	}
	e.same("the groups of the queue, beside its dead letters", got, want)
}
