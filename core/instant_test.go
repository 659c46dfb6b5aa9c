package core_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
)

func TestInstantOfCutsToItsRange(t *testing.T) {
	tests := []struct {
		name string
		time time.Time
		want core.Instant
	}{
		{"the epoch", time.Unix(0, 0), 0},
		{"below a microsecond is dropped", time.Unix(1, 1999), 1_000_001},
		{"any zone", time.Date(1970, 1, 1, 2, 0, 0, 0, time.FixedZone("two hours east", 7200)), 0},
		{"the zero time", time.Time{}, 0},
		{"just before the epoch", time.Unix(0, -1), 0},
		{"the last instant", time.UnixMicro(1 << 53), core.MaxInstant},
		{"just after the last instant", time.UnixMicro(1<<53 + 1), core.MaxInstant},
		{"later than microseconds can count", time.Unix(1<<62, 0), core.MaxInstant},
		{"earlier than microseconds can count", time.Unix(-1<<62, 0), 0},
		{"where microseconds would wrap around", time.Unix(-9_223_372_036_855, 0), 0},
		{"the latest time", time.Unix(math.MaxInt64, 999_999_999), core.MaxInstant},
		{"the earliest time", time.Unix(math.MinInt64, 0), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := core.InstantOf(tt.time); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestInstantAddCutsToItsRange(t *testing.T) {
	tests := []struct {
		name string
		from core.Instant
		add  time.Duration
		want core.Instant
	}{
		{"nothing", 5, 0, 5},
		{"a second", 5, time.Second, 1_000_005},
		{"a second back", 2_000_000, -time.Second, 1_000_000},
		{"below a microsecond is dropped", 5, 1999, 6},
		{"below a microsecond back too", 5, -1999, 4},
		{"not before the epoch", 5, -time.Second, 0},
		{"the longest while back", core.MaxInstant, math.MinInt64, 0},
		{"the longest while", 0, math.MaxInt64, core.MaxInstant},
		{"the longest while from the last instant", core.MaxInstant, math.MaxInt64, core.MaxInstant},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.from.Add(tt.add); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestInstantSubSpansTheWholeRange(t *testing.T) {
	const whole = time.Duration(core.MaxInstant) * time.Microsecond
	if got := core.MaxInstant.Sub(0); got != whole {
		t.Errorf("MaxInstant - 0 = %v, want %v", got, whole)
	}
	if got := core.Instant(0).Sub(core.MaxInstant); got != -whole {
		t.Errorf("0 - MaxInstant = %v, want %v", got, -whole)
	}
}

func TestInstantTimeAndMinute(t *testing.T) {
	at := time.Date(2026, 11, 20, 14, 59, 59, 999_999_000, time.UTC)
	if got := core.InstantOf(at).Time(); !got.Equal(at) || got.Location() != time.UTC {
		t.Errorf("there and back: %v, want %v", got, at)
	}
	if got, want := core.InstantOf(at).Minute().Time(), at.Truncate(time.Minute); !got.Equal(want) {
		t.Errorf("its minute is %v, want %v", got, want)
	}
	if got := core.InstantOf(at.Truncate(time.Minute)); got.Minute() != got {
		t.Errorf("a minute's start is in another minute: %d, %d", got, got.Minute())
	}
}

func TestADayIsThatOfUTC(t *testing.T) {
	east := time.FixedZone("three hours east", 3*3600)
	for _, at := range []time.Time{
		time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 11, 30, 23, 59, 59, 999_999_000, time.UTC),
		time.Date(2026, 12, 1, 2, 59, 0, 0, east), // it is still November in UTC
	} {
		if got, want := core.InstantOf(at).Day().Time(), at.Truncate(24*time.Hour); !got.Equal(want) {
			t.Errorf("the day of %v is %v, want %v", at, got, want)
		}
	}
}

func TestAnUrgentEntryMergesByItsOwnRule(t *testing.T) {
	debounce := core.PushRule{Kind: core.Debounce, Limit: time.Hour}
	for _, when := range []core.When{{}, core.At(7), core.In(-time.Hour)} {
		if when.Urgent() || when.Rule(debounce) != debounce {
			t.Errorf("%+v is urgent", when)
		}
	}
	if when := core.Urgent(time.Hour); !when.Urgent() || when.Rule(debounce) != (core.PushRule{Kind: core.Earliest}) {
		t.Errorf("%+v merges by %+v; want Earliest", when, when.Rule(debounce))
	}
}

func TestWhen(t *testing.T) {
	type view struct {
		At      core.Instant
		Fixed   bool
		Delay   time.Duration
		Resolve core.Instant
	}
	tests := []struct {
		name string
		when core.When
		want view
	}{
		{"the zero value is now", core.When{}, view{Resolve: 100}},
		{"at an instant", core.At(7), view{At: 7, Fixed: true, Resolve: 7}},
		{"at the epoch, which is not now", core.At(0), view{Fixed: true, Resolve: 0}},
		{"in a while", core.In(time.Millisecond), view{Delay: time.Millisecond, Resolve: 1100}},
		{"a while ago", core.In(-40 * time.Microsecond), view{Delay: -40 * time.Microsecond, Resolve: 60}},
		{"long ago", core.In(-time.Hour), view{Delay: -time.Hour, Resolve: 0}},
		{"urgently", core.Urgent(time.Millisecond), view{Delay: -time.Millisecond}},
		{"in the longest while", core.In(math.MaxInt64), view{Delay: math.MaxInt64, Resolve: core.MaxInstant}},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			at, fixed := tt.when.Fixed()
			got := view{At: at, Fixed: fixed, Delay: tt.when.Delay(), Resolve: tt.when.Resolve(100)}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
