package core_test

import (
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

func TestHeldJobs(t *testing.T) {
	tests := []struct {
		name  string
		state core.State
		held  bool
	}{
		{"the zero value", core.State{}, false},
		{"failed, at the last instant", core.State{PerformAt: core.MaxInstant}, true},
		{"failed, just before", core.State{PerformAt: core.MaxInstant - 1, RetryCount: 25}, false},
		{"fresh, at the last instant", core.State{PerformAt: core.MaxInstant, RetryCount: core.FreshRetryCount}, false},
	}

	for _, tt := range tests {
		if got := tt.state.Held(); got != tt.held {
			t.Errorf("%s: held %t, want %t", tt.name, got, tt.held)
		}
	}

	for _, at := range []core.Instant{0, 1, now, core.MaxInstant - 1, core.MaxInstant} {
		if got := at.Add(core.Forever); got != core.MaxInstant {
			t.Errorf("%d + Forever = %d, want the last instant", at, got)
		}
	}
	if got := core.Instant(0).Add(core.Forever - time.Microsecond); got == core.MaxInstant {
		t.Error("a delay shorter than Forever leads to the last instant too")
	}
}

func TestExpeditedAndWithoutFirst(t *testing.T) {
	state := func(at core.Instant, retry int) core.State {
		return core.State{PerformAt: at, RetryCount: retry, Recoveries: 1, FirstPush: 5, Failures: core.Failures{{Text: "boom"}}}
	}
	anew := func(at core.Instant) core.State {
		s := state(at, core.FreshRetryCount)
		s.Recoveries = 0
		return s
	}

	slotted := func(s core.State) core.State {
		s.Slot = "tenant"
		return s
	}

	tests := []struct {
		name                    string
		before, expedited, rest core.State
		ok                      bool
	}{
		{"held", state(core.MaxInstant, 25), anew(now), anew(now), true},
		{"in backoff", state(now+1, 3), state(now, 3), anew(now), true},
		{"a retry that is due", state(now-1, 3), state(now-1, 3), anew(now - 1), false},
		{"fresh and due", state(now, -1), state(now, -1), state(now, -1), false},
		{"fresh, for later", state(now+1, -1), state(now, -1), state(now+1, -1), true},
		{"fresh, at the last instant", state(core.MaxInstant, -1), state(now, -1), state(core.MaxInstant, -1), true},
		{"with a slot", slotted(state(now+1, -1)), state(now, -1), state(now, -1), true},
		{"with a slot that has come", slotted(state(now-1, -1)), slotted(state(now-1, -1)), state(now-1, -1), false},
		{"in backoff, with a slot", slotted(state(now+1, 3)), state(now, 3), anew(now), true},
	}

	for _, tt := range tests {
		got, ok := tt.before.Expedited(now)
		equal(t, tt.name+", expedited", tt.expedited, got)
		equal(t, tt.name+", whether it was", tt.ok, ok)
		equal(t, tt.name+", without its first payload", tt.rest, tt.before.WithoutFirst(now))
	}
}

func TestFirstVectors(t *testing.T) {
	type vector struct {
		About string
		Job   vectorJob
		Now   core.Instant `json:"now_us"`
		Rest  *vectorJob
	}
	for _, v := range vectors[vector](t, "first.json") {
		if v.Rest == nil {
			continue // there is no state
		}
		equal(t, v.About, v.Rest.state(), v.Job.state().WithoutFirst(v.Now))
		equal(t, v.About+": payloads", v.Rest.Payloads.payloads(), v.Job.Payloads.payloads()[1:])
	}
}

// The state of a returning job stays, so an import or a late push can't hold it. If the returning
// job is held, the queued job becomes held.
func TestReturningJobsDecideWhetherTheJobIsHeld(t *testing.T) {
	held := core.State{PerformAt: core.MaxInstant, RetryCount: 2, FirstPush: 5}
	other := core.State{PerformAt: now, RetryCount: 0, FirstPush: 5}
	if got := core.MergeReturn(other, held); !got.Held() {
		t.Errorf("a held job returned onto another one: %+v", got)
	}
	if got := core.MergeReturn(held, other); got.Held() {
		t.Errorf("a failed job returned onto a held one: %+v", got)
	}
}

func TestExhaustionHoldsOrBuries(t *testing.T) {
	tests := []struct {
		name         string
		retries      int
		outcome      core.Outcome
		buries, hold bool
	}{
		{"the last failure", 1, core.Outcome{Kind: core.Failed}, true, true},
		{"with its own delay", 1, core.Outcome{Kind: core.Failed, OwnDelay: true, Delay: time.Second}, true, true},
		{"a failure before", 0, core.Outcome{Kind: core.Failed}, false, false},
		{"buried by its handler", 1, core.Outcome{Kind: core.Buried}, false, false},
		{"snoozed", 1, core.Outcome{Kind: core.Snoozed}, false, false},
		{"every payload with an outcome of its own", 1, core.Outcome{
			Kind:     core.Failed,
			Payloads: []core.PayloadOutcome{{Position: 0}, {Position: 1}},
		}, false, false},
	}

	for _, tt := range tests {
		claim := claimOf(2, tt.retries, 0)
		bury, hold := core.RetryPolicy{MaxRetries: 2}, core.RetryPolicy{MaxRetries: 2, Exhausted: core.Hold}
		if _, got := bury.Exhausts(claim, &tt.outcome); got != tt.buries || bury.Holds(claim, &tt.outcome) {
			t.Errorf("%s: BuryFirst buries %t, and holds %t", tt.name, got, bury.Holds(claim, &tt.outcome))
		}
		if _, got := hold.Exhausts(claim, &tt.outcome); got || hold.Holds(claim, &tt.outcome) != tt.hold {
			t.Errorf("%s: Hold buries %t, and holds %t", tt.name, got, hold.Holds(claim, &tt.outcome))
		}

		s := hold.Settlement(claim, &tt.outcome, 0)
		back, dead := s.Apply(claim.Job, now)
		if back.Held() != tt.hold || tt.hold && (len(back.Payloads) != 2 || len(dead.Payloads) != 0) {
			t.Errorf("%s: put back as %+v, held %t, with %d dead payloads",
				tt.name, back, back.Held(), len(dead.Payloads))
		}
	}
}
