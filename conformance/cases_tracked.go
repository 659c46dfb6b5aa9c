package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleTrack = "Track adds an id to the tracked ids of a queue, or removes it, and reports whether that has changed the list"

func trackedCases() []namedCase {
	return []namedCase{
		{"lists ids in order, with the time when each was added", "Tracked returns the tracked ids of a queue, in order of their bytes", trackedList},
		{"a repeated call changes nothing", "Track: an id that is tracked already keeps its Since", trackedOnce},
		{"untracks an id", ruleTrack, trackedNoMore},
		{"tracks ids without a job, and after their jobs have ended", "Track: the id need not have a job", trackedEnded},
		{"belongs to its queue and ends with it", "Tracker: Forget removes the list", trackedForgotten},
		{"refuses more ids than MaxTracked", "Track: ErrTooManyTracked if the queue has MaxTracked others", trackedFull},
		{"refuses an invalid id and an unknown queue", "Track: ErrUnknownQueue, core.ErrInvalidID", trackedInvalid},
	}
}

// track tracks an id of the queue orders. want is whether the reply must report a change of the
// list.
func (e *env) track(id string, want bool) {
	e.tb.Helper()
	e.changeTracked(ports.TrackRequest{Queue: orders, ID: id}, want)
}

func (e *env) untrack(id string, want bool) {
	e.tb.Helper()
	e.changeTracked(ports.TrackRequest{Queue: orders, ID: id, Untrack: true}, want)
}

func (e *env) changeTracked(r ports.TrackRequest, want bool) {
	e.tb.Helper()
	before := e.repeats.All.Load()
	changed, err := e.store.Track(e.ctx, r)
	e.must(err, "Track")
	if e.repeats.All.Load() == before { // the repeat of a call changes nothing
		e.same(fmt.Sprintf("whether %+v has changed the list", r), changed, want)
	}
}

func (e *env) tracked(want ...ports.TrackedID) {
	e.tb.Helper()
	got, err := e.store.Tracked(e.ctx, orders)
	e.must(err, "Tracked")
	if len(got)+len(want) > 0 {
		e.same("the tracked ids", got, want)
	}
}

func trackedList(e *env) {
	e.tracked()
	ids := []string{"é", "10", "9", "B", "a", "a b", strings.Repeat("i", core.MaxIDBytes), "ab"}
	var want []ports.TrackedID
	for _, id := range ids {
		e.track(id, true)
		want = append(want, ports.TrackedID{ID: id, Since: e.now()})
		e.clock.Advance(time.Second)
	}
	slices.SortFunc(want, func(a, b ports.TrackedID) int { return strings.Compare(a.ID, b.ID) })
	e.tracked(want...)
}

func trackedOnce(e *env) {
	e.track("a", true)
	e.clock.Advance(time.Second)
	e.track("a", false)
	e.untrack("b", false)
	e.tracked(ports.TrackedID{ID: "a", Since: start})
}

func trackedNoMore(e *env) {
	e.track("a", true)
	e.track("b", true)
	e.untrack("a", true)
	e.tracked(ports.TrackedID{ID: "b", Since: start})
	e.clock.Advance(time.Second)
	e.track("a", true)
	e.tracked(ports.TrackedID{ID: "a", Since: e.now()}, ports.TrackedID{ID: "b", Since: start})
}

func trackedEnded(e *env) {
	e.track("a", true)
	e.pushIDs("a")
	h := e.acquire("n1")
	h.settle(done(h.one()))
	e.same("what is left of the id", e.find("a").Queued, nil)
	e.tracked(ports.TrackedID{ID: "a", Since: start})
}

func trackedForgotten(e *env) {
	e.declare("mail", 2)
	e.track("a", true)
	for _, id := range []string{"a", "b"} {
		e.changeTracked(ports.TrackRequest{Queue: "mail", ID: id}, true)
	}
	e.forget()
	if _, err := e.store.Tracked(e.ctx, orders); err == nil {
		e.errorf("Tracked of a forgotten queue returned no error, want ErrUnknownQueue")
	}
	e.declare(orders, 1)
	e.tracked()
	mail, err := e.store.Tracked(e.ctx, "mail")
	e.must(err, "Tracked")
	e.same("the ids of another queue", mail, []ports.TrackedID{{ID: "a", Since: start}, {ID: "b", Since: start}})
}

func trackedFull(e *env) {
	for n := range ports.MaxTracked {
		e.track(fmt.Sprint(n), true)
	}
	_, err := e.store.Track(e.ctx, ports.TrackRequest{Queue: orders, ID: "more"})
	e.refused("Track of one more", err, ports.ErrTooManyTracked)
	e.track("7", false)
	e.untrack("more", false)
	e.untrack("7", true)
	e.track("more", true)
	all, err := e.store.Tracked(e.ctx, orders)
	e.must(err, "Tracked")
	e.same("how many are tracked", len(all), ports.MaxTracked)
}

func trackedInvalid(e *env) {
	for _, id := range []string{"", "\xff", "a\x00", strings.Repeat("i", core.MaxIDBytes+1)} {
		for _, untrack := range []bool{false, true} {
			_, err := e.store.Track(e.ctx, ports.TrackRequest{Queue: orders, ID: id, Untrack: untrack})
			e.refused(fmt.Sprintf("Track of the id %.20q", id), err, core.ErrInvalidID)
		}
	}
	for _, queue := range []string{"nowhere", "", "a b", "\x00"} {
		_, err := e.store.Track(e.ctx, ports.TrackRequest{Queue: queue, ID: "a"})
		e.refused("Track in an unknown queue", err, ports.ErrUnknownQueue)
		_, err = e.store.Tracked(e.ctx, queue)
		e.refused("Tracked of an unknown queue", err, ports.ErrUnknownQueue)
	}
	e.tracked()
}
