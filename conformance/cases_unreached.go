package conformance

import (
	"github.com/skeinq/skein/core"
)

const ruleUnreached = "Heads: a store in several parts answers shard by shard: those of a part that it can't reach now are Unreached, and the heads of all others are returned"

func unreachedCases() []namedCase {
	return []namedCase{
		{"one shard can't be reached", ruleUnreached, unreachedOne},
		{"some shards can't be reached", ruleUnreached, unreachedSome},
		{"no shard can be reached", "Heads: any other error only if no shard was reached", unreachedAll},
		{"shards are reached again", "HeadsReply: Unreached are the shards that the store can't reach now", unreachedMended},
	}
}

// wideHeads makes a queue of three shards, each of which has a job, and returns them with
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

// sever cuts shards off until the case ends, or until mend is called.
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
