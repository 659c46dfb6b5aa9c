package inspect_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// everyCall returns each call on a queue, with something to do in it.
func everyCall(i *inspect.Inspector, queue string) map[string]func(context.Context) error {
	ids, o := []string{"order-1"}, inspect.BulkOptions{}
	all := func(inspect.DeadLetter) bool { return true }
	some := []inspect.DeadLetterPayloads{{ID: "order-1", Payloads: [][]byte{[]byte("p")}}}
	first := []inspect.FirstPayload{{ID: "order-1", Data: []byte("p")}}
	edit := func(string, core.Payload) ([]byte, bool, error) { return []byte("q"), true, nil }
	result := func(_ inspect.Result, err error) error { return err }
	sel, jitter := inspect.ScheduleSelection{ID: "order-1"}, time.Second
	changed := func(_ int, err error) error { return err }

	return map[string]func(context.Context) error{
		"Stats": func(ctx context.Context) error { _, err := i.Stats(ctx, queue); return err },
		"History": func(ctx context.Context) error {
			_, err := i.History(ctx, queue, inspect.HistoryOptions{})
			return err
		},
		"Groups":   func(ctx context.Context) error { _, err := i.Groups(ctx, queue, 0); return err },
		"Find":     func(ctx context.Context) error { _, err := i.Find(ctx, queue, "order-1"); return err },
		"FindSome": func(ctx context.Context) error { _, err := i.FindSome(ctx, queue, "order-1", 1); return err },
		"Payloads": func(ctx context.Context) (last error) {
			for _, last = range i.Payloads(ctx, queue, "order-1", inspect.PayloadOptions{}) {
			}
			return last
		},
		"Settled": func(ctx context.Context) error {
			_, _, err := i.Settled(ctx, queue, "order-1", time.Time{})
			return err
		},
		"Why":     func(ctx context.Context) error { _, err := i.Why(ctx, queue, "id"); return err },
		"Track":   func(ctx context.Context) error { _, err := i.Track(ctx, queue, "id"); return err },
		"Untrack": func(ctx context.Context) error { _, err := i.Untrack(ctx, queue, "id"); return err },
		"Tracked": func(ctx context.Context) error { _, err := i.Tracked(ctx, queue); return err },
		"Actions": func(ctx context.Context) (last error) {
			for _, last = range i.Actions(ctx, inspect.ActionsOptions{Queue: queue}) {
			}
			return last
		},
		"Jobs": func(ctx context.Context) (last error) {
			for _, last = range i.Jobs(ctx, queue, inspect.ListOptions{}) {
			}
			return last
		},
		"Claimed": func(ctx context.Context) (last error) {
			for _, last = range i.Claimed(ctx, queue, inspect.ListOptions{}) {
			}
			return last
		},
		"Morgue": func(ctx context.Context) (last error) {
			for _, last = range i.Morgue(ctx, queue, inspect.ListOptions{}) {
			}
			return last
		},
		"Past": func(ctx context.Context) (last error) {
			for _, last = range i.Past(ctx, queue, inspect.PastOptions{}) {
			}
			return last
		},
		"Export": func(ctx context.Context) (last error) {
			for _, last = range i.Export(ctx, queue, inspect.ListOptions{}) {
			}
			return last
		},
		"Import": func(ctx context.Context) error {
			letter := core.DeadLetter{ID: "order-1", Group: "g", Payloads: []core.Payload{{Data: []byte("p")}}}
			return result(i.Import(ctx, queue, sequence([]core.DeadLetter{letter}, nil), nil))
		},
		"Quarantined": func(ctx context.Context) (last error) {
			for _, last = range i.Quarantined(ctx, queue) {
			}
			return last
		},
		"Discard": func(ctx context.Context) error {
			_, err := i.Discard(ctx, core.Shard{Queue: queue}, "key")
			return err
		},
		"Pause":  func(ctx context.Context) error { return i.Pause(ctx, queue) },
		"Resume": func(ctx context.Context) error { return i.Resume(ctx, queue) },
		"SetMerge": func(ctx context.Context) error {
			return i.SetMerge(ctx, queue, core.MergeRule{Stays: core.Highest})
		},
		"Settings": func(ctx context.Context) error { _, err := i.Settings(ctx, queue); return err },
		"Configure": func(ctx context.Context) error {
			change := []core.SettingChange{{Name: core.SettingMaxLanes, Value: "1"}}
			_, err := i.Configure(ctx, queue, change, inspect.ConfigureOptions{})
			return err
		},
		"Rate": func(ctx context.Context) error { _, err := i.Rate(ctx, queue, 0); return err },
		"RateWaits": func(ctx context.Context) error {
			_, err := i.RateWaits(ctx, []inspect.Node{{Status: inspect.NodeStatus{
				Queues: []ports.QueueStatus{{Queue: queue, Rate: "1/1s"}},
			}}})
			return err
		},
		"StopRate":   func(ctx context.Context) error { return i.StopRate(ctx, queue, "", time.Hour) },
		"ResumeRate": func(ctx context.Context) error { return i.ResumeRate(ctx, queue, "") },
		"Forget":     func(ctx context.Context) error { return i.Forget(ctx, queue) },
		"Recount":    func(ctx context.Context) error { _, err := i.Recount(ctx, queue, nil); return err },
		"RunNow":     func(ctx context.Context) error { return result(i.RunNow(ctx, queue, inspect.JobIDs(ids...))) },
		"RunAllNow": func(ctx context.Context) error {
			return result(i.RunNow(ctx, queue, inspect.AllJobs(nil, o)))
		},
		"Release": func(ctx context.Context) error {
			return result(i.Release(ctx, queue, inspect.JobIDs(ids...)))
		},
		"ReleaseAll": func(ctx context.Context) error {
			return result(i.Release(ctx, queue, inspect.AllJobs(nil, o)))
		},
		"BuryFirst": func(ctx context.Context) error {
			return result(i.Bury(ctx, queue, inspect.FirstPayloads(first...)))
		},
		"DeleteFirst": func(ctx context.Context) error {
			return result(i.Delete(ctx, queue, inspect.FirstPayloads(first...)))
		},
		"Bury": func(ctx context.Context) error { return result(i.Bury(ctx, queue, inspect.JobIDs(ids...))) },
		"BuryFailed": func(ctx context.Context) error {
			return result(i.Bury(ctx, queue, inspect.FailedJobs(nil, o)))
		},
		"Delete": func(ctx context.Context) error { return result(i.Delete(ctx, queue, inspect.JobIDs(ids...))) },
		"BuryFresh": func(ctx context.Context) error {
			return result(i.Bury(ctx, queue, inspect.FreshJobs(nil, o)))
		},
		"BuryAll": func(ctx context.Context) error { return result(i.Bury(ctx, queue, inspect.AllJobs(nil, o))) },
		"DeleteAll": func(ctx context.Context) error {
			return result(i.Delete(ctx, queue, inspect.AllJobs(nil, o)))
		},
		"DeleteFresh": func(ctx context.Context) error {
			return result(i.Delete(ctx, queue, inspect.FreshJobs(nil, o)))
		},
		"DeleteFailed": func(ctx context.Context) error {
			return result(i.Delete(ctx, queue, inspect.FailedJobs(nil, o)))
		},
		"Move": func(ctx context.Context) error {
			return result(i.Move(ctx, queue, inspect.Target{Queue: "moved"}, inspect.JobIDs(ids...)))
		},
		"MoveAll": func(ctx context.Context) error {
			return result(i.Move(ctx, queue, inspect.Target{Queue: "moved"}, inspect.AllJobs(nil, o)))
		},
		"MoveMorgue": func(ctx context.Context) error {
			return result(i.MoveMorgue(ctx, queue, inspect.Target{Queue: "moved"}, inspect.AllDead(nil, o)))
		},
		"Cancel": func(ctx context.Context) error {
			return result(i.Cancel(ctx, queue, ids, inspect.CancelModeDrop))
		},
		"Revive": func(ctx context.Context) error {
			return result(i.Revive(ctx, queue, inspect.DeadIDs(ids...)))
		},
		"RevivePayloads": func(ctx context.Context) error {
			return result(i.Revive(ctx, queue, inspect.DeadPayloads(some...)))
		},
		"ReviveAll": func(ctx context.Context) error {
			return result(i.Revive(ctx, queue, inspect.AllDead(nil, o)))
		},
		"ReviveAll that match": func(ctx context.Context) error {
			return result(i.Revive(ctx, queue, inspect.AllDead(all, o)))
		},
		"Purge": func(ctx context.Context) error {
			return result(i.Purge(ctx, queue, inspect.DeadIDs(ids...)))
		},
		"PurgePayloads": func(ctx context.Context) error {
			return result(i.Purge(ctx, queue, inspect.DeadPayloads(some...)))
		},
		"PurgeAll": func(ctx context.Context) error {
			return result(i.Purge(ctx, queue, inspect.AllDead(nil, o)))
		},
		"PurgeAll that match": func(ctx context.Context) error {
			return result(i.Purge(ctx, queue, inspect.AllDead(all, o)))
		},
		"Edit": func(ctx context.Context) error { return result(i.Edit(ctx, queue, inspect.DeadIDs(ids...), edit)) },
		"EditPayloads": func(ctx context.Context) error {
			return result(i.Edit(ctx, queue, inspect.DeadPayloads(some...), edit))
		},
		"EditJob": func(ctx context.Context) error { return result(i.EditJob(ctx, queue, "x", nil, edit)) },
		"EditAll": func(ctx context.Context) error { return result(i.Edit(ctx, queue, inspect.AllDead(nil, o), edit)) },
		"Schedules": func(ctx context.Context) (last error) {
			for _, last = range i.Schedules(ctx, queue, inspect.ScheduleOptions{}) {
			}
			return last
		},
		"Schedule": func(ctx context.Context) error {
			_, err := i.Schedule(ctx, queue, "order-1", "nightly")
			return err
		},
		"ScheduleNames": func(ctx context.Context) error { _, err := i.ScheduleNames(ctx, queue, "", 0); return err },
		"Errors": func(ctx context.Context) error {
			_, err := i.Errors(ctx, inspect.ErrorsOptions{Queues: []string{queue}})
			return err
		},
		"LateTicks":       func(ctx context.Context) error { _, err := i.LateTicks(ctx, queue); return err },
		"PauseSchedules":  func(ctx context.Context) error { return changed(i.PauseSchedules(ctx, queue, sel, "")) },
		"ResumeSchedules": func(ctx context.Context) error { return changed(i.ResumeSchedules(ctx, queue, sel)) },
		"RemoveSchedules": func(ctx context.Context) error { return changed(i.RemoveSchedules(ctx, queue, sel)) },
		"RunSchedules":    func(ctx context.Context) error { return changed(i.RunSchedules(ctx, queue, sel)) },
		"EditSchedules": func(ctx context.Context) error {
			return changed(i.EditSchedules(ctx, queue, sel, inspect.ScheduleEdit{Jitter: &jitter}))
		},
		"Push": func(ctx context.Context) error {
			_, err := i.Push(ctx, queue, core.PushRule{}, core.Entry{ID: "order-1", Payload: core.Payload{Data: []byte("p")}})
			return err
		},
		"Backfill": func(ctx context.Context) error {
			_, err := i.Backfill(ctx, queue, "order-1", "nightly", epoch.Add(-time.Hour), epoch, false)
			return err
		},
	}
}

func TestEveryCallKnowsAnUnknownQueue(t *testing.T) {
	calls := everyCall(newFixture(t).Inspector, "nowhere")
	delete(calls, "Actions") // the audit also has the actions on a forgotten queue
	for name, call := range calls {
		if err := call(t.Context()); !errors.Is(err, inspect.ErrUnknownQueue) {
			t.Errorf("%s: %v; want ErrUnknownQueue", name, err)
		}
	}
}

// An inspector without a store returns an error that names this from every call.
func TestEveryCallRefusesAMissingStore(t *testing.T) {
	for name, inspector := range map[string]*inspect.Inspector{
		"no store":    inspect.New(nil, inspect.Options{}),
		"a nil store": inspect.New((*memory.Store)(nil), inspect.Options{}),
		"zero":        {},
		"nil":         nil,
	} {
		calls := everyCall(inspector, "orders")
		calls["Ping"] = func(ctx context.Context) error { return inspector.Ping(ctx) }
		calls["Queues"] = func(ctx context.Context) error { _, err := inspector.Queues(ctx); return err }
		calls["LateTicks of all"] = func(ctx context.Context) error { _, err := inspector.LateTicks(ctx); return err }
		calls["Nodes"] = func(ctx context.Context) error { _, err := inspector.Nodes(ctx); return err }
		calls["Checks"] = func(ctx context.Context) error { _, err := inspector.Checks(ctx); return err }
		calls["StoreID"] = func(ctx context.Context) error { _, err := inspector.StoreID(ctx); return err }
		calls["RenewStoreID"] = func(ctx context.Context) error { _, err := inspector.RenewStoreID(ctx); return err }
		calls["Drain"] = func(ctx context.Context) error { return inspector.Drain(ctx, "blue", true) }
		calls["Stats of all"] = func(ctx context.Context) error { _, err := inspector.Stats(ctx); return err }
		calls["Revive of none"] = func(ctx context.Context) error {
			_, err := inspector.Revive(ctx, "orders", inspect.DeadIDs())
			return err
		}
		calls["Edit of none"] = func(ctx context.Context) error {
			edit := func(string, core.Payload) ([]byte, bool, error) { return nil, false, nil }
			_, err := inspector.Edit(ctx, "orders", inspect.DeadIDs(), edit)
			return err
		}

		for method := range reflect.TypeFor[*inspect.Inspector]().Methods() {
			if calls[method.Name] == nil {
				t.Errorf("everyCall has no %s", method.Name)
			}
		}

		for call, do := range calls {
			if err := do(t.Context()); !errors.Is(err, inspect.ErrInvalidOptions) {
				t.Errorf("%s: %s = %v, want ErrInvalidOptions", name, call, err)
			}
		}
	}
}

// An unknown queue's error names the cure, from every store, since it is in the sentinel.
func TestAnUnknownQueuesErrorSaysWhatToDo(t *testing.T) {
	inspector := inspect.New(memory.New(memory.Options{}), inspect.Options{})
	_, err := inspector.Stats(t.Context(), "orders")
	for _, want := range []string{"orders", "pushed", "server", "name", "prefix", "schema"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Stats = %v, want it to speak of %s", err, want)
		}
	}
	if !errors.Is(err, inspect.ErrUnknownQueue) {
		t.Errorf("Stats = %v, want ErrUnknownQueue", err)
	}
}

func TestEveryCallHeedsItsContext(t *testing.T) {
	s := newFixture(t)
	s.dead("order-1")
	ended, end := context.WithCancel(t.Context())
	end()
	for name, call := range everyCall(s.Inspector, "orders") {
		if err := call(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v; want context.Canceled", name, err)
		}
	}

	for name, call := range map[string]func() error{
		"Ping":      func() error { return s.Ping(ended) },
		"Queues":    func() error { _, err := s.Queues(ended); return err },
		"Nodes":     func() error { _, err := s.Nodes(ended); return err },
		"LateTicks": func() error { _, err := s.LateTicks(ended); return err },
		"Drain":     func() error { return s.Drain(ended, "blue", true) },
		"Stats":     func() error { _, err := s.Stats(ended); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v; want context.Canceled", name, err)
		}
	}

	s.holds("dead order-1 at 0s [p] hopeless")
}

func TestNothingIsDoneIfAnIDIsNone(t *testing.T) {
	s := newFixture(t)
	s.dead("dead")
	s.failed("failed")
	before := s.state()
	bad := []string{"dead", "failed", "a\nb"}
	some := []inspect.DeadLetterPayloads{{ID: "dead", Payloads: data("p")}, {ID: ""}}
	first := []inspect.FirstPayload{{ID: "failed", Data: []byte("p")}, {ID: ""}}

	for name, call := range map[string]func() (inspect.Result, error){
		"RunNow":  func() (inspect.Result, error) { return s.RunNow(t.Context(), "orders", inspect.JobIDs(bad...)) },
		"Release": func() (inspect.Result, error) { return s.Release(t.Context(), "orders", inspect.JobIDs(bad...)) },
		"BuryFirst": func() (inspect.Result, error) {
			return s.Bury(t.Context(), "orders", inspect.FirstPayloads(first...))
		},
		"DeleteFirst": func() (inspect.Result, error) {
			return s.Delete(t.Context(), "orders", inspect.FirstPayloads(first...))
		},
		"Bury":   func() (inspect.Result, error) { return s.Bury(t.Context(), "orders", inspect.JobIDs(bad...)) },
		"Delete": func() (inspect.Result, error) { return s.Delete(t.Context(), "orders", inspect.JobIDs(bad...)) },
		"Move": func() (inspect.Result, error) {
			return s.Move(t.Context(), "orders", inspect.Target{Queue: "moved"}, inspect.JobIDs(bad...))
		},
		"Cancel": func() (inspect.Result, error) {
			return s.Cancel(t.Context(), "orders", bad, inspect.CancelModeDrop)
		},
		"Revive": func() (inspect.Result, error) {
			return s.Revive(t.Context(), "orders", inspect.DeadIDs(bad...))
		},
		"RevivePayloads": func() (inspect.Result, error) {
			return s.Revive(t.Context(), "orders", inspect.DeadPayloads(some...))
		},
		"Purge": func() (inspect.Result, error) {
			return s.Purge(t.Context(), "orders", inspect.DeadIDs(bad...))
		},
		"PurgePayloads": func() (inspect.Result, error) {
			return s.Purge(t.Context(), "orders", inspect.DeadPayloads(some...))
		},
		"Edit":    func() (inspect.Result, error) { return s.Edit(t.Context(), "orders", inspect.DeadIDs(bad...), upper) },
		"EditJob": func() (inspect.Result, error) { return s.EditJob(t.Context(), "orders", bad[len(bad)-1], nil, upper) },
		"EditPayloads": func() (inspect.Result, error) {
			return s.Edit(t.Context(), "orders", inspect.DeadPayloads(some...), upper)
		},
	} {
		if result, err := call(); !errors.Is(err, inspect.ErrInvalidID) || result.Handled != 0 {
			t.Errorf("%s: %+v, %v; want ErrInvalidID", name, result, err)
		}
	}

	s.holds(before...)
}
