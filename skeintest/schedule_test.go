package skeintest_test

import (
	"context"
	"fmt"
	"testing"
	"time"
	_ "time/tzdata" // zones don't depend on the machine

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/skeintest"
)

// A test moves the clock over a day on which the clock is set forward, and sees the ticks.
func TestDrainFiresTicks(t *testing.T) {
	s := skeintest.New()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	s.Advance(time.Date(2026, 3, 28, 0, 0, 0, 0, berlin).Sub(s.Now()))
	reports := skein.NewQueue("reports", skein.QueueOptions[string]{})
	for name, expression := range map[string]string{"night": "30 2 * * *", "hours": "0 1-4 * * *"} {
		if err := reports.Schedule(
			t.Context(), s.Client, name, skein.Cron(expression, "Europe/Berlin"), "id", name,
		); err != nil {
			t.Fatal(err)
		}
	}

	var ran []string
	handler := reports.Each(func(_ context.Context, _, what string) error {
		ran = append(ran, s.Now().In(berlin).Format("2 15:04 ")+what)
		return nil
	})
	until := time.Date(2026, 3, 29, 12, 0, 0, 0, berlin)
	s.DrainUntil(t, until, handler)
	want := []string{
		"28 01:00 hours", "28 02:00 hours", "28 02:30 night", "28 03:00 hours", "28 04:00 hours",
		"29 01:00 hours", "29 03:00 hours", "29 03:00 night", "29 04:00 hours",
	}
	if diff := cmp.Diff(want, ran); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if !s.Now().Equal(until) {
		t.Errorf("the clock is at %v, want %v", s.Now(), until)
	}
}

// Schedules of the Server's options are declared by a drain.
func TestDrainDeclaresSchedules(t *testing.T) {
	s := skeintest.New()
	reports := skein.NewQueue("reports", skein.QueueOptions[string]{})
	s.Server.Schedules = skein.ScheduleSet{Name: "reports", Schedules: []skein.Schedule{
		reports.NewSchedule("hourly", skein.Interval(time.Hour), "a", "totals"),
	}}

	var ran []string
	events := s.Drain(t, 150*time.Minute, reports.Handler(func(_ context.Context, id string, payloads []string) error {
		ran = append(ran, fmt.Sprint(id, payloads))
		return nil
	}))

	skeintest.AssertEvents(t, events, `1h0m0s reports a ["totals"] done`, `2h0m0s reports a ["totals"] done`)
	if len(ran) != 2 {
		t.Errorf("ran %v, want two", ran)
	}
}
