package wrong

import (
	"slices"
	"testing"
	"time"
)

// A schedule has the worst state that holds. A pause hides what does not happen because of it.
func TestTheStateOfASchedule(t *testing.T) {
	for _, tt := range []struct {
		of   ScheduleFacts
		want string
	}{
		{ScheduleFacts{}, "fine"},
		{ScheduleFacts{Ended: true}, "ended"},
		{ScheduleFacts{QueuePaused: true, Ended: true, Late: time.Hour}, "queue paused"},
		{ScheduleFacts{Paused: true, QueuePaused: true, Broken: true, Missed: true, Late: time.Hour}, "paused"},
		{ScheduleFacts{Late: DueTick - 1}, "fine"},
		{ScheduleFacts{Late: DueTick}, "due"},
		{ScheduleFacts{Late: LateTick - 1}, "due"},
		{ScheduleFacts{Late: LateTick - 1, Missed: true}, "missed"},
		{ScheduleFacts{Missed: true, QueuePaused: true}, "missed"},
		{ScheduleFacts{Late: LateTick, Missed: true}, "late"},
		{ScheduleFacts{Broken: true, Late: LateTick}, "broken"},
		{ScheduleFacts{Broken: true, QueuePaused: true}, "broken"},
	} {
		if got := tt.of.State().String(); got != tt.want {
			t.Errorf("%+v is %s, want %s", tt.of, got, tt.want)
		}
	}

	var names []string
	for s := ScheduleBroken; s <= ScheduleFine; s++ {
		names = append(names, s.String())
	}
	if slices.Sort(names); len(slices.Compact(names)) != int(ScheduleFine)+1 {
		t.Errorf("two states have one name: %q", names)
	}
}
