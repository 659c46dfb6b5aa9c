package memory

import (
	"math"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

func TestHistoryKeepsADayAndAnHour(t *testing.T) {
	const start core.Instant = 1_800_000_000_000_000
	var h history
	end := start.Minute()
	for i := range 3 * 24 * 60 {
		end = start.Minute().Add(time.Duration(i) * time.Minute)
		h.record("n1", &ports.Record{Queue: "orders", Minute: end, Stats: core.Stats{Processed: 1}}, end)
	}

	if want := 25*60 + 1; len(h.records) != want {
		t.Fatalf("%d minutes are kept, want %d", len(h.records), want)
	}
	for key := range h.records {
		if key.minute < listedFrom(end).Add(-time.Hour) || key.minute > end {
			t.Fatalf("minute %d is kept, at %d", key.minute, end)
		}
	}
}

func TestHistoryTakesADayAndAnHour(t *testing.T) {
	const noon core.Instant = 1_800_014_400_000_000
	now := noon.Add(59 * time.Second)
	for at, want := range map[core.Instant]bool{
		noon.Add(-ports.HistoryKept - time.Minute): false, noon.Add(-ports.HistoryKept): true, noon: true,
		noon.Add(time.Hour): true, noon.Add(time.Hour + time.Minute): false, math.MaxInt64: false,
	} {
		if got := takesRecord(at, now); got != want {
			t.Errorf("a record of %d is taken: %t", at-noon, got)
		}
	}
}

func TestHistoryKeepsThirtyThreeDays(t *testing.T) {
	const start core.Instant = 1_800_000_000_000_000
	var h history
	end := start.Minute()
	for i := range 60 {
		end = start.Minute().Add(time.Duration(i) * ports.Day)
		h.record("n1", &ports.Record{Queue: "orders", Minute: end, Stats: core.Stats{Processed: 1}}, end)
	}

	if len(h.days) != storekit.DaysStored {
		t.Fatalf("%d days are kept, want %d", len(h.days), storekit.DaysStored)
	}
	for day, counts := range h.days {
		if day < end.Day().Add(-32*ports.Day) || counts.Processed != 1 {
			t.Errorf("day %d is kept, with %d jobs, at %d", day, counts.Processed, end)
		}
	}
}

// A clock that is ahead for a moment removes records, but not for as long as it was ahead.
func TestHistoryRemovesRecordsAfterTheClockWasAhead(t *testing.T) {
	const start core.Instant = 1_800_000_000_000_000
	var h history
	record := func(at core.Instant) {
		h.record("n1", &ports.Record{Queue: "orders", Minute: at.Minute(), Stats: core.Stats{Processed: 1}}, at)
	}
	record(start.Add(1000 * ports.Day))
	for i := range 3 * 24 {
		record(start.Add(time.Duration(i) * time.Hour))
	}
	if len(h.records) > 28 {
		t.Errorf("%d records are kept of three days by the hour, want those of 26 hours", len(h.records))
	}
}
