package env

import (
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// AllPayloads is more payloads than any job of the suite has.
const AllPayloads = 1 << 20

// Find finds an id of orders, with all its payloads.
func (e *Env) Find(id string) ports.Found {
	e.TB.Helper()
	return e.FindIn(Orders, id)
}

// FindIn finds an id of a queue, and follows the cursors of its payloads to the last.
func (e *Env) FindIn(queue, id string) ports.Found {
	e.TB.Helper()

	found := e.FindSome(ports.FindRequest{Queue: queue, ID: id, Payloads: core.MaxTurnPayloads})
	for len(found.Next) > 0 {
		at := found.Next[0]
		next := e.FindSome(ports.FindRequest{Queue: queue, ID: id, Payloads: core.MaxTurnPayloads, After: &at})
		if len(*PayloadsIn(&next, at.Place)) == 0 {
			break // the payloads have moved to another place
		}

		all := PayloadsIn(&found, at.Place)
		*all = append(*all, *PayloadsIn(&next, at.Place)...)
		found.Next = append(next.Next, found.Next[1:]...)
	}
	return found
}

// FindSome makes one call of Find, and compares it with what Pending returns of the id.
func (e *Env) FindSome(r ports.FindRequest) ports.Found {
	e.TB.Helper()
	found, err := e.Store.Find(e.Ctx, r)
	e.Must(err, "Find")
	e.Same("what is pending of "+r.ID, e.Pending(r.Queue, r.ID)[0], found.Pending())
	return found
}

// Pending returns what is pending of ids of a queue.
func (e *Env) Pending(queue string, ids ...string) []ports.Pending {
	e.TB.Helper()
	reply, err := e.Store.Pending(e.Ctx, ports.PendingRequest{Queue: queue, IDs: ids})
	e.Must(err, "Pending")
	e.Same("the unreached shards of Pending", reply.Unreached, nil)
	return reply.IDs
}

// PayloadsIn returns the payloads that were found in a place.
func PayloadsIn(found *ports.Found, place ports.Place) *[]core.Payload {
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

// FoundPages requests the payloads of a place, n at a time, until Find reports no more. It checks
// that each page has the total number of payloads, and no payload of another place.
func (e *Env) FoundPages(id string, place ports.Place, n, count int) (pages [][]core.Payload) {
	e.TB.Helper()

	after := ports.PayloadCursor{Place: place}
	for range 2 + 2*count {
		found := e.FindSome(ports.FindRequest{Queue: Orders, ID: id, Payloads: n, After: &after})
		e.Same("the count of "+place.String(), CountIn(&found, place), count)

		for _, other := range []ports.Place{ports.PlaceQueued, ports.PlaceClaimed, ports.PlaceDead} {
			if payloads := *PayloadsIn(&found, other); other != place && len(payloads) > 0 {
				e.Errorf("a page of %v has %d payloads of %v", place, len(payloads), other)
			}
		}

		pages = append(pages, *PayloadsIn(&found, place))
		if len(found.Next) == 0 {
			return pages
		}

		if len(found.Next) != 1 || found.Next[0].Place != place {
			e.Errorf("Next of a page of %v is %+v, want one cursor of it", place, found.Next)
			return pages
		}

		after = found.Next[0]
	}

	e.Errorf("the pages of %v don't end", place)
	return pages
}

// CountIn returns the number of payloads that the id has in a place.
func CountIn(found *ports.Found, place ports.Place) int {
	switch {
	case place == ports.PlaceQueued && found.Queued != nil:
		return found.Queued.Count
	case place == ports.PlaceClaimed && found.Claim != nil:
		return found.Claim.Count
	case place == ports.PlaceDead && found.DeadLetter != nil:
		return found.DeadLetter.Count
	}
	return 0
}

// Queued returns the queued job of an id, or an empty one.
func (e *Env) Queued(id string) core.Job {
	e.TB.Helper()
	if j := e.Find(id).Queued; j != nil {
		return j.Job
	}
	return core.Job{}
}

// DeadLetter returns the dead letter of an id, or an empty one.
func (e *Env) DeadLetter(id string) core.DeadLetter {
	e.TB.Helper()
	if d := e.Find(id).DeadLetter; d != nil {
		return d.DeadLetter
	}
	return core.DeadLetter{}
}

// Claimed returns the claimed job of an id, or an empty one.
func (e *Env) Claimed(id string) core.Claim {
	e.TB.Helper()
	if c := e.Find(id).Claim; c != nil {
		return c.Claim
	}
	return core.Claim{}
}

// Jobs returns all queued jobs of orders, by time.
func (e *Env) Jobs() []core.Job {
	e.TB.Helper()
	return e.JobsOf(Orders)
}

// JobsOf returns all queued jobs of a queue, by time.
func (e *Env) JobsOf(queue string) []core.Job {
	e.TB.Helper()
	page, err := e.Store.Jobs(e.Ctx, ports.JobsRequest{PageRequest: WholePage(queue)})
	e.Must(err, "Jobs")
	out := make([]core.Job, len(page.Jobs))
	for i := range page.Jobs {
		out[i] = page.Jobs[i].Job
	}
	return out
}

// WholePage requests a page with all entries of a list and all their payloads.
func WholePage(queue string) ports.PageRequest {
	return ports.PageRequest{Queue: queue, Limit: ports.MaxPage, Payloads: AllPayloads}
}

// QueuedIDs returns the ids of the queued jobs of orders, by time.
func (e *Env) QueuedIDs() []string {
	e.TB.Helper()
	jobs := e.Jobs()
	out := make([]string, len(jobs))
	for i := range jobs {
		out[i] = jobs[i].ID
	}
	return out
}

// Stats returns the statistics of a queue.
func (e *Env) Stats(queue string) ports.QueueStats {
	e.TB.Helper()
	all, err := e.Store.Stats(e.Ctx, ports.StatsRequest{Queues: []string{queue}})
	e.Must(err, "Stats")
	if len(all) != 1 {
		e.TB.Fatalf("Stats of one queue returned %d, want 1\nthe rule: %s", len(all), e.Rule)
	}
	return all[0]
}

// Counts returns the counts of orders.
func (e *Env) Counts() ports.Counts {
	e.TB.Helper()
	return e.Stats(Orders).Counts
}

// Snapshot has everything of a queue that the lists of package ports show.
type Snapshot struct {
	Stats  ports.QueueStats
	Jobs   []core.Job
	Claims []ports.ClaimView
	Dead   []ports.DeadLetterView
	Groups []core.Group
	Heads  []core.Head
}

// Snapshot reads everything that a queue shows.
func (e *Env) Snapshot(queue string) Snapshot {
	e.TB.Helper()

	claims, err := e.Store.Claimed(e.Ctx, WholePage(queue))
	e.Must(err, "Claimed")
	dead, err := e.Store.Morgue(e.Ctx, ports.MorgueRequest{PageRequest: WholePage(queue)})
	e.Must(err, "Morgue")

	return Snapshot{
		Stats:  e.Stats(queue),
		Jobs:   e.JobsOf(queue),
		Claims: claims.Claims,
		Dead:   dead.DeadLetters,
		Groups: e.Groups(ports.GroupsRequest{Queue: queue, Limit: ports.MaxPage}).Groups,
		Heads:  e.Heads(core.Shards(queue, e.Declared[queue].Shards)...),
	}
}

// Heads returns the heads of the shards, as Plain does.
func (e *Env) Heads(shards ...core.Shard) []core.Head {
	e.TB.Helper()
	reply, err := e.Store.Heads(e.Ctx, shards)
	e.Must(err, "Heads")
	out := make([]core.Head, len(reply.Heads))
	for i, h := range reply.Heads {
		out[i] = Plain(h)
	}
	return out
}

// Head returns the head of the shard of orders.
func (e *Env) Head() core.Head {
	e.TB.Helper()
	return e.Heads(e.Shard)[0]
}

// Plain returns the zero Head for a head that is not OK, and any other head unchanged.
func Plain(h core.Head) core.Head {
	if !h.OK {
		return core.Head{}
	}
	return h
}

// Due returns the head of a shard whose next job is due at an instant.
func Due(at core.Instant) core.Head { return core.Head{Due: at, OK: true} }

// IDsOf returns n ids, in order, of one shard of a queue with the given number of shards.
func IDsOf(s core.Shard, shards, n int) []string {
	var out []string
	for i := 0; len(out) < n; i++ {
		if id := fmt.Sprintf("%06d", i); core.ShardOf(id, shards) == s.Index {
			out = append(out, id)
		}
	}
	return out
}

// History checks the history of a queue.
func (e *Env) History(r ports.HistoryRequest, want ...ports.MinuteStats) {
	e.TB.Helper()
	got, err := e.Store.History(e.Ctx, r)
	e.Must(err, "History")
	e.Same("the history", got, ports.HistoryReply{Minutes: want})
}

// Listed is a page of any list: the ids, and the cursor of the next page.
type Listed struct {
	IDs  []string
	Next ports.Cursor
}

// Pager returns one page of a list.
type Pager func(r ports.PageRequest) Listed

// listedOf returns a page of views.
func listedOf[V any](views []V, next ports.Cursor, id func(*V) string) Listed {
	l := Listed{Next: next}
	for i := range views {
		l.IDs = append(l.IDs, id(&views[i]))
	}
	return l
}

// JobPages returns a pager of the queued jobs.
func (e *Env) JobPages(order ports.SortBy) Pager {
	return func(r ports.PageRequest) Listed {
		page, err := e.Store.Jobs(e.Ctx, ports.JobsRequest{PageRequest: r, SortBy: order})
		e.Must(err, "Jobs")
		return listedOf(page.Jobs, page.Next, func(j *ports.JobView) string { return j.ID })
	}
}

// ClaimedPages is the pager of the claimed jobs.
func (e *Env) ClaimedPages(r ports.PageRequest) Listed {
	page, err := e.Store.Claimed(e.Ctx, r)
	e.Must(err, "Claimed")
	return listedOf(page.Claims, page.Next, func(c *ports.ClaimView) string { return c.ID })
}

// MorguePages returns a pager of the dead letters.
func (e *Env) MorguePages(byID bool) Pager { return e.morgueBy(ports.MorgueRequest{ByID: byID}) }

// MorgueOf lists the dead letters of a group.
func (e *Env) MorgueOf(group string) Pager { return e.morgueBy(ports.MorgueRequest{Group: group}) }

// morgueBy returns a pager of dead letters.
func (e *Env) morgueBy(m ports.MorgueRequest) Pager {
	return func(r ports.PageRequest) Listed {
		m.PageRequest = r
		page, err := e.Store.Morgue(e.Ctx, m)
		e.Must(err, "Morgue")
		return listedOf(page.DeadLetters, page.Next, func(d *ports.DeadLetterView) string { return d.ID })
	}
}

// Lists checks a list in pages of every size, up to one page with the whole list, in both
// directions.
func (e *Env) Lists(what, queue string, pages Pager, want []string) {
	e.TB.Helper()
	for _, descending := range []bool{false, true} {
		for limit := 1; limit <= len(want)+1; limit++ {
			r := ports.PageRequest{Queue: queue, Descending: descending, Limit: limit}
			e.Same(fmt.Sprintf("%s, descending %t, %d a page", what, descending, limit),
				AllPages(r, pages, len(want)), want)
		}
		want = slices.Clone(want)
		slices.Reverse(want)
	}
}

// AllPages follows the cursors to the last page, which has no cursor. Pages may be short, and even
// empty, so it gives up only after many more pages than entries.
func AllPages(r ports.PageRequest, pages Pager, entries int) []string {
	var got []string
	for range 20 + 20*entries {
		page := pages(r)
		if len(page.IDs) > r.Limit {
			return append(got, "a page that is too long")
		}
		got = append(got, page.IDs...)
		if page.Next == (ports.Cursor{}) {
			return got
		}
		r.After = page.Next
	}
	return append(got, "too many pages")
}

// CountsMatch compares the counts of a queue with its lists, and with the given numbers of
// processed and failed jobs. No list may have more than ports.MaxPage entries, and no payload of
// the queue may be superseded or quarantined.
func (e *Env) CountsMatch(queue string, processed, failures int64) {
	e.TB.Helper()

	want := ports.Counts{Processed: processed, Failed: failures}
	for _, j := range e.JobsOf(queue) {
		if j.RetryCount < 0 {
			want.Fresh++
		} else {
			want.Retrying++
		}
		if j.Held() {
			want.Held++
		}
		want.Oldest = want.Oldest.Earlier(Due(j.WaitsFrom()))
	}

	claimed, err := e.Store.Claimed(e.Ctx, WholePage(queue))
	e.Must(err, "Claimed")
	want.Claimed = int64(len(claimed.Claims))
	dead, err := e.Store.Morgue(e.Ctx, ports.MorgueRequest{PageRequest: WholePage(queue)})
	e.Must(err, "Morgue")
	want.Dead = int64(len(dead.DeadLetters))
	e.groupsMatch(queue, dead.DeadLetters)

	stats := e.Stats(queue)
	got, sum := stats.Counts, ports.Counts{}
	for _, s := range stats.Shards {
		sum = ports.SumCounts(sum, s.Counts)
	}
	got.Oldest, sum.Oldest = Plain(got.Oldest), Plain(sum.Oldest)

	e.Same("the counts of the queue, beside its lists", got, want)
	e.Same("the sums of the counts of its shards", sum, want)
}

// groupsMatch compares the groups of a queue with its dead letters.
func (e *Env) groupsMatch(queue string, dead []ports.DeadLetterView) {
	e.TB.Helper()
	want, got := map[string]int64{}, map[string]int64{}
	for i := range dead {
		want[dead[i].Group]++
	}
	for _, g := range e.Groups(ports.GroupsRequest{Queue: queue, Limit: ports.MaxPage}).Groups {
		got[g.Name] = g.Count
	}
	e.Same("the groups of the queue, beside its dead letters", got, want)
}
