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

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// schedulesIn returns the schedules of a queue, as a line for each.
func schedulesIn(t testing.TB, store *memory.Store, queue string) (lines []string) {
	t.Helper()
	for s := range must(t,
		inspect.New(store, inspect.Options{}).Schedules(t.Context(), queue, inspect.ScheduleOptions{})) {
		lines = append(lines,
			fmt.Sprintf("%s %s %q next %s paused %v %q fired %d by %s",
				s.Name, s.ID, s.Data, s.Next.Time().Format("15:04"), s.Paused, s.Note, s.Fired, s.By))
	}
	return lines
}

func (s *fixture) pausedSource() {
	s.t.Helper()
	if err := s.Pause(s.t.Context(), "orders"); err != nil {
		s.t.Fatal(err)
	}
}

func TestAMoveOfIDsTakesTheirSchedules(t *testing.T) {
	s := newFixture(t)
	s.target(core.MergeRule{})
	for _, id := range []string{"a", "b"} {
		s.hourly(id, "nightly")
		s.hourly(id, "tidy")
	}
	s.pushAll("a")
	s.advance(time.Hour)
	s.fire("a", "nightly")
	if _, err := s.PauseSchedules(t.Context(), "orders", ofKey("a", "tidy"), "audit"); err != nil {
		t.Fatal(err)
	}
	before := schedulesIn(t, s.store, "orders")
	s.pausedSource()

	r, err := s.Move(t.Context(), "orders", movedTo, inspect.JobIDs("a", "nobody"))
	if err != nil || r.Handled != 3 || r.Done != 2 {
		t.Fatalf("%+v, %v; want the job and two schedules", r, err)
	}
	if diff := cmp.Diff([]string{before[0], before[2]}, schedulesIn(t, s.store, "moved")); diff != "" {
		t.Errorf("in the target (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{before[1], before[3]}, schedulesIn(t, s.store, "orders")); diff != "" {
		t.Errorf("in the source (-want +got):\n%s", diff)
	}
	moved, err := s.Schedule(t.Context(), "moved", "a", "nightly")
	if err != nil || len(moved.Recent) != 1 || moved.SpecSince != core.InstantOf(epoch) {
		t.Errorf("%+v, %v", moved, err)
	}
	if n, err := s.RunSchedules(t.Context(), "moved", ofKey("a", "nightly")); n != 1 || err != nil {
		t.Errorf("a run in the target: %d, %v", n, err)
	}
}

// Only a move of all jobs takes the schedules, also those of ids without a job.
func TestAMoveOfAllTakesAllSchedules(t *testing.T) {
	s := newFixture(t)
	s.target(core.MergeRule{})
	ids := numbered("order", 250)
	for _, id := range ids {
		s.hourly(id, "nightly")
	}
	s.pushAll(ids[:30]...)
	s.advance(time.Second)
	s.pausedSource()

	any := func(inspect.QueuedJob) bool { return true }
	for name, move := range map[string]func() (inspect.Result, error){
		"a dry run": func() (inspect.Result, error) {
			return s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{DryRun: true}))
		},
		"with a prefix": func() (inspect.Result, error) {
			return s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{Prefix: ids[0]}))
		},
		"with a time": func() (inspect.Result, error) {
			return s.Move(t.Context(), "orders", movedTo,
				inspect.AllJobs(nil, inspect.BulkOptions{Before: epoch.Add(-time.Hour)}))
		},
		"with a match": func() (inspect.Result, error) {
			return s.Move(t.Context(), "orders", movedTo,
				inspect.AllJobs(any, inspect.BulkOptions{Limit: 3, Filter: "any"}))
		},
		"with a limit": func() (inspect.Result, error) {
			return s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{Limit: 3}))
		},
	} {
		if r, err := move(); err != nil || name == "a dry run" && r.Handled < 250 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if n := len(schedulesIn(t, s.store, "orders")); n != 250 {
			t.Fatalf("%s: %d schedules are left", name, n)
		}
	}

	before, left := schedulesIn(t, s.store, "orders"), s.counts().Fresh
	r, err := s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{}))
	if err != nil || r.Handled != int(left)+250 || r.Done != r.Handled || r.Total != r.Handled {
		t.Fatalf("%+v, %v; want %d jobs and 250 schedules", r, err, left)
	}
	if diff := cmp.Diff(before, schedulesIn(t, s.store, "moved")); diff != "" {
		t.Errorf("in the target (-want +got):\n%s", diff)
	}
	if err := s.Forget(t.Context(), "orders"); err != nil {
		t.Errorf("the source can't be forgotten: %v", err)
	}
}

func TestSchedulesMoveToAnotherStore(t *testing.T) {
	s, other := newFixture(t), newFixture(t)
	s.hourly("a", "nightly")
	s.pausedSource()
	other.pausedSource()
	before := schedulesIn(t, s.store, "orders")
	to := inspect.Target{Queue: "orders", Inspector: other.Inspector}
	if r, err := s.Move(t.Context(), "orders", to, inspect.AllJobs(nil, inspect.BulkOptions{})); err != nil ||
		r.Handled != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if diff := cmp.Diff(before, schedulesIn(t, other.store, "orders")); diff != "" ||
		len(schedulesIn(t, s.store, "orders")) > 0 {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Whichever call of the store fails, or takes effect without its reply, nothing is lost and a
// repeated move ends.
func TestAnInterruptedMoveOfSchedulesIsRepeated(t *testing.T) {
	for _, after := range []bool{false, true} {
		for fails := 1; ; fails++ {
			s := newFixture(t)
			s.target(core.MergeRule{})
			s.hourly("a", "nightly")
			s.hourly("b", "nightly")
			before := schedulesIn(t, s.store, "orders")
			s.pausedSource()

			h, calls := s.intercept(), 0
			fail := func(method string) error {
				if method == "ChangeSchedules" {
					if calls++; calls == fails {
						return errors.New("connection lost")
					}
				}
				return nil
			}
			if h.before = fail; after {
				h.before, h.after = nil, fail
			}

			_, err := s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{}))
			if calls < fails {
				if err != nil {
					t.Errorf("without a failure: %v", err)
				}
				break
			}
			if err == nil {
				t.Errorf("call %d fails, and the move does not", fails)
			}

			if _, err := s.Move(t.Context(), "orders", movedTo,
				inspect.AllJobs(nil, inspect.BulkOptions{})); err != nil {
				t.Errorf("call %d fails: the repeated move: %v", fails, err)
			}

			if diff := cmp.Diff(before, schedulesIn(t, s.store, "moved")); diff != "" ||
				len(schedulesIn(t, s.store, "orders")) > 0 {
				t.Errorf("call %d fails (-want +got):\n%s", fails, diff)
			}
		}
	}
}

// A schedule that changes at the source between its copy and its removal is copied again, and one
// that is removed there is removed at the target too.
func TestASchedulesChangeDuringAMoveIsNotLost(t *testing.T) {
	// during runs do before the n-th change of a schedule that a move makes.
	during := func(s *fixture, n int, do func()) {
		h, changes := s.intercept(), 0
		h.before = func(method string) error {
			if method == "ChangeSchedules" {
				if changes++; changes == n {
					do()
				}
			}
			return nil
		}
	}
	set := func(t *testing.T) *fixture {
		s := newFixture(t)
		s.target(core.MergeRule{})
		s.hourly("a", "nightly")
		s.advance(time.Hour)
		return s
	}
	move := func(t *testing.T, s *fixture, want int) {
		t.Helper()
		if r, err := s.Move(t.Context(), "orders", movedTo, inspect.JobIDs("a")); err != nil || r.Handled < want {
			t.Fatalf("%+v, %v", r, err)
		}
	}

	t.Run("fired", func(t *testing.T) {
		s := set(t)
		during(s, 2, func() { s.fire("a", "nightly") })
		move(t, s, 1)
		one, err := s.Schedule(t.Context(), "moved", "a", "nightly")
		if err != nil || one.Fired != 1 || one.Next.Time().Hour() != 4 || len(schedulesIn(t, s.store, "orders")) > 0 {
			t.Errorf("%+v, %v", one, err)
		}
	})
	t.Run("removed", func(t *testing.T) {
		s := set(t)
		during(s, 2, func() {
			s.change("orders", ports.ScheduleChange{
				ScheduleKey: core.ScheduleKey{ID: "a", Name: "nightly"},
				Revision:    ports.AnyRevision,
			})
		})
		move(t, s, 0)
		if left := slices.Concat(schedulesIn(t, s.store, "orders"), schedulesIn(t, s.store, "moved")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
	t.Run("each time", func(t *testing.T) {
		s := set(t)
		h := s.intercept()
		h.before = func(method string) error {
			if method == "ChangeSchedules" {
				s.touch("a", "nightly")
			}
			return nil
		}
		if _, err := s.Move(t.Context(), "orders",
			movedTo, inspect.JobIDs("a")); !errors.Is(err, inspect.ErrScheduleChanged) {
			t.Errorf("%v, want ErrScheduleChanged", err)
		}
		if len(schedulesIn(t, s.store, "orders")) != 1 {
			t.Error("it is lost")
		}
	})
	t.Run("the target is resumed", func(t *testing.T) {
		s := set(t)
		h := s.intercept()
		h.before = func(method string) error {
			if method == "Schedules" {
				return s.store.Resume(t.Context(), "moved")
			}
			return nil
		}
		if _, err := s.Move(t.Context(), "orders",
			movedTo, inspect.JobIDs("a")); !errors.Is(err, inspect.ErrNotPaused) {
			t.Errorf("%v, want ErrNotPaused", err)
		}
		if len(schedulesIn(t, s.store, "orders")) != 1 || len(schedulesIn(t, s.store, "moved")) > 0 {
			t.Error("it is moved")
		}
	})
}

// A schedule that the target has already stays, and goes from the source only if it is equal.
func TestSchedulesOfTheTargetStay(t *testing.T) {
	s := newFixture(t)
	s.target(core.MergeRule{})
	for _, id := range []string{"equal", "other", "rest"} {
		s.hourly(id, "nightly")
	}
	s.schedule("moved", "equal", "nightly", "cron 30 * * * * UTC")
	s.schedule("moved", "other", "nightly", "cron 45 * * * * UTC")
	s.pausedSource()

	for range 2 {
		_, err := s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{}))
		if !errors.Is(err, inspect.ErrScheduleExists) {
			t.Fatalf("%v, want ErrScheduleExists", err)
		}

		line := `nightly %s "p" next 03:%d paused false "" fired 0 by code`
		want := []string{fmt.Sprintf(line, "equal", 30), fmt.Sprintf(line, "other", 45), fmt.Sprintf(line, "rest", 30)}
		if diff := cmp.Diff(want, schedulesIn(t, s.store, "moved")); diff != "" {
			t.Errorf("in the target (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{fmt.Sprintf(line, "other", 30)}, schedulesIn(t, s.store, "orders")); diff != "" {
			t.Errorf("in the source (-want +got):\n%s", diff)
		}
	}
}

func TestAScheduleThatTheTargetRefusesStays(t *testing.T) {
	s := newFixture(t)
	s.target(core.MergeRule{})
	every := core.MergeRule{Same: core.SamePush}
	if _, err := s.store.Declare(t.Context(), ports.DeclareRequest{
		Queue:  "points",
		Shards: 2,
		Merge:  every,
	}); err != nil {
		t.Fatal(err)
	}
	s.schedule("points", "a", "hourly", "cron 30 * * * * UTC", func(d *core.Declaration) { d.Catchup.Most = 5 })
	if _, err := s.Move(t.Context(), "points",
		movedTo, inspect.JobIDs("a")); !errors.Is(err, inspect.ErrInvalidSchedule) {
		t.Errorf("%v, want ErrInvalidSchedule", err)
	}
	if len(schedulesIn(t, s.store, "points")) != 1 || len(schedulesIn(t, s.store, "moved")) > 0 {
		t.Error("it is moved")
	}
}

// A move of all jobs that ends within the schedules continues behind the last one, also behind
// those that stay.
func TestAMoveContinuesWithinTheSchedules(t *testing.T) {
	for name, limits := range map[string]func() inspect.BulkOptions{
		"by a limit": func() inspect.BulkOptions { return inspect.BulkOptions{Limit: 15} },
		"by stop": func() inspect.BulkOptions {
			return inspect.BulkOptions{Stop: func(done int) bool { return done >= 20 }}
		},
	} {
		s := newFixture(t)
		s.target(core.MergeRule{})
		ids := numbered("order", 90)
		for at, id := range ids {
			s.hourly(id, "nightly")
			if at%30 == 0 {
				s.schedule("moved", id, "nightly", "cron 45 * * * * UTC")
			}
		}
		s.pushAll(ids[:30]...)
		s.advance(time.Second)
		s.pausedSource()

		var r inspect.Result
		var err error
		calls, handled := 0, 0
		for ; err == nil && (calls == 0 || r.Checkpoint != ""); calls++ {
			o := limits()
			o.Continue = r.Checkpoint
			r, err = s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, o))
			if n := r.Handled - handled; n > 30 || o.Limit > 0 && n > o.Limit {
				t.Errorf("%s: call %d has moved %d", name, calls, n)
			}
			handled = r.Handled
		}
		if !errors.Is(err, inspect.ErrScheduleExists) || !strings.Contains(err.Error(), "3 stay in both queues") {
			t.Errorf("%s: %v, want ErrScheduleExists with 3 schedules", name, err)
		}
		if r.Handled != 30+87 || r.Done != r.Handled || r.Total != r.Handled || r.Gone != 0 || r.Checkpoint != "" ||
			calls < 5 {
			t.Errorf("%s: %+v after %d calls", name, r, calls)
		}
		if there, left := schedulesIn(t, s.store, "moved"), schedulesIn(t, s.store, "orders"); len(there) != 90 ||
			len(left) != 3 {
			t.Errorf("%s: %d are in the target and %d in the source", name, len(there), len(left))
		}
	}
}

// A call that fails within the schedules returns the checkpoint to continue from.
func TestAMoveThatFailsWithinTheSchedulesContinues(t *testing.T) {
	s := newFixture(t)
	s.target(core.MergeRule{})
	for _, id := range numbered("order", 30) {
		s.hourly(id, "nightly")
	}
	s.pausedSource()
	h, changes, fails := s.intercept(), 0, errors.New("connection refused")
	h.before = func(method string) error {
		if method == "ChangeSchedules" {
			if changes++; changes > 2*17 { // a schedule takes two changes
				return fails
			}
		}
		return nil
	}
	r, err := s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{}))
	if !errors.Is(err, fails) || r.Handled != 17 || r.Done != 17 || r.Checkpoint == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	h.before = nil
	r, err = s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{Continue: r.Checkpoint}))
	if err != nil || r.Handled != 30 || r.Earlier != 17 || r.Checkpoint != "" {
		t.Errorf("%+v, %v", r, err)
	}

	if _, err := s.MoveMorgue(t.Context(), "orders", movedTo,
		inspect.AllDead(nil,
			inspect.BulkOptions{Continue: r.Checkpoint + "x"})); !errors.Is(err, inspect.ErrInvalidCheckpoint) {
		t.Errorf("a text that is no checkpoint: %v", err)
	}
}

// A shard that can't be reached is skipped, and the move continues with it.
func TestAMoveContinuesWithASkippedShard(t *testing.T) {
	s := newFixture(t)
	s.target(core.MergeRule{})
	ids := numbered("order", 30)
	for _, id := range ids {
		s.hourly(id, "nightly")
	}
	s.pausedSource()

	store := &losingStore{ShardStore: s.store}
	from := inspect.New(storekit.Intercept(store, func(
		ctx context.Context,
		call storekit.Call,
		next func(context.Context) error,
	) error {
		if r, ok := call.Request.(*ports.ChangeSchedulesRequest); ok && r.Shard == unreachedShard {
			store.lost = true
			return errors.New("connection refused")
		}
		return next(ctx)
	}), inspect.Options{})

	to := inspect.Target{Queue: "moved", Inspector: s.Inspector}
	r, err := from.Move(t.Context(), "orders", to, inspect.AllJobs(nil, inspect.BulkOptions{}))
	isPartial(t, err)
	if left := len(schedulesIn(t, s.store, "orders")); r.Checkpoint == "" || r.Handled != len(reachable(ids)) ||
		left != len(ids)-r.Handled {
		t.Fatalf("%+v, %d are left, want %d", r, left, len(ids)-len(reachable(ids)))
	}

	for calls := 0; err != nil || r.Checkpoint != ""; calls++ {
		if r, err = s.Move(t.Context(), "orders", to,
			inspect.AllJobs(nil, inspect.BulkOptions{Continue: r.Checkpoint})); err != nil || calls > 3 {
			t.Fatalf("%+v, %v", r, err)
		}
	}

	if n := len(schedulesIn(t, s.store, "moved")); n != 30 || r.Handled != 30 {
		t.Errorf("%d schedules are moved, %+v", n, r)
	}
}

// losingStore is a store whose shard 1 is missing in the sizes once it is lost.
type losingStore struct {
	ports.ShardStore
	lost bool
}

func (l *losingStore) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	if l.lost {
		return (&partialStats{l.ShardStore}).Stats(ctx, r)
	}
	return l.ShardStore.Stats(ctx, r)
}

// A checkpoint within the schedules is refused if the queue has another shard count by then.
func TestAMoveOfSchedulesDoesNotContinueAfterAnotherLayout(t *testing.T) {
	s := newFixture(t)
	s.target(core.MergeRule{})
	s.hourly("a", "nightly")
	s.hourly("b", "nightly")
	s.pausedSource()

	r, err := s.Move(t.Context(), "orders", movedTo, inspect.AllJobs(nil, inspect.BulkOptions{Limit: 1}))
	if err != nil || r.Handled != 1 || r.Checkpoint == "" {
		t.Fatalf("%+v, %v", r, err)
	}

	if _, err := s.RemoveSchedules(t.Context(), "orders", ofName("nightly")); err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}

	s.declare("orders", 64)
	if _, err := s.Move(t.Context(), "orders", movedTo,
		inspect.AllJobs(nil,
			inspect.BulkOptions{Continue: r.Checkpoint})); !errors.Is(err, inspect.ErrInvalidCheckpoint) {
		t.Errorf("%v, want ErrInvalidCheckpoint", err)
	}
}
