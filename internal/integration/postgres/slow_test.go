package postgres_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// TestPostgresSlowest prints how long turns take that do the most that they may: on an id with
// SKEIN_TEST_LIST_JOBS payloads, beside an inbox of a tenth as many rows, and with payloads of 12
// MiB.
func TestPostgresSlowest(t *testing.T) {
	tier.Long(t, "measures")
	n := kit.FromVariable(t, "SKEIN_TEST_LIST_JOBS", 20_000)
	for name, ties := range map[string]bool{"rising scores": false, "equal scores": true} {
		w := newWorkbench(t, time.Hour)
		w.queue("hot", n, ties)
		w.acquire("n1")
		var turns, ends []time.Duration
		for range min(6, n/core.MaxTurnPayloads) {
			var claims []core.Claim
			turns = append(turns, took(func() { claims = w.next(1).Claims }))
			ends = append(ends, took(func() { w.next(0, done(claims[0])) }))
		}
		w.shows(fmt.Sprintf("claim 1,000 of %d payloads of an id, %s", n, name), turns)
		w.shows("settle them", ends)
	}

	w := newWorkbench(t, time.Hour)
	w.pushApart(core.PushRule{}, n/10, 20, func(i int) string { return fmt.Sprintf("inbox-%07d", i) })
	w.acquire("n1")
	var turns []time.Duration
	for range 6 {
		turns = append(turns, took(func() { w.next(core.MaxTurnJobs) }))
	}
	w.shows(fmt.Sprintf("turn beside an inbox of %d rows", n/10), turns)

	w = newWorkbench(t, time.Hour)
	for i := range byte(4) {
		_, err := w.store.Push(t.Context(), ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1,
			Entries: []core.Entry{{ID: "large", Payload: core.Payload{Data: large(i), Score: float64(i)}}}})
		w.must(err)
	}
	w.acquire("n1")
	turns = nil
	for range 4 {
		var claims []core.Claim
		turns = append(turns, took(func() { claims = w.next(1).Claims }))
		w.next(0, done(claims[0]))
	}
	w.shows("claim a payload of 12 MiB", turns)
}

// took returns how long a call takes.
func took(call func()) time.Duration {
	began := time.Now()
	call()
	return time.Since(began)
}

// shows prints a row of the table that make measure ends with.
func (w *workbench) shows(name string, times []time.Duration) {
	w.t.Helper()
	slices.Sort(times)
	w.t.Logf("%-50s %8v to %8v", name, times[0].Round(time.Microsecond), times[len(times)-1].Round(time.Microsecond))
}
