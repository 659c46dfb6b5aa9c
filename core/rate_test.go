package core_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
	rules "github.com/skeinq/skein/internal/vectors"
)

func TestRateVectors(t *testing.T) {
	const begin core.Instant = 1_800_000_000_000_000
	for _, v := range vectors[rules.Rate](t, "rate.json") {
		var l core.Limiter
		for n, step := range v.Steps {
			now := begin + core.Instant(step.At)
			if step.Stop != nil {
				l = l.Stop(now, time.Duration(*step.Stop)*time.Microsecond)
				continue
			}

			r, err := core.ParseRate(v.RateOf(n))
			if err != nil {
				t.Fatalf("%s: %v", v.About, err)
			}

			after, used, start := r.Use(l, now, step.Use, time.Duration(step.Hold)*time.Microsecond)
			var uses []int64
			for i := range used {
				uses = append(uses, int64(r.Slot(start, now, i)-begin))
			}
			want := step.Want + step.Use - used
			next, granted, first := r.Take(after, now, want, time.Duration(step.Ahead)*time.Microsecond,
				time.Duration(step.Soon)*time.Microsecond)
			var slots []int64
			for i := range granted {
				slots = append(slots, int64(r.Slot(first, now, i)-begin))
			}
			stopped := int64(0)
			if l := next.StoppedAt(now); l != 0 {
				stopped = int64(l - begin)
			}

			if !slices.Equal(uses, step.Uses) {
				t.Errorf("%s: step %d uses slots at %v, want %v", v.About, n, uses, step.Uses)
			}
			if !slices.Equal(slots, step.Slots) || stopped != step.Stopped ||
				granted == 0 && int64(r.Slot(first, now, 0)-begin) != step.First {
				t.Errorf("%s: step %d grants the slots %v, the next at %d, stopped until %d; want %v, %d and %d",
					v.About, n, slots, r.Slot(first, now, 0)-start, stopped, step.Slots, step.First, step.Stopped)
			}
			l = next
		}
	}
}

func TestRateIntervals(t *testing.T) {
	tests := []struct {
		rate     core.Rate
		interval time.Duration
	}{
		{core.Rate{}, 0},
		{core.Rate{Count: 10, Per: time.Second}, 100 * time.Millisecond},
		{core.Rate{Count: 3, Per: time.Second}, 333_334 * time.Microsecond},
		{core.Rate{Count: 100_000, Per: time.Second}, 10 * time.Microsecond},
		{core.Rate{Count: 1, Per: core.MaxRatePer}, core.MaxRatePer},
		{core.Rate{Count: core.MaxRateCount, Per: core.MaxRatePer}, 31_623 * time.Microsecond},
	}
	for _, test := range tests {
		if err := test.rate.Validate(); err != nil {
			t.Errorf("%v: %v", test.rate, err)
		}
		if got := test.rate.Interval(); got != test.interval {
			t.Errorf("the interval of %v is %v, want %v", test.rate, got, test.interval)
		}
	}
}

func TestInvalidRates(t *testing.T) {
	for _, r := range []core.Rate{
		{Count: -1, Per: time.Second},
		{Per: time.Second},
		{Burst: 1},
		{Count: core.MaxRateCount + 1, Per: core.MaxRatePer},
		{Count: 1},
		{Count: 1, Per: core.MinRatePer - 1},
		{Count: 1, Per: core.MaxRatePer + 1},
		{Count: 1, Per: time.Second, Burst: -1},
		{Count: 1, Per: time.Second, Burst: core.MaxRateCount + 1},
		{Count: 100_001, Per: time.Second},
		{Count: 1, Per: core.MaxRatePer, Burst: 1},
		{Count: math.MaxInt, Per: math.MaxInt64, Burst: math.MaxInt},
	} {
		if err := r.Validate(); !errors.Is(err, core.ErrInvalidOptions) {
			t.Errorf("the rate %+v returned error %v, want ErrInvalidOptions", r, err)
		}
	}
}

func TestRateTexts(t *testing.T) {
	tests := []struct {
		text, canonical string
		rate            core.Rate
	}{
		{"none", "none", core.Rate{}},
		{"10/1m0s", "10/1m0s", core.Rate{Count: 10, Per: time.Minute}},
		{"10/1m0s+5", "10/1m0s+5", core.Rate{Count: 10, Per: time.Minute, Burst: 5}},
		{"10/1m+5", "10/1m0s+5", core.Rate{Count: 10, Per: time.Minute, Burst: 5}},
		{"10/minute", "10/1m0s", core.Rate{Count: 10, Per: time.Minute}},
		{"50/s", "50/1s", core.Rate{Count: 50, Per: time.Second}},
		{"1/ms", "1/1ms", core.Rate{Count: 1, Per: time.Millisecond}},
		{"1/second", "1/1s", core.Rate{Count: 1, Per: time.Second}},
		{"1/m", "1/1m0s", core.Rate{Count: 1, Per: time.Minute}},
		{"7/h", "7/1h0m0s", core.Rate{Count: 7, Per: time.Hour}},
		{"7/hour", "7/1h0m0s", core.Rate{Count: 7, Per: time.Hour}},
		{"7/d", "7/24h0m0s", core.Rate{Count: 7, Per: 24 * time.Hour}},
		{"100/day+20", "100/24h0m0s+20", core.Rate{Count: 100, Per: 24 * time.Hour, Burst: 20}},
	}
	for _, test := range tests {
		got, err := core.ParseRate(test.text)
		if err != nil || got != test.rate || got.String() != test.canonical {
			t.Errorf("%q is read as %+v, %q, error %v; want %+v, %q",
				test.text, got, got, err, test.rate, test.canonical)
		}
	}

	for _, text := range []string{
		"", "10", "/", "10/", "/s", "10/s+", "10/s+x", "10/s+5+5", "10/fortnight", " 10/s", "10/-1s", "0/s", "0/0s", "-1/s",
		"1e3/s", "100001/s", "10/1us", "10/s+-1", "99999999999999999999/s", strings.Repeat("9", 1000),
	} {
		if got, err := core.ParseRate(text); !errors.Is(err, core.ErrInvalidOptions) {
			t.Errorf("%q is read as %+v with error %v, want ErrInvalidOptions", text, got, err)
		}
	}
}

func TestRateTextsAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyRate(t)
		if got, err := core.ParseRate(want.String()); err != nil || got != want {
			t.Errorf("%q is read as %+v, error %v; want %+v", want, got, err, want)
		}
	})
}

// anyRate draws a valid rate that is not zero.
func anyRate(t *rapid.T) core.Rate {
	return rapid.Custom(func(t *rapid.T) core.Rate {
		return core.Rate{
			Count: rapid.IntRange(1, 20).Draw(t, "count"),
			Per:   time.Duration(rapid.Int64Range(1000, 10_000_000).Draw(t, "per")) * time.Microsecond,
			Burst: rapid.IntRange(0, 10).Draw(t, "burst"),
		}
	}).Filter(func(r core.Rate) bool { return r.Validate() == nil }).Draw(t, "rate")
}

// mostIn returns the largest number of slots in a window of the given length.
func mostIn(slots []core.Instant, window time.Duration) int {
	slices.Sort(slots)
	most, from := 0, 0
	for i, slot := range slots {
		for slot.Sub(slots[from]) >= window {
			from++
		}
		most = max(most, i-from+1)
	}
	return most
}

func TestARateIsNeverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRate(t)
		now := core.Instant(rapid.Int64Range(0, 1<<52).Draw(t, "now"))
		var l core.Limiter
		var slots []core.Instant
		stopped := core.Instant(0)

		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(2*r.Per)).Draw(t, "pause")))
			if rapid.IntRange(0, 9).Draw(t, "stop") == 0 {
				d := time.Duration(rapid.Int64Range(0, int64(3*r.Per)).Draw(t, "for"))
				l = l.Stop(now, d)
				stopped = l.Stopped
				continue
			}
			if l.Gone(now) && rapid.Bool().Draw(t, "remove") {
				l = core.Limiter{}
			}

			ahead := time.Duration(rapid.Int64Range(0, int64(3*r.Per)).Draw(t, "ahead"))
			next, granted, first := r.Take(l, now, rapid.IntRange(0, 50).Draw(t, "want"), ahead, 0)
			for i := range granted {
				slot := r.Slot(first, now, i)
				if slot < now || slot > now.Add(ahead) || slot < stopped && stopped > now {
					t.Fatalf("slot %v at %v, ahead %v, stopped until %v", slot, now, ahead, stopped)
				}
				slots = append(slots, slot)
			}
			l = next
		}

		if most := mostIn(slots, r.Per); most > r.Count+r.Burst+1 {
			t.Errorf("%d slots in %v, want at most %d", most, r.Per, r.Count+r.Burst+1)
		}
	})
}

// Slots that were taken ahead and are used late, with others that are taken meanwhile, are used no
// faster than the rate. If none is late by an interval, all are used at once.
func TestUsesAreNeverFasterThanTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRate(t)
		now := core.Instant(rapid.Int64Range(0, 1<<52).Draw(t, "now"))
		var l core.Limiter
		var slots, starts []core.Instant
		hold, late := r.Interval()+time.Microsecond, r.Interval()-time.Microsecond
		inTime := rapid.Bool().Draw(t, "in time")
		if inTime {
			hold = 0
		}

		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			pause := rapid.Int64Range(0, int64(2*r.Per)).Draw(t, "pause")
			if inTime && len(slots) > 0 {
				pause = int64(max(0, slots[0].Sub(now))) + rapid.Int64Range(0, int64(late)).Draw(t, "late")
			}
			now = now.Add(time.Duration(pause))
			if !inTime && rapid.IntRange(0, 9).Draw(t, "stop") == 0 {
				l = l.Stop(now, time.Duration(rapid.Int64Range(0, int64(3*r.Per)).Draw(t, "for")))
			}

			come, _ := slices.BinarySearch(slots, now+1)
			after, used, first := r.Use(l, now, come, hold)
			if inTime && used < come {
				t.Fatalf("%d of %d slots are used, although none is later than %v", used, come, late)
			}
			for i := range used {
				start := r.Slot(first, now, i)
				if start < l.StoppedAt(now) || start > now.Add(hold) {
					t.Fatalf("a slot is used %v from now, held for %v at most, in a limiter %+v", start.Sub(now), hold, l)
				}
				starts = append(starts, start)
			}
			slots = slots[come:]

			ahead := time.Duration(rapid.Int64Range(0, int64(3*r.Per)).Draw(t, "ahead"))
			next, granted, first := r.Take(after, now, rapid.IntRange(0, 50).Draw(t, "want"), ahead, 0)
			for i := range granted {
				if slot := r.Slot(first, now, i); slot == now {
					starts = append(starts, now)
				} else {
					slots = append(slots, slot)
				}
			}
			l = next
		}

		if most := mostIn(starts, r.Per); most > r.Count+r.Burst+1 {
			t.Errorf("%d starts in %v, want at most %d", most, r.Per, r.Count+r.Burst+1)
		}
	})
}

// A clock that steps back neither exceeds the rate in real time nor stalls the limiter.
func TestARateHoldsOverStepsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRate(t)
		const start core.Instant = 1 << 50
		real, back := start, time.Duration(0)
		var l core.Limiter
		var starts []core.Instant

		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			real = real.Add(time.Duration(rapid.Int64Range(0, int64(r.Per)).Draw(t, "pause")))
			if rapid.IntRange(0, 4).Draw(t, "step back") == 0 {
				back += time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "by"))
			}
			now := real.Add(-back)
			next, granted, first := r.Take(l, now, rapid.IntRange(0, 50).Draw(t, "want"), 0, 0)
			for range granted {
				starts = append(starts, real)
			}
			if wait := first.Sub(now); wait > r.Interval() {
				t.Fatalf("the next slot is %v away, want at most %v", wait, r.Interval())
			}
			l = next
		}

		if most := mostIn(starts, r.Per); most > r.Count+r.Burst+1 {
			t.Errorf("%d starts in %v, want at most %d", most, r.Per, r.Count+r.Burst+1)
		}
	})
}

func TestConstantDemandUsesEachSlot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRate(t)
		const start core.Instant = 1 << 50
		var l core.Limiter
		granted, now := 0, start
		for range 50 {
			next, n, _ := r.Take(l, now, 1000, 0, 0)
			granted += n
			l = next

			// Without a burst, only demand at the time of each slot uses it.
			pause := r.Interval()
			if r.Burst > 0 {
				pause = time.Duration(rapid.Int64Range(0, int64(pause)).Draw(t, "pause"))
			}
			now = now.Add(pause)
		}
		_, n, _ := r.Take(l, now, 1000, 0, 0)

		if got, want := granted+n, r.Burst+1+int(now.Sub(start)/r.Interval()); got != want {
			t.Errorf("%v grants %d starts in %v, want %d", r, got, now.Sub(start), want)
		}
	})
}

func TestAFasterRateAppliesAfterTheLastSlot(t *testing.T) {
	const now core.Instant = 1 << 50
	slow, fast := core.Rate{Count: 1, Per: core.MaxRatePer}, core.Rate{Count: 10, Per: time.Second}
	l, granted, _ := slow.Take(core.Limiter{}, now, 5, 0, 0)
	if granted != 1 {
		t.Fatalf("%d grants, want 1", granted)
	}
	if _, _, first := fast.Take(l, now, 0, 0, 0); first != now.Add(100*time.Millisecond) {
		t.Errorf("the next slot is %v away, want 100ms", first.Sub(now))
	}
}

func TestALimiterGrantsNothingAtTheEndOfTime(t *testing.T) {
	r := core.Rate{Count: 1, Per: core.MaxRatePer}
	for _, l := range []core.Limiter{{}, {Stopped: core.MaxInstant}} {
		next, granted, first := r.Take(l, core.MaxInstant, 5, core.MaxAhead, 0)
		if granted != 0 || next != l || first > core.MaxInstant {
			t.Errorf("%+v grants %d from %d and becomes %+v, want none", l, granted, first, next)
		}
	}
}

func TestALimiterThatIsGoneIsAsGoodAsNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRate(t)
		now := core.Instant(rapid.Int64Range(1<<50, 1<<51).Draw(t, "now"))
		near := rapid.Int64Range(int64(now)-int64(2*time.Minute/time.Microsecond), int64(now))
		l := core.Limiter{
			Next:    core.Instant(near.Draw(t, "next")),
			Started: core.Instant(near.Draw(t, "started")),
			Last:    core.Instant(near.Draw(t, "last")),
			Stopped: core.Instant(near.Draw(t, "stopped")),
			Changed: core.Instant(near.Draw(t, "changed")),
		}
		if !l.Gone(now) {
			return
		}

		_, granted, first := r.Take(l, now, 20, time.Second, 0)
		_, wantGranted, wantFirst := r.Take(core.Limiter{}, now, 20, time.Second, 0)
		_, used, start := r.Use(l, now, 20, time.Second)
		if _, wantUsed, wantStart := r.Use(core.Limiter{}, now, 20, time.Second); used != wantUsed || start != wantStart {
			t.Errorf("%d slots are used from %v, want %d from %v", used, start, wantUsed, wantStart)
		}
		if granted != wantGranted || first != wantFirst {
			t.Errorf("grants %d from %v, want %d from %v", granted, first, wantGranted, wantFirst)
		}
	})
}

// A clock that steps back moves all times of a limiter back by as much, and none below 0.
func TestAStepBackMovesAllTimesOfALimiter(t *testing.T) {
	r := core.Rate{Count: 1, Per: time.Second}
	for _, c := range []struct{ before, after core.Limiter }{
		{
			core.Limiter{Next: 2100, Started: 2200, Last: 2300, Stopped: 2400, Changed: 2000},
			core.Limiter{Next: 1100, Started: 1200, Last: 1300, Stopped: 1400, Changed: 1000},
		},
		{core.Limiter{Next: 1, Started: 2, Last: 3, Stopped: 4, Changed: 1005}, core.Limiter{Changed: 1000}},
	} {
		if got, _, _ := r.Take(c.before, 1000, 0, 0, 0); got != c.after {
			t.Errorf("after a take the limiter is %+v, want %+v", got, c.after)
		}
		if got, _, _ := r.Use(c.before, 1000, 0, 0); got != c.after {
			t.Errorf("after a use the limiter is %+v, want %+v", got, c.after)
		}
	}
}

// A use moves Next back with the clock, as it does the other times.
func TestAUseAfterAStepBackMovesNext(t *testing.T) {
	r := core.Rate{Count: 1, Per: time.Millisecond}
	before := core.Limiter{Next: 9000, Started: 1500, Last: 1500, Changed: 2000}
	want := core.Limiter{Next: 8000, Started: 1500, Last: 1000, Changed: 1000}
	if got, used, first := r.Use(before, 1000, 1, 0); got != want || used != 1 || first != 500 {
		t.Errorf("the limiter is %+v after %d uses from %d, want %+v after one from 500", got, used, first, want)
	}
}

// Without a use there is no time of one, and nothing changes.
func TestNoUseHasNoTime(t *testing.T) {
	l := core.Limiter{Next: 9_000_000, Started: 5_000_000, Last: 4_000_000, Changed: 1000}
	got, used, first := core.Rate{Count: 1, Per: time.Second}.Use(l, 1000, 3, time.Second)
	if got != l || used != 0 || first != 0 {
		t.Errorf("%d uses from %d, and the limiter is %+v; want none, from 0, and %+v", used, first, got, l)
	}
}

// A take by a faster rate than before moves Next and Started to its own pace, and remembers a start
// that comes before its time as one of now.
func TestAFasterRateMovesStarted(t *testing.T) {
	r := core.Rate{Count: 1, Per: time.Millisecond, Burst: 2}
	l := core.Limiter{Next: 90_000_000, Started: 80_000_000, Last: 1000, Changed: 1000}
	got, granted, first := r.Take(l, 5000, 1, 0, 0)
	want := core.Limiter{Next: 6000, Started: 6000, Last: 5000, Changed: 5000}
	if got != want || granted != 1 || first != 3000 {
		t.Errorf("%d grants from %d, and the limiter is %+v; want one from 3000, and %+v", granted, first, got, want)
	}
}

// At the end of time nothing is granted.
func TestNoSlotLiesBehindTheEndOfTime(t *testing.T) {
	r := core.Rate{Count: 1, Per: time.Second, Burst: 10}
	l := core.Limiter{Stopped: core.MaxInstant - 1000}
	now := core.MaxInstant - 2000
	if got, granted, first := r.Take(l, now, 5, time.Minute, 0); got != l || granted != 0 || first > core.MaxInstant {
		t.Errorf("%d grants from %d, and the limiter is %+v; want none, and %+v", granted, first, got, l)
	}
}

// A limiter whose slots have been used late is kept for the next use.
func TestALimiterEndsWithItsLastUse(t *testing.T) {
	l := core.Limiter{Next: 1000, Started: 5000, Stopped: 2000}
	if l.End() != 5000 || l.Gone(core.Instant(5000).Add(core.LimiterKept)-1) || !l.Gone(core.Instant(5000).Add(core.LimiterKept)) {
		t.Errorf("the limiter %+v ends at %d", l, l.End())
	}
}

// New slots up to soon count as used, and later ones do not.
func TestSlotsThatComeSoonCountAsUsed(t *testing.T) {
	r := core.Rate{Count: 1, Per: time.Millisecond}
	for soon, started := range map[time.Duration]core.Instant{
		0: 2000, 999 * time.Microsecond: 2000, time.Millisecond: 3000, time.Minute: 6000,
	} {
		if got, granted, _ := r.Take(core.Limiter{}, 1000, 5, time.Minute, soon); got.Started != started || granted != 5 {
			t.Errorf("with soon %v the next use of %d is at %d, want %d", soon, granted, got.Started, started)
		}
	}
}
