package memory

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
)

func TestHistoryKeepsADay(t *testing.T) {
	minute := core.Instant(time.Minute / time.Microsecond)
	const start core.Instant = 1_800_000_000_000_000
	var h history
	for i := range core.Instant(3 * 24 * 60) {
		h.add(start+i*minute, &core.Stats{Processed: uint64(i) + 1})
	}
	end := start + (3*24*60-1)*minute
	got := h.between(0, 0)
	if want := 24*60 + 1; len(got) != want {
		t.Fatalf("%d minutes are kept, want %d", len(got), want)
	}
	first := end.Add(-24 * time.Hour).Minute()
	for i, m := range got {
		if want := first + core.Instant(i)*minute; m.At != want || m.Processed == 0 {
			t.Fatalf("minute %d starts at %d with %d jobs, want at %d with some", i, m.At, m.Processed, want)
		}
	}
}

func TestHistoryTakesAClockThatStepsBack(t *testing.T) {
	const now core.Instant = 1_800_000_000_000_000
	var h history
	for _, d := range []time.Duration{0, -2 * time.Hour, -time.Hour, -2 * time.Hour} {
		h.add(now.Add(d), &core.Stats{Failed: 1})
	}
	got := map[core.Instant]uint64{}
	last := core.Instant(-1)
	for _, m := range h.between(0, 0) {
		if m.At <= last {
			t.Errorf("minute %d follows %d", m.At, last)
		}
		got[m.At], last = m.Failed, m.At
	}
	want := map[core.Instant]uint64{
		now.Minute():                     1,
		now.Add(-time.Hour).Minute():     1,
		now.Add(-2 * time.Hour).Minute(): 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failures by minute (-want +got):\n%s", diff)
	}
}
