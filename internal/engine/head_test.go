package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// falselyDue is a store that, while it is active, reports a due job and returns none.
type falselyDue struct {
	*memory.Store
	active func() bool
}

func (l falselyDue) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	if !l.active() {
		return l.Store.Turn(ctx, r)
	}
	r.Want = 0
	reply, err := l.Store.Turn(ctx, r)
	reply.Head = core.Head{Due: reply.Now, OK: true}
	return reply, err
}

func TestAStoreThatSaysDueAndReturnsNothingDoesNotMakeALaneSpin(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(2)
		active := true
		a := w.audit()
		n := w.start(a.watch(succeed), shards(2), lanes(1), func(s *setup) {
			s.link.ShardStore = falselyDue{s.link.ShardStore.(*memory.Store), func() bool { return active }}
		})
		w.push("job", "x")
		w.sleep(time.Minute)
		if turns := n.link.count("Turn"); turns > 2*150 {
			w.Errorf("%d turns of two shards in a minute, want at most 150 each", turns)
		}
		a.wantRuns("job", 0)
		n.link.change(func() { active = false })
		w.sleep(2 * poll)
		a.wantRuns("job", 1)
	})
}

// startFalselyDue starts a node whose store is falselyDue.
func (w *world) startFalselyDue(a *audit, active func() bool, options ...func(*setup)) *node {
	return w.start(a.watch(succeed), append(options, func(s *setup) {
		s.link.ShardStore = falselyDue{s.link.ShardStore.(*memory.Store), active}
	})...)
}

// falseHeads is falselyDue that also returns false heads.
type falseHeads struct{ falselyDue }

func (l falseHeads) Heads(_ context.Context, shards []core.Shard) (r ports.HeadsReply, err error) {
	r, err = l.Store.Heads(context.Background(), shards)
	for i := range r.Heads {
		if l.active() {
			r.Heads[i] = core.Head{Due: r.Now, OK: true}
		}
	}
	return r, err
}

func TestAStoreThatIsNotBelievedIsAskedAtOnceWhenSomethingIsNew(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		active := true
		a := w.audit()
		n := w.start(a.watch(succeed), func(s *setup) {
			s.link.ShardStore = falseHeads{falselyDue{s.link.ShardStore.(*memory.Store), func() bool { return active }}}
		})
		const changed = 30*poll + poll/3 // between two polls
		w.sleepUntil(changed)
		n.link.change(func() { active = false })
		w.push("new", "x")
		w.sleep(2 * poll)
		w.within("the new job", a.wantRuns("new", 1)[0].at, changed, changed+10*time.Millisecond)
	})
}

func TestAFalseHeadHidesAShardForNoLongerThanAPollInterval(t *testing.T) {
	inWorld(t, func(w *world) {
		const poll = 50 * time.Millisecond
		w.declare(1)
		active := true
		a := w.audit()
		n := w.startFalselyDue(a, func() bool { return active }, noWakeups, polling(poll))
		w.push("job", "x")
		w.sleepUntil(10 * time.Second)
		n.link.change(func() { active = false })
		w.sleep(2 * time.Second)
		w.within("the job", a.wantRuns("job", 1)[0].at, 10*time.Second, 10*time.Second+poll)
	})
}

func TestAStoreIsBelievedAgainOnceItReturnsAJob(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		limit := 30 * poll
		a := w.audit()
		w.startFalselyDue(a, func() bool { return w.elapsed() < limit }, noWakeups)
		w.push("first", "x")
		w.sleepUntil(32 * poll)
		a.wantRuns("first", 1)
		limit = 0
		w.sleepUntil(40 * poll)
		limit = 41*poll + 5*time.Millisecond // it reports a false head once more
		w.pushEntries(core.Entry{ID: "second", Payload: core.Payload{Data: []byte("x")}, When: core.In(poll)})
		w.sleep(4 * poll)
		w.within("the second job", a.wantRuns("second", 1)[0].at, 41*poll, 41*poll+100*time.Millisecond)
	})
}

// noHeads is falselyDue without heads: as for a shard in which only an earlier lease's jobs are
// left, and can't be handed over yet.
type noHeads struct{ falselyDue }

func (l noHeads) Heads(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
	r, err := l.Store.Heads(ctx, shards)
	clear(r.Heads)
	return r, err
}

func TestAPollDoesNotTakeBackWhatATurnSaysIsDue(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.push("job", "x")
		active := true
		a := w.audit()
		n := w.start(a.watch(succeed), func(s *setup) {
			s.noWakeups, s.PollInterval = true, 100*time.Millisecond
			s.link.ShardStore = noHeads{falselyDue{s.link.ShardStore.(*memory.Store), func() bool { return active }}}
		})
		w.sleep(5 * time.Second)
		a.wantRuns("job", 0)
		n.link.change(func() { active = false })
		w.sleep(2 * time.Second)
		a.wantRuns("job", 1)
	})
}
