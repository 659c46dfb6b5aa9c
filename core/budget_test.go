package core_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

// job is the ordered payloads of a due job, given by their sizes in bytes.
func job(sizes ...int) []core.Payload {
	var payloads []core.Payload
	for i, size := range sizes {
		payloads = append(payloads, core.Payload{Data: make([]byte, size), Score: float64(i)})
	}
	return payloads
}

func jobs(count, payloads, size int) [][]core.Payload {
	sizes := make([]int, payloads)
	for i := range sizes {
		sizes[i] = size
	}
	list := make([][]core.Payload, count)
	for i := range list {
		list[i] = job(sizes...)
	}
	return list
}

// claim offers due jobs as a store does, and returns the number of claimed payloads of each.
func claim(b core.Budget, due [][]core.Payload) []int {
	var claimed []int
	for _, payloads := range due {
		if !b.Open() {
			break
		}
		n := b.Take(payloads)
		if n == 0 {
			break
		}
		claimed = append(claimed, n)
	}
	return claimed
}

func TestBudget(t *testing.T) {
	const mib = 1 << 20
	due := func(jobs ...[]core.Payload) [][]core.Payload { return jobs }
	tests := []struct {
		name   string
		budget core.Budget
		due    [][]core.Payload
		want   []int
	}{
		{"the zero value claims nothing", core.Budget{}, due(job(1)), nil},
		{"less than no jobs claims nothing", core.Budget{Jobs: -1}, due(job(1)), nil},
		{"nothing is due", core.Budget{Jobs: 3}, nil, nil},
		{"all that is due", core.Budget{Jobs: 3}, due(job(1), job(1, 1)), []int{1, 2}},
		{"no more jobs than asked for", core.Budget{Jobs: 2}, due(job(1), job(1), job(1)), []int{1, 1}},

		{"a job with more payloads than PerJob is cut, and the next is not taken",
			core.Budget{Jobs: 3, PerJob: 2}, due(job(1, 1), job(1, 1, 1), job(1)), []int{2, 2}},
		{"PerJob is for each job", core.Budget{Jobs: 3, PerJob: 2}, due(job(1, 1), job(1), job(1, 1)), []int{2, 1, 2}},

		{"bytes count over all jobs", core.Budget{Jobs: 3, Bytes: 10}, due(job(4), job(4, 2), job(1)), []int{1, 2}},
		{"the first payload that doesn't fit cuts its job", core.Budget{Jobs: 3, Bytes: 10},
			due(job(4), job(4, 3, 1), job(1)), []int{1, 1}},
		{"a job none of which fits stays, and so does the next", core.Budget{Jobs: 3, Bytes: 10},
			due(job(8), job(3), job(1)), []int{1}},
		{"the very first payload is taken, whatever its size", core.Budget{Jobs: 3, Bytes: 10}, due(job(99), job(1)),
			[]int{1}},
		{"but not the second of its job", core.Budget{Jobs: 3, Bytes: 10}, due(job(99, 1)), []int{1}},
		{"empty payloads fit where nothing else does", core.Budget{Jobs: 3, Bytes: 10}, due(job(10, 0), job(0)),
			[]int{2, 1}},
		{"bytes by default", core.Budget{Jobs: 9}, jobs(9, 1, mib), []int{1, 1, 1, 1}},
		{"negative bytes are the default", core.Budget{Jobs: 9, Bytes: -1}, jobs(9, 1, mib), []int{1, 1, 1, 1}},
		{"but no more than a step", core.Budget{Jobs: 9, Bytes: 1 << 30}, jobs(3, 3, mib), []int{3, 3, 2}},
		{"more bytes when told", core.Budget{Jobs: 9, Bytes: 6 * mib}, jobs(9, 1, mib), []int{1, 1, 1, 1, 1, 1}},

		{"payloads count over all jobs", core.Budget{Jobs: 9}, jobs(9, 300, 1), []int{300, 300, 300, 100}},
		{"PerJob by default", core.Budget{Jobs: 9}, jobs(1, core.MaxTurnPayloads+1, 1), []int{core.MaxTurnPayloads}},
		{"no more payloads than a turn's, whatever PerJob", core.Budget{Jobs: 9, PerJob: 5000}, jobs(1, 2000, 1),
			[]int{core.MaxTurnPayloads}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			equal(t, "claimed", tt.want, claim(tt.budget, tt.due))
		})
	}
	if got := claim(core.Budget{Jobs: core.MaxTurnJobs + 1},
		jobs(core.MaxTurnJobs+1, 1, 1)); len(got) != core.MaxTurnJobs {
		t.Errorf("a turn claims %d jobs, at most %d", len(got), core.MaxTurnJobs)
	}
}

func TestClosedBudgetGivesNothing(t *testing.T) {
	tests := []struct {
		name   string
		budget core.Budget
		before []core.Payload
	}{
		{"the zero value", core.Budget{}, nil},
		{"as many jobs as asked for", core.Budget{Jobs: 1}, job(1)},
		{"after a cut", core.Budget{Jobs: 9, Bytes: 2}, job(1, 9)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := tt.budget
			if tt.before != nil {
				b.Take(tt.before)
			}
			if n := b.Take(job(0)); n != 0 || b.Open() {
				t.Errorf("it gave %d payloads, open %v", n, b.Open())
			}
		})
	}
}

// budgetHolds offers any jobs to any budget and checks the result by the rule: no payload except
// the very first exceeds a limit, and no room is left unused.
func budgetHolds(t *rapid.T) {
	b := core.Budget{
		Jobs:   rapid.IntRange(-1, 300).Draw(t, "jobs"),
		PerJob: rapid.IntRange(-1, 1200).Draw(t, "per job"),
		Bytes:  rapid.IntRange(-1, 400).Draw(t, "bytes"),
	}
	sizes := rapid.SliceOfN(rapid.IntRange(0, 60), 1, 40)
	due := rapid.Map(rapid.SliceOfN(sizes, 0, 40), func(all [][]int) [][]core.Payload {
		var list [][]core.Payload
		for _, s := range all {
			list = append(list, job(s...))
		}
		return list
	}).Draw(t, "due")
	perJob, bytes := b.PerJob, b.Bytes
	if perJob <= 0 || perJob > core.MaxTurnPayloads {
		perJob = core.MaxTurnPayloads
	}
	if bytes <= 0 {
		bytes = core.DefaultTurnBytes
	}

	claimed := claim(b, due)
	totalBytes, totalPayloads := 0, 0
	for i, n := range claimed {
		cut := n < len(due[i])
		if n < 1 || n > perJob || cut && i < len(claimed)-1 {
			t.Fatalf("job %d of %d gave %d of %d payloads", i, len(claimed), n, len(due[i]))
		}
		totalPayloads += n
		for _, p := range due[i][:n] {
			totalBytes += len(p.Data)
		}
	}
	if len(claimed) > max(0, min(b.Jobs, core.MaxTurnJobs)) || totalPayloads > core.MaxTurnPayloads ||
		totalBytes > bytes && totalPayloads > 1 {
		t.Fatalf("%d jobs, %d payloads, %d bytes", len(claimed), totalPayloads, totalBytes)
	}
	if next, reason := left(due, claimed); next != nil {
		roomForJob := reason == "cut" && claimed[len(claimed)-1] < perJob ||
			reason == "job" && len(claimed) < min(b.Jobs, core.MaxTurnJobs)
		if roomForJob && totalPayloads < core.MaxTurnPayloads &&
			(totalBytes+len(next.Data) <= bytes || totalPayloads == 0) {
			t.Fatalf("the next payload, of %d bytes, would fit: %v claimed of %s",
				len(next.Data), claimed, fmt.Sprint(b))
		}
	}
}

// left is the first due payload that was not claimed: that of a split job or of the next job.
func left(due [][]core.Payload, claimed []int) (next *core.Payload, of string) {
	if n := len(claimed); n > 0 && claimed[n-1] < len(due[n-1]) {
		return &due[n-1][claimed[n-1]], "cut"
	}
	if len(claimed) < len(due) {
		return &due[len(claimed)][0], "job"
	}
	return nil, ""
}

func TestBudgetHolds(t *testing.T) { rapid.Check(t, budgetHolds) }

func FuzzBudget(f *testing.F) { f.Fuzz(rapid.MakeFuzz(budgetHolds)) }
