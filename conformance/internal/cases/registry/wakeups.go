package registry

import (
	"context"
	"slices"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func wakeupUrgent(e *env.Env) {
	e.Push(env.EntryAt("a", "p", 1, env.Start.Add(time.Hour)))
	ch := wakeups(e, e.Shard)
	e.Push(env.Urgent("a", "q", 2, time.Second))
	wakes(e, "an urgent push", ch, e.Shard)
}

const ruleWakeups = "Wakeups returns a channel of the shards asked for whose next job has become due earlier " +
	"by a push, an operator or a resume, that hold a newly cancelled job, or whose lease was released"

func wakeupCases() []env.Case {
	return []env.Case{
		{Name: "reports a push", Rule: ruleWakeups, Check: wakeupPush},
		{Name: "reports a push to another handle", Rule: ruleWakeups, Check: wakeupOtherHandle},
		{Name: "reports a job that is due sooner", Rule: ruleWakeups, Check: wakeupSooner},
		{Name: "reports an urgent push", Rule: ruleWakeups, Check: wakeupUrgent},
		{Name: "reports jobs that an operator makes due", Rule: ruleWakeups, Check: wakeupOperator},
		{Name: "reports a resume", Rule: ruleWakeups, Check: wakeupResume},
		{Name: "reports a cancelled job", Rule: ruleWakeups, Check: wakeupCancel},
		{Name: "reports a release", Rule: ruleWakeups, Check: wakeupRelease},
		{Name: "reports the given shards only", Rule: ruleWakeups, Check: wakeupAsked},
		{Name: "reports each change of the list of servers", Rule: ruleNodeWakes, Check: wakeupNodes},
		{
			Name:  "reports no server that only renews",
			Rule:  "Wakeups: the zero Shard is not sent for another Status, nor when an announcement is renewed",
			Check: wakeupNodesQuiet,
		},
		{
			Name:  "reports servers only to callers that asked for them",
			Rule:  "Wakeups: the zero Shard is asked for like others",
			Check: wakeupNodesUnasked,
		},
		{Name: "ends with its context", Rule: "Wakeups: the channel is closed when ctx ends", Check: wakeupEnds},
	}
}

func wakeupPush(e *env.Env) {
	ch := wakeups(e, e.Shard)
	e.Push(env.EntryAt("a", "p", 1, env.Start.Add(time.Hour)))
	wakes(e, "a push", ch, e.Shard)
	e.PushIDs("b")
	wakes(e, "a push that is due sooner", ch, e.Shard)
}

func wakeupOtherHandle(e *env.Env) {
	ch := wakeups(e, e.Shard)
	other := *e
	other.Store = e.Open()
	other.PushIDs("a")
	wakes(e, "a push", ch, e.Shard)
}

func wakeupSooner(e *env.Env) {
	e.Push(env.EntryAt("a", "p", 1, env.Start.Add(time.Hour)))
	ch := wakeups(e, e.Shard)
	e.PushBy(core.PushRule{Kind: core.Earliest}, env.EntryAt("a", "q", 1, env.Start))
	wakes(e, "a push that takes the sooner time", ch, e.Shard)
}

func wakeupOperator(e *env.Env) {
	e.BuryAll("dead")
	e.Push(env.EntryAt("a", "p", 1, env.Start.Add(time.Hour)))
	ch := wakeups(e, e.Shard)

	e.ByIDs(e.Store.Expedite, "a")
	wakes(e, "Expedite", ch, e.Shard)
	e.ByIDs(e.Store.Delete, "a")
	drain(ch)

	e.ByRefs(e.Store.Revive, env.Whole("dead"))
	wakes(e, "Revive", ch, e.Shard)
	e.ByIDs(e.Store.Delete, "dead")
	drain(ch)

	e.BringInJobs(env.Job("imported", env.Fresh(env.Start), env.Pay("p", 1)))
	wakes(e, "Import", ch, e.Shard)
}

func wakeupResume(e *env.Env) {
	e.PushIDs("a")
	e.Pause(env.Orders)
	ch := wakeups(e, e.Shard)
	e.Resume(env.Orders)
	wakes(e, "Resume", ch, e.Shard)
}

func wakeupCancel(e *env.Env) {
	e.PushIDs("a")
	e.Acquire("n1").One()
	ch := wakeups(e, e.Shard)
	e.Cancel(true, "a")
	wakes(e, "Cancel", ch, e.Shard)
}

func wakeupRelease(e *env.Env) {
	h := e.Acquire("n1")
	other := *e
	other.Store = e.Open()
	ch := wakeups(&other, e.Shard)
	h.Release()
	wakes(e, "Release", ch, e.Shard)
}

func wakeupAsked(e *env.Env) {
	e.Declare("wide", 3)
	shards := core.Shards("wide", 3)
	asked := []core.Shard{shards[0], shards[2]}
	ch := wakeups(e, asked...)

	for _, s := range []core.Shard{shards[1], shards[2]} {
		e.PushTo("wide", env.Entry(env.IDsOf(s, 3, 1)[0], "p", 1))
	}
	e.PushIDs("a")

	timeout := time.After(wakeupTimeout)
	for {
		select {
		case s := <-ch:
			if !slices.Contains(asked, s) {
				e.Errorf("a wake-up of %v, which was not asked for", s)
			}
			if s == shards[2] {
				return
			}
		case <-timeout:
			e.Errorf("no wake-up of %v within %v", shards[2], wakeupTimeout)
			return
		}
	}
}

func wakeupEnds(e *env.Env) {
	ctx, cancel := context.WithCancel(e.Ctx)
	ch, err := e.Store.(ports.Notifier).Wakeups(ctx, []core.Shard{e.Shard})
	e.Must(err, "Wakeups")

	cancel()
	timeout := time.After(wakeupTimeout)
	for open := true; open; {
		select {
		case _, open = <-ch:
		case <-timeout:
			e.Errorf("the channel is open %v after its context has ended", wakeupTimeout)
			return
		}
	}
}

// wakeupTimeout is the maximum real time that a wake-up may take, also on a busy machine.
const wakeupTimeout = 3 * time.Minute

// wakeups subscribes to the shards' wake-ups until the case ends.
func wakeups(e *env.Env, shards ...core.Shard) <-chan core.Shard {
	e.TB.Helper()
	ch, err := e.Store.(ports.Notifier).Wakeups(e.Ctx, shards)
	e.Must(err, "wakeups")
	return ch
}

// wakes checks that a wake-up for the shard arrives, and then drains the channel.
func wakes(e *env.Env, what string, ch <-chan core.Shard, want core.Shard) {
	e.TB.Helper()
	wokenUntil(e, what, ch, want)
	drain(ch)
}

// wokenUntil checks that a wake-up for the shard arrives, and returns the shards of earlier
// wake-ups.
func wokenUntil(e *env.Env, what string, ch <-chan core.Shard, want core.Shard) (before []core.Shard) {
	e.TB.Helper()

	timeout := time.After(wakeupTimeout)
	for {
		select {
		case s, ok := <-ch:
			if !ok {
				e.Errorf("%s: the channel was closed", what)
				return before
			}
			if s == want {
				return before
			}
			before = append(before, s)
		case <-timeout:
			e.Errorf("%s: no wake-up of %v within %v", what, want, wakeupTimeout)
			return before
		}
	}
}

// drain empties a channel of wake-ups.
func drain(ch <-chan core.Shard) {
	for {
		select {
		case _, ok := <-ch:
			if !ok {
				return
			}
		default:
			return
		}
	}
}
