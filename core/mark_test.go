package core_test

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

func TestStaleVectors(t *testing.T) {
	type vector struct {
		About    string
		Done     []float64
		Payloads []float64
		Stale    int
		Outcome  string
		Own      map[string]bool
		Mark     *float64
	}
	kinds := map[string]core.OutcomeKind{
		"done": core.Done, "failed": core.Failed, "buried": core.Buried, "snoozed": core.Snoozed, "dropped": core.Dropped,
	}
	for _, v := range vectors[vector](t, "stale.json") {
		t.Run(v.About, func(t *testing.T) {
			var mark core.Mark
			for _, score := range v.Done {
				mark = mark.Raised(core.MarkAt(score))
			}
			c := core.Claim{Job: core.Job{ID: "id"}, Mark: mark}
			for i, score := range v.Payloads {
				c.Payloads = append(c.Payloads, payload(strconv.Itoa(i), score))
			}

			stale := c.Stale()
			equal(t, "stale", v.Stale, stale)
			if stale > 0 {
				s := c.DropStale(stale)
				equal(t, "the number to count", stale, s.Stale)
				back, dead := s.Apply(c.Job, 0)
				equal(t, "put back", len(c.Payloads)-stale, len(back.Payloads))
				equal(t, "buried", 0, len(dead.Payloads))
				equal(t, "the mark of what is dropped", core.Mark{}, s.Mark)
				c.Payloads = back.Payloads
			}

			o := core.Outcome{Kind: kinds[v.Outcome]}
			for _, at := range slices.Sorted(maps.Keys(v.Own)) {
				position, _ := strconv.Atoi(at)
				o.Payloads = append(o.Payloads, core.PayloadOutcome{Position: position, Bury: !v.Own[at]})
			}
			s := core.RetryPolicy{}.Settlement(&c, &o, 0)
			s.MarkDone(&c, &o)
			want := core.Mark{}
			if v.Mark != nil {
				want = core.MarkAt(*v.Mark)
			}
			equal(t, "mark", want, mark.Raised(s.Mark))

			// The record of a job that is done has the mark.
			s = core.RetryPolicy{}.Settlement(&c, &o, 0)
			if s.Record(&c, core.Run{}); s.Past != nil {
				s.MarkDone(&c, &o)
				equal(t, "the mark beside a record", core.Mark{}, s.Mark)
				equal(t, "the score of the record", want.Score, s.Past.Score)
			}
		})
	}
}

// What is left of a job without its stale payloads has the state of the rest of a job.
func TestDropStaleKeepsTheRestAsItWas(t *testing.T) {
	state := core.State{
		PerformAt: 7, RetryCount: 3, Recoveries: 2, FirstPush: 5,
		Failures: core.Failures{{Text: "boom"}}, Slot: "slot", Tags: "tag",
	}
	c := core.Claim{
		Job:  core.Job{ID: "id", State: state, Payloads: []core.Payload{payload("a", 1), payload("b", 2), payload("c", 3)}},
		Mark: core.MarkAt(2),
	}
	s := c.DropStale(c.Stale())
	back, _ := s.Apply(c.Job, 100)
	equal(t, "state", state.Rest(), back.State)
	equal(t, "payloads", c.Payloads[2:], back.Payloads)
	equal(t, "processed and failed", false, s.Processed || s.Failed)
}

func TestStaleIsValidated(t *testing.T) {
	keep := core.KeepPast{Age: time.Hour}
	latest, newest := core.MergeRule{Stays: core.Highest, Keep: 1}, core.MergeRule{Stays: core.Highest}
	for _, c := range []struct {
		about string
		stale core.Stale
		rule  core.MergeRule
		keep  core.KeepPast
		ok    bool
	}{
		{"nothing", core.TakeStale, core.MergeRule{}, core.KeepPast{}, true},
		{"latest", core.DropStale, latest, keep, true},
		{"newest", core.DropStale, newest, keep, true},
		{"union", core.DropStale, core.MergeRule{}, keep, false},
		{"every", core.DropStale, core.MergeRule{Same: core.SamePush}, keep, false},
		{"the last of every", core.DropStale, core.MergeRule{Same: core.SamePush}.Last(3), keep, false},
		{"no records", core.DropStale, latest, core.KeepPast{}, false},
		{"an unknown value", core.DropStale + 1, latest, keep, false},
	} {
		err := c.stale.Validate(c.rule, c.keep)
		if errors.Is(err, core.ErrInvalidOptions) == c.ok || (err == nil) != c.ok {
			t.Errorf("%s: %v", c.about, err)
		}
	}
}
