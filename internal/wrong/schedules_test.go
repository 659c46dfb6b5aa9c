package wrong

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

func TestTicksOf(t *testing.T) {
	named := func(name, broken string, paused bool) (n inspect.ScheduleName) {
		n.Name, n.First.Name, n.First.ID, n.First.Broken, n.First.Paused, n.Count = name, name, "a", broken, paused, 1
		return n
	}
	names := []inspect.ScheduleName{
		named("fine", "", false), named("broken", "no zone", false), named("paused", "no zone", true),
	}
	for late, since := range map[time.Duration]time.Time{0: {}, LateTick - 1: {}, LateTick: now.Add(-LateTick)} {
		got := TicksOf(inspect.LateTick{Late: late, Scheduled: true}, now, names)
		if diff := cmp.Diff(Ticks{Since: since, Broken: []string{"broken"}, Checked: 3, Of: 3}, got); diff != "" {
			t.Errorf("%v late (-want +got):\n%s", late, diff)
		}
	}
}

// A schedule of another id than the first one of its name may be the broken one.
func TestTicksOfAPageOfSchedules(t *testing.T) {
	of := func(name, id, broken string, paused bool) (s inspect.Schedule) {
		s.Name, s.ID, s.Broken, s.Paused = name, id, broken, paused
		return s
	}
	names := []inspect.ScheduleName{
		{Name: "bill", Count: 2, First: of("bill", "a", "no zone", false)},
		{Name: "nightly", Count: 1200, First: of("nightly", "a", "", false)},
		{Name: "tidy", Count: 2, First: of("tidy", "a", "", false)},
	}
	page := []inspect.Schedule{
		of("bill", "a", "no zone", false), of("bill", "b", "no zone", false), of("nightly", "a", "", false),
		of("nightly", "b", "no zone", false), of("nightly", "c", "no zone", false), of("tidy", "b", "no zone", true),
	}
	got := TicksOf(inspect.LateTick{}, now, names, page...)
	if diff := cmp.Diff(Ticks{Broken: []string{"bill", "nightly"}, Checked: 7, Of: 1204}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := got.partly(); text != " (checked: 7 of at least 1,204 schedules)" {
		t.Errorf("partly: %q", text)
	}
	if got = TicksOf(inspect.LateTick{}, now, names[2:], page[5:]...); got.partly() != "" || got.Checked != 2 {
		t.Errorf("all are checked: %+v, %q", got, got.partly())
	}

	for at, late := range []time.Duration{0, LateTick - 1, 0, 2 * LateTick, 3 * LateTick, 0} {
		page[at].Late = late
	}
	got, want := TicksOf(inspect.LateTick{}, now, names, page...), core.ScheduleKey{ID: "c", Name: "nightly"}
	if got.Late != want {
		t.Errorf("late is %v, want %v", got.Late, want)
	}
	if got = TicksOf(inspect.LateTick{}, now, names, page[:3]...); got.Late != (core.ScheduleKey{}) {
		t.Errorf("late is %v, want none", got.Late)
	}

	full := make([]inspect.ScheduleName, ports.MaxSchedulesPage)
	for at := range full {
		full[at].Count, full[at].First.Name = 1, fmt.Sprint(at)
	}
	if got = TicksOf(inspect.LateTick{}, now, full); got.partly() != " (checked: 100 of at least 100 schedules)" {
		t.Errorf("a full page of names: %+v, %q", got, got.partly())
	}
}
