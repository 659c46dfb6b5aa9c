package core_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/skeinq/skein/core"
)

const (
	now       core.Instant = 1_800_000_000_000_000
	claimedAt              = now - 5_000_000
)

// claimOf is a claim with payloads a, b, c … at scores 0, 1, 2 ….
func claimOf(payloads int, retryCount, recoveries int) *core.Claim {
	c := &core.Claim{Receipt: core.Receipt{Token: 7, Number: 3}}
	c.ID = "id"
	for i := range payloads {
		c.Payloads = append(c.Payloads, payload(string(rune('a'+i)), float64(i)))
	}
	c.State = core.State{
		PerformAt:  claimedAt,
		RetryCount: retryCount,
		Recoveries: recoveries,
		FirstPush:  claimedAt,
		Failures:   core.Failures{{Text: "before"}},
	}
	return c
}

func equalJobs(t *testing.T, what string, want, got core.Job) {
	t.Helper()
	if len(want.Payloads) == 0 && len(got.Payloads) == 0 {
		return
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(core.State{}, "FirstPush")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestFailureVectors(t *testing.T) {
	type vector struct {
		Job        vectorJob
		Now        core.Instant `json:"now_us"`
		Error      string
		MaxRetries int `json:"max_retries"`
		Hold       bool
		Jitter     int
		Done       []int
		Buried     []int
		Outcome    struct {
			Requeue *vectorJob
			Bury    struct {
				Payloads vectorPayloads
				Errors   []string
			}
		}
	}

	for i, v := range vectors[vector](t, "failure.json") {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			policy := core.RetryPolicy{MaxRetries: v.MaxRetries, Exhausted: exhaustion(v.Hold)}
			claim := &core.Claim{Job: v.Job.job()}
			outcome := &core.Outcome{Kind: core.Failed, Error: v.Error, Payloads: vectorMarks(v.Done, v.Buried)}
			s := policy.Settlement(claim, outcome, v.Jitter)
			back, dead := s.Apply(claim.Job, v.Now)

			equalJobs(t, "put back", v.Outcome.Requeue.back(), back)
			equal(t, "buried", v.Outcome.Bury.Payloads.payloads(), dead.Payloads)
			equal(t, "failures of what is buried", failures(v.Outcome.Bury.Errors...), s.Letter.Failures)
			if !s.Failed || s.Processed {
				t.Errorf("a failure counts as failed, not as processed: %+v", s)
			}
		})
	}
}

func exhaustion(hold bool) core.Exhaustion {
	if hold {
		return core.Hold
	}
	return core.BuryFirst
}

// vectorMarks returns the outcomes of the payloads that a vector lists by position.
func vectorMarks(done, buried []int) (marks []core.PayloadOutcome) {
	for _, at := range done {
		marks = append(marks, core.PayloadOutcome{Position: at})
	}
	for _, at := range buried {
		marks = append(marks, core.PayloadOutcome{Position: at, Bury: true, Error: "by hand"})
	}
	slices.SortFunc(marks, func(a, b core.PayloadOutcome) int { return a.Position - b.Position })
	return marks
}

func TestRecoveryVectors(t *testing.T) {
	type vector struct {
		Job           vectorJob
		Now           core.Instant `json:"now_us"`
		MaxRecoveries int          `json:"max_recoveries"`
		Hold          bool
		// Ended is how many payloads, from the first on, ended by themselves before the owner was lost.
		Ended   int
		Begun   bool
		Outcome struct {
			Requeue   *vectorJob
			BuryFirst bool `json:"bury_first"`
			Buried    vectorPayloads
		}
	}

	for i, v := range vectors[vector](t, "recovery.json") {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			policy := core.RetryPolicy{MaxRetries: 25, MaxRecoveries: v.MaxRecoveries, Exhausted: exhaustion(v.Hold)}
			claim := &core.Claim{Job: v.Job.job()}

			for range v.Ended {
				part := claim.SettlePayload(0)
				left, ok := part.Apply(*claim)
				if !ok {
					t.Fatal("the claim has no other payload")
				}
				claim = &left
			}

			recoveries := claim.Recoveries
			claim.Begun = v.Begun
			s := policy.Recover(claim, 0)
			back, dead := s.Apply(claim.Job, v.Now)

			equalJobs(t, "put back", v.Outcome.Requeue.back(), back)
			equal(t, "buried", v.Outcome.Buried.payloads(), dead.Payloads)
			if buried := len(dead.Payloads) > 0; buried != v.Outcome.BuryFirst {
				t.Errorf("buried: %v, want %v", buried, v.Outcome.BuryFirst)
			}

			lost := recoveries
			if v.Begun || lost == 0 {
				lost++
			}
			if v.Outcome.BuryFirst && !strings.Contains(s.Letter.Failures.Newest().Text, fmt.Sprint(lost)) {
				t.Errorf("the error %q does not state how often the owner was lost", s.Letter.Failures.Newest().Text)
			}
		})
	}
}

// A job that was recovered more often than its queue allows, as in the queue that it was moved
// from, does not run.
func TestMovedVectors(t *testing.T) {
	type vector struct {
		About         string
		Job           vectorJob
		Now           core.Instant `json:"now_us"`
		MaxRecoveries int          `json:"max_recoveries"`
		Hold, Runs    bool
		Outcome       struct {
			Requeue *vectorJob
			Buried  vectorPayloads
		}
	}

	for _, v := range vectors[vector](t, "moved.json") {
		t.Run(v.About, func(t *testing.T) {
			policy := core.RetryPolicy{MaxRetries: 25, MaxRecoveries: v.MaxRecoveries, Exhausted: exhaustion(v.Hold)}
			claim := &core.Claim{Job: v.Job.job()}
			equal(t, "whether it runs", v.Runs, !policy.RecoveredTooOften(claim))
			if v.Runs {
				return
			}

			s := policy.Recover(claim, 0)
			back, dead := s.Apply(claim.Job, v.Now)
			equalJobs(t, "put back", v.Outcome.Requeue.back(), back)
			equal(t, "buried", v.Outcome.Buried.payloads(), dead.Payloads)
		})
	}
}

// end is the result of an outcome: which payloads go where, and how they return.
type end struct {
	back, dead string
	state      core.State
	buryError  string
	processed  bool
	failed     bool
}

func endOf(c *core.Claim, s core.Settlement) end {
	back, dead := s.Apply(c.Job, now)
	e := end{back: names(back.Payloads), dead: names(dead.Payloads), processed: s.Processed, failed: s.Failed}
	if e.back != "" {
		e.state = back.State
	}
	if e.dead != "" {
		e.buryError = dead.Failures.Newest().Text
	}
	return e
}

func names(payloads []core.Payload) string {
	var b strings.Builder
	for _, p := range payloads {
		b.Write(p.Data)
	}
	return b.String()
}

// as is the state in which a job returns; it keeps its FirstPush.
func as(performAt core.Instant, retryCount, recoveries int, errors ...string) core.State {
	return core.State{
		PerformAt:  performAt,
		RetryCount: retryCount,
		Recoveries: recoveries,
		FirstPush:  claimedAt,
		Failures:   failures(errors...),
	}
}

func TestSettlement(t *testing.T) {
	done := func(at int) core.PayloadOutcome { return core.PayloadOutcome{Position: at} }
	bury := func(at int) core.PayloadOutcome {
		return core.PayloadOutcome{Position: at, Bury: true, Error: "bad payload"}
	}
	marks := func(m ...core.PayloadOutcome) []core.PayloadOutcome { return m }
	const backoff0 = 15_000_000
	tests := []struct {
		name    string
		retries int // of the claim; MaxRetries is 2
		outcome core.Outcome
		want    end
	}{
		{"done", -1, core.Outcome{Kind: core.Done}, end{processed: true}},
		{"done but for a buried payload", -1, core.Outcome{Kind: core.Done, Payloads: marks(bury(1))},
			end{dead: "b", buryError: "bad payload", processed: true, failed: true}},
		{"done, a payload by itself as well", -1, core.Outcome{Kind: core.Done, Payloads: marks(done(1))},
			end{processed: true}},

		{"the first failure", -1, core.Outcome{Kind: core.Failed, Error: "boom"},
			end{back: "abc", state: as(now+backoff0, 0, 0, "boom", "before"), failed: true}},
		{"a failure with its own delay", -1,
			core.Outcome{Kind: core.Failed, Error: "boom", OwnDelay: true, Delay: time.Second},
			end{back: "abc", state: as(now+1_000_000, 0, 0, "boom", "before"), failed: true}},
		{"a failure with its own delay of nothing", -1, core.Outcome{Kind: core.Failed, Error: "boom", OwnDelay: true},
			end{back: "abc", state: as(now, 0, 0, "boom", "before"), failed: true}},
		{"a delay that is not the failure's own is ignored", -1,
			core.Outcome{Kind: core.Failed, Error: "boom", Delay: time.Second},
			end{back: "abc", state: as(now+backoff0, 0, 0, "boom", "before"), failed: true}},
		{"a failure of what is not marked", -1,
			core.Outcome{Kind: core.Failed, Error: "boom", Payloads: marks(done(0), bury(2))},
			end{back: "b", dead: "c", state: as(now+backoff0, 0, 0, "boom", "before"), buryError: "bad payload", failed: true}},
		{"a failure behind what is done is the first", 1,
			core.Outcome{Kind: core.Failed, Error: "boom", Payloads: marks(done(0))},
			end{back: "bc", state: as(now+backoff0, 0, 0, "boom", "before"), failed: true}},
		{"a failure behind what is buried is the first", 1,
			core.Outcome{Kind: core.Failed, Error: "boom", Payloads: marks(bury(0))},
			end{back: "bc", dead: "a", state: as(now+backoff0, 0, 0, "boom", "before"), buryError: "bad payload", failed: true}},
		{"a failure where all are marked", -1,
			core.Outcome{Kind: core.Failed, Error: "boom", Payloads: marks(done(0), done(1), bury(2))},
			end{dead: "c", buryError: "bad payload", failed: true}},

		{"the last failure buries the first", 1, core.Outcome{Kind: core.Failed, Error: "boom"},
			end{back: "bc", dead: "a", state: as(now, -1, 0, "boom", "before"), buryError: "boom", failed: true}},
		{"its own delay does not save it", 1,
			core.Outcome{Kind: core.Failed, Error: "boom", OwnDelay: true, Delay: time.Hour},
			end{back: "bc", dead: "a", state: as(now, -1, 0, "boom", "before"), buryError: "boom", failed: true}},
		{"a done payload further on changes nothing for the first", 1,
			core.Outcome{Kind: core.Failed, Error: "boom", Payloads: marks(done(1))},
			end{back: "c", dead: "a", state: as(now, -1, 0, "boom", "before"), buryError: "boom", failed: true}},
		{"the last failure beside a buried payload", 1,
			core.Outcome{Kind: core.Failed, Error: "boom", Payloads: marks(bury(1))},
			end{back: "c", dead: "ab", state: as(now, -1, 0, "boom", "before"), buryError: "boom", failed: true}},
		{"the last failure where all are done", 1,
			core.Outcome{Kind: core.Failed, Error: "boom", Payloads: marks(done(0), done(1), done(2))},
			end{failed: true}},
		{"the last failure where all are marked", 1,
			core.Outcome{Kind: core.Failed, Error: "boom", Payloads: marks(done(0), bury(1), bury(2))},
			end{dead: "bc", buryError: "bad payload", failed: true}},

		{"buried", -1, core.Outcome{Kind: core.Buried, Error: "hopeless"},
			end{dead: "abc", buryError: "hopeless", failed: true}},
		{"buried but for what is done", -1,
			core.Outcome{Kind: core.Buried, Error: "hopeless", Payloads: marks(done(1))},
			end{dead: "ac", buryError: "hopeless", failed: true}},
		{"buried where each payload has a reason of its own", -1,
			core.Outcome{Kind: core.Buried, Error: "hopeless", Payloads: marks(done(0), bury(1), bury(2))},
			end{dead: "bc", buryError: "bad payload", failed: true}},

		{"snoozed", 1, core.Outcome{Kind: core.Snoozed, Delay: time.Minute},
			end{back: "abc", state: as(now+60_000_000, 1, 0, "before")}},
		{"snoozed but for what is done", -1, core.Outcome{Kind: core.Snoozed, Payloads: marks(done(2))},
			end{back: "ab", state: as(now, -1, 0, "before")}},
		{"snoozed behind a retried payload that is done", 1, core.Outcome{Kind: core.Snoozed, Payloads: marks(done(0))},
			end{back: "bc", state: as(now, -1, 0, "before")}},

		{"awaiting, which ends the backoff", 1, core.Outcome{Kind: core.Awaiting, Delay: time.Minute},
			end{back: "abc", state: as(now+60_000_000, -1, 0)}},
		{"awaiting but for what is done", -1, core.Outcome{Kind: core.Awaiting, Payloads: marks(done(0), bury(1))},
			end{back: "c", dead: "b", state: as(now, -1, 0), buryError: "bad payload", failed: true}},

		{"untouched", 1, core.Outcome{Kind: core.Untouched}, end{back: "abc", state: as(claimedAt, 1, 2, "before")}},
		{"untouched but for what is done", 1, core.Outcome{Kind: core.Untouched, Payloads: marks(done(0))},
			end{back: "bc", state: as(claimedAt, -1, 1, "before")}},
		{"untouched but for a later one that is done", 1, core.Outcome{Kind: core.Untouched, Payloads: marks(done(1))},
			end{back: "ac", state: as(claimedAt, 1, 2, "before")}},
		{"undecided is untouched", -1, core.Outcome{}, end{back: "abc", state: as(claimedAt, -1, 2, "before")}},

		{"dropped", 1, core.Outcome{Kind: core.Dropped}, end{}},
		{"dropped but for a buried payload", 1, core.Outcome{Kind: core.Dropped, Payloads: marks(bury(0))},
			end{dead: "a", buryError: "bad payload", failed: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			claim := claimOf(3, tt.retries, 2)
			s := core.RetryPolicy{MaxRetries: 2}.Settlement(claim, &tt.outcome, 0)
			if s.ID != claim.ID || s.Receipt != claim.Receipt {
				t.Errorf("it settles %q %v, not the claim", s.ID, s.Receipt)
			}
			if diff := cmp.Diff(tt.want, endOf(claim, s), cmp.AllowUnexported(end{})); diff != "" {
				t.Errorf("end (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettleDrawsTheWaitFromThePolicy(t *testing.T) {
	asked := ""
	policy := core.RetryPolicy{MaxRetries: 9, Backoff: func(retryCount, jitter int) time.Duration {
		asked += fmt.Sprintf("retry %d, jitter %d", retryCount, jitter)
		return time.Duration(jitter) * time.Second
	}}
	fail := &core.Outcome{Kind: core.Failed}
	s := policy.Settlement(claimOf(1, 3, 0), fail, 6)
	if asked != "retry 4, jitter 6" || s.PutBack.Delay != 6*time.Second {
		t.Errorf("asked for %s, waits %v", asked, s.PutBack.Delay)
	}
	if s := policy.Settlement(claimOf(1, 3, 0), fail, -6); s.PutBack.Delay != 0 {
		t.Errorf("a negative backoff waits %v", s.PutBack.Delay)
	}
}

func begun(c *core.Claim) *core.Claim {
	c.Begun = true
	return c
}

func TestRecoveredTooOftenIsAboveTheBound(t *testing.T) {
	for _, tt := range []struct {
		recoveries, most int
		want             bool
	}{
		{0, 0, false}, {1, 0, true}, {3, 3, false}, {4, 3, true},
	} {
		policy, c := core.RetryPolicy{MaxRecoveries: tt.most}, claimOf(2, -1, tt.recoveries)
		if got := policy.RecoveredTooOften(c); got != tt.want {
			t.Errorf("Recoveries %d of at most %d: %v, want %v", tt.recoveries, tt.most, got, tt.want)
		}
		// Such a job has not begun, and is buried all the same.
		if s := policy.Recover(c, 0); tt.want && (s.Letter.Failures.Newest().Text == "" || len(s.Except) != 1) {
			t.Errorf("Recoveries %d of at most %d: %+v, want its first payload buried", tt.recoveries, tt.most, s)
		}
	}
}

func TestLastChanceIsOneRecoveryFromTheMorgue(t *testing.T) {
	tests := []struct {
		recoveries, most int
		want             bool
	}{
		{0, 0, false}, {0, 3, false}, {1, 0, true}, {1, 1, true}, {1, 2, false}, {2, 3, false}, {3, 3, true},
		{4, 3, true},
	}
	for _, tt := range tests {
		if got := (core.RetryPolicy{MaxRecoveries: tt.most}).LastChance(claimOf(1, -1, tt.recoveries)); got != tt.want {
			t.Errorf("Recoveries %d of at most %d: %v, want %v", tt.recoveries, tt.most, got, tt.want)
		}
	}
}

func TestRecover(t *testing.T) {
	policy := core.RetryPolicy{MaxRetries: 2, MaxRecoveries: 3}
	tests := []struct {
		name  string
		claim *core.Claim
		want  end
	}{
		{"a lost owner", claimOf(3, -1, 0), end{back: "abc", state: as(claimedAt, -1, 1, "before")}},
		{"the third in a row, with retries", begun(claimOf(3, 1, 2)),
			end{back: "abc", state: as(claimedAt, 1, 3, "before")}},
		{"the third while it waited to start", claimOf(3, 1, 2),
			end{back: "abc", state: as(claimedAt, 1, 2, "before")}},
		{"the fourth while it waited to start", claimOf(3, 1, 3),
			end{back: "abc", state: as(claimedAt, 1, 3, "before")}},
		{"the fourth", begun(claimOf(3, 1, 3)), end{back: "bc", dead: "a", state: as(now, -1, 0, "before"),
			buryError: "its server was lost 4 times while it ran: the job may be crashing its process", failed: true}},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := policy.Recover(tt.claim, 0)
			if s.ID != tt.claim.ID || s.Receipt != tt.claim.Receipt {
				t.Errorf("it settles %q %v, not the claim", s.ID, s.Receipt)
			}
			if diff := cmp.Diff(tt.want, endOf(tt.claim, s), cmp.AllowUnexported(end{})); diff != "" {
				t.Errorf("end (-want +got):\n%s", diff)
			}
		})
	}
}

// The slot of a claim survives only a put-back untouched, as long as its first payload is left.
func TestSlotsOfSettlements(t *testing.T) {
	first, second := []core.PayloadOutcome{{Position: 0}}, []core.PayloadOutcome{{Position: 1}}
	tests := []struct {
		name    string
		outcome core.Outcome
		want    string
	}{
		{"untouched", core.Outcome{Kind: core.Untouched}, "tenant"},
		{"undecided", core.Outcome{}, "tenant"},
		{"untouched, with a later payload done", core.Outcome{Kind: core.Untouched, Payloads: second}, "tenant"},
		{"untouched, with its first payload done", core.Outcome{Kind: core.Untouched, Payloads: first}, ""},
		{"failed", core.Outcome{Kind: core.Failed, OwnDelay: true}, ""},
		{"exhausted", core.Outcome{Kind: core.Failed, Payloads: second}, ""},
		{"snoozed", core.Outcome{Kind: core.Snoozed}, ""},
		{"awaiting", core.Outcome{Kind: core.Awaiting}, ""},
	}

	for _, tt := range tests {
		claim := claimOf(3, -1, 1)
		claim.Slot = "tenant"
		s := core.RetryPolicy{MaxRetries: 1}.Settlement(claim, &tt.outcome, 0)
		back, _ := s.Apply(claim.Job, now)
		equal(t, tt.name, tt.want, back.Slot)
	}

	claim := claimOf(3, -1, 1)
	claim.Slot = "tenant"
	for position, want := range []string{"", "tenant"} {
		part := claim.SettlePayload(position)
		left, _ := part.Apply(*claim)
		equal(t, "a part", want, left.Slot)
	}
}

func TestPutOffIsAPutBackUntouchedForATime(t *testing.T) {
	for _, slot := range []string{"", "tenant"} {
		claim := claimOf(3, 1, 2)
		claim.Slot = "another"
		want := as(now+60_000_000, 1, 2, "before")
		want.Slot = slot

		s := claim.PutOff(time.Minute, slot)
		if s.ID != claim.ID || s.Receipt != claim.Receipt {
			t.Errorf("it settles %q %v, not the claim", s.ID, s.Receipt)
		}
		if diff := cmp.Diff(end{back: "abc", state: want}, endOf(claim, s), cmp.AllowUnexported(end{})); diff != "" {
			t.Errorf("slot %q: end (-want +got):\n%s", slot, diff)
		}
	}
}

func TestOutcomeKindsHaveNames(t *testing.T) {
	want := []string{"undecided", "done", "failed", "buried", "snoozed", "untouched", "dropped", "awaiting",
		"undecided"}
	for kind, name := range want {
		if got := core.OutcomeKind(kind).String(); got != name {
			t.Errorf("kind %d is %q, want %q", kind, got, name)
		}
	}
}
