package inspect_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/specs"
)

// An edit of one part of the times of many schedules leaves each its other part.
func TestAnEditKeepsTheZoneOrTheExpressionOfEachSchedule(t *testing.T) {
	daily, tokyo, every, from := "0 6 * * *", "Asia/Tokyo", 15*time.Minute, time.Date(2030, 1, 1, 0, 5, 0, 0, time.UTC)

	for name, tt := range map[string]struct {
		edit inspect.ScheduleEdit
		want []string
		text string
	}{
		"cron": {
			inspect.ScheduleEdit{Cron: &daily},
			[]string{"cron 0 6 * * * Europe/Berlin", "cron 0 6 * * * America/New_York"},
			"cron 0 6 * * * in the zone of each",
		},
		"zone": {
			inspect.ScheduleEdit{Zone: &tokyo},
			[]string{"cron 30 1 * * * Asia/Tokyo", "cron 30 2 * * * Asia/Tokyo"}, "zone Asia/Tokyo",
		},
		"both": {
			inspect.ScheduleEdit{Cron: &daily, Zone: &tokyo},
			[]string{"cron 0 6 * * * Asia/Tokyo", "cron 0 6 * * * Asia/Tokyo"}, "cron 0 6 * * * in Asia/Tokyo",
		},
		"an interval": {
			inspect.ScheduleEdit{Every: &every}, []string{"every 15m0s 0", "every 15m0s 0"}, "every 15m0s",
		},
		"an interval from a time": {
			inspect.ScheduleEdit{Every: &every, From: &from},
			[]string{"every 15m0s 1893456300000000", "every 15m0s 1893456300000000"},
			"every 15m0s from 2030-01-01T00:05:00Z",
		},
	} {
		s := newFixture(t)
		s.schedule("orders", "a", "nightly", "cron 30 1 * * * Europe/Berlin")
		s.schedule("orders", "b", "nightly", "cron 30 2 * * * America/New_York")

		if n, err := s.EditSchedules(t.Context(), "orders", ofName("nightly"), tt.edit); n != 2 || err != nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		if diff := cmp.Diff(tt.want, []string{
			s.scheduled("a", "nightly").Spec,
			s.scheduled("b", "nightly").Spec,
		}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}

		spec, err := new(specs.Specs).Parse(tt.want[0])
		if next, _ := spec.Next(core.InstantOf(epoch)); err != nil || s.scheduled("a", "nightly").Next != next {
			t.Errorf("%s: its next tick is not that of the new spec", name)
		}

		if got, want := s.audited(), `edit schedule of orders by "": [] 0, schedule nightly: `+tt.text+
			`, handled 2`; got != want {
			t.Errorf("%s is audited as %s, want %s", name, got, want)
		}
	}
}

// A schedule with an interval has no zone and no expression that an edit could keep.
func TestAnEditOfAnIntervalNamesBothParts(t *testing.T) {
	s := newFixture(t)
	s.schedule("orders", "a", "nightly", "every 15m0s 0")
	daily, zone := "0 6 * * *", "Asia/Tokyo"
	for _, edit := range []inspect.ScheduleEdit{{Cron: &daily}, {Zone: &zone}} {
		if n, err := s.EditSchedules(t.Context(), "orders", ofID("a"), edit); n != 0 ||
			!errors.Is(err, inspect.ErrInvalidSchedule) ||
			!strings.Contains(err.Error(), "no zone to keep") {
			t.Errorf("%v: %d, %v", &edit, n, err)
		}
	}
	if n, err := s.EditSchedules(t.Context(), "orders", ofID("a"),
		inspect.ScheduleEdit{Cron: &daily, Zone: &zone}); n != 1 || err != nil {
		t.Errorf("both: %d, %v", n, err)
	}
}

// An edit that no schedule can have is refused before any schedule is read or changed.
func TestAnInvalidEditReadsNothing(t *testing.T) {
	s := newFixture(t)
	s.hourly("a", "nightly")

	var calls []string
	s.intercept().before = func(method string) error {
		calls = append(calls, method)
		return nil
	}

	text := func(text string) *string { return &text }
	short, every, from, ancient := time.Millisecond, time.Hour, epoch, time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		edit inspect.ScheduleEdit
		want error
	}{
		"nothing": {inspect.ScheduleEdit{}, inspect.ErrInvalidOptions},
		"an expression and an interval": {
			inspect.ScheduleEdit{Cron: text("0 6 * * *"), Every: &every},
			inspect.ErrInvalidOptions,
		},
		"a zone and an interval": {
			inspect.ScheduleEdit{Zone: text("UTC"), Every: &every},
			inspect.ErrInvalidOptions,
		},
		"a first tick without an interval": {inspect.ScheduleEdit{From: &from}, inspect.ErrInvalidOptions},
		"a first tick of a cron expression": {
			inspect.ScheduleEdit{Cron: text("0 6 * * *"), From: &from},
			inspect.ErrInvalidOptions,
		},
		"an expression that is none": {
			inspect.ScheduleEdit{Cron: text("0 25 * * *")},
			inspect.ErrInvalidSchedule,
		},
		"an empty expression": {inspect.ScheduleEdit{Cron: text("")}, inspect.ErrInvalidSchedule},
		"a zone that is not there": {
			inspect.ScheduleEdit{Zone: text("Nowhere/Land")},
			inspect.ErrInvalidSchedule,
		},
		"an empty zone":                 {inspect.ScheduleEdit{Zone: text("")}, inspect.ErrInvalidSchedule},
		"an interval that is too short": {inspect.ScheduleEdit{Every: &short}, inspect.ErrInvalidSchedule},
		"a first tick that no instant can be": {
			inspect.ScheduleEdit{Every: &every, From: &ancient},
			inspect.ErrInvalidSchedule,
		},
	} {
		if n, err := s.EditSchedules(t.Context(), "orders", ofID("a"), tt.edit); n != 0 || !errors.Is(err, tt.want) {
			t.Errorf("%s: %d, %v; want %v", name, n, err, tt.want)
		}
	}

	if calls = slices.Compact(calls); len(calls) > 0 {
		t.Errorf("calls of the store: %v", calls)
	}
}

func TestAnEditIsDescribed(t *testing.T) {
	payload, jitter, skip, most, within := []byte("secret"), time.Minute, false, 0, time.Hour
	edit := inspect.ScheduleEdit{
		Payload:       &payload,
		Jitter:        &jitter,
		Skip:          &skip,
		CatchupMost:   &most,
		CatchupWithin: &within,
	}
	if got, want := edit.String(), "a payload of 6 bytes, jitter 1m0s, "+
		"catchup 1, within 1h0m0s, skip false"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	edit = inspect.ScheduleEdit{CatchupWithin: new(time.Duration)}
	if got, want := edit.String(), "within any age"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
