package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/clock"
)

// A store's clock that steps back has jobs counted in a minute that was sent before: they are
// added to it.
func TestStatisticsAreAddedToAMinuteThatComesAgain(t *testing.T) {
	clock := clock.New()
	var tallies tallies
	at := core.InstantOf(clock.Start).Minute()

	count := func(minute, jobs int) {
		for range jobs {
			clock.Sync(at.Add(time.Duration(minute) * time.Minute))
			tallies.count("orders", clock, true, false)
		}
	}

	counted := func(after time.Duration) map[core.Instant]uint64 {
		got := map[core.Instant]uint64{}
		records := tallies.unsent(clock.Local().Add(after))
		for _, r := range records {
			got[r.Minute] = r.Stats.Processed
		}
		tallies.sent(records)
		return got
	}

	count(0, 5)
	count(1, 3)
	first := counted(0)
	count(0, 2)
	second, none := counted(0), counted(0)
	third := counted(tallyKept + time.Second)
	count(0, 1)

	if diff := cmp.Diff([]map[core.Instant]uint64{
		{at: 5, at.Add(time.Minute): 3}, {at: 7}, {}, {}, {at: 1},
	}, []map[core.Instant]uint64{first, second, none, third, counted(0)}); diff != "" {
		t.Errorf("the records (-want +got):\n%s", diff)
	}
}
