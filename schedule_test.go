package skein_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// reports is a queue with schedules.
func reports(o skein.QueueOptions[string]) *skein.Queue[string] { return skein.NewQueue("reports", o) }

// storedSchedules returns the schedules of the queue reports, in order of name and id.
func storedSchedules(t *testing.T, store skein.Store) []core.Schedule {
	t.Helper()
	page, err := store.Schedules(t.Context(), ports.SchedulesRequest{Queue: "reports"})
	if errors.Is(err, ports.ErrUnknownQueue) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return page.Schedules
}

func TestAScheduleRunsItsHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		client := skein.NewClient(store, skein.ClientOptions{})
		q := reports(skein.QueueOptions[string]{Merge: skein.Every()})
		spec := skein.Interval(10 * time.Minute).From(time.Now().Add(time.Minute))
		if err := q.Schedule(t.Context(), client, "nightly", spec, "tenant-1", "totals"); err != nil {
			t.Fatal(err)
		}

		began := time.Now()
		var ran []string
		server := skein.NewServer(store, skein.ServerOptions{},
			q.Each(func(_ context.Context, id, payload string) error {
				ran = append(ran, fmt.Sprintf("%v %s %s", time.Since(began).Truncate(time.Second), id, payload))
				return nil
			}))
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute)
		defer cancel()
		if err := server.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(
			[]string{"1m0s tenant-1 totals", "11m0s tenant-1 totals", "21m0s tenant-1 totals"}, ran,
		); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}

		if err := q.Unschedule(t.Context(), client, "nightly", "tenant-1"); err != nil {
			t.Fatal(err)
		}
		if err := q.Unschedule(t.Context(), client, "nightly", "tenant-1"); err != nil {
			t.Errorf("Unschedule of no schedule: %v", err)
		}
		if left := storedSchedules(t, store); len(left) > 0 {
			t.Errorf("left: %+v", left)
		}
	})
}

// countingChanges returns a store that counts changes of schedules.
func countingChanges(store skein.Store, changes *atomic.Int64) skein.Store {
	return storekit.Intercept(store,
		func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
			if call.Method == "ChangeSchedules" {
				changes.Add(1)
			}
			return next(ctx)
		})
}

func TestAnEqualScheduleWritesNothing(t *testing.T) {
	var changes atomic.Int64
	store := countingChanges(memory.New(memory.Options{}), &changes)
	client := skein.NewClient(store, skein.ClientOptions{})
	q := reports(skein.QueueOptions[string]{})
	schedule := func(spec skein.Spec, payload string, options ...skein.ScheduleOption) core.Schedule {
		t.Helper()
		if err := q.Schedule(t.Context(), client, "nightly", spec, "a", payload, options...); err != nil {
			t.Fatal(err)
		}
		return storedSchedules(t, store)[0]
	}

	nightly := skein.Cron("0 6 * * mon-fri", "Europe/Berlin")
	first := schedule(nightly, "totals", skein.Tags("vip"))
	same := schedule(skein.Cron(" 0  6 * * 1-5", "Europe/Berlin"), "totals", skein.Tags("vip"))
	if diff := cmp.Diff(first, same); diff != "" || changes.Load() != 1 {
		t.Errorf("%d changes; the schedule (-first +again):\n%s", changes.Load(), diff)
	}
	other := schedule(nightly, "other", skein.Tags("vip"))
	if string(other.Data) != `"other"` || other.Next != first.Next || other.Revision <= first.Revision {
		t.Errorf("with another payload: %+v", other)
	}
	if paused := schedule(nightly, "other", skein.Tags("vip"), skein.Paused()); paused.Paused {
		t.Error("Paused has paused a schedule that exists")
	}
}

func TestScheduleOptions(t *testing.T) {
	store := memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	q := reports(skein.QueueOptions[string]{Merge: skein.Every()})
	err := q.Schedule(t.Context(), client, "nightly", skein.Interval(time.Hour), "a", "totals",
		skein.Catchup(24, 48*time.Hour), skein.Jitter(time.Minute), skein.Skip(), skein.Paused(),
		skein.Meta([]byte("trace")), skein.Tags("vip", "night"))
	if err != nil {
		t.Fatal(err)
	}
	want := core.Recurrence{
		Spec:    "every 1h0m0s 0",
		Data:    []byte(`"totals"`),
		Meta:    []byte("trace"),
		Tags:    "night\x1fvip",
		Jitter:  time.Minute,
		Catchup: core.Catchup{Most: 24, Within: 48 * time.Hour},
		Skip:    true,
	}
	got := storedSchedules(t, store)[0]
	if diff := cmp.Diff(want, got.Recurrence); diff != "" || !got.Paused {
		t.Errorf("paused %v; the recurrence (-want +got):\n%s", got.Paused, diff)
	}

	scored := reports(skein.QueueOptions[string]{Merge: skein.Every(), Score: func(string) float64 { return 7 }})
	if err := scored.Schedule(t.Context(), client, "weekly", skein.Interval(time.Hour), "a", "totals"); err != nil {
		t.Fatal(err)
	}
	if s := storedSchedules(t, store)[1]; s.Score != 7 || !s.FixedScore {
		t.Errorf("score %v of QueueOptions.Score, fixed %v", s.Score, s.FixedScore)
	}
	if err := scored.Schedule(
		t.Context(), client, "weekly", skein.Interval(time.Hour), "a", "totals", skein.Score(9),
	); err != nil {
		t.Fatal(err)
	}
	if s := storedSchedules(t, store)[1]; s.Score != 9 {
		t.Errorf("score %v of the option Score", s.Score)
	}
}

func TestInvalidSchedulesAreRefused(t *testing.T) {
	store := memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	q := reports(skein.QueueOptions[string]{})
	hourly := skein.Interval(time.Hour)
	for _, test := range []struct {
		about   string
		name    string
		spec    skein.Spec
		id      string
		options []skein.ScheduleOption
		want    error
		text    string
	}{
		{
			"a cron expression",
			"n",
			skein.Cron("0 25 * * *", "UTC"),
			"a",
			nil,
			skein.ErrInvalidSchedule,
			"field 2, hour",
		},
		{"no zone", "n", skein.Cron("0 6 * * *", ""), "a", nil, skein.ErrInvalidSchedule, "time zone"},
		{
			"an unknown zone",
			"n",
			skein.Cron("0 6 * * *", "Europe/Atlantis"),
			"a",
			nil,
			skein.ErrInvalidSchedule,
			"import time/tzdata",
		},
		{
			"a day that no month has",
			"n",
			skein.Cron("0 6 30 2 *", "UTC"),
			"a",
			nil,
			skein.ErrInvalidSchedule,
			"never has a tick",
		},
		{"the host's zone", "n", skein.Cron("0 6 * * *", "Local"), "a", nil, skein.ErrInvalidSchedule, "no location"},
		{"a short interval", "n", skein.Interval(time.Millisecond), "a", nil, skein.ErrInvalidSchedule, "at least 1s"},
		{
			"From of a cron expression",
			"n",
			skein.Cron("0 6 * * *", "UTC").From(time.Now()),
			"a",
			nil,
			skein.ErrInvalidSchedule,
			"From",
		},
		{"no spec", "n", skein.Spec{}, "a", nil, skein.ErrInvalidSchedule, "neither"},
		{"no name", "", hourly, "a", nil, skein.ErrInvalidSchedule, "name"},
		{"no id", "n", hourly, "", nil, skein.ErrInvalidID, "id"},
		{
			"catch-up without Every",
			"n",
			hourly,
			"a",
			[]skein.ScheduleOption{skein.Catchup(2, 0)},
			skein.ErrInvalidSchedule,
			"every",
		},
		{
			"a negative jitter",
			"n",
			hourly,
			"a",
			[]skein.ScheduleOption{skein.Jitter(-1)},
			skein.ErrInvalidSchedule,
			"jitter",
		},
		{
			"a time",
			"n",
			hourly,
			"a",
			[]skein.ScheduleOption{skein.In(time.Hour)},
			skein.ErrInvalidOptions,
			"the spec decides",
		},
		{
			"Urgent",
			"n",
			hourly,
			"a",
			[]skein.ScheduleOption{skein.Urgent(0)},
			skein.ErrInvalidOptions,
			"the spec decides",
		},
		{
			"From of an invalid interval",
			"n",
			skein.Interval(0).From(time.Now()),
			"a",
			nil,
			skein.ErrInvalidSchedule,
			"at least 1s",
		},
		{
			"Tell",
			"n",
			hourly,
			"a",
			[]skein.ScheduleOption{skein.Tell(new(skein.Met))},
			skein.ErrInvalidOptions,
			"the spec decides",
		},
		{"a nil option", "n", hourly, "a", []skein.ScheduleOption{nil}, skein.ErrInvalidOptions, "nil"},
		{"a tag", "n", hourly, "a", []skein.ScheduleOption{skein.Tags("")}, skein.ErrInvalidTag, "tag"},
	} {
		t.Run(test.about, func(t *testing.T) {
			err := q.Schedule(t.Context(), client, test.name, test.spec, test.id, "totals", test.options...)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("error %v, want %v with %q", err, test.want, test.text)
			}
			set := skein.ScheduleSet{Name: "s", Schedules: []skein.Schedule{
				q.NewSchedule(test.name, test.spec, test.id, "totals", test.options...),
			}}
			server := skein.NewServer(store, skein.ServerOptions{Schedules: set}, q.Each(ignore))
			if err := server.Run(t.Context()); !errors.Is(err, test.want) {
				t.Errorf("Run: error %v, want %v", err, test.want)
			}
		})
	}
	if got := storedSchedules(t, store); len(got) > 0 {
		t.Errorf("stored: %+v", got)
	}
	large := strings.Repeat("x", core.MaxScheduleDataBytes)
	if err := q.Schedule(t.Context(), client, "n", hourly, "a", large); !errors.Is(err, skein.ErrInvalidSchedule) {
		t.Errorf("error %v for a large payload", err)
	}
}

func ignore(context.Context, string, string) error { return nil }

// onlyProducer is a store that keeps no schedules, as a transaction is.
type onlyProducer struct{ ports.Producer }

func TestATransactionStoresNoSchedule(t *testing.T) {
	store := memory.New(memory.Options{})
	q := reports(skein.QueueOptions[string]{})
	client := skein.NewClient(store, skein.ClientOptions{}).Via(onlyProducer{store})
	err := q.Schedule(t.Context(), client, "nightly", skein.Interval(time.Hour), "a", "totals")
	if !errors.Is(err, skein.ErrInvalidOptions) || !strings.Contains(err.Error(), "transaction") {
		t.Errorf("Schedule: %v", err)
	}
	if err := q.Unschedule(t.Context(), client, "nightly", "a"); !errors.Is(err, skein.ErrInvalidOptions) {
		t.Errorf("Unschedule: %v", err)
	}
}

// runWith runs a server with a set for a moment, and returns its log.
func runWith(t *testing.T, store skein.Store, set skein.ScheduleSet) string {
	t.Helper()
	var log bytes.Buffer
	options := skein.ServerOptions{Schedules: set, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	if _, err := skein.NewServer(
		store, options, reports(skein.QueueOptions[string]{}).Each(ignore),
	).RunDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	return log.String()
}

func TestASetIsDeclaredByVersion(t *testing.T) {
	store := memory.New(memory.Options{})
	q := reports(skein.QueueOptions[string]{})
	set := func(version int64, payload string, ids ...string) skein.ScheduleSet {
		s := skein.ScheduleSet{Name: "billing", Version: version, Prune: true}
		for _, id := range ids {
			s.Schedules = append(s.Schedules, q.NewSchedule("nightly", skein.Interval(time.Hour), id, payload))
		}
		return s
	}
	want := func(what string, ids string, payload string) {
		t.Helper()
		var got []string
		for _, s := range storedSchedules(t, store) {
			got = append(got, s.ID)
			if s.Set == "billing" && string(s.Data) != payload {
				t.Errorf("%s: payload %s of %s, want %s", what, s.Data, s.ID, payload)
			}
		}
		if fmt.Sprint(got) != ids {
			t.Errorf("%s: schedules of %v, want %s", what, got, ids)
		}
	}

	client := skein.NewClient(store, skein.ClientOptions{})
	if err := q.Schedule(t.Context(), client, "own", skein.Interval(time.Hour), "z", "own"); err != nil {
		t.Fatal(err)
	}
	runWith(t, store, set(1, "one", "a", "b"))
	want("version 1", "[a b z]", `"one"`)
	runWith(t, store, set(2, "two", "b", "c"))
	want("version 2", "[b c z]", `"two"`)
	if log := runWith(t, store, set(1, "one", "a", "b")); !strings.Contains(log, "a higher version") {
		t.Errorf("the log of an old program: %s", log)
	}
	want("version 1 again", "[b c z]", `"two"`)
}

func TestAServerDeclaresManySchedules(t *testing.T) {
	var changes atomic.Int64
	store := countingChanges(memory.New(memory.Options{}), &changes)
	q := reports(skein.QueueOptions[string]{})
	set := skein.ScheduleSet{Name: "billing"}
	for i := range 1234 {
		set.Schedules = append(set.Schedules,
			q.NewSchedule("nightly", skein.Interval(time.Hour), fmt.Sprint("tenant-", i), "totals"))
	}

	var servers sync.WaitGroup // two servers declare at once
	for range 2 {
		servers.Go(func() {
			server := skein.NewServer(store, skein.ServerOptions{Schedules: set}, q.Each(ignore))
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := server.Run(ctx); err != nil {
				t.Error(err)
			}
			if _, err := server.RunDue(t.Context()); err != nil && !errors.Is(err, skein.ErrLeaseHeld) {
				t.Error(err)
			}
		})
	}
	servers.Wait()
	page, err := store.ScheduleNames(t.Context(), ports.ScheduleNamesRequest{Queue: "reports"})
	if err != nil || len(page.Names) != 1 || page.Names[0].Count != 1234 {
		t.Errorf("names %+v, %v", page.Names, err)
	}
	before := changes.Load()
	runWith(t, store, set)
	if changes.Load() != before {
		t.Errorf("an equal set made %d changes", changes.Load()-before)
	}
}

func TestInvalidSetsAreRefused(t *testing.T) {
	q := reports(skein.QueueOptions[string]{})
	one := q.NewSchedule("nightly", skein.Interval(time.Hour), "a", "totals")
	for about, set := range map[string]skein.ScheduleSet{
		"no name":          {Schedules: []skein.Schedule{one}},
		"a bad name":       {Name: "a b", Schedules: []skein.Schedule{one}},
		"two of one key":   {Name: "s", Schedules: []skein.Schedule{one, one}},
		"an empty one":     {Name: "s", Schedules: []skein.Schedule{{}}},
		"a low version":    {Name: "s", Version: -1},
		"prune, no name":   {Prune: true},
		"version, no name": {Version: 1},
	} {
		server := skein.NewServer(memory.New(memory.Options{}), skein.ServerOptions{Schedules: set}, q.Each(ignore))
		err := server.Run(t.Context())
		if !errors.Is(err, skein.ErrInvalidOptions) && !errors.Is(err, skein.ErrInvalidSchedule) {
			t.Errorf("%s: error %v", about, err)
		}
	}
}

// A store that can't be reached at the start delays a server. An invalid reply does not.
func TestAServerWaitsToDeclareItsSchedules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := errors.New("connection refused")
		var calls atomic.Int64
		store := storekit.Intercept(memory.New(memory.Options{}),
			func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
				if call.Method == "Schedules" && calls.Add(1) < 100 {
					return fails
				}
				return next(ctx)
			})
		q := reports(skein.QueueOptions[string]{})
		set := skein.ScheduleSet{
			Name:      "s",
			Schedules: []skein.Schedule{q.NewSchedule("nightly", skein.Interval(time.Hour), "a", "totals")},
		}
		var log bytes.Buffer
		server := skein.NewServer(store,
			skein.ServerOptions{Schedules: set, Logger: slog.New(slog.NewTextHandler(&log, nil))}, q.Each(ignore))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if err := server.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "can't be declared"); n != 2 {
			t.Errorf("%d lines in 99 s, want 2:\n%s", n, &log)
		}
		if got := storedSchedules(t, store); len(got) != 1 || got[0].Set != "s" || got[0].By != "code" {
			t.Errorf("stored: %+v", got)
		}

		calls.Store(0)
		if _, err := server.RunDue(t.Context()); !errors.Is(err, fails) {
			t.Errorf("RunDue: %v, want the store's error", err)
		}
	})
}

func TestAScheduleSurvivesAConflict(t *testing.T) {
	inner := memory.New(memory.Options{})
	q := reports(skein.QueueOptions[string]{})
	other := skein.NewClient(inner, skein.ClientOptions{})
	var once sync.Once
	store := storekit.Intercept(inner,
		func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
			if call.Method == "ChangeSchedules" {
				once.Do(func() {
					if err := q.Schedule(ctx, other, "nightly", skein.Interval(time.Minute), "a", "first"); err != nil {
						t.Error(err)
					}
				})
			}
			return next(ctx)
		})
	if err := q.Schedule(
		t.Context(), skein.NewClient(store, skein.ClientOptions{}), "nightly", skein.Interval(time.Hour), "a", "last",
	); err != nil {
		t.Fatal(err)
	}
	got := storedSchedules(t, store)
	if len(got) != 1 || string(got[0].Data) != `"last"` || got[0].Spec != "every 1h0m0s 0" {
		t.Errorf("stored: %+v", got)
	}
	if slices.ContainsFunc(got, func(s core.Schedule) bool { return s.Next == 0 }) {
		t.Error("a schedule has no next tick")
	}
}

// A set moves a schedule to another queue by a version that declares it there and prunes.
func TestAScheduleMovesWithItsSet(t *testing.T) {
	store := memory.New(memory.Options{})
	for version, name := range []string{"reports", "letters", "reports"} {
		q := skein.NewQueue(name, skein.QueueOptions[string]{})
		runWith(t, store, skein.ScheduleSet{
			Name: "billing", Version: int64(version), Prune: true,
			Schedules: []skein.Schedule{q.NewSchedule("nightly", skein.Interval(time.Hour), "a", "totals")},
		})

		var queues []string
		for _, queue := range []string{"letters", "reports"} {
			page, err := store.Schedules(t.Context(), ports.SchedulesRequest{Queue: queue})
			if err != nil && !errors.Is(err, ports.ErrUnknownQueue) {
				t.Fatal(err)
			}
			for range page.Schedules {
				queues = append(queues, queue)
			}
		}
		if fmt.Sprint(queues) != fmt.Sprint([]string{name}) {
			t.Errorf("version %d: the schedule is in %v, want %s", version, queues, name)
		}
	}
}

// Another declaration changes the tags of the jobs that follow, and the ticks are counted on.
func TestADeclarationChangesTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		client := skein.NewClient(store, skein.ClientOptions{})
		q := reports(skein.QueueOptions[string]{})
		var ran []string
		handler := q.JobHandler(func(_ context.Context, job *skein.Job[string]) error {
			ran = append(ran, fmt.Sprint(job.Tags))
			return nil
		})
		for _, tags := range [][]string{{"night"}, {"night", "vip"}, {"vip"}, nil} {
			if err := q.Schedule(
				t.Context(), client, "nightly", skein.Interval(time.Hour), "a", "totals", skein.Tags(tags...),
			); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			if _, err := skein.NewServer(store, skein.ServerOptions{}, handler).RunDue(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]string{"[night]", "[night vip]", "[vip]", "[]"}, ran); diff != "" {
			t.Errorf("tags of the jobs (-want +got):\n%s", diff)
		}
		if s := storedSchedules(t, store)[0]; s.Fired != 4 {
			t.Errorf("%d ticks were counted, want 4", s.Fired)
		}
	})
}

// Each call of a declaration may fail, and none is taken for an answer.
func TestAFailedCallEndsADeclaration(t *testing.T) {
	fails := errors.New("connection refused")
	q := reports(skein.QueueOptions[string]{})
	hourly := skein.Interval(time.Hour)
	for about, do := range map[string]func(*skein.Client, skein.Store) error{
		"Schedule": func(c *skein.Client, _ skein.Store) error {
			return q.Schedule(t.Context(), c, "nightly", hourly, "a", "totals")
		},
		"Unschedule": func(c *skein.Client, _ skein.Store) error { return q.Unschedule(t.Context(), c, "old", "a") },
		"a set": func(_ *skein.Client, store skein.Store) error {
			_, err := skein.NewServer(store, skein.ServerOptions{Schedules: skein.ScheduleSet{
				Name: "billing", Schedules: []skein.Schedule{q.NewSchedule("nightly", hourly, "a", "totals")},
			}}, q.Each(ignore)).RunDue(t.Context())
			return err
		},
	} {
		for fail := 1; ; fail++ {
			inner := memory.New(memory.Options{})
			runWith(t, inner, skein.ScheduleSet{
				Name:      "billing",
				Schedules: []skein.Schedule{q.NewSchedule("old", hourly, "a", "totals")},
			})
			calls, failed := 0, ""
			store := storekit.Intercept(inner,
				func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
					switch call.Method {
					case "Declare", "Queues", "Schedules", "ChangeSchedules":
						if calls++; calls == fail {
							failed = call.Method
							return fails
						}
					}
					return next(ctx)
				})
			err := do(skein.NewClient(store, skein.ClientOptions{}), store)
			if failed == "" {
				break
			}
			if !errors.Is(err, fails) {
				t.Errorf("%s after call %d, of %s: %v", about, fail, failed, err)
			}
		}
	}
}

// What a set no longer has may be left for the next start, and holds up no server.
func TestAFailedPruneIsLogged(t *testing.T) {
	q := reports(skein.QueueOptions[string]{})
	hourly := skein.Interval(time.Hour)
	for name, want := range map[string]struct {
		err    error
		logged bool
	}{
		"refused":   {errors.New("connection refused"), true},
		"forgotten": {ports.ErrUnknownQueue, false},
	} {
		inner := memory.New(memory.Options{})
		runWith(t, inner, skein.ScheduleSet{
			Name:      "billing",
			Schedules: []skein.Schedule{q.NewSchedule("old", hourly, "a", "totals")},
		})
		declared, pruning := false, false
		store := storekit.Intercept(inner,
			func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
				declared = declared || call.Method == "ChangeSchedules"
				pruning = pruning || declared && call.Method == "Queues"
				if pruning && call.Method == "Schedules" {
					return want.err
				}
				return next(ctx)
			})
		log := runWith(t, store, skein.ScheduleSet{
			Name:      "billing",
			Version:   1,
			Prune:     true,
			Schedules: []skein.Schedule{q.NewSchedule("new", hourly, "a", "totals")},
		})
		if got := strings.Contains(log, "may be left"); got != want.logged || len(storedSchedules(t, inner)) != 2 {
			t.Errorf("%s: %d schedules, log\n%s", name, len(storedSchedules(t, inner)), log)
		}
	}
}

// A program that has read the set before a higher version pruned it brings back nothing.
func TestAnOldVersionWithdrawsWhatItCreatesBesideANewOne(t *testing.T) {
	q := reports(skein.QueueOptions[string]{})
	set := func(version int64, name string) skein.ScheduleSet {
		return skein.ScheduleSet{
			Name:      "billing",
			Version:   version,
			Prune:     true,
			Schedules: []skein.Schedule{q.NewSchedule(name, skein.Interval(time.Hour), "a", "totals")},
		}
	}

	inner, deployed := memory.New(memory.Options{}), false
	store := storekit.Intercept(inner,
		func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
			if call.Method == "ChangeSchedules" && !deployed {
				deployed = true
				runWith(t, inner, set(2, "new"))
			}
			return next(ctx)
		})
	log := runWith(t, store, set(1, "old"))

	var names []string
	for _, s := range storedSchedules(t, inner) {
		names = append(names, s.Name)
	}
	if fmt.Sprint(names) != "[new]" || !strings.Contains(log, "higher version") {
		t.Errorf("the schedules are %v; the log is\n%s", names, log)
	}
}

// A call that hangs while a server declares its schedules is repeated.
func TestAHungDeclarationIsRepeated(t *testing.T) {
	for _, method := range []string{"Declare", "Queues", "Schedules", "ChangeSchedules"} {
		synctest.Test(t, func(t *testing.T) {
			inner, hung := memory.New(memory.Options{}), false
			store := storekit.Intercept(inner,
				func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
					if call.Method == method && !hung {
						hung = true
						<-ctx.Done()
						return ctx.Err()
					}
					return next(ctx)
				})
			q := reports(skein.QueueOptions[string]{})
			set := skein.ScheduleSet{
				Name:      "s",
				Prune:     true,
				Schedules: []skein.Schedule{q.NewSchedule("nightly", skein.Interval(time.Hour), "a", "totals")},
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			server := skein.NewServer(store, skein.ServerOptions{Schedules: set}, q.Each(ignore))
			if err := server.Run(ctx); err != nil || !hung || len(storedSchedules(t, inner)) != 1 {
				t.Errorf("%s: hung %v, %d schedules, %v", method, hung, len(storedSchedules(t, inner)), err)
			}
		})
	}
}

// A store that handles no change, or reaches not all shards, has not declared a schedule.
func TestAReplyWithoutAnswersEndsADeclaration(t *testing.T) {
	q := reports(skein.QueueOptions[string]{})
	for want, reply := range map[string]any{
		"0 results for 1 change": ports.ChangeSchedulesReply{},
		"2 results for 1 change": ports.ChangeSchedulesReply{Results: make([]ports.ScheduleResult, 2)},
		"shards of queue":        ports.SchedulesPage{Unreached: []core.Shard{{Queue: "reports"}}},
		"declare them from one ": ports.ChangeSchedulesReply{Results: []ports.ScheduleResult{ports.ScheduleRefused}},
	} {
		store := storekit.Intercept(memory.New(memory.Options{}),
			func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
				switch r := call.Reply.(type) {
				case *ports.ChangeSchedulesReply:
					if answer, ok := reply.(ports.ChangeSchedulesReply); ok {
						*r = answer
						return nil
					}
				case *ports.SchedulesPage:
					if answer, ok := reply.(ports.SchedulesPage); ok {
						*r = answer
						return nil
					}
				}
				return next(ctx)
			})
		err := q.Schedule(t.Context(), skein.NewClient(store, skein.ClientOptions{}), "nightly",
			skein.Interval(time.Hour), "a", "totals")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// A client whose queue was forgotten meanwhile declares it anew. If that fails, so does Schedule.
func TestAScheduleDeclaresAForgottenQueue(t *testing.T) {
	fails := errors.New("connection refused")
	for _, test := range []struct {
		method string
		again  error
	}{{"Schedules", nil}, {"Schedules", fails}, {"ChangeSchedules", nil}, {"ChangeSchedules", fails}} {
		forgotten, declared := false, 0
		store := storekit.Intercept(memory.New(memory.Options{}),
			func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
				switch {
				case call.Method == "Declare":
					if declared++; declared == 2 && test.again != nil {
						return test.again
					}
				case call.Method == test.method && !forgotten:
					forgotten = true
					return ports.ErrUnknownQueue
				}
				return next(ctx)
			})
		q := reports(skein.QueueOptions[string]{})
		err := q.Schedule(t.Context(), skein.NewClient(store, skein.ClientOptions{}), "nightly",
			skein.Interval(time.Hour), "a", "totals")
		if !errors.Is(err, test.again) || declared != 2 || len(storedSchedules(t, store)) == 1 != (test.again == nil) {
			t.Errorf("%s: error %v after %d declarations, want %v", test.method, err, declared, test.again)
		}
	}
}

func TestSchedulesNeedAQueueAClientAndAKey(t *testing.T) {
	client := skein.NewClient(memory.New(memory.Options{}), skein.ClientOptions{})
	q := reports(skein.QueueOptions[string]{})
	hourly := skein.Interval(time.Hour)
	var none skein.Queue[string]
	for about, test := range map[string]struct{ err, want error }{
		"Schedule without a queue": {
			none.Schedule(t.Context(), client, "n", hourly, "a", "x"), skein.ErrInvalidQueue,
		},
		"Schedule without a client":   {q.Schedule(t.Context(), nil, "n", hourly, "a", "x"), skein.ErrInvalidOptions},
		"Unschedule without a queue":  {none.Unschedule(t.Context(), client, "n", "a"), skein.ErrInvalidQueue},
		"Unschedule without a client": {q.Unschedule(t.Context(), nil, "n", "a"), skein.ErrInvalidOptions},
		"Unschedule without a name":   {q.Unschedule(t.Context(), client, "", "a"), skein.ErrInvalidSchedule},
	} {
		if !errors.Is(test.err, test.want) {
			t.Errorf("%s: %v, want %v", about, test.err, test.want)
		}
	}
}

// A set leaves the schedules of other sets as they are, of whatever version, and its own without
// Prune. Only higher versions are logged.
func TestASetLeavesOtherSchedules(t *testing.T) {
	store := memory.New(memory.Options{})
	q := reports(skein.QueueOptions[string]{})
	set := func(name string, version int64, prune bool, id string) skein.ScheduleSet {
		return skein.ScheduleSet{Name: name, Version: version, Prune: prune, Schedules: []skein.Schedule{
			q.NewSchedule("nightly", skein.Interval(time.Hour), id, "totals"),
		}}
	}
	var got []string
	for _, s := range []skein.ScheduleSet{
		set("letters", 9, false, "a"),
		set("billing", 1, false, "b"),
		set("billing", 1, false, "c"),
		set("billing", 1, true, "d"),
	} {
		if log := runWith(t, store, s); strings.Contains(log, "a higher version") {
			t.Errorf("log of set %s: %s", s.Name, log)
		}
		var ids []string
		for _, stored := range storedSchedules(t, store) {
			ids = append(ids, stored.ID)
		}
		got = append(got, fmt.Sprint(ids))
	}
	if diff := cmp.Diff([]string{"[a]", "[a b]", "[a b c]", "[a d]"}, got); diff != "" {
		t.Errorf("schedules after each set (-want +got):\n%s", diff)
	}
}

// A server that waits to declare its schedules ends when it is told to, and at once if the store
// refuses them.
func TestAServerEndsWithoutItsSchedules(t *testing.T) {
	for fails, want := range map[error]error{
		errors.New("connection refused"): nil,
		ports.ErrInvalidRequest:          ports.ErrInvalidRequest,
	} {
		synctest.Test(t, func(t *testing.T) {
			store := storekit.Intercept(memory.New(memory.Options{}),
				func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
					if call.Method == "Schedules" {
						return fails
					}
					return next(ctx)
				})
			q := reports(skein.QueueOptions[string]{})
			set := skein.ScheduleSet{
				Name:      "s",
				Schedules: []skein.Schedule{q.NewSchedule("nightly", skein.Interval(time.Hour), "a", "totals")},
			}
			server := skein.NewServer(store, skein.ServerOptions{Schedules: set}, q.Each(ignore))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Second/2)
			defer cancel()
			if err := server.Run(ctx); !errors.Is(err, want) {
				t.Errorf("Run: %v, want %v", err, want)
			}
		})
	}
}

func TestAPayloadThatCannotBeEncodedIsNotScheduled(t *testing.T) {
	store := memory.New(memory.Options{})
	q := skein.NewQueue("reports", skein.QueueOptions[func()]{})
	err := q.Schedule(t.Context(), skein.NewClient(store, skein.ClientOptions{}), "nightly",
		skein.Interval(time.Hour), "a", func() {})
	if err == nil || len(storedSchedules(t, store)) > 0 {
		t.Errorf("error %v", err)
	}
}
