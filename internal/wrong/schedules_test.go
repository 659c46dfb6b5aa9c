package wrong

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/inspect"
)

func TestTicksOf(t *testing.T) {
	named := func(name, broken string, paused bool) (n inspect.ScheduleName) {
		n.Name, n.First.Broken, n.First.Paused = name, broken, paused
		return n
	}
	names := []inspect.ScheduleName{
		named("fine", "", false), named("broken", "no zone", false), named("paused", "no zone", true),
	}
	for late, since := range map[time.Duration]time.Time{0: {}, LateTick - 1: {}, LateTick: now.Add(-LateTick)} {
		got := TicksOf(inspect.LateTick{Late: late, Scheduled: true}, now, names)
		if diff := cmp.Diff(Ticks{Since: since, Broken: []string{"broken"}}, got); diff != "" {
			t.Errorf("%v late (-want +got):\n%s", late, diff)
		}
	}
}
