package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/specs"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// change makes one change of a schedule of a queue.
func (s *fixture) change(queue string, c ports.ScheduleChange) ports.ScheduleResult {
	s.t.Helper()
	queues, err := s.store.Queues(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}

	at := slices.IndexFunc(queues, func(q ports.Queue) bool { return q.Name == queue })
	reply, err := s.store.ChangeSchedules(s.t.Context(), ports.ChangeSchedulesRequest{
		Shard:  core.Shard{Queue: queue, Index: core.ShardOf(c.ID, queues[at].Shards)},
		Shards: queues[at].Shards, Generation: queues[at].Generation, Changes: []ports.ScheduleChange{c},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return reply.Results[0]
}

// hourly declares a schedule at minute 30 of each hour, with the payload "p".
func (s *fixture) hourly(id, name string, alter ...func(*core.Declaration)) core.Schedule {
	s.t.Helper()
	return s.schedule("orders", id, name, "cron 30 * * * * UTC", alter...)
}

// schedule declares a schedule with the payload "p".
func (s *fixture) schedule(queue, id, name, spec string, alter ...func(*core.Declaration)) core.Schedule {
	s.t.Helper()
	d := core.Declaration{
		ScheduleKey: core.ScheduleKey{ID: id, Name: name},
		Recurrence:  core.Recurrence{Spec: spec, Data: []byte("p")},
	}
	for _, f := range alter {
		f(&d)
	}

	parsed, err := new(specs.Specs).Parse(d.Spec)
	if err != nil {
		s.t.Fatal(err)
	}

	next, _ := d.Apply(core.Schedule{}, parsed, "code", core.InstantOf(s.clock.Now()))
	if got := s.change(queue, ports.ScheduleChange{
		ScheduleKey: d.ScheduleKey,
		Schedule:    &next,
	}); got != ports.ScheduleChanged {
		s.t.Fatalf("schedule %q of %q: %v", name, id, got)
	}
	return next
}

// fire fires a schedule as a server would.
func (s *fixture) fire(id, name string) ports.ScheduleResult {
	s.t.Helper()
	stored := s.scheduled(id, name).Schedule
	spec, err := new(specs.Specs).Parse(stored.Spec)
	if err != nil {
		s.t.Fatal(err)
	}
	f, ok := stored.Fire(spec, core.InstantOf(s.clock.Now()))
	if !ok {
		s.t.Fatalf("schedule %q of %q is not due", name, id)
	}
	return s.change("orders", ports.ScheduleChange{
		ScheduleKey: stored.ScheduleKey,
		Revision:    stored.Revision,
		Schedule:    &f.After,
		Entries:     f.Entries,
	})
}

// scheduled returns a stored schedule of the queue.
func (s *fixture) scheduled(id, name string) inspect.Schedule {
	s.t.Helper()
	got, err := inspect.New(s.store, inspect.Options{}).Schedule(s.t.Context(), "orders", id, name)
	if err != nil {
		s.t.Fatal(err)
	}
	return got
}

// audited returns the newest action, as one line.
func (s *fixture) audited() string {
	s.t.Helper()
	for a := range must(s.t, s.Actions(s.t.Context(), inspect.ActionsOptions{})) {
		return fmt.Sprintf("%s of %s by %q: %q %d, %s, handled %d%s",
			a.Verb, a.Queue, a.Actor.Name, a.IDs, a.Named, a.Filter, a.Handled, prefixed(", ", a.Error))
	}
	return ""
}

// Shorthands of selections.
func ofName(name string) inspect.ScheduleSelection { return inspect.ScheduleSelection{Name: name} }
func ofID(id string) inspect.ScheduleSelection     { return inspect.ScheduleSelection{ID: id} }
func ofKey(id, name string) inspect.ScheduleSelection {
	return inspect.ScheduleSelection{ID: id, Name: name}
}

func TestSchedulesAreListedByNameAndID(t *testing.T) {
	s := newFixture(t)
	for _, id := range []string{"c", "a", "b"} {
		s.hourly(id, "nightly")
	}
	s.hourly("b", "bill")
	for name, tt := range map[string]struct {
		o    inspect.ScheduleOptions
		want string
	}{
		"all":   {inspect.ScheduleOptions{}, "[bill b, nightly a, nightly b, nightly c]"},
		"by id": {inspect.ScheduleOptions{ScheduleSelection: ofID("b")}, "[bill b, nightly b]"},
		"by name": {
			inspect.ScheduleOptions{ScheduleSelection: ofName("nightly")},
			"[nightly a, nightly b, nightly c]",
		},
		"by both": {inspect.ScheduleOptions{ScheduleSelection: ofKey("c", "nightly")}, "[nightly c]"},
		"of none": {inspect.ScheduleOptions{ScheduleSelection: ofKey("c", "bill")}, "[]"},
		"two":     {inspect.ScheduleOptions{Limit: 2}, "[bill b, nightly a]"},
		"behind one": {
			inspect.ScheduleOptions{After: core.ScheduleKey{ID: "a", Name: "nightly"}},
			"[nightly b, nightly c]",
		},
		"two, behind one": {
			inspect.ScheduleOptions{Limit: 2, After: core.ScheduleKey{ID: "b", Name: "bill"}},
			"[nightly a, nightly b]",
		},
		"one, of one name": {inspect.ScheduleOptions{Limit: 1, ScheduleSelection: ofName("nightly")}, "[nightly a]"},
	} {
		got := []string{}
		for one := range must(t, s.Schedules(t.Context(), "orders", tt.o)) {
			got = append(got, one.Name+" "+one.ID)
			if one.Queue != "orders" || one.Shard != core.ShardOf(one.ID, fixtureShards) {
				t.Errorf("%s: %s/%d", name, one.Queue, one.Shard)
			}
		}
		if text := "[" + strings.Join(got, ", ") + "]"; text != tt.want {
			t.Errorf("%s: %s, want %s", name, text, tt.want)
		}
	}

	for name, o := range map[string]inspect.ScheduleOptions{
		"a negative limit":             {Limit: -1},
		"an id that nothing has":       {ScheduleSelection: ofID("\xff")},
		"a name that no schedule has":  {ScheduleSelection: ofName("a\x00")},
		"a place that no schedule has": {After: core.ScheduleKey{ID: "a\x00"}},
	} {
		for _, err := range s.Schedules(t.Context(), "orders", o) {
			if !errors.Is(err, inspect.ErrInvalidOptions) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, err := range s.Schedules(t.Context(), "nothing", inspect.ScheduleOptions{}) {
		if !errors.Is(err, inspect.ErrUnknownQueue) {
			t.Errorf("an unknown queue: %v", err)
		}
	}
	for range s.Schedules(t.Context(), "orders", inspect.ScheduleOptions{}) {
		break // a caller may end the list
	}
}

func TestListsOfSchedulesHaveManyPages(t *testing.T) {
	s := newFixture(t)
	want := numbered("order", 2*ports.MaxSchedulesPage+30)
	for _, id := range want {
		s.hourly(id, "nightly")
	}

	for _, limit := range []int{0, 150, ports.MaxSchedulesPage, 1000} {
		var got []string
		for one := range must(t, s.Schedules(t.Context(), "orders", inspect.ScheduleOptions{Limit: limit})) {
			got = append(got, one.ID)
		}

		expect := want
		if limit > 0 {
			expect = want[:min(limit, len(want))]
		}

		if diff := cmp.Diff(expect, got); diff != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, diff)
		}
	}
}

func TestNamesOfSchedulesAreCounted(t *testing.T) {
	s := newFixture(t)
	for _, id := range numbered("order", 7) {
		s.hourly(id, "nightly")
	}
	s.hourly("z", "bill")
	s.hourly("a", "tidy")

	var got []string
	for after, more := "", true; more; more = after != "" {
		page, err := s.ScheduleNames(t.Context(), "orders", after, 2)
		if err != nil || !page.Now.Equal(epoch) {
			t.Fatal(err, page.Now)
		}
		for _, n := range page.Names {
			got = append(got, fmt.Sprint(n.Name, " ", n.Count, " ", n.First.ID, " ", n.First.Queue))
		}
		after = page.Next
	}

	if diff := cmp.Diff([]string{
		"bill 1 z orders",
		"nightly 7 order-00000 orders",
		"tidy 1 a orders",
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	if _, err := s.ScheduleNames(t.Context(), "orders", "", -1); !errors.Is(err, inspect.ErrInvalidOptions) {
		t.Errorf("a negative limit: %v", err)
	}
	if _, err := s.ScheduleNames(t.Context(), "orders", "a\x00", 0); !errors.Is(err, inspect.ErrInvalidOptions) {
		t.Errorf("an after that is no name: %v", err)
	}
	if _, err := s.ScheduleNames(t.Context(), "nothing", "", 0); !errors.Is(err, inspect.ErrUnknownQueue) {
		t.Errorf("an unknown queue: %v", err)
	}
}

// A name whose schedules can't be read is broken, not late.
func TestANameThatCannotBeReadIsBroken(t *testing.T) {
	s := newFixture(t)
	s.hourly("a", "nightly")
	i := inspect.New(storekit.Intercept(s.store, func(
		ctx context.Context,
		call storekit.Call,
		next func(context.Context) error,
	) error {
		err := next(ctx)
		if page, ok := call.Reply.(*ports.ScheduleNamesPage); ok {
			page.Names[0].First = core.Schedule{}
		}
		return err
	}), inspect.Options{})

	page, err := i.ScheduleNames(t.Context(), "orders", "", 0)
	if err != nil || len(page.Names) != 1 {
		t.Fatal(page, err)
	}
	first := &page.Names[0].First
	if first.Late != 0 || !first.Due.IsZero() || first.Next != core.MaxInstant || first.ID != "" ||
		first.Name != "nightly" || first.Queue != "orders" || !strings.Contains(first.Broken, "skein repair recount") {
		t.Errorf("%+v", first)
	}
}

func TestOneScheduleIsShown(t *testing.T) {
	s := newFixture(t)
	s.hourly("a", "nightly")
	for _, key := range [][2]string{{"a", "other"}, {"b", "nightly"}} {
		if _, err := s.Schedule(t.Context(), "orders", key[0], key[1]); !errors.Is(err, inspect.ErrUnknownSchedule) {
			t.Errorf("%v: %v", key, err)
		}
	}
	if _, err := s.Schedule(t.Context(), "orders", "", "nightly"); !errors.Is(err, inspect.ErrInvalidID) {
		t.Errorf("no id: %v", err)
	}
	if _, err := s.Schedule(t.Context(), "orders", "a", "no name"); !errors.Is(err, inspect.ErrInvalidSchedule) {
		t.Errorf("no name: %v", err)
	}

	due := epoch.Truncate(time.Hour).Add(30 * time.Minute)
	one := s.scheduled("a", "nightly")
	if !one.Due.Equal(due) || one.Late != 0 {
		t.Errorf("due %v, late %v; want %v", one.Due, one.Late, due)
	}
	s.advance(time.Hour)
	if one = s.scheduled("a", "nightly"); !one.Due.Equal(due) || one.Late != 34*time.Minute {
		t.Errorf("due %v, late %v; want %v and 34m", one.Due, one.Late, due)
	}
	if _, err := s.PauseSchedules(t.Context(), "orders", ofName("nightly"), ""); err != nil {
		t.Fatal(err)
	}
	if one = s.scheduled("a", "nightly"); !one.Due.IsZero() || one.Late != 0 {
		t.Errorf("paused: due %v, late %v", one.Due, one.Late)
	}
}

func TestNextTicksOfASchedule(t *testing.T) {
	hours := func(ticks []time.Time) (list []string) {
		for _, tick := range ticks {
			list = append(list, tick.Format("02 15:04 MST"))
		}
		return list
	}
	s := newFixture(t)
	berlin := s.schedule("orders", "a", "berlin", "cron 0 6 * * * Europe/Berlin").ScheduleKey
	s.hourly("a", "hourly", func(d *core.Declaration) { d.Jitter = 10 * time.Minute })
	s.schedule("orders", "a", "never", "cron 0 0 30 2 * UTC")
	show := func(name string, n int, want ...string) {
		t.Helper()
		one := s.scheduled("a", name)
		ticks, err := one.NextTicks(n)
		if diff := cmp.Diff(want, hours(ticks)); err != nil || diff != "" {
			t.Errorf("%s (%v, -want +got):\n%s", name, err, diff)
		}
	}
	show(berlin.Name, 2, "02 06:00 CET", "03 06:00 CET")
	show("hourly", 3, "02 03:30 UTC", "02 04:30 UTC", "02 05:30 UTC")
	show("hourly", 0)
	show("never", 3)
	s.advance(32 * time.Minute) // 03:36: the tick may be pending by its jitter
	show("hourly", 2, "02 03:30 UTC", "02 04:30 UTC")
	s.advance(5 * time.Hour) // 08:36: that of 08:30 may be pending too
	show("hourly", 4, "02 03:30 UTC", "02 08:30 UTC", "02 09:30 UTC", "02 10:30 UTC")

	broken := inspect.Schedule{Schedule: core.Schedule{
		Recurrence: core.Recurrence{Spec: "cron 0 6 * * * Nowhere/Land"},
	}}
	if _, err := broken.NextTicks(1); !errors.Is(err, inspect.ErrInvalidSchedule) {
		t.Errorf("a zone that is not there: %v", err)
	}
}

func TestSchedulesArePausedAndResumed(t *testing.T) {
	s := newFixture(t)
	s.hourly("a", "nightly")
	s.hourly("b", "nightly")
	s.hourly("a", "bill")
	ctx := inspect.WithActor(t.Context(), inspect.Actor{Name: "ann"})
	did := func(what string, changed int, err error, want int) {
		t.Helper()
		if err != nil || changed != want {
			t.Errorf("%s: %d, %v; want %d", what, changed, err, want)
		}
	}
	n, err := s.PauseSchedules(ctx, "orders", ofName("nightly"), "the bank is closed")
	did("pause", n, err, 2)
	if got, want := s.audited(), `pause schedule of orders by "ann": [] 0, schedule nightly: `+
		`note "the bank is closed", handled 2`; got != want {
		t.Errorf("audited %s, want %s", got, want)
	}
	if one := s.scheduled("b", "nightly"); !one.Paused || one.Note != "the bank is closed" || one.By != "ann" ||
		one.PausedBy != "ann" || !one.PausedAt.Time().Equal(epoch) || !one.ChangedAt.Time().Equal(epoch) {
		t.Errorf("paused: %+v", one)
	}
	if one := s.scheduled("a", "bill"); one.Paused {
		t.Errorf("another name is paused")
	}

	n, err = s.PauseSchedules(ctx, "orders", ofName("nightly"), "the bank is closed")
	did("the same pause", n, err, 0)
	n, err = s.PauseSchedules(ctx, "orders", ofKey("a", "nightly"), "")
	did("another note", n, err, 1)
	n, err = s.ResumeSchedules(ctx, "orders", ofID("a"))
	did("resume", n, err, 1)
	if got, want := s.audited(), `resume schedule of orders by "ann": ["a"] 1, `+
		`all schedules of the id, handled 1`; got != want {
		t.Errorf("audited %s, want %s", got, want)
	}
	if one := s.scheduled("a", "nightly"); one.Paused || one.Note != "" || one.PausedBy != "" || one.PausedAt != 0 {
		t.Errorf("resumed: %+v", one)
	}
	s.advance(time.Minute)
	n, err = s.PauseSchedules(inspect.WithActor(t.Context(), inspect.Actor{Name: "bob"}), "orders",
		ofKey("b", "nightly"), "still")
	did("a later note", n, err, 1)
	n, err = s.RunSchedules(inspect.WithActor(t.Context(), inspect.Actor{Name: "eve"}), "orders", ofKey("b", "nightly"))
	did("a run", n, err, 1)
	if one := s.scheduled("b", "nightly"); one.Note != "still" || one.PausedBy != "bob" ||
		!one.PausedAt.Time().Equal(epoch) || one.By != "eve" {
		t.Errorf("with a later note: %+v", one)
	}
	if one := s.scheduled("b", "nightly"); !one.Paused {
		t.Errorf("another id is resumed")
	}

	for _, note := range []string{strings.Repeat("x", core.MaxScheduleNoteBytes+1), "\xff", "a\x00"} {
		if _, err := s.PauseSchedules(ctx, "orders", ofID("a"), note); !errors.Is(err, inspect.ErrInvalidOptions) {
			t.Errorf("note %.9q: %v", note, err)
		}
	}
}

func TestSchedulesAreRemoved(t *testing.T) {
	s := newFixture(t)
	s.hourly("a", "nightly")
	s.hourly("b", "nightly")
	if n, err := s.RemoveSchedules(t.Context(), "orders", ofKey("a", "nightly")); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if got, want := s.audited(), `remove schedule of orders by "": ["a"] 1, schedule nightly, handled 1`; got != want {
		t.Errorf("audited %s, want %s", got, want)
	}
	if _, err := s.Schedule(t.Context(), "orders", "a", "nightly"); !errors.Is(err, inspect.ErrUnknownSchedule) {
		t.Error(err)
	}
	s.scheduled("b", "nightly")
}

// A run by hand pushes at once, whatever is paused, and leaves the next tick.
func TestARunByHandPushesAtOnce(t *testing.T) {
	s := newFixture(t)
	s.hourly("a", "nightly")
	before := s.scheduled("a", "nightly")
	if _, err := s.PauseSchedules(t.Context(), "orders", ofID("a"), ""); err != nil {
		t.Fatal(err)
	}
	if err := s.Pause(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}

	s.advance(5 * time.Second)
	if n, err := s.RunSchedules(inspect.WithActor(t.Context(), inspect.Actor{Name: "ann"}),
		"orders", ofName("nightly")); n != 1 || err != nil {
		t.Fatal(n, err)
	}

	s.holds("queued a at 5s retries 0 [p]")
	one := s.scheduled("a", "nightly")
	now := core.InstantOf(s.clock.Now())
	if one.Next != before.Next || !one.Paused || one.Fired != 1 || one.By != "ann" ||
		!slices.Equal(one.Recent, []core.Tick{{Due: now, Outcome: core.TickByHand}}) {
		t.Errorf("after the run: %+v", one)
	}

	if got, want := s.audited(), `run schedule of orders by "ann": [] 0, schedule nightly, handled 1`; got != want {
		t.Errorf("audited %s, want %s", got, want)
	}
}

func TestSchedulesAreEdited(t *testing.T) {
	s := newFixture(t)
	s.hourly("a", "nightly", func(d *core.Declaration) { d.Set, d.Version = "set", 3 })
	s.advance(time.Hour) // 04:04: the tick of 03:30 is due
	due := s.scheduled("a", "nightly").Next
	daily, zone, payload, jitter, skip := "0 23 * * *", "UTC", []byte("q"), time.Minute, true
	catchup := core.Catchup{Most: 1, Within: time.Hour}
	edit := inspect.ScheduleEdit{
		Cron:          &daily,
		Zone:          &zone,
		Payload:       &payload,
		Jitter:        &jitter,
		Skip:          &skip,
		CatchupMost:   &catchup.Most,
		CatchupWithin: &catchup.Within,
	}
	n, err := s.EditSchedules(inspect.WithActor(t.Context(), inspect.Actor{Name: "ann"}), "orders",
		ofName("nightly"), edit)
	if n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if got, want := s.audited(), `edit schedule of orders by "ann": [] 0, schedule nightly: `+
		`cron 0 23 * * * in UTC, a payload of 1 bytes, jitter 1m0s, `+
		`catchup 1, within 1h0m0s, skip true, handled 1`; got != want {
		t.Errorf("audited %s, want %s", got, want)
	}
	one := s.scheduled("a", "nightly")
	if one.Next != due || !one.Edited || one.By != "ann" || one.Set != "set" || one.Version != 3 {
		t.Errorf("after the edit: %+v", one)
	}
	want := core.Recurrence{Spec: "cron 0 23 * * * UTC", Data: payload, Jitter: jitter, Skip: skip, Catchup: catchup}
	if !one.Recurrence.Equal(&want) {
		t.Errorf("it recurs as %+v, want %+v", one.Recurrence, want)
	}
	if ticks, _ := one.NextTicks(2); len(ticks) != 2 || ticks[1].Hour() != 23 {
		t.Errorf("the next ticks: %v", ticks)
	}

	if n, err := s.EditSchedules(t.Context(), "orders", ofID("a"), edit); n != 0 || err != nil {
		t.Errorf("an equal edit: %d, %v", n, err)
	}
	if again := s.scheduled("a", "nightly"); again.Revision != one.Revision {
		t.Errorf("an equal edit writes")
	}

	// An edit of one part of the catch-up keeps the other, in each schedule.
	for _, step := range []struct {
		edit inspect.ScheduleEdit
		want core.Catchup
	}{
		{inspect.ScheduleEdit{CatchupMost: new(int)}, core.Catchup{Within: time.Hour}},
		{inspect.ScheduleEdit{CatchupWithin: new(time.Duration)}, core.Catchup{}},
	} {
		if n, err := s.EditSchedules(t.Context(), "orders", ofID("a"), step.edit); n != 1 || err != nil {
			t.Errorf("%s: %d, %v", &step.edit, n, err)
		}
		if got := s.scheduled("a", "nightly").Catchup; got != step.want {
			t.Errorf("%s: catch-up %+v, want %+v", &step.edit, got, step.want)
		}
	}

	long, two := 25*time.Hour, 2
	for name, bad := range map[string]inspect.ScheduleEdit{
		"a jitter that is too long":  {Jitter: &long},
		"a catch-up of equal pushes": {CatchupMost: &two},
	} {
		if n, err := s.EditSchedules(t.Context(), "orders", ofID("a"), bad); n != 0 ||
			!errors.Is(err, inspect.ErrInvalidSchedule) {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

// An edit that does not touch the spec works in a process without the spec's zone.
func TestAnEditNeedsNoZoneUnlessItSetsTheSpec(t *testing.T) {
	s := newFixture(t)
	stored := s.hourly("a", "nightly")
	next := stored.Changed("code", core.InstantOf(s.clock.Now()))
	next.Spec = "cron 0 6 * * * Nowhere/Land"
	s.change("orders", ports.ScheduleChange{
		ScheduleKey: stored.ScheduleKey,
		Revision:    stored.Revision,
		Schedule:    &next,
	})
	jitter := time.Minute
	if n, err := s.EditSchedules(t.Context(), "orders", ofID("a"), inspect.ScheduleEdit{Jitter: &jitter}); n != 1 ||
		err != nil {
		t.Error(n, err)
	}
	if one := s.scheduled("a", "nightly"); one.Jitter != jitter || one.Next != stored.Next {
		t.Errorf("%+v", one)
	}
}

// An action that a firing overtakes is computed anew from what the firing has left.
func TestAnActionThatAFiringOvertakesIsTriedAgain(t *testing.T) {
	s := newFixture(t)
	s.hourly("a", "nightly")
	s.advance(time.Hour)
	h := s.intercept()
	fired := 0
	h.before = func(method string) error {
		if method == "ChangeSchedules" && fired == 0 {
			fired++
			s.fire("a", "nightly")
		}
		return nil
	}
	jitter := time.Second
	if n, err := s.EditSchedules(t.Context(), "orders", ofID("a"), inspect.ScheduleEdit{Jitter: &jitter}); n != 1 ||
		err != nil {
		t.Fatal(n, err)
	}
	one := s.scheduled("a", "nightly")
	if one.Fired != 1 || one.Jitter != jitter || !one.Edited || fired != 1 {
		t.Errorf("%+v", one)
	}
	s.holds("queued a at 26m0s retries 0 [p]")

	// One that is overtaken each time ends.
	h.before = func(method string) error {
		if method == "ChangeSchedules" {
			s.touch("a", "nightly")
		}
		return nil
	}
	if n, err := s.RunSchedules(t.Context(), "orders", ofID("a")); n != 0 ||
		!errors.Is(err, inspect.ErrScheduleChanged) {
		t.Errorf("overtaken each time: %d, %v", n, err)
	}
	// One whose schedule is removed meanwhile has nothing to do.
	h.before = func(method string) error {
		if method == "ChangeSchedules" {
			s.change("orders", ports.ScheduleChange{ScheduleKey: one.ScheduleKey, Revision: ports.AnyRevision})
		}
		return nil
	}
	if n, err := s.RunSchedules(t.Context(), "orders", ofID("a")); n != 0 || err != nil {
		t.Errorf("removed meanwhile: %d, %v", n, err)
	}
	s.holds("queued a at 26m0s retries 0 [p]")
}

// touch gives a schedule another revision.
func (s *fixture) touch(id, name string) {
	s.t.Helper()
	stored := s.scheduled(id, name).Schedule
	next := stored.Changed(stored.By, stored.ChangedAt)
	s.change("orders", ports.ScheduleChange{
		ScheduleKey: stored.ScheduleKey,
		Revision:    stored.Revision,
		Schedule:    &next,
	})
}

func TestActionsOnSchedulesNeedASelection(t *testing.T) {
	s := newFixture(t)
	s.hourly("a", "nightly")
	jitter := time.Second

	for name, act := range map[string]func(inspect.ScheduleSelection) (int, error){
		"pause": func(sel inspect.ScheduleSelection) (int, error) {
			return s.PauseSchedules(t.Context(), "orders", sel, "")
		},
		"resume": func(sel inspect.ScheduleSelection) (int, error) {
			return s.ResumeSchedules(t.Context(), "orders", sel)
		},
		"remove": func(sel inspect.ScheduleSelection) (int, error) {
			return s.RemoveSchedules(t.Context(), "orders", sel)
		},
		"run": func(sel inspect.ScheduleSelection) (int, error) { return s.RunSchedules(t.Context(), "orders", sel) },
		"edit": func(sel inspect.ScheduleSelection) (int, error) {
			return s.EditSchedules(t.Context(), "orders", sel, inspect.ScheduleEdit{Jitter: &jitter})
		},
	} {
		for _, tt := range []struct {
			sel  inspect.ScheduleSelection
			want error
		}{
			{inspect.ScheduleSelection{}, inspect.ErrInvalidOptions},
			{ofName("a\x00"), inspect.ErrInvalidOptions},
			{ofName("nightl"), inspect.ErrUnknownSchedule},
			{ofID("b"), inspect.ErrUnknownSchedule},
			{ofKey("a", "other"), inspect.ErrUnknownSchedule},
		} {
			if n, err := act(tt.sel); n != 0 || !errors.Is(err, tt.want) {
				t.Errorf("%s of %+v: %d, %v; want %v", name, tt.sel, n, err, tt.want)
			}
		}
	}

	if _, err := s.PauseSchedules(t.Context(),
		"nothing", ofName("nightly"), ""); !errors.Is(err, inspect.ErrUnknownQueue) {
		t.Errorf("an unknown queue: %v", err)
	}

	if got := s.audited(); !strings.HasPrefix(got, "pause schedule of nothing by ") ||
		!strings.Contains(got, "unknown queue") {
		t.Errorf("audited %s", got)
	}
	if one := s.scheduled("a", "nightly"); one.Paused || one.Fired > 0 {
		t.Errorf("%+v", one)
	}
}

func TestAThousandSchedulesArePausedAtOnce(t *testing.T) {
	s := newFixture(t)
	for _, id := range numbered("customer", 1000) {
		s.hourly(id, "invoice")
	}

	calls := 0
	h := s.intercept()
	h.before = func(method string) error {
		if method == "ChangeSchedules" {
			calls++
		}
		return nil
	}

	if n, err := s.PauseSchedules(t.Context(), "orders", ofName("invoice"), "audit"); n != 1000 || err != nil {
		t.Fatal(n, err)
	}
	if most := 1000/ports.MaxScheduleChanges + fixtureShards; calls > most {
		t.Errorf("%d calls, want at most %d", calls, most)
	}

	for one := range must(t, s.Schedules(t.Context(), "orders", inspect.ScheduleOptions{})) {
		if !one.Paused {
			t.Fatalf("%s is not paused", one.ID)
		}
	}

	if got, want := s.audited(), `pause schedule of orders by "": [] 0, schedule invoice: `+
		`note "audit", handled 1000`; got != want {
		t.Errorf("audited %s, want %s", got, want)
	}
}

// In a queue that merges by every each push stays a payload of its own, and a tick that is pushed
// again is one payload.
func TestPushesOfSchedulesAreStampedByEvery(t *testing.T) {
	s := newFixture(t)
	every := core.MergeRule{Same: core.SamePush}
	if _, err := s.store.Declare(t.Context(), ports.DeclareRequest{
		Queue:  "points",
		Shards: 2,
		Merge:  every,
	}); err != nil {
		t.Fatal(err)
	}

	s.schedule("points", "a", "nightly", "cron 30 * * * * UTC")
	for range 2 {
		if n, err := s.RunSchedules(t.Context(), "points", ofName("nightly")); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		s.advance(time.Second)
	}

	for range 2 {
		ticks, err := s.Backfill(t.Context(), "points", "a", "nightly", epoch.Add(-2*time.Hour), epoch, false)
		if len(ticks) != 2 || err != nil {
			t.Fatal(ticks, err)
		}
	}

	found, err := s.Find(t.Context(), "points", "a")
	if err != nil || found.Queued == nil || found.Queued.PayloadCount != 4 {
		t.Errorf("%+v, %v; want 4 payloads", found.Queued, err)
	}
	for _, p := range found.Queued.Payloads {
		if string(p.Data) != "p" {
			t.Errorf("a payload is %q", p.Data)
		}
	}

	two := 2
	if n, err := s.EditSchedules(t.Context(), "points", ofID("a"),
		inspect.ScheduleEdit{CatchupMost: &two}); n != 1 || err != nil {
		t.Errorf("a catch-up: %d, %v", n, err)
	}
}

func TestBackfillPushesTheTicksOfARange(t *testing.T) {
	s := newFixture(t)
	s.hourly("a", "nightly", func(d *core.Declaration) { d.Data = []byte("tick") })
	before := s.scheduled("a", "nightly")
	from, to := epoch.Add(-3*time.Hour), epoch
	want := []string{"00:30", "01:30", "02:30"}
	shown := func(ticks []time.Time) (list []string) {
		for _, tick := range ticks {
			list = append(list, tick.Format("15:04"))
		}
		return list
	}
	ticks, err := s.Backfill(t.Context(), "orders", "a", "nightly", from, to, true)
	if diff := cmp.Diff(want, shown(ticks)); err != nil || diff != "" {
		t.Errorf("dry run (%v, -want +got):\n%s", err, diff)
	}
	s.holds()
	if got := s.audited(); got != "" {
		t.Errorf("a dry run is audited: %s", got)
	}

	ctx := inspect.WithActor(t.Context(), inspect.Actor{Name: "ann"})
	ticks, err = s.Backfill(ctx, "orders", "a", "nightly", from, to, false)
	if diff := cmp.Diff(want, shown(ticks)); err != nil || diff != "" {
		t.Errorf("(%v, -want +got):\n%s", err, diff)
	}
	s.holds("queued a at 0s retries 0 [tick]") // the queue merges by bytes
	after := s.scheduled("a", "nightly")
	if after.Next != before.Next || after.Fired != 0 || after.By != before.By || after.ChangedAt != before.ChangedAt {
		t.Errorf("after the backfill: %+v", after)
	}
	record := core.Backfill{
		From:  core.InstantOf(from),
		To:    core.InstantOf(to),
		Ticks: 3,
		By:    "ann",
		At:    core.InstantOf(epoch),
	}
	if after.Backfill == nil || *after.Backfill != record || before.Backfill != nil {
		t.Errorf("its record is %+v, want %+v", after.Backfill, record)
	}
	if got, want := s.audited(), `backfill schedule of orders by "ann": ["a"] 1, `+
		`schedule nightly from 2030-01-02T00:04:00Z to 2030-01-02T03:04:00Z, handled 3`; got != want {
		t.Errorf("audited %s, want %s", got, want)
	}

	for name, tt := range map[string]struct {
		id       string
		from, to time.Time
		want     error
	}{
		"no tick":             {"a", epoch.Add(-20 * time.Minute), epoch, inspect.ErrInvalidOptions},
		"an end at the tick":  {"a", from, from.Truncate(time.Hour).Add(30 * time.Minute), inspect.ErrInvalidOptions},
		"backwards":           {"a", to, from, inspect.ErrInvalidOptions},
		"into the future":     {"a", from, to.Add(time.Microsecond), inspect.ErrInvalidOptions},
		"too many":            {"a", epoch.Add(-1001 * time.Hour), epoch, inspect.ErrInvalidOptions},
		"an unknown schedule": {"b", from, to, inspect.ErrUnknownSchedule},
	} {
		if ticks, err := s.Backfill(t.Context(), "orders", tt.id, "nightly", tt.from, tt.to, false); ticks != nil ||
			!errors.Is(err, tt.want) {
			t.Errorf("%s: %v, %v", name, ticks, err)
		}
	}
	for text, to := range map[string]time.Time{
		"; its present spec is every hour at minute 30 in UTC: give a wider range, or edit":            from.Add(time.Minute),
		"the range is empty, since it begins at 2030-01-02T00:04:00Z and ends at 2030-01-02T00:04:00Z": from,
	} {
		if _, err := s.Backfill(t.Context(), "orders", "a", "nightly", from, to, true); err == nil ||
			!strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %q", err, text)
		}
	}

	begin := epoch.Add(-3 * time.Hour).Truncate(time.Hour).Add(30 * time.Minute)
	if ticks, err := s.Backfill(t.Context(), "orders", "a", "nightly", begin,
		begin.Add(time.Microsecond), true); len(ticks) != 1 || err != nil {
		t.Errorf("a range that begins at its tick: %v, %v", ticks, err)
	}
}

// A long backfill goes in steps, in order, and continues after a firing.
func TestABackfillContinuesAfterAFiring(t *testing.T) {
	s := newFixture(t)
	every := core.MergeRule{Same: core.SamePush}
	if _, err := s.store.Declare(t.Context(), ports.DeclareRequest{
		Queue:  "points",
		Shards: 1,
		Merge:  every,
	}); err != nil {
		t.Fatal(err)
	}
	s.hourly("a", "nightly")
	h, changes := s.intercept(), 0
	h.before = func(method string) error {
		if method == "ChangeSchedules" {
			if changes++; changes == 2 {
				s.touch("a", "nightly")
			}
		}
		return nil
	}
	ticks, err := s.Backfill(t.Context(), "orders", "a", "nightly", epoch.Add(-250*time.Hour), epoch, false)
	if len(ticks) != 250 || err != nil || changes != 4 {
		t.Errorf("%d ticks in %d calls, %v", len(ticks), changes, err)
	}
	if b := s.scheduled("a", "nightly").Backfill; b == nil || b.Ticks != 250 {
		t.Errorf("its record is %+v, want 250 ticks", b)
	}
	if !slices.IsSortedFunc(ticks, time.Time.Compare) {
		t.Error("the ticks are not in order")
	}

	for name, meanwhile := range map[string]struct {
		do   func()
		want error
		once bool
	}{
		"another one each time": {func() { s.touch("a", "nightly") }, inspect.ErrScheduleChanged, false},
		"edited": {func() {
			stored := s.scheduled("a", "nightly").Schedule
			next := stored.Changed("bob", core.InstantOf(s.clock.Now()))
			next.Data = append(slices.Clone(next.Data), '!')
			s.change("orders", ports.ScheduleChange{
				ScheduleKey: stored.ScheduleKey,
				Revision:    stored.Revision,
				Schedule:    &next,
			})
		}, inspect.ErrScheduleChanged, true},
	} {
		changes = 0
		h.before = func(method string) error {
			if method == "ChangeSchedules" {
				if changes++; changes == 2 || changes > 2 && !meanwhile.once {
					meanwhile.do()
				}
			}
			return nil
		}
		ticks, err := s.Backfill(t.Context(), "orders", "a", "nightly", epoch.Add(-250*time.Hour), epoch, false)
		if len(ticks) != 100 || !errors.Is(err, meanwhile.want) ||
			!strings.Contains(err.Error(), "100 of 250 ticks are pushed") {
			t.Errorf("%s: %d ticks, %v", name, len(ticks), err)
		}
		if b := s.scheduled("a", "nightly").Backfill; b == nil || b.Ticks != 100 {
			t.Errorf("%s: its record is %+v, want 100 ticks", name, b)
		}
	}
}

// The Calendar of a partialStore.
func (p *partialStore) Schedules(ctx context.Context, r ports.SchedulesRequest) (ports.SchedulesPage, error) {
	all := ports.PageRequest{Shards: r.Shards}
	unreached := p.part(&all)
	if r.Shards != nil && len(unreached) > 0 {
		return ports.SchedulesPage{Unreached: unreached}, nil
	}
	r.Shards, r.Limit = all.Shards, min(r.Size(), 3)
	page, err := p.Store.Schedules(ctx, r)
	page.Unreached = unreached
	return page, err
}

func (p *partialStore) ScheduleNames(
	ctx context.Context,
	r ports.ScheduleNamesRequest,
) (ports.ScheduleNamesPage, error) {
	r.Shards = []int{0, 2}
	page, err := p.Store.ScheduleNames(ctx, r)
	page.Unreached = []core.Shard{unreachedShard}
	return page, err
}

func (p *partialStore) Ticks(ctx context.Context, r ports.TicksRequest) (ports.TicksReply, error) {
	reply, err := p.Store.Ticks(ctx, r)
	reply.Shards[1], reply.Unreached = ports.ShardTicks{}, []core.Shard{unreachedShard}
	return reply, err
}

func TestSchedulesThatAreReachedAreListedAndChanged(t *testing.T) {
	s := newFixture(t)
	ids := numbered("order", 40)
	for _, id := range ids {
		s.hourly(id, "nightly")
	}
	want := reachable(ids)
	i := inspect.New(&partialStore{Store: s.store}, inspect.Options{})
	var got []string
	var last error
	for one, err := range i.Schedules(t.Context(), "orders", inspect.ScheduleOptions{}) {
		if last = err; err == nil {
			got = append(got, one.ID)
		}
	}
	isPartial(t, last)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	names, err := i.ScheduleNames(t.Context(), "orders", "", 0)
	isPartial(t, err)
	if len(names.Names) != 1 || names.Names[0].Count != int64(len(want)) {
		t.Errorf("%+v", names)
	}
	s.advance(time.Hour)
	late, err := i.LateTicks(t.Context(), "orders")
	isPartial(t, err)
	if late["orders"] != (inspect.LateTick{Late: 34 * time.Minute, Scheduled: true}) {
		t.Errorf("%+v", late)
	}

	n, err := i.PauseSchedules(t.Context(), "orders", ofName("nightly"), "")
	isPartial(t, err)
	if n != len(want) {
		t.Errorf("%d are paused, want the %d that are reached", n, len(want))
	}
	away := ids[slices.IndexFunc(ids, func(id string) bool { return !slices.Contains(want, id) })]
	_, err = i.Schedule(t.Context(), "orders", away, "nightly")
	isPartial(t, err)
	n, err = i.ResumeSchedules(t.Context(), "orders", ofID(away))
	isPartial(t, err)
	if n != 0 {
		t.Errorf("%d are resumed in a shard that is not reached", n)
	}
}

// A shard that becomes unreachable during an action does not end the action on the others.
func TestAShardThatIsLostDuringAnActionIsLeftOut(t *testing.T) {
	s := newFixture(t)
	ids := numbered("order", 40)
	for _, id := range ids {
		s.hourly(id, "nightly")
	}

	lost := storekit.Intercept(&partialStats{s.store}, func(
		ctx context.Context,
		call storekit.Call,
		next func(context.Context) error,
	) error {
		if r, ok := call.Request.(*ports.ChangeSchedulesRequest); ok && r.Shard == unreachedShard {
			return errors.New("connection refused")
		}
		return next(ctx)
	})

	n, err := inspect.New(lost, inspect.Options{}).PauseSchedules(t.Context(), "orders", ofName("nightly"), "")
	isPartial(t, err)
	if want := len(reachable(ids)); n != want {
		t.Errorf("%d are paused, want %d", n, want)
	}
}

// partialStats is a store whose shard 1 is missing in the sizes alone.
type partialStats struct{ ports.ShardStore }

func (p *partialStats) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	all, err := p.ShardStore.Stats(ctx, r)
	for i := range all {
		all[i].Unreached = []core.Shard{unreachedShard}
	}
	return all, err
}

func TestLateTicksOfAQueue(t *testing.T) {
	s := newFixture(t)

	late := func(want inspect.LateTick) {
		t.Helper()
		if got, err := s.LateTicks(t.Context(), "orders"); err != nil || got["orders"] != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}

	late(inspect.LateTick{})
	s.hourly("a", "nightly")
	late(inspect.LateTick{Scheduled: true})

	s.advance(time.Hour)
	s.hourly("b", "nightly")
	late(inspect.LateTick{Late: 34 * time.Minute, Scheduled: true})

	if err := s.Pause(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	late(inspect.LateTick{})

	if _, err := s.LateTicks(t.Context(), "nothing"); !errors.Is(err, inspect.ErrUnknownQueue) {
		t.Errorf("an unknown queue: %v", err)
	}
}

// Each call of an action on schedules may fail, and none is taken for an answer.
func TestAFailedCallEndsAnActionOnSchedules(t *testing.T) {
	fails := errors.New("connection refused")

	for name, act := range map[string]func(s *fixture) error{
		"run": func(s *fixture) error {
			_, err := s.RunSchedules(t.Context(), "orders", ofKey("a", "nightly"))
			return err
		},
		"backfill": func(s *fixture) error {
			_, err := s.Backfill(t.Context(), "orders", "a", "nightly", epoch.Add(-250*time.Hour), epoch, false)
			return err
		},
	} {
		for fail := 1; ; fail++ {
			s := newFixture(t)
			s.hourly("a", "nightly")
			h, calls, changes, failed := s.intercept(), 0, 0, ""
			h.before = func(method string) error {
				switch method {
				case "ChangeSchedules":
					if changes++; changes == 1 {
						s.touch("a", "nightly") // so that it is read and tried again
					}
				case "Schedules", "Queues":
				default:
					return nil
				}
				if calls++; calls >= fail { // all that follow, as calls of reads are repeated
					failed = method
					return fails
				}
				return nil
			}

			err := act(s)
			if failed == "" {
				break
			}
			if err == nil {
				t.Errorf("%s: no error of call %d, of %s", name, fail, failed)
			}
		}
	}
}

// Whichever kind of call fails, the action ends with its error, and takes no answer of it.
func TestTheErrorOfEachCallIsThatOfAnActionOnSchedules(t *testing.T) {
	fails := fmt.Errorf("the store refuses it: %w", ports.ErrUnknownQueue) // such an error is not repeated
	jitter := time.Second

	for name, act := range map[string]func(s *fixture) error{
		"edit": func(s *fixture) error {
			_, err := s.EditSchedules(t.Context(), "orders", ofName("nightly"), inspect.ScheduleEdit{Jitter: &jitter})
			return err
		},
		"backfill": func(s *fixture) error {
			_, err := s.Backfill(t.Context(), "orders", "a", "nightly", epoch.Add(-3*time.Hour), epoch, false)
			return err
		},
	} {
		for _, method := range []string{"Queues", "Stats", "Schedules", "ChangeSchedules"} {
			for fail := 1; ; fail++ {
				s := newFixture(t)
				s.hourly("a", "nightly")
				h, calls, touched, failed := s.intercept(), 0, false, false
				h.before = func(called string) error {
					if called == "ChangeSchedules" && !touched {
						touched = true // so that it is read and tried again
						s.touch("a", "nightly")
					}
					if called == method {
						calls++
						failed = failed || calls == fail
					}
					if called == method && calls == fail {
						return fails
					}
					return nil
				}

				err := act(s)
				if !failed {
					break
				}
				if !errors.Is(err, fails) {
					t.Errorf("%s: %v after call %d of %s, want its error", name, err, fail, method)
				}
			}
		}
	}
}

// A schedule whose spec this process can't read has no ticks to push, and no edit keeps its zone.
func TestAnUnreadableSpecIsAnError(t *testing.T) {
	s := newFixture(t)
	stored := s.hourly("a", "nightly")
	next := stored.Changed("code", core.InstantOf(s.clock.Now()))
	next.Spec = "cron 30 * * * * Nowhere/Land"
	s.change("orders", ports.ScheduleChange{
		ScheduleKey: stored.ScheduleKey,
		Revision:    stored.Revision,
		Schedule:    &next,
	})

	daily := "0 6 * * *"
	if n, err := s.EditSchedules(t.Context(), "orders", ofID("a"), inspect.ScheduleEdit{Cron: &daily}); n != 0 ||
		!errors.Is(err, inspect.ErrInvalidSchedule) {
		t.Errorf("an edit: %d, %v", n, err)
	}
	for _, dry := range []bool{true, false} {
		ticks, err := s.Backfill(t.Context(), "orders", "a", "nightly", epoch.Add(-3*time.Hour), epoch, dry)
		if len(ticks) > 0 || !errors.Is(err, inspect.ErrInvalidSchedule) {
			t.Errorf("a backfill: %v, %v", ticks, err)
		}
	}

	if one := s.scheduled("a", "nightly"); one.Revision != next.Revision {
		t.Errorf("it is changed: %+v", one)
	}
}

// Until an action fails, it has changed what it returns, and the error has the number.
func TestAnActionThatFailsMidwayHasItsNumber(t *testing.T) {
	s := newFixture(t)
	ids := numbered("order", 3*ports.MaxSchedulesPage)
	for _, id := range ids {
		s.hourly(id, "nightly")
	}

	h, changes := s.intercept(), 0
	h.before = func(method string) error {
		if method == "ChangeSchedules" {
			if changes++; changes == 2 {
				return ports.ErrFull
			}
		}
		return nil
	}

	n, err := s.PauseSchedules(t.Context(), "orders", ofName("nightly"), "")
	if want := fmt.Sprintf("pause schedule: %d are changed: ", n); n == 0 || !errors.Is(err, ports.ErrFull) ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("%d, %v; want %q", n, err, want)
	}

	paused := 0
	for one := range must(t, s.Schedules(t.Context(), "orders", inspect.ScheduleOptions{})) {
		if one.Paused {
			paused++
		}
	}
	if paused != n {
		t.Errorf("%d are paused, and the action has returned %d", paused, n)
	}

	if again, err := s.PauseSchedules(t.Context(), "orders", ofName("nightly"), ""); again != len(ids)-n || err != nil {
		t.Errorf("a repeat: %d, %v; want the other %d", again, err, len(ids)-n)
	}
}

// A store that returns no result of a change, or more than there are changes, ends an action.
func TestAReplyWithoutTheResultsOfItsChangesEndsAnAction(t *testing.T) {
	for results, want := range map[int]string{0: "0 results for 1 changes", 2: "2 results for 1 changes"} {
		s := newFixture(t)
		s.hourly("a", "nightly")
		i := inspect.New(s.answering(make([]ports.ScheduleResult, results)), inspect.Options{})
		if n, err := i.RunSchedules(t.Context(), "orders", ofID("a")); n != 0 || err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("run: %d, %v; want an error with %q", n, err, want)
		}
		ticks, err := i.Backfill(t.Context(), "orders", "a", "nightly", epoch.Add(-3*time.Hour), epoch, false)
		if len(ticks) != 0 || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("backfill: %v, %v; want an error with %q", ticks, err, want)
		}
	}
}

// answering returns the fixture's store with these results in place of any change of schedules.
func (s *fixture) answering(results []ports.ScheduleResult) ports.ShardStore {
	return storekit.Intercept(s.store, func(
		ctx context.Context,
		call storekit.Call,
		next func(context.Context) error,
	) error {
		if reply, ok := call.Reply.(*ports.ChangeSchedulesReply); ok {
			*reply = ports.ChangeSchedulesReply{Results: results}
			return nil
		}
		return next(ctx)
	})
}

// An error states what does not exist.
func TestAnUnknownScheduleIsNamed(t *testing.T) {
	s := newFixture(t)
	s.hourly("a", "nightly")
	for sel, want := range map[inspect.ScheduleSelection]string{
		ofName("weekly"):     `there is no schedule "weekly" in queue "orders"`,
		ofID("b"):            `id "b" has no schedule in queue "orders"`,
		ofKey("a", "weekly"): `id "a" has no schedule "weekly" in queue "orders"`,
	} {
		if _, err := s.ResumeSchedules(t.Context(), "orders", sel); err == nil ||
			!strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "are changed") {
			t.Errorf("%v, want one with %q", err, want)
		}
	}

	long := strings.Repeat("x", core.MaxScheduleNoteBytes)
	if n, err := s.PauseSchedules(t.Context(), "orders", ofID("a"), long); n != 1 || err != nil {
		t.Errorf("with the longest note: %d, %v", n, err)
	}
}

// An edit that some schedules can't have changes the others, and reports the first refusal.
func TestAnEditChangesTheSchedulesThatCanHaveIt(t *testing.T) {
	s := newFixture(t)
	s.schedule("orders", "a", "nightly", "every 1h0m0s 0")
	s.hourly("b", "nightly")
	s.hourly("c", "nightly")

	cron := "0 6 * * *"
	n, err := s.EditSchedules(t.Context(), "orders", ofName("nightly"), inspect.ScheduleEdit{Cron: &cron})
	if n != 2 || !errors.Is(err, inspect.ErrInvalidSchedule) || !strings.Contains(err.Error(), `1 can't have the change, such as schedule "nightly" of id "a"`) {
		t.Errorf("%d, %v", n, err)
	}
	for id, want := range map[string]string{"a": "every 1h0m0s 0", "b": "cron 0 6 * * * UTC", "c": "cron 0 6 * * * UTC"} {
		if got := s.scheduled(id, "nightly").Spec; got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}

func TestAnEditThatNeverTicksIsRefused(t *testing.T) {
	s := newFixture(t)
	before := s.hourly("a", "nightly")
	cron := "0 1 30 2 *"
	if _, err := s.EditSchedules(t.Context(), "orders", ofName("nightly"), inspect.ScheduleEdit{Cron: &cron}); err == nil ||
		!strings.Contains(err.Error(), "never has a tick") {
		t.Error(err)
	}
	if got := s.scheduled("a", "nightly").Spec; got != before.Spec {
		t.Error(got)
	}
}

func TestABackfillNeedsARange(t *testing.T) {
	s := newFixture(t)
	s.hourly("a", "nightly")
	for name, r := range map[string][2]time.Time{
		"no begin":  {{}, epoch},
		"no end":    {epoch, {}},
		"no length": {epoch, epoch},
		"reversed":  {epoch, epoch.Add(-time.Hour)},
	} {
		if ticks, err := s.Backfill(t.Context(), "orders", "a", "nightly", r[0], r[1], true); !errors.Is(err, inspect.ErrInvalidOptions) ||
			!strings.Contains(err.Error(), "is empty") {
			t.Errorf("%s: %v, %v", name, ticks, err)
		}
	}
}
