package look

import (
	"fmt"
	"slices"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleUnreached = "Heads: a store in several parts answers shard by shard: " +
	"the shards of a part that it can't reach now are Unreached, and the heads of all others are returned"

func unreachedCases() []env.Case {
	return []env.Case{
		{Name: "one shard can't be reached", Rule: ruleUnreached, Check: unreachedOne},
		{Name: "some shards can't be reached", Rule: ruleUnreached, Check: unreachedSome},
		{
			Name:  "no shard can be reached",
			Rule:  "Heads: another error is returned only if no shard was reached",
			Check: unreachedAll,
		},
		{
			Name:  "shards are reached again",
			Rule:  "HeadsReply: Unreached are the shards that the store can't reach now",
			Check: unreachedMended,
		},
	}
}

// wideHeads declares a queue with three shards, and pushes a job to each. It returns the shards and
// their heads.
func wideHeads(e *env.Env) (shards []core.Shard, heads []core.Head) {
	e.Declare("wide", 3)
	shards = core.Shards("wide", 3)
	for i, s := range shards {
		e.PushTo("wide", env.EntryAt(env.IDsOf(s, 3, 1)[0], "p", 1, core.Instant(100+i)))
		heads = append(heads, env.Due(core.Instant(100+i)))
	}
	return shards, heads
}

// sever makes shards unreachable until mend is called.
func sever(e *env.Env, shards ...core.Shard) (mend func()) {
	var mends []func()
	for _, s := range shards {
		mends = append(mends, e.Store.(env.Severer).Sever(s))
	}
	return func() {
		for _, mend := range mends {
			mend()
		}
	}
}

// headsAndUnreached checks the reply of Heads for the shards.
func headsAndUnreached(e *env.Env, what string, shards []core.Shard, heads []core.Head, unreached ...core.Shard) {
	e.TB.Helper()
	reply, err := e.Store.Heads(e.Ctx, shards)
	if !e.Check(err, what+": Heads") {
		return
	}

	got := make([]core.Head, len(reply.Heads))
	for i, h := range reply.Heads {
		got[i] = env.Plain(h)
	}

	e.Same(what+": the heads", got, heads)
	e.Same(what+": those unreached", reply.Unreached, unreached)
	e.Same(what+": the store's clock", reply.Now, env.Start)
}

func unreachedOne(e *env.Env) {
	shards, heads := wideHeads(e)
	for i, s := range shards {
		mend := sever(e, s)
		want := append([]core.Head(nil), heads...)
		want[i] = core.Head{}
		headsAndUnreached(e, "without "+s.String(), shards, want, s)
		mend()
	}
}

func unreachedSome(e *env.Env) {
	w, heads := wideHeads(e)
	defer sever(e, w[2], w[0])()
	headsAndUnreached(e, "in the order asked", []core.Shard{w[2], e.Shard, w[1], w[0]},
		[]core.Head{{}, {}, heads[1], {}}, w[2], w[0])
	headsAndUnreached(e, "of the others", []core.Shard{w[1], e.Shard}, []core.Head{heads[1], {}})
}

func unreachedAll(e *env.Env) {
	shards, _ := wideHeads(e)
	defer sever(e, shards...)()
	if reply, err := e.Store.Heads(e.Ctx, shards); err == nil {
		e.Errorf("Heads of shards that can't be reached returned %+v and no error", reply)
	}
}

func unreachedMended(e *env.Env) {
	shards, heads := wideHeads(e)
	mend := sever(e, shards[1])
	headsAndUnreached(e, "while one is cut off", shards, []core.Head{heads[0], {}, heads[2]}, shards[1])
	mend()
	headsAndUnreached(e, "afterwards", shards, heads)
}

const ruleUnreachedLists = "Inspector: a store in several parts answers for the parts that it reaches: " +
	"the shards of a part that it can't reach now are Unreached, " +
	"and the rest of the reply is as if they had not been asked for"

func unreachedListCases() []env.Case {
	return []env.Case{
		{Name: "lists return the entries of the other shards", Rule: ruleUnreachedLists, Check: unreachedLists},
		{Name: "what is pending of the ids of other shards", Rule: ruleUnreachedLists, Check: unreachedPending},
		{Name: "stats count the other shards", Rule: ruleUnreachedLists, Check: unreachedStats},
		{Name: "groups count the other shards", Rule: ruleUnreachedLists, Check: unreachedGroups},
		{
			Name:  "quarantines name the shards that can't be reached",
			Rule:  ruleUnreachedLists,
			Check: unreachedQuarantines,
		},
		{Name: "a history names the shards that it lacks", Rule: ruleUnreachedHistory, Check: unreachedHistory},
		{
			Name:  "lists and stats fail if no shard can be reached",
			Rule:  "Inspector: an error only if it reached none of the shards",
			Check: unreachedNone,
		},
	}
}

// unreachedPager returns one page of a list, and the shards that could not be reached.
type unreachedPager func(r ports.PageRequest) (ids []string, next ports.Cursor, unreached []core.Shard, err error)

// unreachedPagers returns all lists of a queue, each with an entry of every shard.
func unreachedPagers(e *env.Env) map[string]unreachedPager {
	jobs := func(order ports.SortBy) unreachedPager {
		return func(r ports.PageRequest) (ids []string, next ports.Cursor, unreached []core.Shard, err error) {
			page, err := e.Store.Jobs(e.Ctx, ports.JobsRequest{PageRequest: r, SortBy: order})
			for _, v := range page.Jobs {
				ids = append(ids, v.ID)
			}
			return ids, page.Next, page.Unreached, err
		}
	}

	morgue := func(of ports.MorgueRequest) unreachedPager {
		return func(r ports.PageRequest) (ids []string, next ports.Cursor, unreached []core.Shard, err error) {
			page, err := e.Store.Morgue(e.Ctx, ports.MorgueRequest{PageRequest: r, ByID: of.ByID, Group: of.Group})
			for _, v := range page.DeadLetters {
				ids = append(ids, v.ID)
			}
			return ids, page.Next, page.Unreached, err
		}
	}

	return map[string]unreachedPager{
		"jobs by time":          jobs(ports.ByTime),
		"jobs by id":            jobs(ports.ByID),
		"retries by count":      jobs(ports.RetryingByCount),
		"the morgue by time":    morgue(ports.MorgueRequest{}),
		"the morgue by id":      morgue(ports.MorgueRequest{ByID: true}),
		"a group of the morgue": morgue(ports.MorgueRequest{Group: core.OtherGroup}),
		"claimed jobs": func(r ports.PageRequest) (ids []string, next ports.Cursor, unreached []core.Shard, err error) {
			page, err := e.Store.Claimed(e.Ctx, r)
			for _, v := range page.Claims {
				ids = append(ids, v.ID)
			}
			return ids, page.Next, page.Unreached, err
		},
		"records": func(r ports.PageRequest) (ids []string, next ports.Cursor, unreached []core.Shard, err error) {
			page, err := e.Store.Past(e.Ctx, r)
			for _, v := range page.Past {
				ids = append(ids, v.ID)
			}
			return ids, page.Next, page.Unreached, err
		},
	}
}

// everywhere declares a queue with three shards. Each shard gets queued, failed, claimed and dead
// entries, and two records of jobs that are done.
func everywhere(e *env.Env) []core.Shard {
	e.TB.Helper()
	e.DeclareWith(ports.DeclareRequest{Queue: "wide", Shards: 3, IndexIDs: true})
	shards := core.Shards("wide", 3)

	for _, s := range shards {
		h := e.AcquireBy(e.AcquireRequest(s, "n1"))
		ids := env.IDsOf(s, 3, 10)
		for _, id := range ids[8:] {
			e.PushTo("wide", env.EntryAt(id, "p", 1, 0))
			c := h.One()
			done := env.Done(c)
			done.Record(&c, core.Run{Node: "web-1"})
			r := h.Request(0, done)
			r.Keep = core.KeepPast{Age: time.Hour}
			h.Send(r)
		}

		for k, id := range ids[:8] {
			e.PushTo("wide", env.EntryAt(id, "p", 1, core.Instant(100+k)))
		}

		c := h.Claim(4)
		h.Settle(env.Failed(c[0], "boom", time.Hour), env.Failed(c[1], "boom", time.Hour),
			env.Buried(c[2], "no"), env.Buried(c[3], "no"))
		h.Claim(2)
	}

	return shards
}

func unreachedPending(e *env.Env) {
	e.Declare("wide", 3)
	shards := core.Shards("wide", 3)
	var ids []string
	var all []ports.Pending
	for _, s := range shards {
		id := env.IDsOf(s, 3, 1)[0]
		e.PushTo("wide", env.Entry(id, "p", 1))
		ids, all = append(ids, id), append(all, ports.Pending{Shard: s, Now: e.Now(), Queued: true, FirstPush: e.Now()})
	}

	for i, s := range shards {
		mend := sever(e, s)
		want := slices.Clone(all)
		want[i] = ports.Pending{Shard: s}
		reply, err := e.Store.Pending(e.Ctx, ports.PendingRequest{Queue: "wide", IDs: ids})
		e.Must(err, "Pending")
		e.Same("without "+s.String(), reply, ports.PendingReply{IDs: want, Unreached: []core.Shard{s}})
		mend()
	}

	defer sever(e, shards...)()
	if reply, err := e.Store.Pending(e.Ctx, ports.PendingRequest{Queue: "wide", IDs: ids}); err == nil {
		e.Errorf("Pending of shards that can't be reached returned %+v and no error", reply)
	}
}

func unreachedLists(e *env.Env) {
	shards := everywhere(e)
	for what, list := range unreachedPagers(e) {
		for _, without := range shards {
			of := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == without.Index })
			whole := ports.PageRequest{Queue: "wide", Shards: of}
			want, _, _, err := list(whole)
			e.Must(err, what)

			mend := sever(e, without)
			for limit := range 4 {
				var got []string
				r := ports.PageRequest{Queue: "wide", Limit: limit}
				for range len(want) + 2 {
					ids, next, unreached, err := list(r)
					if !e.Check(err, fmt.Sprintf("%s without %v", what, without)) {
						break
					}

					e.Same(what+": those unreached", unreached, []core.Shard{without})
					got = append(got, ids...)
					if r.After = next; next == (ports.Cursor{}) {
						break
					}
				}
				e.Same(fmt.Sprintf("%s without %v, %d a page", what, without, limit), got, want)
			}

			ids, _, unreached, err := list(whole)
			e.Check(err, what+" of the others alone")
			e.Same(what+" of the others alone", ids, want)
			e.Same(what+" of the others alone: those unreached", unreached, []core.Shard(nil))

			mend()
		}
	}
}

func unreachedStats(e *env.Env) {
	shards := everywhere(e)
	whole := e.Stats("wide")
	for _, without := range shards {
		mend := sever(e, without)
		got, err := e.Store.Stats(e.Ctx, ports.StatsRequest{Queues: []string{env.Orders, "wide"}})
		if e.Check(err, "Stats without "+without.String()) && len(got) == 2 {
			want := slices.DeleteFunc(slices.Clone(whole.Shards), func(s ports.ShardStats) bool {
				return s.Shard == without
			})
			var sum ports.Counts
			for _, s := range want {
				sum = ports.SumCounts(sum, s.Counts)
			}

			e.Same("the shards reached", got[1].Shards, want)
			e.Same("their sums", got[1].Counts, sum)
			e.Same("those unreached", got[1].Unreached, []core.Shard{without})
			e.Same("the queue", got[1].Queue, whole.Queue)
			e.Same("those unreached of another queue", got[0].Unreached, []core.Shard(nil))
			e.Same("how many shards of another queue", len(got[0].Shards), 1)
		}

		mend()
	}

	defer sever(e, shards...)()
	got, err := e.Store.Stats(e.Ctx, ports.StatsRequest{Queues: []string{"wide", env.Orders}})
	if e.Check(err, "Stats without a whole queue") && len(got) == 2 {
		e.Same("the shards of that queue", len(got[0].Shards), 0)
		e.Same("those unreached", got[0].Unreached, shards)
		e.Same("how many shards of the other", len(got[1].Shards), 1)
	}
}

func unreachedGroups(e *env.Env) {
	shards := everywhere(e)
	for _, without := range shards {
		of := slices.DeleteFunc([]int{0, 1, 2}, func(i int) bool { return i == without.Index })
		want := e.Groups(ports.GroupsRequest{Queue: "wide", Shards: of})
		e.Same("how many dead letters two shards have", want.Dead, int64(4))
		want.Unreached = []core.Shard{without}

		mend := sever(e, without)
		got, err := e.Store.Groups(e.Ctx, ports.GroupsRequest{Queue: "wide"})
		if e.Check(err, "Groups without "+without.String()) {
			e.Same("the groups without "+without.String(), got, want)
		}

		mend()
	}

	defer sever(e, shards...)()
	if got, err := e.Store.Groups(e.Ctx, ports.GroupsRequest{Queue: "wide"}); err == nil {
		e.Errorf("Groups of shards that can't be reached returned %+v and no error", got)
	}
}

func unreachedQuarantines(e *env.Env) {
	shards := everywhere(e)

	for _, without := range shards {
		mend := sever(e, without)
		got, err := e.Store.QuarantinedShards(e.Ctx, ports.QuarantinedShardsRequest{Queue: "wide"})
		if e.Check(err, "QuarantinedShards without "+without.String()) {
			e.Same("the quarantines without "+without.String(),
				got, ports.QuarantinedShards{Unreached: []core.Shard{without}})
		}

		mend()
	}

	defer sever(e, shards...)()
	if got, err := e.Store.QuarantinedShards(e.Ctx, ports.QuarantinedShardsRequest{Queue: "wide"}); err == nil {
		e.Errorf("QuarantinedShards of shards that can't be reached returned %+v and no error", got)
	}
}

const ruleUnreachedHistory = "History: a store in several parts keeps a queue's counts with some of its shards, " +
	"or with one; it returns the counts that it reaches, and names the other shards that have some; " +
	"it fails only if it reaches no shard of the queue; HistoryReply: Unreached are the shards that it can't reach"

// unreachedHistory cuts off one shard after another. A store chooses the shards in which it keeps a
// history. If a shard with a part of the history can't be reached, the reply names it. Otherwise
// the history is complete.
func unreachedHistory(e *env.Env) {
	e.Declare("wide", 3)
	at := e.Now().Minute()
	r := ports.HistoryRequest{Queue: "wide"}

	e.Record("n1", ports.Record{Queue: "wide", Minute: at, Stats: *env.Measured(1)},
		ports.Record{Queue: "wide", Minute: at.Add(-3 * time.Hour), Stats: *env.Measured(2)})
	e.Record("n2", ports.Record{Queue: "wide", Minute: at, Stats: *env.Measured(3)})

	whole, err := e.Store.History(e.Ctx, r)
	e.Must(err, "History")
	e.Same("what the complete history lacks", whole.Unreached, []core.Shard(nil))

	shards := core.Shards("wide", 3)
	for _, without := range shards {
		mend := sever(e, without)
		got, err := e.Store.History(e.Ctx, r)
		if e.Check(err, "History without "+without.String()) {
			historyLacks(e, got, whole, without)
		}
		mend()
	}

	mend := sever(e, shards...)
	if got, err := e.Store.History(e.Ctx, r); err == nil {
		e.Errorf("History of a queue whose shards can't be reached returned %+v and no error", got)
	}
	mend()
	e.History(r, whole.Minutes...)
}

// historyLacks checks that a history without a shard is complete, or reports that it lacks the part
// of that shard.
func historyLacks(e *env.Env, got, whole ports.HistoryReply, without core.Shard) {
	e.TB.Helper()
	if len(got.Unreached) == 0 {
		e.Same("the history without "+without.String()+", which it does not report as unreached", got, whole)
		return
	}
	e.Same("what the history lacks", got.Unreached, []core.Shard{without})
	for _, m := range got.Minutes {
		i := slices.IndexFunc(whole.Minutes, func(of ports.MinuteStats) bool { return of.At == m.At })
		if i < 0 || m.Counted() > whole.Minutes[i].Counted() {
			e.Errorf("without %v the history has %+v, which the complete one does not have", without, m)
		}
	}
}

func unreachedNone(e *env.Env) {
	shards := everywhere(e)
	defer sever(e, shards...)()
	for what, list := range unreachedPagers(e) {
		if ids, _, _, err := list(ports.PageRequest{Queue: "wide"}); err == nil {
			e.Errorf("%s of shards that can't be reached: %v and no error", what, ids)
		}
	}
	for _, some := range [][]int{nil, {1}} {
		if got, err := e.Store.Stats(e.Ctx, ports.StatsRequest{Queues: []string{"wide"}, Shards: some}); err == nil {
			e.Errorf("Stats of shards %v that can't be reached returned %+v and no error", some, got)
		}
	}
}
