package skein_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
)

// These tests retell what users of other libraries have reported of periodic jobs. Each is named
// after the report, and states what holds here.

// fleet is servers in virtual time that share a store in memory.
type fleet struct {
	*testing.T
	store  *memory.Store
	client *skein.Client
	looks  *inspect.Inspector
	began  time.Time
	// interval is the PollInterval and the LeaseTTL of the servers. 0 means their defaults.
	interval time.Duration

	mu  sync.Mutex
	ran []string
}

// inFleet runs a test in virtual time, which begins at midnight UTC of 1 January 2000, a Saturday.
func inFleet(t *testing.T, test func(f *fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		test(&fleet{
			T:      t,
			store:  store,
			client: skein.NewClient(store, skein.ClientOptions{}),
			looks:  inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)}),
			began:  time.Now(),
		})
	})
}

// start starts a server of the queue reports, and returns a function that stops it.
func (f *fleet) start(set skein.ScheduleSet) (stop func()) {
	f.Helper()
	handler := reports(skein.QueueOptions[string]{}).Each(func(_ context.Context, id, payload string) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ran = append(f.ran, fmt.Sprintf("%v %s %s", time.Since(f.began).Truncate(time.Minute), id, payload))
		return nil
	})
	server := skein.NewServer(f.store, skein.ServerOptions{
		Schedules: set, Logger: slog.New(slog.DiscardHandler), PollInterval: f.interval, LeaseTTL: f.interval,
	}, handler)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Run(ctx); err != nil {
			f.Error(err)
		}
	}()
	return func() { cancel(); <-ended }
}

// sleepUntil sleeps until a time since the beginning.
func (f *fleet) sleepUntil(d time.Duration) { time.Sleep(d - time.Since(f.began)) }

// want checks what has run since the last call.
func (f *fleet) want(what string, runs ...string) {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if diff := cmp.Diff(runs, f.ran); diff != "" {
		f.Errorf("%s: runs (-want +got):\n%s", what, diff)
	}
	f.ran = nil
}

// one returns a set of one schedule of the id a.
func one(version int64, spec skein.Spec, payload string, options ...skein.ScheduleOption) skein.ScheduleSet {
	q := reports(skein.QueueOptions[string]{})
	return skein.ScheduleSet{
		Name: "reports", Version: version, Prune: true,
		Schedules: []skein.Schedule{q.NewSchedule("nightly", spec, "a", payload, options...)},
	}
}

const hour = time.Hour

// asynq#395: each process with a scheduler enqueues the task. Here all servers declare the
// schedule, and each tick runs once, also when the server dies that fired the last one.
func TestAsynq395EachProcessSchedules(t *testing.T) {
	inFleet(t, func(f *fleet) {
		set := one(0, skein.Interval(hour), "x")
		first, second, third := f.start(set), f.start(set), f.start(set)
		f.sleepUntil(hour + time.Minute)
		first()
		f.sleepUntil(2*hour + time.Minute)
		second()
		f.sleepUntil(3*hour + time.Minute)
		third()
		f.want("three servers", "1h0m0s a x", "2h0m0s a x", "3h0m0s a x")
	})
}

// asynq#653: servers that register the same task at run time register it several times.
func TestAsynq653EachProcessRegisters(t *testing.T) {
	inFleet(t, func(f *fleet) {
		q := reports(skein.QueueOptions[string]{})
		stop := f.start(skein.ScheduleSet{})
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				client := skein.NewClient(f.store, skein.ClientOptions{})
				if err := q.Schedule(f.Context(), client, "nightly", skein.Interval(hour), "a", "x"); err != nil {
					f.Error(err)
				}
			})
		}
		all.Wait()
		f.sleepUntil(2*hour + time.Minute)
		stop()
		f.want("five registrations", "1h0m0s a x", "2h0m0s a x")
		if n := len(storedSchedules(t, f.store)); n != 1 {
			t.Errorf("%d schedules are stored, want 1", n)
		}
	})
}

// asynq#1013: a schedule is listed once for each instance. Here it is one record.
func TestAsynq1013EachInstanceIsListed(t *testing.T) {
	inFleet(t, func(f *fleet) {
		set := one(0, skein.Interval(hour), "x")
		first, second := f.start(set), f.start(set)
		time.Sleep(time.Minute)
		names, err := f.looks.ScheduleNames(f.Context(), "reports", "", 0)
		if err != nil || len(names.Names) != 1 || names.Names[0].Count != 1 {
			t.Errorf("names %+v, %v; want one schedule", names, err)
		}
		first()
		second()
	})
}

// river#791: a weekly job never runs if the service is deployed each day.
func TestRiver791AWeeklyJobWithDailyDeployments(t *testing.T) {
	inFleet(t, func(f *fleet) {
		f.interval = 10 * time.Minute // a second would be a million polls
		for day := range 16 {
			stop := f.start(one(int64(day), skein.Cron("0 6 * * mon", "UTC"), "x"))
			f.sleepUntil(time.Duration(day+1)*24*hour - time.Minute)
			stop()
		}
		f.want("16 deployments", "54h0m0s a x", "222h0m0s a x")
	})
}

// river#742: the leader drops periodic jobs whose kind it does not know, as during a deployment.
// Here a server that does not serve the queue does not fire it, and one that does fires it on time.
func TestRiver742AServerDoesNotKnowTheKind(t *testing.T) {
	inFleet(t, func(f *fleet) {
		other := skein.NewQueue("others", skein.QueueOptions[string]{})
		old := skein.NewServer(f.store, skein.ServerOptions{Logger: slog.New(slog.DiscardHandler)}, other.Each(ignore))
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- old.Run(ctx) }()
		time.Sleep(time.Minute)
		stop := f.start(one(1, skein.Interval(hour), "x"))
		f.sleepUntil(2*hour + time.Minute)
		stop()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		f.want("beside an old server", "1h0m0s a x", "2h0m0s a x")
	})
}

// river#1035: after a downtime all missed runs are inserted at once. Here it is one, or as many as
// Catchup allows.
func TestRiver1035AFloodAfterADowntime(t *testing.T) {
	inFleet(t, func(f *fleet) {
		stop := f.start(one(0, skein.Interval(time.Minute), "x"))
		f.sleepUntil(30 * time.Second)
		stop()
		f.sleepUntil(24*hour + 30*time.Second)
		stop = f.start(one(0, skein.Interval(time.Minute), "x"))
		time.Sleep(time.Second)
		stop()
		f.want("after a day", "24h0m0s a x")
		if s := storedSchedules(t, f.store)[0]; s.Fired != 1 || s.Missed != 24*60-1 {
			t.Errorf("%d fired and %d missed", s.Fired, s.Missed)
		}

		f.sleepUntil(48*hour + 30*time.Second)
		stop = f.start(one(1, skein.Interval(time.Minute), "x", skein.Catchup(1, 10*time.Second)))
		time.Sleep(time.Second)
		stop()
		f.want("with a limit of 10 s")
	})
}

// sidekiq#6804: the leader stops three seconds before a tick, and the next leader has not seen it.
func TestSidekiq6804TheServerStopsAtTheTick(t *testing.T) {
	inFleet(t, func(f *fleet) {
		set := one(0, skein.Cron("0 10 * * *", "UTC"), "x")
		first := f.start(set)
		f.sleepUntil(10*hour - 3*time.Second)
		first()
		f.sleepUntil(10*hour + 700*time.Millisecond)
		second := f.start(set)
		f.sleepUntil(11 * hour)
		second()
		f.want("the tick between two servers", "10h0m0s a x")
	})
}

// bullmq#2988: upserts in quick succession make several jobs.
func TestBullMQ2988UpsertsInQuickSuccession(t *testing.T) {
	inFleet(t, func(f *fleet) {
		q := reports(skein.QueueOptions[string]{})
		stop := f.start(skein.ScheduleSet{})
		for i := range 20 {
			if err := q.Schedule(
				f.Context(), f.client, "nightly", skein.Interval(hour), "a", fmt.Sprint(i),
			); err != nil {
				t.Fatal(err)
			}
		}
		f.sleepUntil(2*hour + time.Minute)
		stop()
		f.want("twenty upserts", "1h0m0s a 19", "2h0m0s a 19")
	})
}

// bullmq#3381: nodes that start together and upsert disable the schedule.
func TestBullMQ3381NodesUpsertTogether(t *testing.T) {
	inFleet(t, func(f *fleet) {
		for round := range 5 {
			var stops []func()
			for range 4 {
				stops = append(stops, f.start(one(int64(round), skein.Interval(hour), "x")))
			}
			f.sleepUntil(time.Duration(round+1)*hour + time.Minute)
			for _, stop := range stops {
				stop()
			}
		}
		f.want("five restarts of four nodes", "1h0m0s a x", "2h0m0s a x", "3h0m0s a x", "4h0m0s a x", "5h0m0s a x")
	})
}

// solid_queue#738: a recurring task can't be paused.
func TestSolidQueue738APause(t *testing.T) {
	inFleet(t, func(f *fleet) {
		stop := f.start(one(0, skein.Interval(hour), "x"))
		f.sleepUntil(hour + time.Minute)
		selected := inspect.ScheduleSelection{Name: "nightly"}
		if n, err := f.looks.PauseSchedules(f.Context(), "reports", selected, "maintenance"); n != 1 || err != nil {
			t.Fatalf("pause: %d, %v", n, err)
		}
		f.sleepUntil(3*hour + time.Minute)
		stop()
		stop = f.start(one(1, skein.Interval(hour), "x")) // a deployment resumes nothing
		f.sleepUntil(5*hour + time.Minute)
		f.want("a pause", "1h0m0s a x")
		if n, err := f.looks.ResumeSchedules(f.Context(), "reports", selected); n != 1 || err != nil {
			t.Fatalf("resume: %d, %v", n, err)
		}
		f.sleepUntil(6*hour + time.Minute)
		stop()
		f.want("a resume", "5h1m0s a x", "6h0m0s a x")
	})
}

// solid_queue#420: an edit of a recurring task needs a restart.
func TestSolidQueue420AnEdit(t *testing.T) {
	inFleet(t, func(f *fleet) {
		stop := f.start(one(0, skein.Interval(hour), "x"))
		f.sleepUntil(hour + time.Minute)
		cron, zone := "*/30 * * * *", "UTC"
		edit := inspect.ScheduleEdit{Cron: &cron, Zone: &zone}
		if n, err := f.looks.EditSchedules(
			f.Context(), "reports", inspect.ScheduleSelection{Name: "nightly"}, edit,
		); n != 1 || err != nil {
			t.Fatalf("edit: %d, %v", n, err)
		}
		f.sleepUntil(2*hour + time.Minute)
		stop()
		f.want("an edit", "1h0m0s a x", "1h30m0s a x", "2h0m0s a x")
	})
}
