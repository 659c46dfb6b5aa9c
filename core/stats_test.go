package core_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
)

func TestStatsAddUp(t *testing.T) {
	stats := func(processed, failed uint64, wait, run time.Duration) *core.Stats {
		s := &core.Stats{Processed: processed, Failed: failed}
		s.ObserveWait(wait)
		s.ObserveRun(run)
		return s
	}
	sum := core.Stats{}
	sum.Add(stats(3, 1, time.Second, time.Minute))
	sum.Add(stats(2, 4, 1500*time.Millisecond, time.Hour))

	want := core.Stats{
		Processed: 5, Failed: 5,
		WaitSum: 2_500_000, RunSum: 3_660_000_000, WaitSquares: 1 + 2.25, RunSquares: 3600 + 3600*3600,
	}
	want.Wait[bucketFor(time.Second)]++
	want.Wait[bucketFor(1500*time.Millisecond)]++
	want.Run[bucketFor(time.Minute)] = 1
	want.Run[bucketFor(time.Hour)] = 1
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if sum.Counted() != 14 {
		t.Errorf("counted %d in all, want 14", sum.Counted())
	}

	sum.Subtract(stats(2, 4, 1500*time.Millisecond, time.Hour))
	if diff := cmp.Diff(*stats(3, 1, time.Second, time.Minute), sum); diff != "" {
		t.Errorf("after the second is subtracted (-want +got):\n%s", diff)
	}
}

func TestStatsCountNoTimeBelowZero(t *testing.T) {
	var got, want core.Stats
	got.ObserveWait(-time.Hour)
	got.ObserveRun(-time.Nanosecond)
	want.Wait[0], want.Run[0] = 1, 1
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStatsHaveMeanAndDeviation(t *testing.T) {
	var s core.Stats
	if s.MeanWait() != 0 || s.WaitDeviation() != 0 || s.MeanRun() != 0 || s.RunDeviation() != 0 {
		t.Error("what has counted nothing has a mean or a deviation")
	}
	for _, d := range []time.Duration{2, 4, 4, 4, 5, 5, 7, 9} { // mean 5, deviation 2
		s.ObserveWait(d * time.Second)
		s.ObserveRun(d * time.Millisecond)
	}
	got := []time.Duration{s.MeanWait(), s.WaitDeviation(), s.MeanRun(), s.RunDeviation()}
	if diff := cmp.Diff([]time.Duration{
		5 * time.Second, 2 * time.Second, 5 * time.Millisecond, 2 * time.Millisecond,
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	same := core.Stats{}
	for range 3 {
		same.ObserveRun(100 * time.Millisecond)
	}
	if same.MeanRun() != 100*time.Millisecond || same.RunDeviation() > time.Microsecond {
		t.Errorf("three of 100 ms have mean %v and deviation %v", same.MeanRun(), same.RunDeviation())
	}
	huge := core.Stats{WaitSum: 1 << 63, WaitSquares: 1e300}
	huge.Wait[0] = 1
	if huge.WaitDeviation() <= 0 || huge.MeanWait() <= 0 {
		t.Errorf("what is too long for a duration has mean %v and deviation %v", huge.MeanWait(), huge.WaitDeviation())
	}
}
