package conformance

import (
	"context"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleWakeups = "Wakeups returns a channel of the shards asked for whose next job has become due earlier by a push, an operator or a resume, that hold a newly cancelled job, or whose lease was released"

func wakeupCases() []namedCase {
	return []namedCase{
		{"reports a push", ruleWakeups, wakeupPush},
		{"reports a push to another handle", ruleWakeups, wakeupOtherHandle},
		{"reports a job that is due sooner", ruleWakeups, wakeupSooner},
		{"reports an urgent push", ruleWakeups, wakeupUrgent},
		{"reports jobs that an operator makes due", ruleWakeups, wakeupOperator},
		{"reports a resume", ruleWakeups, wakeupResume},
		{"reports a cancelled job", ruleWakeups, wakeupCancel},
		{"reports a release", ruleWakeups, wakeupRelease},
		{"reports the given shards only", ruleWakeups, wakeupAsked},
		{"reports each change of the list of servers", ruleNodeWakes, wakeupNodes},
		{"reports no server that only renews", "Wakeups: the zero Shard is not sent for another Status, nor when an announcement is renewed", wakeupNodesQuiet},
		{"reports servers only to callers that asked for them", "Wakeups: the zero Shard is asked for like others", wakeupNodesUnasked},
		{"ends with its context", "Wakeups: the channel is closed when ctx ends", wakeupEnds},
	}
}

// wakeupTimeout is the maximum real time that a wake-up may take, also on a busy machine.
const wakeupTimeout = 3 * time.Minute

// wakeups subscribes to the shards' wake-ups until the case ends.
func (e *env) wakeups(shards ...core.Shard) <-chan core.Shard {
	e.tb.Helper()
	ch, err := e.store.(ports.Notifier).Wakeups(e.ctx, shards)
	e.must(err, "Wakeups")
	return ch
}

// wakes checks that a wake-up for the shard arrives, and then drains the channel.
func (e *env) wakes(what string, ch <-chan core.Shard, want core.Shard) {
	e.tb.Helper()
	e.wokenUntil(what, ch, want)
	drain(ch)
}

// wokenUntil checks that a wake-up for the shard arrives, and returns the shards of earlier
// wake-ups.
func (e *env) wokenUntil(what string, ch <-chan core.Shard, want core.Shard) (before []core.Shard) {
	e.tb.Helper()
	timeout := time.After(wakeupTimeout)
	for {
		select {
		case s, ok := <-ch:
			if !ok {
				e.errorf("%s: the channel was closed", what)
				return before
			}
			if s == want {
				return before
			}
			before = append(before, s)
		case <-timeout:
			e.errorf("%s: no wake-up of %v within %v", what, want, wakeupTimeout)
			return before
		}
	}
}

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

func wakeupPush(e *env) {
	ch := e.wakeups(e.shard)
	e.push(entryAt("a", "p", 1, start.Add(time.Hour)))
	e.wakes("a push", ch, e.shard)
	e.pushIDs("b")
	e.wakes("a push that is due sooner", ch, e.shard)
}

func wakeupOtherHandle(e *env) {
	ch := e.wakeups(e.shard)
	other := *e
	other.store = e.open()
	other.pushIDs("a")
	e.wakes("a push", ch, e.shard)
}

func wakeupSooner(e *env) {
	e.push(entryAt("a", "p", 1, start.Add(time.Hour)))
	ch := e.wakeups(e.shard)
	e.pushBy(core.PushRule{Kind: core.Earliest}, entryAt("a", "q", 1, start))
	e.wakes("a push that takes the sooner time", ch, e.shard)
}

func wakeupOperator(e *env) {
	buryAll(e, "dead")
	e.push(entryAt("a", "p", 1, start.Add(time.Hour)))
	ch := e.wakeups(e.shard)
	e.byIDs(e.store.Expedite, "a")
	e.wakes("Expedite", ch, e.shard)
	e.byIDs(e.store.Delete, "a")
	drain(ch)
	e.byRefs(e.store.Revive, whole("dead"))
	e.wakes("Revive", ch, e.shard)
	e.byIDs(e.store.Delete, "dead")
	drain(ch)
	e.bringInJobs(job("imported", fresh(start), pay("p", 1)))
	e.wakes("Import", ch, e.shard)
}

func wakeupResume(e *env) {
	e.pushIDs("a")
	e.pause(orders)
	ch := e.wakeups(e.shard)
	e.resume(orders)
	e.wakes("Resume", ch, e.shard)
}

func wakeupCancel(e *env) {
	e.pushIDs("a")
	e.acquire("n1").one()
	ch := e.wakeups(e.shard)
	e.cancel(true, "a")
	e.wakes("Cancel", ch, e.shard)
}

func wakeupRelease(e *env) {
	h := e.acquire("n1")
	other := *e
	other.store = e.open()
	ch := other.wakeups(e.shard)
	h.release()
	e.wakes("Release", ch, e.shard)
}

func wakeupAsked(e *env) {
	e.declare("wide", 3)
	shards := core.Shards("wide", 3)
	asked := []core.Shard{shards[0], shards[2]}
	ch := e.wakeups(asked...)
	for _, s := range []core.Shard{shards[1], shards[2]} {
		e.pushTo("wide", entry(idsOf(s, 3, 1)[0], "p", 1))
	}
	e.pushIDs("a")
	timeout := time.After(wakeupTimeout)
	for {
		select {
		case s := <-ch:
			if !slices.Contains(asked, s) {
				e.errorf("a wake-up of %v, which was not asked for", s)
			}
			if s == shards[2] {
				return
			}
		case <-timeout:
			e.errorf("no wake-up of %v within %v", shards[2], wakeupTimeout)
			return
		}
	}
}

func wakeupEnds(e *env) {
	ctx, cancel := context.WithCancel(e.ctx)
	ch, err := e.store.(ports.Notifier).Wakeups(ctx, []core.Shard{e.shard})
	e.must(err, "Wakeups")
	cancel()
	timeout := time.After(wakeupTimeout)
	for open := true; open; {
		select {
		case _, open = <-ch:
		case <-timeout:
			e.errorf("the channel is open %v after its context has ended", wakeupTimeout)
			return
		}
	}
}
