package core_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // zones don't depend on the machine

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/tier"
)

// location loads a time zone.
func location(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// cronSpec returns the spec of a cron expression in a zone.
func cronSpec(t testing.TB, expression, zone string) core.Spec {
	t.Helper()
	text, err := core.CronSpec(expression, zone)
	if err != nil {
		t.Fatal(err)
	}
	if named := core.SpecZone(text); named != zone {
		t.Fatalf("SpecZone(%q) = %q, want %q", text, named, zone)
	}
	spec, err := core.ParseSpec(text, location(t, zone))
	if err != nil || spec.String() != text {
		t.Fatalf("ParseSpec(%q) = %q, %v", text, spec, err)
	}
	return spec
}

func TestScheduleVectors(t *testing.T) {
	type vector struct {
		About, Cron, Zone, Every string
		Anchor, After            time.Time
		// Next are the ticks that follow After. Ends is set if no other follows.
		Next []time.Time
		Ends bool
	}
	for _, v := range vectors[vector](t, "schedule.json") {
		t.Run(v.About, func(t *testing.T) {
			spec, zone := core.Spec{}, time.UTC
			if v.Cron != "" {
				spec, zone = cronSpec(t, v.Cron, v.Zone), location(t, v.Zone)
			} else {
				every, err := time.ParseDuration(v.Every)
				if err != nil {
					t.Fatal(err)
				}
				spec = intervalSpec(t, every, core.InstantOf(v.Anchor))
			}

			var want, got []string
			after := core.InstantOf(v.After)
			for _, next := range v.Next {
				want = append(want, next.Format(time.RFC3339))
				tick, ok := spec.Next(after)
				if !ok {
					break
				}
				got = append(got, tick.Time().In(zone).Format(time.RFC3339))
				after = tick
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("ticks (-want +got):\n%s", diff)
			}
			if tick, ok := spec.Next(after); v.Ends && ok {
				t.Errorf("a tick at %v follows, want none", tick.Time())
			}
		})
	}
}

func intervalSpec(t testing.TB, every time.Duration, anchor core.Instant) core.Spec {
	t.Helper()
	text, err := core.IntervalSpec(every, anchor)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := core.ParseSpec(text, nil)
	if err != nil || spec.String() != text || core.SpecZone(text) != "" {
		t.Fatalf("ParseSpec(%q) = %q, %v", text, spec, err)
	}
	return spec
}

func TestCronSpecIsCanonical(t *testing.T) {
	for expression, want := range map[string]string{
		"0 6 * * 1-5":            "0 6 * * 1-5",
		"  0   6\t* * MON-Fri ":  "0 6 * * 1-5",
		"@daily":                 "0 0 * * *",
		"@Midnight":              "0 0 * * *",
		"@hourly":                "0 * * * *",
		"@weekly":                "0 0 * * 0",
		"@monthly":               "0 0 1 * *",
		"@yearly":                "0 0 1 1 *",
		"*/7 00 1,015 jan,dec *": "*/7 0 1,15 1,12 *",
		"5/20 0 * * fri-sun":     "5/20 0 * * 5-7",
		"0 0 1-31/2 * *":         "0 0 1-31/2 * *",
		"7/2 7/2 7/2 7/2 0/2":    "7/2 7/2 7/2 7/2 0/2",
	} {
		if got, err := core.CronSpec(expression, "UTC"); err != nil || got != "cron "+want+" UTC" {
			t.Errorf("CronSpec(%q) = %q, %v; want %q", expression, got, err, want)
		}
	}
}

// An error names the field, the place in it, and the cure.
func TestSpecsThatAreRefused(t *testing.T) {
	for expression, parts := range map[string][]string{
		"":                    {"0 fields", "give minute, hour"},
		"* * * *":             {"4 fields"},
		"0 * * * * *":         {"6 fields"},
		"@often":              {`"@often"`, "@hourly"},
		"60 * * * *":          {"field 1, minute", "item 1", `"60"`, "0 to 59"},
		"0 0,24 * * *":        {"field 2, hour", "item 2", `"24"`, "0 to 23"},
		"0 0 0 * *":           {"field 3, day of month", `"0"`, "1 to 31"},
		"0 0 * foo *":         {"field 4, month", `"foo"`, "1 to 12", "jan to dec"},
		"0 0 * * 8":           {"field 5, day of week", `"8"`, "0 to 7", "sun to sat"},
		"*/0 * * * *":         {"field 1, minute", `the step "0"`, "1 to 59"},
		"*/x * * * *":         {"field 1, minute", `the step "x"`},
		"* 22-3 * * *":        {"field 2, hour", "22-23,0-3"},
		"0 0 L * *":           {"field 3", "not supported"},
		"0 0 * * 5#2":         {"field 5", "not supported"},
		"0,,1 * * * *":        {"field 1, minute", "item 2", `""`},
		"+1 * * * *":          {"field 1, minute", `"+1"`},
		"1- * * * *":          {"field 1, minute", `""`},
		"-1 * * * *":          {"field 1, minute", `""`},
		"1--2 * * * *":        {"field 1, minute"},
		"1/2/3 * * * *":       {"field 1, minute", `the step "2/3"`},
		"*-5 * * * *":         {"field 1, minute", `"*"`},
		"99999999999 * * * *": {"field 1, minute"},
		"*/+5 * * * *":        {"field 1, minute", "item 1", `the step "+5"`, "1 to 59"},
		"*/-5 * * * *":        {"field 1, minute", `the step "-5"`},
		"*/ * * * *":          {"field 1, minute", `the step ""`},
		"0--0 * * * *":        {"field 1, minute", `"-0"`, "0 to 59"},
		"0-+5 * * * *":        {"field 1, minute", `"+5"`},
		"0 0 * * 1,7/2":       {"field 5, day of week", "item 2", "0/2", "Sunday"},
	} {
		_, err := core.CronSpec(expression, "UTC")
		if !errors.Is(err, core.ErrInvalidSchedule) {
			t.Errorf("CronSpec(%q): %v, want ErrInvalidSchedule", expression, err)
			continue
		}

		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("CronSpec(%q): %v; it does not mention %q", expression, err, part)
			}
		}
	}

	for _, zone := range []string{"", " ", "Europe/ Berlin", "a\nb"} {
		if _, err := core.CronSpec("@daily", zone); !errors.Is(err, core.ErrInvalidSchedule) {
			t.Errorf("CronSpec in the zone %q: %v, want ErrInvalidSchedule", zone, err)
		}
	}

	for _, every := range []time.Duration{0, -time.Hour, core.MinInterval - 1, time.Second + 1} {
		if _, err := core.IntervalSpec(every, 0); !errors.Is(err, core.ErrInvalidSchedule) {
			t.Errorf("IntervalSpec(%v): %v, want ErrInvalidSchedule", every, err)
		}
	}

	for _, anchor := range []core.Instant{-1, core.MaxInstant + 1} {
		if _, err := core.IntervalSpec(time.Hour, anchor); !errors.Is(err, core.ErrInvalidSchedule) {
			t.Errorf("IntervalSpec with the anchor %d: %v, want ErrInvalidSchedule", anchor, err)
		} else if !strings.Contains(err.Error(), "give a time from 1970-01-01 00:00:00") {
			t.Errorf("IntervalSpec with the anchor %d: %v; it does not name the times that it takes", anchor, err)
		}
	}

	for _, text := range []string{
		"", "cron", "cron * * * * *", "cron * * * * * UTC more", "cron 60 * * * * UTC", "every", "every 1h",
		"every 1 0", "every 1h x",
		"every 1ms 0", "every 1h -1", "daily 0 0", "often 1h 0", "moon * * * * * UTC",
	} {
		if _, err := core.ParseSpec(text, time.UTC); !errors.Is(err, core.ErrInvalidSchedule) {
			t.Errorf("ParseSpec(%q): %v, want ErrInvalidSchedule", text, err)
		}
	}

	if _, err := core.ParseSpec("cron * * * * * UTC", nil); !errors.Is(err, core.ErrInvalidSchedule) {
		t.Errorf("ParseSpec without a zone: %v, want ErrInvalidSchedule", err)
	}
}

func TestTicksEndWithTheInstants(t *testing.T) {
	yearly := cronSpec(t, "@yearly", "UTC")
	if tick, ok := yearly.Next(core.MaxInstant - 1); ok {
		t.Errorf("a tick at %v is after the last instant", tick.Time())
	}
	if tick, ok := yearly.Next(-5); !ok || tick != 0 {
		t.Errorf("the first tick is %d, %t; want 0", tick, ok)
	}
	hourly := intervalSpec(t, time.Hour, core.MaxInstant)
	if tick, ok := hourly.Next(core.MaxInstant - 1); !ok || tick != core.MaxInstant {
		t.Errorf("the last tick is %d, %t", tick, ok)
	}
	if tick, ok := hourly.Next(core.MaxInstant); ok {
		t.Errorf("a tick at %d is after the last instant", tick)
	}
	if tick, ok := hourly.Next(0); !ok || tick < 1 || tick > 3600e6 {
		t.Errorf("the first tick is %d, %t", tick, ok)
	}
	minutely := intervalSpec(t, time.Minute, 0)
	for _, after := range []core.Instant{-1, -5 * minute} {
		for _, spec := range []core.Spec{minutely, yearly} {
			if tick, ok := spec.Next(after); !ok || tick != 0 {
				t.Errorf("the first tick of %v after %d is %d, %t; want 0", spec, after, tick, ok)
			}
		}
	}
	if tick, ok := (core.Spec{}).Next(0); ok {
		t.Errorf("the zero Spec has a tick at %d", tick)
	}
}

func TestATickIsShownInTheZoneOfItsSpec(t *testing.T) {
	for spec, want := range map[core.Spec]string{
		cronSpec(t, "@daily", "Europe/Berlin"): "1970-01-01 01:01 CET",
		intervalSpec(t, time.Minute, 0):        "1970-01-01 00:01 UTC",
	} {
		if got := spec.Local(minute).Format("2006-01-02 15:04 MST"); got != want {
			t.Errorf("%v: %s, want %s", spec, got, want)
		}
	}
}

// expression is a cron expression that the oracle knows by its values.
type expression struct {
	text                      string
	minute, hour, day, month  map[int]bool
	weekday                   map[int]bool
	anyDay, anyWeekday, hours bool
}

// randomExpression draws an expression and the values of its fields.
func randomExpression(r *rand.Rand) expression {
	field := func(first, last int) (text string, values map[int]bool) {
		values = map[int]bool{}
		add := func(from, to, step int) {
			for v := from; v <= to; v += step {
				values[v] = true
			}
		}
		switch r.IntN(5) {
		case 0, 1:
			add(first, last, 1)
			return "*", values
		case 2:
			step := 1 + r.IntN(last)
			add(first, last, step)
			return fmt.Sprintf("*/%d", step), values
		}

		var items []string
		for range 1 + r.IntN(3) {
			from := first + r.IntN(last-first+1)
			to := from + r.IntN(last-from+1)
			step := 1 + r.IntN(3)
			switch r.IntN(3) {
			case 0:
				add(from, from, 1)
				items = append(items, fmt.Sprint(from))
			case 1:
				add(from, to, 1)
				items = append(items, fmt.Sprintf("%d-%d", from, to))
			case 2:
				add(from, to, step)
				items = append(items, fmt.Sprintf("%d-%d/%d", from, to, step))
			}
		}
		return strings.Join(items, ","), values
	}

	var e expression
	var texts [5]string
	texts[0], e.minute = field(0, 59)
	texts[1], e.hour = field(0, 23)
	texts[2], e.day = field(1, 31)
	texts[3], e.month = field(1, 12)
	texts[4], e.weekday = field(0, 6)
	e.text = strings.Join(texts[:], " ")
	e.anyDay, e.anyWeekday = texts[2][0] == '*', texts[4][0] == '*'
	e.hours = texts[1][0] == '*'
	return e
}

// names reports whether the expression names a clock time.
func (e *expression) names(clock time.Time) bool {
	day, weekday := e.day[clock.Day()], e.weekday[int(clock.Weekday())]
	matches := day && weekday
	if !e.anyDay && !e.anyWeekday {
		matches = day || weekday
	}
	return e.minute[clock.Minute()] && e.hour[clock.Hour()] && e.month[int(clock.Month())] && matches
}

// oracle finds the ticks of expressions by looking at each minute of a zone.
type oracle struct {
	zone *time.Location
	// latest is the latest clock time so far.
	latest time.Time
}

// ticks reports for each expression whether it has a tick at an instant. The instants have to come
// minute by minute.
func (o *oracle) ticks(at time.Time, all []expression, report func(i int)) {
	_, offset := at.In(o.zone).Zone()
	clock := at.UTC().Add(time.Duration(offset) * time.Second)
	first := o.latest.IsZero()
	repeated := !first && !clock.After(o.latest)
	for i := range all {
		e := &all[i]
		is := e.names(clock) && (!repeated || e.hours)
		if !first && (len(e.hour) < 24 || clock.Sub(o.latest.Add(time.Minute))%time.Hour != 0) {
			for skipped := o.latest.Add(time.Minute); !is && skipped.Before(clock); skipped = skipped.Add(time.Minute) {
				is = e.names(skipped)
			}
		}
		if is {
			report(i)
		}
	}
	if !repeated {
		o.latest = clock
	}
}

// Next agrees with a walk minute by minute through zones that change their clocks in many ways.
func TestTicksAreThoseOfAWalkMinuteByMinute(t *testing.T) {
	const specs = 6
	years := tier.Count(2, 40)
	for _, name := range []string{
		"Europe/Berlin", "America/New_York", "Africa/Cairo", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca",
		"UTC",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zone, r := location(t, name), rand.New(rand.NewPCG(1, uint64(len(name))))
			from := time.Date(2012-years/2, 1, 1, 0, 0, 0, 0, time.UTC)
			until := from.AddDate(years, 0, 0)
			all := make([]expression, specs)
			next := make([]core.Instant, specs)
			parsed := make([]core.Spec, specs)
			draw := func(i int, at time.Time) {
				all[i] = randomExpression(r)
				parsed[i] = cronSpec(t, all[i].text, name)
				next[i], _ = parsed[i].Next(core.InstantOf(at))
			}
			for i := range all {
				draw(i, from.Add(-time.Microsecond))
			}

			o := oracle{zone: zone}
			minutes := 0
			for at := from; at.Before(until); at = at.Add(time.Minute) {
				now := core.InstantOf(at)
				ticked := [16]bool{}
				o.ticks(at, all, func(i int) { ticked[i] = true })
				for i := range all {
					if expected := next[i] == now; expected != ticked[i] {
						t.Fatalf("%q in %s: at %v a tick is %t, and Next says %t (%v)",
							all[i].text, name, at.In(zone), ticked[i], expected,
							next[i].Time().In(zone))
					}
					if ticked[i] {
						next[i], _ = parsed[i].Next(now)
					}
				}
				if minutes++; minutes%50_000 == 0 { // each expression sees some months
					draw(minutes/50_000%specs, at)
				}
			}
		})
	}
}

func BenchmarkNextTick(b *testing.B) {
	for _, expression := range []string{"* * * * *", "0 6 * * 1-5", "0 0 29 2 1"} {
		b.Run(expression, func(b *testing.B) {
			spec := cronSpec(b, expression, "Europe/Berlin")
			at := core.InstantOf(time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC))
			for b.Loop() {
				_, _ = spec.Next(at)
			}
		})
	}
}

// TestNextPassesTheEndOfLeapYears steps over the last days of leap years behind the zone's table,
// where time.Time.ZoneBounds returns an end that is not after its time.
func TestNextPassesTheEndOfLeapYears(t *testing.T) {
	zone := zoneWithoutTable(t, "CET-1CEST,M3.5.0,M10.5.0/3")
	daily, err := core.ParseSpec("cron 30 2 * * * Europe/Berlin", zone)
	if err != nil {
		t.Fatal(err)
	}
	for year := 2028; year <= 2100; year += 4 {
		tick := core.InstantOf(time.Date(year, time.December, 29, 12, 0, 0, 0, time.UTC))
		for range 5 {
			next, ok := daily.Next(tick)
			if gap := next.Sub(tick); !ok || gap <= 0 || gap > 25*time.Hour {
				t.Fatalf("after %v comes %v, %v", tick.Time(), next.Time(), ok)
			}
			tick = next
		}
	}

	rare, err := core.ParseSpec("cron 0 0 29 2 */7 Europe/Berlin", zone)
	if err != nil {
		t.Fatal(err)
	}
	if tick, ok := rare.Next(core.InstantOf(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))); !ok ||
		tick.Time().Year() != 2032 {
		t.Errorf("a Sunday that is 29 February: %v, %v", tick.Time(), ok)
	}
}

// zoneWithoutTable returns a zone whose changes of the clock are all given by a POSIX rule. Its
// data has the format of RFC 8536, version 2: an empty block of version 1, one with the standard
// time alone, and the rule.
func zoneWithoutTable(t *testing.T, rule string) *time.Location {
	t.Helper()
	header := func(types, letters byte) string {
		counts := make([]byte, 6*4)
		counts[4*4+3], counts[5*4+3] = types, letters
		return "TZif2" + strings.Repeat("\x00", 15) + string(counts)
	}
	standard := "\x00\x00\x0e\x10\x00\x00" + "CET\x00" // one hour east, no summer time
	zone, err := time.LoadLocationFromTZData("by rule", []byte(header(0, 0)+header(1, 4)+standard+"\n"+rule+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// A zone's name has to mean the same on every host.
func TestZonesOfAHostAreRefused(t *testing.T) {
	for _, zone := range []string{"Local", "localtime", "posixrules", "posix/Europe/Berlin", "right/Europe/Berlin"} {
		if _, err := core.CronSpec("0 6 * * *", zone); !errors.Is(err, core.ErrInvalidSchedule) {
			t.Errorf("%s: %v", zone, err)
		}
	}
}
