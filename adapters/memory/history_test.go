package memory

import (
	"math"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
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
