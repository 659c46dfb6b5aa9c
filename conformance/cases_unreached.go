package conformance

import (
	"fmt"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleUnreached = "Heads: a store in several parts answers shard by shard: the shards of a part that it can't reach now are Unreached, and the heads of all others are returned"

func unreachedCases() []namedCase {
	return []namedCase{
		{"one shard can't be reached", ruleUnreached, unreachedOne},
		{"some shards can't be reached", ruleUnreached, unreachedSome},
		{"no shard can be reached", "Heads: another error is returned only if no shard was reached", unreachedAll},
		{"shards are reached again", "HeadsReply: Unreached are the shards that the store can't reach now", unreachedMended},
	}
}

// wideHeads declares a queue with three shards, and pushes a job to each. It returns the shards and
// their heads.
func (e *env) wideHeads() (shards []core.Shard, heads []core.Head) {
	e.declare("wide", 3)
	shards = core.Shards("wide", 3)
	for i, s := range shards {
		e.pushTo("wide", entryAt(idsOf(s, 3, 1)[0], "p", 1, core.Instant(100+i)))
		heads = append(heads, due(core.Instant(100+i)))
	}
	return shards, heads
}

// sever makes shards unreachable until mend is called.
func (e *env) sever(shards ...core.Shard) (mend func()) {
	var mends []func()
	for _, s := range shards {
		mends = append(mends, e.store.(Severer).Sever(s))
	}
	return func() {
		for _, mend := range mends {
			mend()
		}
	}
}

// headsAndUnreached checks the reply of Heads for the shards.
func (e *env) headsAndUnreached(what string, shards []core.Shard, heads []core.Head, unreached ...core.Shard) {
	e.tb.Helper()
	reply, err := e.store.Heads(e.ctx, shards)
	if !e.check(err, what+": Heads") {
		return
	}
	got := make([]core.Head, len(reply.Heads))
	for i, h := range reply.Heads {
		got[i] = plain(h)
	}
	e.same(what+": the heads", got, heads)
	e.same(what+": those unreached", reply.Unreached, unreached)
	e.same(what+": the store's clock", reply.Now, start)
}

func unreachedOne(e *env) {
	shards, heads := e.wideHeads()
	for i, s := range shards {
		mend := e.sever(s)
		want := append([]core.Head(nil), heads...)
		want[i] = core.Head{}
		e.headsAndUnreached("without "+s.String(), shards, want, s)
		mend()
	}
}

func unreachedSome(e *env) {
	w, heads := e.wideHeads()
	defer e.sever(w[2], w[0])()
	e.headsAndUnreached("in the order asked", []core.Shard{w[2], e.shard, w[1], w[0]},
		[]core.Head{{}, {}, heads[1], {}}, w[2], w[0])
	e.headsAndUnreached("of the others", []core.Shard{w[1], e.shard}, []core.Head{heads[1], {}})
}

func unreachedAll(e *env) {
	shards, _ := e.wideHeads()
	defer e.sever(shards...)()
	if reply, err := e.store.Heads(e.ctx, shards); err == nil {
		e.errorf("Heads of shards that can't be reached returned %+v and no error", reply)
	}
}

func unreachedMended(e *env) {
	shards, heads := e.wideHeads()
	mend := e.sever(shards[1])
	e.headsAndUnreached("while one is cut off", shards, []core.Head{heads[0], {}, heads[2]}, shards[1])
	mend()
	e.headsAndUnreached("afterwards", shards, heads)
}

const ruleUnreachedLists = "Inspector: a store in several parts answers for the parts that it reaches: the shards of a part that it can't reach now are Unreached, and the rest of the reply is as if they had not been asked for"

func unreachedListCases() []namedCase {
	return []namedCase{
		{"lists return the entries of the other shards", ruleUnreachedLists, unreachedLists},
		{"stats count the other shards", ruleUnreachedLists, unreachedStats},
		{"groups count the other shards", ruleUnreachedLists, unreachedGroups},
		{"quarantines name the shards that can't be reached", ruleUnreachedLists, unreachedQuarantines},
		{"a history names the shards that it lacks", ruleUnreachedHistory, unreachedHistory},
		{"lists and stats fail if no shard can be reached", "Inspector: an error only if it reached none of the shards", unreachedNone},
	}
}

// unreachedPager returns one page of a list, and the shards that could not be reached.
type unreachedPager func(r ports.PageRequest) (ids []string, next ports.Cursor, unreached []core.Shard, err error)

// unreachedPagers returns all lists of a queue, each with an entry of every shard.
func (e *env) unreachedPagers() map[string]unreachedPager {
	jobs := func(order ports.SortBy) unreachedPager {
		return func(r ports.PageRequest) (ids []string, next ports.Cursor, unreached []core.Shard, err error) {
			page, err := e.store.Jobs(e.ctx, ports.JobsRequest{PageRequest: r, SortBy: order})
			for _, v := range page.Jobs {
				ids = append(ids, v.ID)
			}
			return ids, page.Next, page.Unreached, err
		}
	}
	morgue := func(of ports.MorgueRequest) unreachedPager {
		return func(r ports.PageRequest) (ids []string, next ports.Cursor, unreached []core.Shard, err error) {
			page, err := e.store.Morgue(e.ctx, ports.MorgueRequest{PageRequest: r, ByID: of.ByID, Group: of.Group})
			for _, v := range page.DeadLetters {
				ids = append(ids, v.ID)
			}
			return ids, page.Next, page.Unreached, err
		}
	}
	return map[string]unreachedPager{
		"jobs by time": jobs(ports.ByTime), "jobs by id": jobs(ports.ByID), "retries by count": jobs(ports.RetryingByCount),
		"the morgue by time": morgue(ports.MorgueRequest{}), "the morgue by id": morgue(ports.MorgueRequest{ByID: true}),
		"a group of the morgue": morgue(ports.MorgueRequest{Group: core.OtherGroup}),
		"claimed jobs": func(r ports.PageRequest) (ids []string, next ports.Cursor, unreached []core.Shard, err error) {
			page, err := e.store.Claimed(e.ctx, r)
			for _, v := range page.Claims {
				ids = append(ids, v.ID)
			}
			return ids, page.Next, page.Unreached, err
		},
	}
}

// everywhere declares a queue with three shards. Each shard gets queued, failed, claimed and dead
// entries.
func everywhere(e *env) []core.Shard {
	e.tb.Helper()
	e.declareWith(ports.DeclareRequest{Queue: "wide", Shards: 3, IndexIDs: true})
	shards := core.Shards("wide", 3)
	for _, s := range shards {
		for k, id := range idsOf(s, 3, 8) {
			e.pushTo("wide", entryAt(id, "p", 1, core.Instant(100+k)))
		}
		h := e.acquireBy(e.acquireRequest(s, "n1"))
		c := h.claim(4)
		h.settle(failed(c[0], "boom", time.Hour), failed(c[1], "boom", time.Hour), buried(c[2], "no"), buried(c[3], "no"))
		h.claim(2)
	}
	return shards
}

func unreachedLists(e *env) {
	shards := everywhere(e)
	for what, list := range e.unreachedPagers() {
		for _, without := range shards {
			of := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == without.Index })
			whole := ports.PageRequest{Queue: "wide", Shards: of}
			want, _, _, err := list(whole)
			e.must(err, what)
			mend := e.sever(without)
			for limit := range 4 {
				var got []string
				r := ports.PageRequest{Queue: "wide", Limit: limit}
				for range len(want) + 2 {
					ids, next, unreached, err := list(r)
					if !e.check(err, fmt.Sprintf("%s without %v", what, without)) {
						break
					}
					e.same(what+": those unreached", unreached, []core.Shard{without})
					got = append(got, ids...)
					if r.After = next; next == (ports.Cursor{}) {
						break
					}
				}
				e.same(fmt.Sprintf("%s without %v, %d a page", what, without, limit), got, want)
			}
			ids, _, unreached, err := list(whole)
			e.check(err, what+" of the others alone")
			e.same(what+" of the others alone", ids, want)
			e.same(what+" of the others alone: those unreached", unreached, []core.Shard(nil))
			mend()
		}
	}
}

func unreachedStats(e *env) {
	shards := everywhere(e)
	whole := e.stats("wide")
	for _, without := range shards {
		mend := e.sever(without)
		got, err := e.store.Stats(e.ctx, ports.StatsRequest{Queues: []string{orders, "wide"}})
		if e.check(err, "Stats without "+without.String()) && len(got) == 2 {
			want := slices.DeleteFunc(slices.Clone(whole.Shards), func(s ports.ShardStats) bool { return s.Shard == without })
			var sum ports.Counts
			for _, s := range want {
				sum = ports.SumCounts(sum, s.Counts)
			}
			e.same("the shards reached", got[1].Shards, want)
			e.same("their sums", got[1].Counts, sum)
			e.same("those unreached", got[1].Unreached, []core.Shard{without})
			e.same("the queue", got[1].Queue, whole.Queue)
			e.same("those unreached of another queue", got[0].Unreached, []core.Shard(nil))
			e.same("how many shards of another queue", len(got[0].Shards), 1)
		}
		mend()
	}
	defer e.sever(shards...)()
	got, err := e.store.Stats(e.ctx, ports.StatsRequest{Queues: []string{"wide", orders}})
	if e.check(err, "Stats without a whole queue") && len(got) == 2 {
		e.same("the shards of that queue", len(got[0].Shards), 0)
		e.same("those unreached", got[0].Unreached, shards)
		e.same("how many shards of the other", len(got[1].Shards), 1)
	}
}

func unreachedGroups(e *env) {
	shards := everywhere(e)
	for _, without := range shards {
		of := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == without.Index })
		want := e.groups(ports.GroupsRequest{Queue: "wide", Shards: of})
		e.same("how many dead letters two shards have", want.Dead, int64(4))
		want.Unreached = []core.Shard{without}
		mend := e.sever(without)
		got, err := e.store.Groups(e.ctx, ports.GroupsRequest{Queue: "wide"})
		if e.check(err, "Groups without "+without.String()) {
			e.same("the groups without "+without.String(), got, want)
		}
		mend()
	}
	defer e.sever(shards...)()
	if got, err := e.store.Groups(e.ctx, ports.GroupsRequest{Queue: "wide"}); err == nil {
		e.errorf("Groups of shards that can't be reached returned %+v and no error", got)
	}
}

func unreachedQuarantines(e *env) {
	shards := everywhere(e)
	for _, without := range shards {
		mend := e.sever(without)
		got, err := e.store.QuarantinedShards(e.ctx, ports.QuarantinedShardsRequest{Queue: "wide"})
		if e.check(err, "QuarantinedShards without "+without.String()) {
			e.same("the quarantines without "+without.String(), got, ports.QuarantinedShards{Unreached: []core.Shard{without}})
		}
		mend()
	}
	defer e.sever(shards...)()
	if got, err := e.store.QuarantinedShards(e.ctx, ports.QuarantinedShardsRequest{Queue: "wide"}); err == nil {
		e.errorf("QuarantinedShards of shards that can't be reached returned %+v and no error", got)
	}
}

const ruleUnreachedHistory = "History: a store in several parts keeps a queue's counts with some of its shards, or with one; it returns the counts that it reaches, and names the other shards that have some; it fails only if it reaches no shard of the queue; HistoryReply: Unreached are the shards that it can't reach"

// unreachedHistory cuts off one shard after another. A store chooses the shards in which it keeps a
// history. If a shard with a part of the history can't be reached, the reply names it. Otherwise
// the history is complete.
func unreachedHistory(e *env) {
	e.declare("wide", 3)
	at := e.now().Minute()
	r := ports.HistoryRequest{Queue: "wide"}
	e.record("n1", ports.Record{Queue: "wide", Minute: at, Stats: *measured(1)}, ports.Record{Queue: "wide", Minute: at.Add(-3 * time.Hour), Stats: *measured(2)})
	e.record("n2", ports.Record{Queue: "wide", Minute: at, Stats: *measured(3)})
	whole, err := e.store.History(e.ctx, r)
	e.must(err, "History")
	e.same("what the complete history lacks", whole.Unreached, []core.Shard(nil))
	shards := core.Shards("wide", 3)
	for _, without := range shards {
		mend := e.sever(without)
		got, err := e.store.History(e.ctx, r)
		if e.check(err, "History without "+without.String()) {
			e.historyLacks(got, whole, without)
		}
		mend()
	}
	mend := e.sever(shards...)
	if got, err := e.store.History(e.ctx, r); err == nil {
		e.errorf("History of a queue whose shards can't be reached returned %+v and no error", got)
	}
	mend()
	e.history(r, whole.Minutes...)
}

// historyLacks checks that a history without a shard is complete, or reports that it lacks the part
// of that shard.
func (e *env) historyLacks(got, whole ports.HistoryReply, without core.Shard) {
	e.tb.Helper()
	if len(got.Unreached) == 0 {
		e.same("the history without "+without.String()+", which it does not report as unreached", got, whole)
		return
	}
	e.same("what the history lacks", got.Unreached, []core.Shard{without})
	for _, m := range got.Minutes {
		i := slices.IndexFunc(whole.Minutes, func(of ports.MinuteStats) bool { return of.At == m.At })
		if i < 0 || m.Counted() > whole.Minutes[i].Counted() {
			e.errorf("without %v the history has %+v, which the complete one does not have", without, m)
		}
	}
}

func unreachedNone(e *env) {
	shards := everywhere(e)
	defer e.sever(shards...)()
	for what, list := range e.unreachedPagers() {
		if ids, _, _, err := list(ports.PageRequest{Queue: "wide"}); err == nil {
			e.errorf("%s of shards that can't be reached: %v and no error", what, ids)
		}
	}
	for _, some := range [][]int{nil, {1}} {
		if got, err := e.store.Stats(e.ctx, ports.StatsRequest{Queues: []string{"wide"}, Shards: some}); err == nil {
			e.errorf("Stats of shards %v that can't be reached returned %+v and no error", some, got)
		}
	}
}
