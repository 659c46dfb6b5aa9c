package registry

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleTrack = "Track adds an id to the tracked ids of a queue, or removes it, " +
	"and reports whether that has changed the list"

func trackedCases() []env.Case {
	return []env.Case{
		{
			Name:  "lists ids in order, with the time when each was added",
			Rule:  "Tracked returns the tracked ids of a queue, in order of their bytes",
			Check: trackedList,
		},
		{
			Name:  "a repeated call changes nothing",
			Rule:  "Track: an id that is tracked already keeps its Since",
			Check: trackedOnce,
		},
		{Name: "untracks an id", Rule: ruleTrack, Check: trackedNoMore},
		{
			Name:  "tracks ids without a job, and after their jobs have ended",
			Rule:  "Track: the id need not have a job",
			Check: trackedEnded,
		},
		{
			Name:  "belongs to its queue and ends with it",
			Rule:  "Tracker: Forget removes the list",
			Check: trackedForgotten,
		},
		{
			Name:  "refuses more ids than MaxTracked",
			Rule:  "Track: ErrTooManyTracked if the queue has MaxTracked others",
			Check: trackedFull,
		},
		{
			Name:  "refuses an invalid id and an unknown queue",
			Rule:  "Track: ErrUnknownQueue, core.ErrInvalidID",
			Check: trackedInvalid,
		},
	}
}

// track tracks an id of the queue orders. want is whether the reply must report a change of the
// list.
func track(e *env.Env, id string, want bool) {
	e.TB.Helper()
	changeTracked(e, ports.TrackRequest{Queue: env.Orders, ID: id}, want)
}

func untrack(e *env.Env, id string, want bool) {
	e.TB.Helper()
	changeTracked(e, ports.TrackRequest{Queue: env.Orders, ID: id, Untrack: true}, want)
}

func changeTracked(e *env.Env, r ports.TrackRequest, want bool) {
	e.TB.Helper()
	before := e.Repeats.All.Load()
	changed, err := e.Store.Track(e.Ctx, r)
	e.Must(err, "Track")
	if e.Repeats.All.Load() == before { // the repeat of a call changes nothing
		e.Same(fmt.Sprintf("whether %+v has changed the list", r), changed, want)
	}
}

func tracked(e *env.Env, want ...ports.TrackedID) {
	e.TB.Helper()
	got, err := e.Store.Tracked(e.Ctx, env.Orders)
	e.Must(err, "Tracked")
	if len(got)+len(want) > 0 {
		e.Same("the tracked ids", got, want)
	}
}

func trackedList(e *env.Env) {
	tracked(e)
	ids := []string{"é", "10", "9", "B", "a", "a b", strings.Repeat("i", core.MaxIDBytes), "ab"}
	var want []ports.TrackedID
	for _, id := range ids {
		track(e, id, true)
		want = append(want, ports.TrackedID{ID: id, Since: e.Now()})
		e.Clock.Advance(time.Second)
	}
	slices.SortFunc(want, func(a, b ports.TrackedID) int { return strings.Compare(a.ID, b.ID) })
	tracked(e, want...)
}

func trackedOnce(e *env.Env) {
	track(e, "a", true)
	e.Clock.Advance(time.Second)
	track(e, "a", false)
	untrack(e, "b", false)
	tracked(e, ports.TrackedID{ID: "a", Since: env.Start})
}

func trackedNoMore(e *env.Env) {
	track(e, "a", true)
	track(e, "b", true)
	untrack(e, "a", true)
	tracked(e, ports.TrackedID{ID: "b", Since: env.Start})
	e.Clock.Advance(time.Second)
	track(e, "a", true)
	tracked(e, ports.TrackedID{ID: "a", Since: e.Now()}, ports.TrackedID{ID: "b", Since: env.Start})
}

func trackedEnded(e *env.Env) {
	track(e, "a", true)
	e.PushIDs("a")
	h := e.Acquire("n1")
	h.Settle(env.Done(h.One()))
	e.Same("what is left of the id", e.Find("a").Queued, nil)
	tracked(e, ports.TrackedID{ID: "a", Since: env.Start})
}

func trackedForgotten(e *env.Env) {
	e.Declare("mail", 2)
	track(e, "a", true)
	for _, id := range []string{"a", "b"} {
		changeTracked(e, ports.TrackRequest{Queue: "mail", ID: id}, true)
	}

	e.Forget()
	if _, err := e.Store.Tracked(e.Ctx, env.Orders); err == nil {
		e.Errorf("Tracked of a forgotten queue returned no error, want ErrUnknownQueue")
	}

	e.Declare(env.Orders, 1)
	tracked(e)
	mail, err := e.Store.Tracked(e.Ctx, "mail")
	e.Must(err, "Tracked")
	e.Same("the ids of another queue",
		mail, []ports.TrackedID{{ID: "a", Since: env.Start}, {ID: "b", Since: env.Start}})
}

func trackedFull(e *env.Env) {
	for n := range ports.MaxTracked {
		track(e, fmt.Sprint(n), true)
	}

	_, err := e.Store.Track(e.Ctx, ports.TrackRequest{Queue: env.Orders, ID: "more"})
	e.Refused("Track of one more", err, ports.ErrTooManyTracked)

	track(e, "7", false)
	untrack(e, "more", false)
	untrack(e, "7", true)
	track(e, "more", true)

	all, err := e.Store.Tracked(e.Ctx, env.Orders)
	e.Must(err, "Tracked")
	e.Same("how many are tracked", len(all), ports.MaxTracked)
}

func trackedInvalid(e *env.Env) {
	for _, id := range []string{"", "\xff", "a\x00", strings.Repeat("i", core.MaxIDBytes+1)} {
		for _, untrack := range []bool{false, true} {
			_, err := e.Store.Track(e.Ctx, ports.TrackRequest{Queue: env.Orders, ID: id, Untrack: untrack})
			e.Refused(fmt.Sprintf("Track of the id %.20q", id), err, core.ErrInvalidID)
		}
	}
	for _, queue := range []string{"nowhere", "", "a b", "\x00"} {
		_, err := e.Store.Track(e.Ctx, ports.TrackRequest{Queue: queue, ID: "a"})
		e.Refused("Track in an unknown queue", err, ports.ErrUnknownQueue)
		_, err = e.Store.Tracked(e.Ctx, queue)
		e.Refused("Tracked of an unknown queue", err, ports.ErrUnknownQueue)
	}
	tracked(e)
}
