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

// A drain fires the tick of exactly the time at which it stops. To advance fires nothing, and the
// next drain fires what Catchup leaves, on a night in which the clock is set back.
func TestDrainStopsAtATime(t *testing.T) {
	s := skeintest.New()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	s.Advance(time.Date(2026, 10, 25, 0, 0, 0, 0, berlin).Sub(s.Now()))
	reports := skein.NewQueue("reports", skein.QueueOptions[string]{})
	if err := reports.Schedule(t.Context(), s.Client, "hourly", skein.Cron("0 * * * *", "Europe/Berlin"), "a", "x"); err != nil {
		t.Fatal(err)
	}

	var ran []string
	handler := reports.Handler(func(context.Context, string, []string) error {
		ran = append(ran, s.Now().In(berlin).Format("15:04 MST"))
		return nil
	})
	start := s.Now()
	s.DrainUntil(t, start.Add(3*time.Hour), handler)
	s.Advance(2*time.Hour + 30*time.Minute)
	s.DrainUntil(t, start, handler) // a time that has passed
	s.Drain(t, time.Hour, handler)

	want := []string{"01:00 CEST", "02:00 CEST", "02:00 CET", "04:30 CET", "05:00 CET"}
	if diff := cmp.Diff(want, ran); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	if got := s.Now().Sub(start); got != 6*time.Hour+30*time.Minute {
		t.Errorf("the clock has moved by %v", got)
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
