package core_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

// parsed returns the spec of a schedule's ticks.
func parsed(t testing.TB, s *core.Schedule) core.Spec {
	t.Helper()
	spec, err := s.Ticks(func(text string) (core.Spec, error) {
		zone, err := time.LoadLocation(core.SpecZone(text))
		if err != nil {
			return core.Spec{}, err
		}
		return core.ParseSpec(text, zone)
	})
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// everyMinute returns a schedule of an interval of one minute, whose next tick is at an instant.
func everyMinute(next core.Instant) core.Schedule {
	return core.Schedule{
		ScheduleKey: core.ScheduleKey{ID: "order-1", Name: "sync"},
		Recurrence:  core.Recurrence{Spec: "every 1m0s 0", Data: []byte("go")},
		Next:        next,
		Revision:    1,
	}
}

const minute = core.Instant(time.Minute / time.Microsecond)

// TestFiringVectors holds Fire to firing.json.
func TestFiringVectors(t *testing.T) {
	type vector struct {
		About       string
		Spec        string
		TickUS      core.Instant `json:"tick_us"`
		SinceUS     core.Instant `json:"spec_since_us"`
		Earlier     []core.EarlierSpec
		NowUS       core.Instant `json:"now_us"`
		Most        int
		WithinUS    int64 `json:"within_us"`
		Skip        bool
		Paused      bool
		FiresUS     []core.Instant `json:"fires_us"`
		Missed      int64
		NextUS      core.Instant `json:"next_us"`
		IfBusySkips int64        `json:"skipped_if_busy"`
	}
	for _, v := range vectors[vector](t, "firing.json") {
		t.Run(v.About, func(t *testing.T) {
			s := everyMinute(v.TickUS)
			s.Spec, s.SpecSince, s.Earlier, s.Skip, s.Paused = v.Spec, v.SinceUS, v.Earlier, v.Skip, v.Paused
			s.Catchup = core.Catchup{Most: v.Most, Within: time.Duration(v.WithinUS) * time.Microsecond}

			f, ok := s.Fire(parsed(t, &s), v.NowUS)
			if ok != (v.FiresUS != nil) {
				t.Fatalf("fires: %v, want %v", ok, v.FiresUS != nil)
			}
			if !ok {
				return
			}
			if diff := cmp.Diff(v.FiresUS, ticksOf(f.Entries)); diff != "" {
				t.Errorf("fired ticks (-want +got):\n%s", diff)
			}
			if f.After.Missed != v.Missed || f.After.Next != v.NextUS || f.After.Fired != int64(len(v.FiresUS)) {
				t.Errorf("missed %d, next %d, fired %d; want %d, %d, %d",
					f.After.Missed, f.After.Next, f.After.Fired, v.Missed, v.NextUS, len(v.FiresUS))
			}
			if (f.Busy != nil) != v.Skip {
				t.Errorf("if busy: %+v, want one only with skip", f.Busy)
			}
			if v.Skip && (f.Busy.Skipped != v.IfBusySkips || f.Busy.Fired != 0 || f.Busy.Next != v.NextUS) {
				t.Errorf("if busy: skipped %d, fired %d, next %d", f.Busy.Skipped, f.Busy.Fired, f.Busy.Next)
			}
		})
	}
}

// ticksOf returns the ticks of entries by their scores.
func ticksOf(entries []core.Entry) []core.Instant {
	ticks := make([]core.Instant, len(entries))
	for i := range entries {
		ticks[i] = core.Instant(entries[i].Score * 1e6)
	}
	return ticks
}

// TestFiringsPartitionTicks fires a schedule at random times. Each tick is fired, missed or left,
// once, in order, whatever the catch-up is.
func TestFiringsPartitionTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := everyMinute(minute)
		s.Catchup.Most = rapid.IntRange(0, 300).Draw(t, "most")
		s.Catchup.Within = time.Duration(rapid.IntRange(0, 400).Draw(t, "within")) * time.Minute
		spec, err := core.ParseSpec(s.Spec, nil)
		if err != nil {
			t.Fatal(err)
		}

		var now, last core.Instant
		var fired int64
		for range rapid.IntRange(1, 10).Draw(t, "firings") {
			now += minute * core.Instant(rapid.IntRange(0, 500).Draw(t, "minutes"))
			revision := s.Revision
			f, ok := s.Fire(spec, now)
			if !ok {
				if s.Next <= now {
					t.Fatalf("tick %d is due at %d and not fired", s.Next, now)
				}
				continue
			}
			for _, tick := range ticksOf(f.Entries) {
				if tick <= last || tick > now {
					t.Fatalf("tick %d fired at %d after tick %d", tick, now, last)
				}
				last = tick
			}
			fired += int64(len(f.Entries))
			s = f.After
			if s.Revision <= revision || len(f.Entries) > core.MaxFiringEntries || len(s.Recent) > core.MaxRecentTicks {
				t.Fatalf("revision %d after %d, %d entries, %d recent ticks",
					s.Revision, revision, len(f.Entries), len(s.Recent))
			}
		}
		if s.Fired != fired || (s.Fired+s.Missed+1)*int64(minute) != int64(s.Next) {
			t.Fatalf("%d fired, of them %d pushed, %d missed, next %d", s.Fired, fired, s.Missed, s.Next/minute)
		}
	})
}

func TestAFiringPushesWhatTheScheduleSays(t *testing.T) {
	s := everyMinute(minute)
	s.Meta, s.Tags = []byte("trace"), "nightly"
	f, _ := s.Fire(parsed(t, &s), minute+5)
	want := core.Entry{
		ID:      "order-1",
		Payload: core.Payload{Data: []byte("go"), Score: 60, Meta: []byte("trace")},
		When:    core.At(minute),
		Tags:    "nightly",
	}
	if diff := cmp.Diff([]core.Entry{want}, f.Entries, cmp.AllowUnexported(core.When{})); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	recent := []core.Tick{{Due: minute, Outcome: core.TickFired, Late: 5 * time.Microsecond}}
	if diff := cmp.Diff(recent, f.After.Recent); diff != "" {
		t.Errorf("recent ticks (-want +got):\n%s", diff)
	}

	s.Score, s.FixedScore = 7, true
	if f, _ = s.Fire(parsed(t, &s), minute); f.Entries[0].Score != 7 {
		t.Errorf("score %v with a score of its own, want 7", f.Entries[0].Score)
	}
}

func TestJitterSpreadsTicks(t *testing.T) {
	seen := map[core.Instant]bool{}
	for _, id := range []string{"a", "b", "c", "d"} {
		s := everyMinute(minute)
		s.ID, s.Jitter = id, time.Hour
		due := s.Head().Due
		seen[due] = true
		if due < minute || due >= minute+60*minute {
			t.Errorf("id %s is due at %d", id, due)
		}
		if _, ok := s.Fire(parsed(t, &s), due-1); ok {
			t.Errorf("id %s fires before its jitter", id)
		}
		f, ok := s.Fire(parsed(t, &s), due)
		if !ok || f.After.Recent[0].Late != 0 {
			t.Errorf("id %s does not fire at its jitter, or late: %v", id, f.After.Recent)
		}
	}
	if len(seen) != 4 {
		t.Errorf("4 ids are due at %d times", len(seen))
	}
}

func TestAnotherSpecKeepsTheTickThatHasCome(t *testing.T) {
	hourly := core.Recurrence{Spec: "every 1h0m0s 0", Data: []byte("go")}
	spec, err := core.ParseSpec(hourly.Spec, nil)
	if err != nil {
		t.Fatal(err)
	}

	now := 10 * minute
	s := everyMinute(now + 1)
	if changed := s.Recurring(&hourly, spec, now); changed.Next != 60*minute {
		t.Errorf("next tick after a change %d, want that of the new spec", changed.Next)
	}
	s.Next = now
	changed := s.Recurring(&hourly, spec, now)
	if changed.Next != now {
		t.Errorf("the tick that has come was replaced by %d", changed.Next)
	}
	if f, _ := changed.Fire(parsed(t, &changed), now); len(f.Entries) != 1 || f.After.Next != 60*minute ||
		f.After.Earlier != nil {
		t.Errorf("%d entries, next %d, earlier %v", len(f.Entries), f.After.Next, f.After.Earlier)
	}
	same := s.Recurrence
	same.Data = []byte("other")
	s.SpecSince = 1
	if kept := s.Recurring(&same, spec, now); kept.SpecSince != 1 || kept.Next != now {
		t.Errorf("another payload changed the ticks: %+v", kept)
	}
}

// Specs change while no server fires. Each tick of each of them is fired, in several firings.
func TestAnotherSpecKeepsAllTicksThatHaveCome(t *testing.T) {
	s := everyMinute(minute)
	s.Catchup.Most = core.MaxCatchup
	var want []core.Instant
	since := core.Instant(0)
	for i, now := range []core.Instant{70 * minute, 155 * minute, 155*minute + 1, 200 * minute} {
		for tick := since; tick < now; {
			if tick, _ = parsed(t, &core.Schedule{Recurrence: s.Recurrence}).Next(tick); tick <= now {
				want = append(want, tick)
			}
		}
		other := s.Recurrence
		other.Spec = fmt.Sprintf("every %dm0s 0", i+2)
		s = s.Recurring(&other, parsed(t, &core.Schedule{Recurrence: other}), now).Changed("ann", now)
		since = now
	}
	if len(s.Earlier) != 4 || s.Next != minute {
		t.Fatalf("%d earlier specs, next %d", len(s.Earlier), s.Next)
	}

	var fired []core.Instant
	for now := since; ; now++ {
		f, ok := s.Fire(parsed(t, &s), now)
		if !ok {
			break
		}
		s, fired = f.After, append(fired, ticksOf(f.Entries)...)
	}
	if diff := cmp.Diff(want, fired); diff != "" || s.Missed != 0 || s.Next != 205*minute || s.Earlier != nil {
		t.Errorf("%d missed, next %d, earlier %v; fired ticks (-want +got):\n%s",
			s.Missed, s.Next/minute, s.Earlier, diff)
	}
}

// The time of an earlier spec that can't be read has no ticks of the specs beside it.
func TestAnUnreadableSpecHasNoTicks(t *testing.T) {
	s := everyMinute(10 * minute)
	s.Spec, s.SpecSince = "every 7m0s 0", 65*minute
	s.Earlier = []core.EarlierSpec{
		{Spec: "every 10m0s 0", Until: 25 * minute},
		{Spec: "unreadable", Until: 65 * minute},
	}
	s.Catchup.Most = core.MaxCatchup
	f, _ := s.Fire(parsed(t, &s), 80*minute)
	want := []core.Instant{10 * minute, 20 * minute, 70 * minute, 77 * minute}
	if diff := cmp.Diff(want, ticksOf(f.Entries)); diff != "" || f.After.Missed != 0 {
		t.Errorf("%d missed; fired ticks (-want +got):\n%s", f.After.Missed, diff)
	}
}

// A schedule remembers a bounded number of specs, and none once it has no tick left of them.
func TestEarlierSpecsAreBounded(t *testing.T) {
	s := everyMinute(minute)
	change := func(now core.Instant) {
		other := s.Recurrence
		other.Spec = fmt.Sprintf("every 1h0m0s %d", now)
		s = s.Recurring(&other, parsed(t, &core.Schedule{Recurrence: other}), now).Changed("ann", now)
	}
	for i := range core.Instant(2 * core.MaxEarlierSpecs) {
		change(minute + i)
	}
	last := core.EarlierSpec{Spec: fmt.Sprintf("every 1h0m0s %d", s.SpecSince-1), Until: s.SpecSince}
	if n := len(s.Earlier); n != core.MaxEarlierSpecs || s.Earlier[n-1] != last || s.Validate() != nil {
		t.Errorf("earlier specs %v, want %d, the last one %v", s.Earlier, core.MaxEarlierSpecs, last)
	}
	if s.Earlier[0].Spec != "" || s.Earlier[0].Until >= s.Earlier[1].Until {
		t.Errorf("the oldest ones are %v, want their time to be without ticks", s.Earlier[:2])
	}
	s.Earlier = append(s.Earlier, last)
	if err := s.Validate(); !errors.Is(err, core.ErrInvalidSchedule) {
		t.Errorf("with too many: %v", err)
	}
	if change(0); s.Earlier != nil { // the clock of the store has stepped back, and no tick has come
		t.Errorf("earlier specs %v without a tick of them", s.Earlier)
	}
}

func TestDeclarations(t *testing.T) {
	spec, err := core.ParseSpec("every 1m0s 0", nil)
	if err != nil {
		t.Fatal(err)
	}
	d := core.Declaration{
		ScheduleKey: core.ScheduleKey{ID: "order-1", Name: "sync"},
		Recurrence:  core.Recurrence{Spec: "every 1m0s 0", Data: []byte("go")},
		Paused:      true, Set: "billing", Version: 2,
	}
	first, changed := d.Apply(core.Schedule{}, spec, "worker", 5)
	if !changed || !first.Paused || first.PausedBy != "worker" || first.PausedAt != 5 || first.Next != minute || first.Revision < 1 || first.By != "worker" {
		t.Fatalf("a new schedule: changed %v, %+v", changed, first)
	}

	other := d
	other.Data, other.Paused = []byte("other"), false
	edited := first
	edited.Data, edited.Edited = []byte("by hand"), true
	older, newer, unset := other, other, other
	older.Version, newer.Version = 1, 3
	unset.Set, unset.Version = "", 0
	editedUnset := edited
	editedUnset.Set, editedUnset.Version = "", 0
	otherSet, equalOther, equalNewer := older, d, d
	otherSet.Set, equalOther.Set, equalNewer.Version = "letters", "letters", 3
	for _, test := range []struct {
		name    string
		current core.Schedule
		d       core.Declaration
		want    string
	}{
		{"an equal one", first, d, ""},
		{"another payload", first, other, "other"},
		{"a lower version", first, older, ""},
		{"a higher version", first, newer, "other"},
		{"the same version of an edited one", edited, other, ""},
		{"a higher version of an edited one", edited, newer, "other"},
		{"outside the set", edited, unset, "other"},
		{"an edited one outside any set", editedUnset, unset, "other"},
		{"a lower version of another set", first, otherSet, "other"},
		{"an equal one of another set", first, equalOther, "go"},
		{"an equal one in a higher version", first, equalNewer, "go"},
	} {
		t.Run(test.name, func(t *testing.T) {
			next, changed := test.d.Apply(test.current, spec, "worker", 9)
			if changed != (test.want != "") {
				t.Fatalf("changed: %v", changed)
			}
			if !changed {
				return
			}
			if string(next.Data) != test.want || !next.Paused || next.Edited || next.Set != test.d.Set ||
				next.Version != test.d.Version || next.Revision <= test.current.Revision {
				t.Errorf("declared: %+v", next)
			}
		})
	}
}

// TestEqualComparesEachField changes one field after the other.
func TestEqualComparesEachField(t *testing.T) {
	kind := reflect.TypeFor[core.Recurrence]()
	for i := range kind.NumField() {
		var a, b core.Recurrence
		field := reflect.ValueOf(&b).Elem().Field(i)
		switch field.Kind() {
		case reflect.String:
			field.SetString("x")
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Int64:
			field.SetInt(1)
		case reflect.Float64:
			field.SetFloat(1)
		case reflect.Slice:
			field.SetBytes([]byte("x"))
		case reflect.Struct:
			b.Catchup.Most = 2
		default:
			t.Fatalf("field %s has kind %v; extend this test", kind.Field(i).Name, field.Kind())
		}
		if a.Equal(&b) || !b.Equal(&b) {
			t.Errorf("Equal does not compare %s", kind.Field(i).Name)
		}
	}
}

// A schedule that is made anew, even in the microsecond of the removed one, has another revision,
// unless it is the same in everything. Each change raises it by one, whatever the clock shows.
func TestRevisionsAreNotUsedAgain(t *testing.T) {
	spec, err := core.ParseSpec("every 1m0s 0", nil)
	if err != nil {
		t.Fatal(err)
	}
	made := func(data, by string, now core.Instant) core.Schedule {
		d := core.Declaration{
			ScheduleKey: core.ScheduleKey{ID: "order-1", Name: "sync"},
			Recurrence:  core.Recurrence{Spec: "every 1m0s 0", Data: []byte(data)},
		}
		s, _ := d.Apply(core.Schedule{}, spec, by, now)
		return s
	}

	first := made("go", "ann", 5)
	if again := made("go", "ann", 5); again.Revision != first.Revision {
		t.Errorf("revisions %d and %d of one declaration", first.Revision, again.Revision)
	}
	seen := map[int64]string{first.Revision: "first"}
	for i := range 1000 {
		for _, s := range []core.Schedule{
			made(fmt.Sprint("go", i), "ann", 5), made("go", fmt.Sprint("ann", i), 5), made("go", "ann", core.Instant(6+i)),
		} {
			what := fmt.Sprintf("%s by %s at %d", s.Data, s.By, s.ChangedAt)
			if earlier := seen[s.Revision]; earlier != "" || s.Revision < 1 || s.Revision > 1<<52 {
				t.Errorf("revision %d of %s, and of %q", s.Revision, what, earlier)
			}
			seen[s.Revision] = what
		}
	}

	f, ok := first.Fire(parsed(t, &first), minute)
	if changed := first.Changed("bob", 0); changed.Revision != first.Revision+1 || !ok || f.After.Revision != first.Revision+1 {
		t.Errorf("revisions %d and %d after %d", changed.Revision, f.After.Revision, first.Revision)
	}
}

func TestABrokenScheduleIsTriedAgain(t *testing.T) {
	newer := everyMinute(minute)
	newer.Spec = "moon full Europe/Berlin" // of a newer version
	if marked := newer.Break("what is a moon?", minute); marked.Validate() != nil {
		t.Errorf("a server can't mark a schedule of a newer version: %v", marked.Validate())
	}

	s := everyMinute(minute)
	broken := s.Break("no such zone", 2*minute)
	if head := broken.Head(); head != (core.Head{Due: 3 * minute, OK: true}) || broken.Next != minute {
		t.Errorf("head %+v, next %d", head, broken.Next)
	}
	later := broken
	later.Next = 10 * minute
	if head := later.Head(); head != (core.Head{Due: 10 * minute, OK: true}) {
		t.Errorf("head %+v before its tick", head)
	}
	f, ok := broken.Fire(parsed(t, &broken), 3*minute)
	if !ok || f.After.Broken != "" || f.After.Head() != (core.Head{Due: 4 * minute, OK: true}) {
		t.Errorf("after its spec was read: %v, %+v", ok, f.After)
	}
}

func TestInvalidSchedules(t *testing.T) {
	every := core.MergeRule{Same: core.SamePush}
	for _, test := range []struct {
		name string
		edit func(*core.Schedule)
		rule core.MergeRule
		want string
	}{
		{"spec", func(s *core.Schedule) { s.Spec = "sometimes" }, every, "neither a cron expression"},
		{"name", func(s *core.Schedule) { s.Name = "a b" }, every, "letters, digits"},
		{"no name", func(s *core.Schedule) { s.Name = "" }, every, "give one"},
		{"payload", func(s *core.Schedule) { s.Data = make([]byte, core.MaxScheduleDataBytes+1) }, every,
			"65537 bytes"},
		{"jitter", func(s *core.Schedule) { s.Jitter = 25 * time.Hour }, every, "give 0 to 24h"},
		{"most", func(s *core.Schedule) { s.Catchup.Most = 1001 }, every, "give 1 to 1000"},
		{"within", func(s *core.Schedule) { s.Catchup.Within = -1 }, every, "give an age"},
		{"most by union", func(s *core.Schedule) { s.Catchup.Most = 2 }, core.MergeRule{}, "merges by every"},
		{"most of one score", func(s *core.Schedule) { s.Catchup.Most, s.FixedScore = 2, true }, every,
			"leave the score"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := everyMinute(0)
			test.edit(&s)
			err := s.ScheduleKey.Validate()
			if err == nil {
				err = s.Recurrence.Validate(test.rule)
			}
			if !errors.Is(err, core.ErrInvalidSchedule) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}

	s := everyMinute(0)
	s.Catchup.Most = 2
	if err := s.Validate(); err != nil {
		t.Errorf("error %v by any merge rule", err)
	}
	s.Note = strings.Repeat("x", core.MaxScheduleNoteBytes+1)
	if err := s.Validate(); !errors.Is(err, core.ErrInvalidSchedule) {
		t.Errorf("error %v for a long note", err)
	}
}

// Each limit is the largest or the smallest value that a schedule may have.
func TestLimitsOfSchedules(t *testing.T) {
	for _, test := range []struct {
		name string
		// edit sets a value that is beyond its limit by a number.
		edit func(s *core.Schedule, beyond int)
		want error
	}{
		{"id", func(s *core.Schedule, n int) { s.ID = strings.Repeat("x", core.MaxIDBytes+n) }, core.ErrInvalidID},
		{"name", func(s *core.Schedule, n int) { s.Name = strings.Repeat("x", core.MaxScheduleNameBytes+n) }, nil},
		{"spec", func(s *core.Schedule, n int) { s.Spec = strings.Repeat("x", 1<<10+n) }, nil},
		{"no spec", func(s *core.Schedule, n int) { s.Spec = s.Spec[:1-n] }, nil},
		{"spec of no text", func(s *core.Schedule, n int) { s.Spec += strings.Repeat("\xff", n) }, nil},
		{"payload", func(s *core.Schedule, n int) { s.Data = make([]byte, core.MaxScheduleDataBytes+n) }, nil},
		{"meta", func(s *core.Schedule, n int) { s.Meta = make([]byte, core.MaxMetaBytes+n) }, core.ErrInvalidPayload},
		{"jitter", func(s *core.Schedule, n int) { s.Jitter = core.MaxJitter + time.Duration(n) }, nil},
		{"negative jitter", func(s *core.Schedule, n int) { s.Jitter = -time.Duration(n) }, nil},
		{"most", func(s *core.Schedule, n int) { s.Catchup.Most = core.MaxCatchup + n }, nil},
		{"negative most", func(s *core.Schedule, n int) { s.Catchup.Most = -n }, nil},
		{"revision", func(s *core.Schedule, n int) { s.Revision = int64(core.MaxInstant) + int64(n) }, nil},
		{"next", func(s *core.Schedule, n int) { s.Next = core.MaxInstant + core.Instant(n) }, nil},
		{"negative next", func(s *core.Schedule, n int) { s.Next = -core.Instant(n) }, nil},
		{"since", func(s *core.Schedule, n int) { s.SpecSince = core.MaxInstant + core.Instant(n) }, nil},
		{"negative change", func(s *core.Schedule, n int) { s.ChangedAt = -core.Instant(n) }, nil},
		{"retry", func(s *core.Schedule, n int) { s.RetryAt = core.MaxInstant + core.Instant(n) }, nil},
		{"note", func(s *core.Schedule, n int) { s.Note = strings.Repeat("x", core.MaxScheduleNoteBytes+n) }, nil},
		{"note of no text", func(s *core.Schedule, n int) { s.Note = strings.Repeat("\x00", n) }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := everyMinute(0)
			test.edit(&s, 0)
			if err := s.Validate(); err != nil {
				t.Errorf("at the limit: %v", err)
			}
			if test.want == nil {
				test.want = core.ErrInvalidSchedule
			}
			test.edit(&s, 1)
			if err := s.Validate(); !errors.Is(err, test.want) {
				t.Errorf("beyond the limit: %v, want %v", err, test.want)
			}
		})
	}
}

// A recurrence that catches up on one tick needs neither a queue that merges by every nor the
// scores of its ticks.
func TestRecurrencesThatAQueueAllows(t *testing.T) {
	every := core.MergeRule{Same: core.SamePush}
	for _, test := range []struct {
		most  int
		fixed bool
		rule  core.MergeRule
	}{
		{0, true, core.MergeRule{}}, {1, true, core.MergeRule{}}, {0, true, every}, {1, true, every}, {2, false, every},
	} {
		r := everyMinute(0).Recurrence
		r.Catchup.Most, r.FixedScore = test.most, test.fixed
		if err := r.Validate(test.rule); err != nil {
			t.Errorf("catching up on %d, fixed score %v, by %v: %v", test.most, test.fixed, test.rule, err)
		}
	}
}

// A jitter above the time between two ticks would let a tick come after the next one.
func TestJitterIsAtMostTheInterval(t *testing.T) {
	for jitter, refused := range map[time.Duration]bool{time.Minute: false, time.Minute + time.Microsecond: true} {
		r := everyMinute(0).Recurrence
		r.Jitter = jitter
		if err := r.Validate(core.MergeRule{}); errors.Is(err, core.ErrInvalidSchedule) != refused {
			t.Errorf("jitter %v: %v", jitter, err)
		}

		r.Spec = "cron * * * * * UTC"
		if err := r.Validate(core.MergeRule{}); errors.Is(err, core.ErrInvalidSchedule) != refused {
			t.Errorf("jitter %v of a cron expression: %v", jitter, err)
		}
	}

	for cron, most := range map[string]time.Duration{
		"0 9,10 * * 1": time.Hour,
		"0 6 * * *":    core.MaxJitter,
		"0 0 29 2 *":   core.MaxJitter,
	} {
		r := everyMinute(0).Recurrence
		r.Spec, r.Jitter = "cron "+cron+" UTC", most
		if err := r.Validate(core.MergeRule{}); err != nil {
			t.Errorf("jitter %v of %s: %v", most, cron, err)
		}
	}
}

// A firing pushes only some ticks at once, and the id then has a job. So the next one would skip
// the others.
func TestSkipCatchesUpOnOneFiring(t *testing.T) {
	r := everyMinute(0).Recurrence
	r.Skip, r.Catchup.Most = true, core.MaxFiringEntries
	rule := core.MergeRule{Same: core.SamePush}
	if err := r.Validate(rule); err != nil {
		t.Error(err)
	}
	r.Catchup.Most++
	if err := r.Validate(rule); !errors.Is(err, core.ErrInvalidSchedule) {
		t.Errorf("catching up on %d: %v", r.Catchup.Most, err)
	}
}

func TestDistinctPayloadsOfTicks(t *testing.T) {
	every := core.MergeRule{Same: core.SamePush}
	for _, c := range []struct {
		rule        core.MergeRule
		fixed       bool
		ticks, want int
	}{
		{core.MergeRule{}, false, 5, 1},
		{core.MergeRule{}, false, 0, 0},
		{every, false, 5, 5},
		{every, true, 5, 1},
		{core.MergeRule{Same: core.SamePush, Stays: core.Highest, Keep: 3}, false, 5, 3},
		{core.MergeRule{Same: core.SamePush, Stays: core.Highest, Keep: 3}, false, 2, 2},
	} {
		r := core.Recurrence{FixedScore: c.fixed}
		if got := r.Distinct(c.rule, c.ticks); got != c.want {
			t.Errorf("%d ticks by %v, fixed score %v: %d payloads, want %d", c.ticks, c.rule, c.fixed, got, c.want)
		}
	}

	r := everyMinute(0).Recurrence
	r.Catchup.Most = 4
	if err := r.Validate(core.MergeRule{Same: core.SamePush, Stays: core.Highest, Keep: 3}); !errors.Is(err, core.ErrInvalidSchedule) {
		t.Errorf("catching up on more ticks than the queue keeps: %v", err)
	}
}

// A record with a field that no program writes is refused, so that a store sets it aside.
func TestRecordsWithImpossibleFieldsAreRefused(t *testing.T) {
	const late = core.MaxInstant + 1
	for name, spoil := range map[string]func(*core.Schedule){
		"PausedAt":      func(s *core.Schedule) { s.PausedAt = late },
		"Until":         func(s *core.Schedule) { s.Earlier = []core.EarlierSpec{{Spec: s.Spec, Until: -1}} },
		"earlier Spec":  func(s *core.Schedule) { s.Earlier = []core.EarlierSpec{{Spec: "cron\x00"}} },
		"Due":           func(s *core.Schedule) { s.Recent = []core.Tick{{Due: late}} },
		"many Recent":   func(s *core.Schedule) { s.Recent = make([]core.Tick, core.MaxRecentTicks+1) },
		"Fired":         func(s *core.Schedule) { s.Fired = -1 },
		"Missed":        func(s *core.Schedule) { s.Missed = -1 },
		"Skipped":       func(s *core.Schedule) { s.Skipped = -1 },
		"backfill From": func(s *core.Schedule) { s.Backfill = &core.Backfill{From: late} },
		"backfill To":   func(s *core.Schedule) { s.Backfill = &core.Backfill{To: late} },
		"backfill At":   func(s *core.Schedule) { s.Backfill = &core.Backfill{At: late} },
	} {
		s := everyMinute(minute)
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		if spoil(&s); !errors.Is(s.Validate(), core.ErrInvalidSchedule) {
			t.Errorf("%s: %v", name, s.Validate())
		}
	}
}

func TestSchedulesWithoutAHead(t *testing.T) {
	paused, ended := everyMinute(minute), everyMinute(core.MaxInstant)
	paused.Paused = true
	for _, s := range []core.Schedule{paused, ended} {
		if head := s.Head(); head != (core.Head{}) {
			t.Errorf("paused %v, next %d: head %+v", s.Paused, s.Next, head)
		}
	}
}

func TestAFiringMayHaveAsManyEntriesAsItMay(t *testing.T) {
	s := everyMinute(minute)
	s.Catchup.Most = core.MaxCatchup
	f, _ := s.Fire(parsed(t, &s), core.MaxFiringEntries*minute)
	if n, next := len(f.Entries), (core.MaxFiringEntries+1)*minute; n != core.MaxFiringEntries || f.After.Next != next {
		t.Errorf("%d entries, next %d; want %d, %d", n, f.After.Next, core.MaxFiringEntries, next)
	}
}

// A run by hand comes before the jitter of its time, and is not late by less than nothing.
func TestARunByHandIsNotLate(t *testing.T) {
	s := everyMinute(minute)
	s.Jitter = time.Hour
	f := s.RunNow("ann", 5)
	want := []core.Tick{{Due: 5, Outcome: core.TickByHand}}
	if diff := cmp.Diff(want, f.After.Recent); diff != "" || f.After.Next != minute || f.After.Fired != 1 {
		t.Errorf("next %d, fired %d; recent ticks (-want +got):\n%s", f.After.Next, f.After.Fired, diff)
	}
}

// TestASchedulesFormat fixes the names of the stored fields.
func TestASchedulesFormat(t *testing.T) {
	s := everyMinute(minute)
	s.Recent = []core.Tick{{Due: 1, Outcome: core.TickMissed, Late: 2}}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"order-1","name":"sync","spec":"every 1m0s 0","data":"Z28=","spec_since":0,"next":60000000,` +
		`"changed_at":0,"revision":1,"recent":[{"due":1,"outcome":"missed","late_ns":2}]}`
	if string(text) != want {
		t.Errorf("stored as %s\nwant %s", text, want)
	}
	var read core.Schedule
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, read); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
}
