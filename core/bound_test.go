package core_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
)

func TestBound(t *testing.T) {
	const mib = 1 << 20
	take := func(b *core.Bound, payloads []core.Payload) int { return b.Take(payloads) }

	whole := func(b *core.Bound, payloads []core.Payload) int {
		if b.TakeWhole(payloads[:1], payloads[1:]) {
			return len(payloads)
		}
		return 0
	}

	tests := []struct {
		name string
		take func(*core.Bound, []core.Payload) int
		of   [][]core.Payload
		want []int
		full bool
	}{
		{"all fit", take, jobs(2, 500, 1), []int{500, 500}, false},
		{"no more than 1,000 payloads", take, jobs(3, 600, 1), []int{600, 400, 0}, true},
		{"no more than 8 MiB", take, jobs(3, 3, mib), []int{3, 3, 2}, true},
		{"the first passes, however large it is", take, jobs(2, 2, 9*mib), []int{1, 0}, true},
		{"nothing fits after what did not", take, append(jobs(1, 9, mib), job(1)), []int{8, 0}, true},
		{"whole: all fit", whole, jobs(2, 500, 1), []int{500, 500}, false},
		{"whole: no more than 1,000 payloads", whole, jobs(3, 501, 1), []int{501, 0, 0}, true},
		{"whole: no more than 8 MiB", whole, jobs(3, 4, mib), []int{4, 4, 0}, true},
		{"whole: the first passes, however much it is", whole, jobs(2, 2000, mib/100), []int{2000, 0}, true},
		{"whole: nothing fits after what did not", whole, append(jobs(2, 5, mib), job(1)), []int{5, 0, 0}, true},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var (
				b   core.Bound
				got []int
			)
			for _, payloads := range tt.of {
				got = append(got, tt.take(&b, payloads))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || b.Full() != tt.full {
				t.Errorf("full %v, want %v; taken (-want +got):\n%s", b.Full(), tt.full, diff)
			}
		})
	}
}

// The payloads that a turn hands over reduce the budget of its claims. Then the first claimed
// payload is no exception.
func TestABudgetCarriesWhatATurnHandsOver(t *testing.T) {
	handedOver := func(payloads, size int) []core.Claim {
		return []core.Claim{{Job: core.Job{Payloads: jobs(1, payloads, size)[0]}}}
	}

	tests := []struct {
		name       string
		handedOver []core.Claim
		want       []int
	}{
		{"nothing", nil, []int{5, 5}},
		{"payloads", handedOver(993, 0), []int{5, 2}},
		{"all payloads", handedOver(1000, 0), nil},
		{"bytes", handedOver(1, 94), []int{5, 1}},
		{"all bytes", handedOver(1, 100), nil},
	}

	for _, tt := range tests {
		b := core.Budget{Jobs: 9, Bytes: 100}
		b.Carry(tt.handedOver)
		if diff := cmp.Diff(tt.want, claim(b, jobs(2, 5, 1))); diff != "" {
			t.Errorf("%s: claimed (-want +got):\n%s", tt.name, diff)
		}
	}
}
