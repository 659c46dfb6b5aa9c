package core_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

var dispositions = []core.Disposition{core.Discard, core.Requeue, core.Bury}

// drawSettlement draws a settlement, which core itself might not compute: a store may get any
// settlement. Positions ascend, as they must.
func drawSettlement(t *rapid.T, payloads int) core.Settlement {
	s := core.Settlement{
		ID:     "id",
		Rest:   rapid.SampledFrom(dispositions).Draw(t, "rest"),
		Letter: core.DeadLetter{Failures: core.Failures{{Text: "why"}}},
		PutBack: core.PutBack{
			SameTime:   rapid.Bool().Draw(t, "same time"),
			Delay:      time.Duration(rapid.Int64().Draw(t, "delay")),
			RetryCount: rapid.IntRange(-1, 3).Draw(t, "retry count"),
			Recoveries: rapid.IntRange(0, 3).Draw(t, "recoveries"),
			Failures:   core.Failures{{Text: "returned"}},
			Slot:       drawSlot(t),
		},
	}
	for at := -2; at < payloads+2; at++ {
		if rapid.Bool().Draw(t, "excepted") {
			d := rapid.SampledFrom(dispositions).Draw(t, "disposition")
			s.Except = append(s.Except, core.PayloadDisposition{Position: at, Disposition: d})
		}
	}
	return s
}

// applyConservesPayloads checks Apply with a list of where each payload must be.
func applyConservesPayloads(t *rapid.T) {
	claim := claimOf(rapid.IntRange(0, 12).Draw(t, "payloads"), rapid.IntRange(-1, 3).Draw(t, "retries"), 1)
	s := drawSettlement(t, len(claim.Payloads))

	ends := map[core.Disposition][]core.Payload{}
	for i, p := range claim.Payloads {
		d := s.Rest
		for _, e := range s.Except {
			if e.Position == i {
				d = e.Disposition
			}
		}
		ends[d] = append(ends[d], p)
	}

	back, dead := s.Apply(claim.Job, now)
	if diff := cmp.Diff(ends[core.Requeue], back.Payloads); diff != "" {
		t.Fatalf("put back (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(ends[core.Bury], dead.Payloads); diff != "" {
		t.Fatalf("buried (-want +got):\n%s", diff)
	}

	if s.Plain() && len(back.Payloads)+len(dead.Payloads) > 0 {
		t.Fatalf("Plain, with %d put back and %d buried", len(back.Payloads), len(dead.Payloads))
	}
	if len(back.Payloads) > 0 && (back.PerformAt < 0 || back.PerformAt > core.MaxInstant) {
		t.Fatalf("put back to %d", back.PerformAt)
	}
	if len(back.Payloads) > 0 && back.Slot != s.PutBack.Slot {
		t.Fatalf("put back with the slot %q, want %q", back.Slot, s.PutBack.Slot)
	}
}

func TestApplyConservesPayloads(t *testing.T) { rapid.Check(t, applyConservesPayloads) }

func FuzzSettlementApply(f *testing.F) { f.Fuzz(rapid.MakeFuzz(applyConservesPayloads)) }

// drawOutcome returns an outcome of a random kind that marks some payloads, as a handler does.
func drawOutcome(t *rapid.T, payloads int) core.Outcome {
	o := core.Outcome{
		Kind: rapid.SampledFrom([]core.OutcomeKind{
			core.Undecided, core.Done, core.Failed, core.Buried, core.Snoozed, core.Untouched, core.Dropped,
		}).Draw(t, "kind"),
		Delay:    time.Duration(rapid.Int64().Draw(t, "delay")),
		OwnDelay: rapid.Bool().Draw(t, "own delay"),
	}
	for at := range payloads {
		if rapid.Bool().Draw(t, "marked") {
			o.Payloads = append(o.Payloads, core.PayloadOutcome{Position: at, Bury: rapid.Bool().Draw(t, "bury")})
		}
	}
	return o
}

// TestSettleHeedsEveryMark: whatever the outcome of the job, a payload marked done is gone and one
// marked buried is in the morgue. A failure buries at most the first of the other payloads: the one
// that Exhausts returns.
func TestSettleHeedsEveryMark(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claim := claimOf(rapid.IntRange(1, 10).Draw(t, "payloads"), rapid.IntRange(-1, 3).Draw(t, "retries"), 1)
		outcome := drawOutcome(t, len(claim.Payloads))
		policy := core.RetryPolicy{MaxRetries: 2}
		s := policy.Settlement(claim, &outcome, 0)

		open, buried := "", ""
		marked := map[int]core.PayloadOutcome{}
		for _, m := range outcome.Payloads {
			marked[m.Position] = m
		}

		for i, p := range claim.Payloads {
			switch m, ok := marked[i]; {
			case !ok:
				open += string(p.Data)
			case m.Bury:
				buried += string(p.Data)
			}
		}

		wantBack, wantDead, exhausted := open, buried, ""
		switch {
		case outcome.Kind == core.Done || outcome.Kind == core.Dropped:
			wantBack = ""
		case outcome.Kind == core.Buried:
			wantBack, wantDead = "", buried+open
		case outcome.Kind == core.Failed && claim.RetryCount+1 >= 2 && open != "" && open[0] == 'a':
			wantBack, wantDead, exhausted = open[1:], buried+open[:1], open[:1]
		}

		back, dead := s.Apply(claim.Job, now)
		if got := names(back.Payloads); got != wantBack {
			t.Fatalf("put back %q, want %q", got, wantBack)
		}
		if got := names(dead.Payloads); got != sorted(wantDead) {
			t.Fatalf("buried %q, want %q", got, sorted(wantDead))
		}
		if at, ok := policy.Exhausts(claim, &outcome); ok != (exhausted != "") ||
			ok && string(claim.Payloads[at].Data) != exhausted {
			t.Fatalf("Exhausts returned %d, %v; want the position of %q", at, ok, exhausted)
		}
	})
}

func sorted(text string) string {
	b := []byte(text)
	slices.Sort(b)
	return string(b)
}

func TestSettlementIsPlain(t *testing.T) {
	except := func(d core.Disposition) []core.PayloadDisposition {
		return []core.PayloadDisposition{{Position: 1, Disposition: d}}
	}

	tests := []struct {
		name       string
		settlement core.Settlement
		plain      bool
	}{
		{"the zero value", core.Settlement{}, true},
		{"all discarded, one by itself", core.Settlement{Except: except(core.Discard)}, true},
		{"put back", core.Settlement{Rest: core.Requeue}, false},
		{"put back but for a buried one", core.Settlement{Rest: core.Requeue, Except: except(core.Bury)}, false},
		{"one buried", core.Settlement{Except: except(core.Bury)}, false},
		{"one put back", core.Settlement{Except: except(core.Requeue)}, false},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.settlement.Plain(); got != tt.plain {
				t.Errorf("Plain = %v", got)
			}
		})
	}
}

// What a settlement puts back or buries has its failures as stores keep them.
func TestASettlementStoresFailures(t *testing.T) {
	long := core.Failures{{}, {Text: strings.Repeat("e", core.MaxErrorBytes+1)}}
	s := core.Settlement{
		Rest:    core.Requeue,
		Except:  []core.PayloadDisposition{{Position: 1, Disposition: core.Bury}},
		PutBack: core.PutBack{Failures: long},
		Letter:  core.DeadLetter{Failures: long},
	}
	back, dead := s.Apply(claimOf(2, 0, 0).Job, now)
	equal(t, "put back", long.Stored(), back.Failures)
	equal(t, "buried", long.Stored(), dead.Failures)
}

// A job that an operator buries keeps its failures. One without a failure says that it was buried by
// hand.
func TestAJobBuriedByHand(t *testing.T) {
	job := claimOf(1, 0, 0).Job
	job.Failures = failures("boom", "bang")
	equal(t, "after failures", job.Failures, job.Buried(now).Failures)
	job.Failures = nil
	equal(t, "without one", failures(core.BuriedByHand), job.Buried(now).Failures)
}
