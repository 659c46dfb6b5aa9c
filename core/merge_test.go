package core_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

type mergeVector struct {
	Kind      string
	Policy    string
	Now       core.Instant `json:"now_us"`
	FirstPush core.Instant `json:"first_push_us"`
	LimitUS   int64        `json:"limit_us"`
	UrgencyUS int64        `json:"urgency_us"`
	Queued    vectorJob
	Coming    vectorJob
	Merged    vectorJob
}

func (v *mergeVector) rule(t *testing.T) core.PushRule {
	if v.Policy == "urgent" {
		urgent := core.Urgent(time.Duration(v.UrgencyUS) * time.Microsecond)
		if at := core.Pushed(urgent, v.Now).PerformAt; at != v.Coming.PerformAt {
			t.Errorf("the push has the time %d, want %d", at, v.Coming.PerformAt)
		}
		return urgent.Rule(core.PushRule{Kind: core.Debounce})
	}
	kinds := map[string]core.RuleKind{"keep": core.Keep, "earliest": core.Earliest, "debounce": core.Debounce}
	kind, known := kinds[v.Policy]
	if !known {
		t.Fatalf("unknown policy %q", v.Policy)
	}
	return core.PushRule{Kind: kind, Limit: time.Duration(v.LimitUS) * time.Microsecond}
}

func (v *mergeVector) merge(t *testing.T) core.State {
	queued, coming := v.Queued.state(), v.Coming.state()
	queued.FirstPush, coming.FirstPush = v.FirstPush, v.Now
	switch v.Kind {
	case "push":
		return core.MergePush(queued, coming, v.rule(t))
	case "failed", "returned", "recovered":
		return core.MergeReturn(queued, coming)
	case "revived":
		return core.MergeRevive(queued, "", v.Now)
	case "imported":
		return core.MergeImport(queued, coming)
	}
	t.Fatalf("unknown kind %q", v.Kind)
	return core.State{}
}

func TestMergeVectors(t *testing.T) {
	for i, v := range vectors[mergeVector](t, "merge.json") {
		t.Run(fmt.Sprintf("%d_%s_%s", i, v.Kind, v.Policy), func(t *testing.T) {
			payloads := core.MergePayloads(v.Queued.Payloads.payloads(), v.Coming.Payloads.payloads())
			equal(t, "payloads", v.Merged.Payloads.payloads(), payloads)
			got := v.merge(t)
			if diff := cmp.Diff(v.Merged.state(), got, cmpopts.IgnoreFields(core.State{}, "FirstPush")); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAwaitVectors(t *testing.T) {
	type times struct {
		PerformAt core.Instant `json:"perform_at_us"`
		FirstPush core.Instant `json:"first_push_us"`
	}
	type vector struct {
		About     string
		Now       core.Instant `json:"now_us"`
		FirstPush core.Instant `json:"first_push_us"`
		Slot      string
		Delay     int64 `json:"delay_us"`
		Queued    *times
		Merged    times
	}
	for _, v := range vectors[vector](t, "awaits.json") {
		claim := &core.Claim{Job: core.Job{
			ID:    "id",
			State: core.State{RetryCount: 3, FirstPush: v.FirstPush, Failures: core.Failures{{Text: "boom"}}, Slot: v.Slot},
		}}
		claim.Payloads = []core.Payload{payload("p", 1)}
		delay := time.Duration(v.Delay) * time.Microsecond

		s := core.RetryPolicy{}.Settlement(claim, &core.Outcome{Kind: core.Awaiting, Delay: delay}, 0)
		back, _ := s.Apply(claim.Job, v.Now)
		got := back.State

		if v.Queued != nil {
			queued := core.State{
				RetryCount: core.FreshRetryCount,
				PerformAt:  v.Queued.PerformAt,
				FirstPush:  v.Queued.FirstPush,
			}
			got = s.PutBack.Merge(queued, got)
		}

		equal(t, v.About, core.State{
			RetryCount: core.FreshRetryCount,
			PerformAt:  v.Merged.PerformAt,
			FirstPush:  v.Merged.FirstPush,
		}, got)
	}
}

// mergeKinds are the ways in which a coming job meets a queued one. A revive is not among them: it
// has no coming state.
var mergeKinds = map[string]func(queued, coming core.State) core.State{
	"keep": func(q, c core.State) core.State { return core.MergePush(q, c, core.PushRule{}) },
	"earliest": func(q, c core.State) core.State {
		return core.MergePush(q, c, core.PushRule{Kind: core.Earliest})
	},
	"debounce": func(q, c core.State) core.State {
		return core.MergePush(q, c, core.PushRule{Kind: core.Debounce})
	},
	"returned": core.MergeReturn,
	"awaiting": func(q, c core.State) core.State { return core.PutBack{Awaits: true}.Merge(q, c) },
	"imported": core.MergeImport,
}

// An import whose outcome is unknown is repeated, perhaps after others, and a copy may come from
// both sides of a move that was interrupted.
func TestAnImportedStateMayComeAgain(t *testing.T) {
	state := rapid.Custom(func(t *rapid.T) core.State {
		return core.State{
			PerformAt:  rapid.SampledFrom([]core.Instant{0, 1, 2, core.MaxInstant}).Draw(t, "at"),
			RetryCount: rapid.IntRange(-1, 2).Draw(t, "retries"),
			Recoveries: rapid.IntRange(0, 2).Draw(t, "recoveries"),
			FirstPush:  core.Instant(rapid.IntRange(0, 3).Draw(t, "first")),
			Failures:   failures(rapid.SampledFrom([]string{"", "boom"}).Draw(t, "error")),
			Slot:       drawSlot(t),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		there, a, b := state.Draw(t, "there"), state.Draw(t, "a"), state.Draw(t, "b")
		once := core.MergeImport(core.MergeImport(there, a), b)
		for _, again := range []core.State{a, b} {
			if got := core.MergeImport(once, again); !cmp.Equal(got, once) {
				t.Fatalf("importing %+v again made %+v of %+v", again, got, once)
			}
		}
		if held := there.Held() || a.Held() || b.Held(); once.Held() != held {
			t.Fatalf("%+v, %+v and %+v became %+v", there, a, b, once)
		}
	})
}

// drawSlot draws the slot of a job, often none.
func drawSlot(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "a", "é b"}).Draw(t, "slot")
}

func TestEveryMergeKeepsTheSmallerFirstPushAndTheLargerRecoveries(t *testing.T) {
	old := core.State{RetryCount: -1, FirstPush: 3, Recoveries: 1}
	young := core.State{RetryCount: -1, FirstPush: 8, Recoveries: 2}
	for name, merge := range mergeKinds {
		for _, merged := range []core.State{merge(old, young), merge(young, old)} {
			if merged.FirstPush != 3 || merged.Recoveries != 2 {
				t.Errorf("%s: FirstPush %d, Recoveries %d; want 3 and 2", name, merged.FirstPush, merged.Recoveries)
			}
		}
	}
	revived := core.MergeRevive(young, "", 5)
	equal(t, "revived onto a younger push", core.State{
		PerformAt:  5,
		RetryCount: -1,
		FirstPush:  5,
		Recoveries: 2,
	}, revived)
	revived = core.MergeRevive(old, "", 5)
	equal(t, "revived onto an older push", core.State{
		PerformAt:  5,
		RetryCount: -1,
		FirstPush:  3,
		Recoveries: 1,
	}, revived)
}

func TestAwaitingJobRunsWithAPushSinceItsClaim(t *testing.T) {
	coming := core.State{PerformAt: 60, RetryCount: -1, FirstPush: 5}
	tests := []struct {
		name              string
		queued            core.State
		awaits, untouched core.Instant
	}{
		{"pushed since", core.State{PerformAt: 9, RetryCount: -1, FirstPush: 9}, 9, 60},
		{"pushed since, for later", core.State{PerformAt: 99, RetryCount: -1, FirstPush: 9}, 60, 60},
		{"pushed before by a transaction that has committed since",
			core.State{PerformAt: 9, RetryCount: -1, FirstPush: 4}, 9, 60},
		{"the rest of the claim", core.State{PerformAt: 5, RetryCount: -1, FirstPush: 5}, 60, 60},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := core.State{PerformAt: tt.awaits, RetryCount: -1, FirstPush: min(5, tt.queued.FirstPush)}
			equal(t, "awaiting", want, core.PutBack{Awaits: true}.Merge(tt.queued, coming))
			want.PerformAt = tt.untouched
			equal(t, "not awaiting", want, core.PutBack{}.Merge(tt.queued, coming))
		})
	}
}

func TestPushRuleMovesOnlyFreshJobsWithoutASlot(t *testing.T) {
	const minute = core.Instant(60_000_000)
	queued := core.State{PerformAt: 10 * minute, RetryCount: -1, FirstPush: 9 * minute, Failures: core.Failures{{Text: "kept"}}}
	tests := []struct {
		name   string
		rule   core.PushRule
		coming core.Instant
		want   core.Instant
	}{
		{"keep leaves the time", core.PushRule{}, 1 * minute, 10 * minute},
		{"earliest takes the sooner", core.PushRule{Kind: core.Earliest}, 1 * minute, 1 * minute},
		{"earliest keeps the sooner", core.PushRule{Kind: core.Earliest}, 12 * minute, 10 * minute},
		{"debounce never moves it earlier", core.PushRule{Kind: core.Debounce}, 1 * minute, 10 * minute},
		{"debounce stops a minute after the first push", core.PushRule{Kind: core.Debounce}, 30 * minute, 10 * minute},
		{"debounce moves it within its limit", core.PushRule{Kind: core.Debounce, Limit: time.Hour}, 30 * minute,
			30 * minute},
		{"debounce stops at its limit", core.PushRule{Kind: core.Debounce, Limit: 5 * time.Minute}, 30 * minute,
			14 * minute},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			coming := core.State{PerformAt: tt.coming, RetryCount: -1, FirstPush: 11 * minute}
			want := queued
			want.PerformAt = tt.want
			equal(t, "fresh", want, core.MergePush(queued, coming, tt.rule))

			backingOff := queued
			backingOff.RetryCount = 0
			equal(t, "in backoff", backingOff, core.MergePush(backingOff, coming, tt.rule))

			waiting := queued
			waiting.Slot = "tenant"
			equal(t, "with a slot", waiting, core.MergePush(waiting, coming, tt.rule))
		})
	}
}

func TestPushAndReviveMakeFreshJobs(t *testing.T) {
	equal(t, "pushed now", core.State{PerformAt: 7, RetryCount: -1, FirstPush: 7}, core.Pushed(core.When{}, 7))
	equal(t, "pushed for later", core.State{PerformAt: 90, RetryCount: -1, FirstPush: 7}, core.Pushed(core.At(90), 7))
	equal(t, "revived", core.State{PerformAt: 7, RetryCount: -1, FirstPush: 7}, core.Revived("", 7))
	if !core.Pushed(core.When{}, 7).Fresh() || (core.State{RetryCount: 0}).Fresh() {
		t.Error("a pushed job is fresh, one that failed once is not")
	}
}

func TestMorgueEntriesUniteWithTheNewestTimeAndError(t *testing.T) {
	tie := func(meta string) core.Payload {
		return core.Payload{Data: []byte("tie"), Score: 3, Meta: []byte(meta)}
	}
	there := core.DeadLetter{
		ID:        "id",
		Payloads:  []core.Payload{payload("a", 1), payload("b", 2), tie("there")},
		ChangedAt: 5,
		Failures:  core.Failures{{Text: "old"}},
	}
	coming := core.DeadLetter{
		ID:        "id",
		Payloads:  []core.Payload{payload("b", 1), tie("coming"), payload("c", 4)},
		ChangedAt: 9,
		Failures:  core.Failures{{Text: "new"}},
	}
	want := core.DeadLetter{
		ID:        "id",
		Payloads:  []core.Payload{payload("a", 1), payload("b", 1), tie("there"), payload("c", 4)},
		ChangedAt: 9,
		Failures:  core.Failures{{Text: "new"}},
	}
	merged, _ := core.MergeDeadLetters(there, coming, core.MergeRule{})
	equal(t, "entry", want, merged)
}

func TestPushRuleValidate(t *testing.T) {
	tests := []struct {
		name  string
		rule  core.PushRule
		valid bool
	}{
		{"the zero value", core.PushRule{}, true},
		{"earliest", core.PushRule{Kind: core.Earliest}, true},
		{"debounce with a limit", core.PushRule{Kind: core.Debounce, Limit: time.Second}, true},
		{"an unknown kind", core.PushRule{Kind: core.Debounce + 1}, false},
		{"a negative limit", core.PushRule{Kind: core.Debounce, Limit: -1}, false},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.rule.Validate(); errors.Is(err, core.ErrInvalidRule) == tt.valid || (err == nil) != tt.valid {
				t.Errorf("got %v", err)
			}
		})
	}
	if got := (core.PushRule{Kind: core.Debounce}).MaxDelay(); got != core.DefaultDebounceLimit {
		t.Errorf("the limit of a rule that gives none is %v", got)
	}
}
