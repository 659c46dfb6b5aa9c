package dashboard

import (
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// A held job is a line of the overview, has a list and a button, and runs again once it is
// released.
func TestHeldJobsAreShownAndReleased(t *testing.T) {
	h := newHouse(t, Options{})
	h.hold("boom", "a", "b")
	says(t, h.get("/"), "2 jobs held after the last retry")
	list := h.get("/jobs?q=orders&list=held")
	says(t, list, "● held", "boom", "Release", "skein job bury-first")
	id := h.get("/id?q=orders&id=a")
	says(t, id, "Held, since its retries", "due no: never, until it is released",
		"Release", "skein job bury-first")
	if strings.Contains(id, "2255") {
		t.Error("the page of a held job shows the last instant")
	}
	h.advance(time.Second)
	sheet := h.get("/sheet?q=orders&op=release")
	says(t, sheet, "● held")
	if strings.Contains(sheet, "2255") {
		t.Error("the preview of a release shows the last instant")
	}
	says(t, h.do("op", "release", "q", "orders", "id", "a", "back", "jobs", "back.list", "held"), "1", "released")
	h.advance(time.Second)
	says(t, h.get("/sheet?q=orders&op=release"), "1 match of 1", "Release 1")
}

// hold pushes jobs that are held after their first failure.
func (h *house) hold(text string, ids ...string) {
	h.t.Helper()
	for _, id := range ids {
		h.push("orders", id, 0, "p")
	}
	policy := core.RetryPolicy{Exhausted: core.Hold}
	for index := range houseShards {
		for _, c := range h.turn("orders", index, 10) {
			h.turn("orders", index, 0, policy.Settlement(&c, &core.Outcome{Kind: core.Failed, Error: text}, 0))
		}
	}
}
