package core_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

func TestPastVectors(t *testing.T) {
	type vector struct {
		About        string
		AgeS         int64 `json:"age_s"`
		Count, Bytes int64
		Records      [][2]int64
		Kept         int
	}
	const now = core.Instant(1_800_000_000_000_000)
	for _, v := range vectors[vector](t, "past.json") {
		t.Run(v.About, func(t *testing.T) {
			keep := core.KeepPast{Age: time.Duration(v.AgeS) * time.Second, Count: v.Count, Bytes: v.Bytes}
			if err := keep.Validate(); err != nil {
				t.Fatal(err)
			}

			var bytes int64
			for _, r := range v.Records {
				bytes += r[1]
			}
			records := v.Records
			for len(records) > 0 && keep.Removes(now-core.Instant(records[0][0]*1e6), int64(len(records)), bytes, now) {
				bytes -= records[0][1]
				records = records[1:]
			}
			equal(t, "kept", v.Kept, len(records))
		})
	}
}

func TestPastImportVectors(t *testing.T) {
	type vector struct {
		About                    string
		Present, Imported, Stays []float64
		Mark, Beside             []float64
	}
	record := func(f []float64) *core.Past {
		if f == nil {
			return nil
		}
		return &core.Past{ID: "a", DoneAt: core.Instant(f[0]), Score: f[1], Raises: len(f) < 3 || f[2] == 1}
	}
	for _, v := range vectors[vector](t, "pastimport.json") {
		t.Run(v.About, func(t *testing.T) {
			stays, gone := core.ImportPast(record(v.Present), record(v.Imported))
			equal(t, "the record", *record(v.Stays), *stays)

			beside := record(v.Mark)
			if gone != nil {
				kept := core.ImportMark(beside, *gone)
				beside = &kept
			}
			equal(t, "the mark beside it", record(v.Beside), beside)
		})
	}
}

func TestKeepPastIsValidated(t *testing.T) {
	const minute = time.Minute
	for _, c := range []struct {
		about string
		keep  core.KeepPast
		ok    bool
	}{
		{"nothing is kept", core.KeepPast{}, true},
		{"an age", core.KeepPast{Age: minute}, true},
		{"the longest age and the largest bounds",
			core.KeepPast{Age: core.MaxKeepAge, Count: core.MaxKeepCount, Bytes: core.MaxKeepBytes}, true},
		{"the smallest bounds", core.KeepPast{Age: minute, Count: 1, Bytes: core.MaxResultBytes}, true},
		{"a count without an age", core.KeepPast{Count: 1}, false},
		{"too short an age", core.KeepPast{Age: minute - 1}, false},
		{"too long an age", core.KeepPast{Age: core.MaxKeepAge + 1}, false},
		{"a negative count", core.KeepPast{Age: minute, Count: -1}, false},
		{"too large a count", core.KeepPast{Age: minute, Count: core.MaxKeepCount + 1}, false},
		{"bytes for no whole result", core.KeepPast{Age: minute, Bytes: core.MaxResultBytes - 1}, false},
		{"negative bytes", core.KeepPast{Age: minute, Bytes: -1}, false},
		{"too many bytes", core.KeepPast{Age: minute, Bytes: core.MaxKeepBytes + 1}, false},
	} {
		if err := c.keep.Validate(); errors.Is(err, core.ErrInvalidOptions) == c.ok || (err == nil) != c.ok {
			t.Errorf("%s: %v", c.about, err)
		}
	}
}

func TestKeepPastIsDividedAmongShards(t *testing.T) {
	keep := core.KeepPast{Age: time.Hour, Count: 100, Bytes: 1 << 20}
	for _, c := range []struct {
		shards       int
		count, bytes int64
	}{
		{1, 100, 1 << 20},
		{3, 34, 349_526},
		{100, 1, core.MaxResultBytes},
		{500, 1, core.MaxResultBytes},
	} {
		want := core.KeepPast{Age: time.Hour, Count: c.count, Bytes: c.bytes}
		equal(t, "the bounds of a shard", want, keep.PerShard(c.shards))
	}
	unbounded := core.KeepPast{Age: time.Hour}
	equal(t, "no bounds", unbounded, unbounded.PerShard(5))
}

func TestOnlyADoneJobIsRecorded(t *testing.T) {
	claim := core.Claim{Job: core.Job{
		ID:       "a",
		Payloads: []core.Payload{payload("p1", 1), payload("p2", 7)},
		State:    core.State{RetryCount: 1},
	}}
	run := core.Run{Started: 5, Took: time.Second, Node: "web-1", Result: []byte("42")}
	policy := core.RetryPolicy{MaxRetries: 5, MaxRecoveries: 3}

	for _, kind := range []core.OutcomeKind{
		core.Undecided, core.Done, core.Failed, core.Buried, core.Snoozed, core.Untouched, core.Dropped, core.Awaiting,
	} {
		s := policy.Settlement(&claim, &core.Outcome{Kind: kind}, 0)
		s.Record(&claim, run)
		if (s.Past != nil) != (kind == core.Done) {
			t.Errorf("a job that ended as %v has the record %+v", kind, s.Past)
		}
	}

	buried := policy.Settlement(&claim, &core.Outcome{
		Kind:     core.Done,
		Payloads: []core.PayloadOutcome{{Position: 1, Bury: true, Error: "no such order"}},
	}, 0)
	buried.Record(&claim, run)
	equal(t, "the record of a job with a buried payload", (*core.Past)(nil), buried.Past)

	done := policy.Settlement(&claim, &core.Outcome{
		Kind:     core.Done,
		Payloads: []core.PayloadOutcome{{Position: 0}},
	}, 0)
	done.Record(&claim, run)
	equal(t, "the record", &core.Past{
		ID: "a", Started: 5, Took: time.Second, Score: 7, Payloads: 2, Attempt: 3, Node: "web-1", Result: []byte("42"),
	}, done.Past)

	claim.RetryCount = core.FreshRetryCount
	done.Record(&claim, run)
	equal(t, "the attempt of a fresh job", 1, done.Past.Attempt)
}

func TestPastIsStoredWithinItsRanges(t *testing.T) {
	odd := core.Past{
		ID: "b", Started: -1, DoneAt: 3, Took: -time.Second, Score: math.NaN(), Payloads: -1, Attempt: -1,
		Node: strings.Repeat("n", 300) + "\x00", Result: []byte{},
	}
	equal(t, "values below their ranges", core.Past{
		ID: "a", DoneAt: 9, Payloads: 1, Attempt: 1, Node: strings.Repeat("n", core.MaxNodeBytes),
	}, odd.Stored("a", 9))

	odd = core.Past{
		Started: core.MaxInstant + 1, Took: time.Second + 1, Score: math.Copysign(0, -1),
		Payloads: math.MaxInt, Attempt: math.MaxInt, Node: "a\x00b",
	}
	stored := odd.Stored("a", 9)
	equal(t, "values above their ranges", core.Past{
		ID: "a", Started: core.MaxInstant, DoneAt: 9, Took: time.Second,
		Payloads: math.MaxInt32, Attempt: math.MaxInt32, Node: "a\ufffdb",
	}, stored)
	if math.Signbit(stored.Score) {
		t.Error("the score is -0")
	}
	equal(t, "a stored record, stored again", stored, stored.Stored("a", 9))
}

func TestResultsCountInTheBounds(t *testing.T) {
	result := func(size int) *core.Settlement {
		return &core.Settlement{ID: "a", Past: &core.Past{Result: make([]byte, size)}}
	}
	b := core.Bound{Bytes: 100}
	for i, step := range []struct {
		settlement *core.Settlement
		fits       bool
	}{
		{result(60), true},
		{&core.Settlement{ID: "a"}, true},
		{result(40), true},
		{result(1), false},
		{result(0), true},
		{&core.Settlement{ID: "a"}, true},
	} {
		if got := b.TakeSettlement(step.settlement, core.Job{}, core.DeadLetter{}); got != step.fits {
			t.Errorf("settlement %d fits: %v", i, got)
		}
	}

	first := core.Bound{Bytes: 100}
	if !first.TakeSettlement(result(101), core.Job{}, core.DeadLetter{}) {
		t.Error("the first result does not fit")
	}
}
