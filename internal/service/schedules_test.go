package service

import (
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// A schedule that was stored as paused has no time of its pause. The row must not state 1970.
func TestAPauseOfUnknownTime(t *testing.T) {
	s := &inspect.Schedule{Schedule: core.Schedule{Recurrence: core.Recurrence{Spec: "every 1h"}, Paused: true}}
	if row := ScheduleOf(s); !row.Paused || !row.PausedAt.IsZero() {
		t.Errorf("paused at %v", row.PausedAt)
	}

	s.PausedAt = 5
	if row := ScheduleOf(s); !row.PausedAt.Equal(core.Instant(5).Time()) {
		t.Errorf("paused at %v", row.PausedAt)
	}
}
