package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// bulk returns each action on all entries of a kind.
func bulk(i *inspect.Inspector, o inspect.BulkOptions) map[string]func(context.Context) (inspect.Result, error) {
	all := func(inspect.DeadLetter) bool { return true }

	return map[string]func(context.Context) (inspect.Result, error){
		"RunAllNow": func(ctx context.Context) (inspect.Result, error) {
			return i.RunNow(ctx, "orders", inspect.AllJobs(nil, o))
		},
		"BuryFailed": func(ctx context.Context) (inspect.Result, error) {
			return i.Bury(ctx, "orders", inspect.FailedJobs(nil, o))
		},
		"DeleteAll": func(ctx context.Context) (inspect.Result, error) {
			return i.Delete(ctx, "orders", inspect.AllJobs(nil, o))
		},
		"DeleteFailed": func(ctx context.Context) (inspect.Result, error) {
			return i.Delete(ctx, "orders", inspect.FailedJobs(nil, o))
		},
		"ReviveAll": func(ctx context.Context) (inspect.Result, error) {
			return i.Revive(ctx, "orders", inspect.AllDead(nil, o))
		},
		"ReviveAll that match": func(ctx context.Context) (inspect.Result, error) {
			return i.Revive(ctx, "orders", inspect.AllDead(all, o))
		},
		"PurgeAll": func(ctx context.Context) (inspect.Result, error) {
			return i.Purge(ctx, "orders", inspect.AllDead(nil, o))
		},
		"PurgeAll that match": func(ctx context.Context) (inspect.Result, error) {
			return i.Purge(ctx, "orders", inspect.AllDead(all, o))
		},
		"EditAll": func(ctx context.Context) (inspect.Result, error) {
			return i.Edit(ctx, "orders", inspect.AllDead(nil, o), upper)
		},
	}
}

// withManyEntries returns a fixture with failures and dead letters in every shard, more than a
// step handles.
const manyEntries = 2*fixtureShards*ports.MaxStep + 100

func withManyEntries(t *testing.T) *fixture {
	s := newFixture(t)
	s.dead(numbered("dead", manyEntries)...)
	s.failed(numbered("failed", manyEntries)...)
	s.advance(time.Second)
	return s
}

func TestBulkActionsEndWhileMoreComes(t *testing.T) {
	for name := range bulk(nil, inspect.BulkOptions{}) {
		t.Run(name, func(t *testing.T) {
			s := withManyEntries(t)

			hooked := s.intercept()
			rounds := 0
			hooked.after = func(call string) error {
				if call == "Stats" || call == "Queues" {
					return nil
				}
				if rounds++; rounds > manyEntries+1000 {
					return fmt.Errorf("%w: the action does not end", ports.ErrInvalidRequest)
				}
				// Behind each step there is more to do: as if handlers failed.
				s.advance(time.Microsecond)
				s.pushAll(nth("failed anew", rounds))
				s.fail("boom")
				s.pushAll(nth("dead anew", rounds))
				s.bury()
				return nil
			}

			result, err := bulk(s.Inspector, inspect.BulkOptions{})[name](t.Context())
			if err != nil || result.Handled != manyEntries {
				t.Errorf("%+v, %v; want %d handled", result, err, manyEntries)
			}
		})
	}
}

func TestActionsOnAllAreBoundedAlsoWhenTheClockStands(t *testing.T) {
	for _, name := range []string{"ReviveAll", "ReviveAll that match", "PurgeAll", "PurgeAll that match", "EditAll"} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.dead("a", "b", "c")

			calls := 0
			s.intercept().after = func(string) error {
				if calls++; calls < 20 { // behind each call, more than a page
					s.dead(numbered(nth("z", calls), 2*ports.DefaultPage)...)
				}
				return nil
			}

			result, err := bulk(s.Inspector, inspect.BulkOptions{})[name](t.Context())
			if err != nil || result.Handled != 3 || calls > 10 {
				t.Errorf("%+v, %v after %d calls; want 3 handled", result, err, calls)
			}
		})
	}
}

func TestWhatIsBuriedMeanwhileTakesNobodysPlace(t *testing.T) {
	for _, name := range []string{"ReviveAll", "ReviveAll that match", "PurgeAll", "PurgeAll that match", "EditAll"} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.dead("a", "b", "c", "d", "e", "f")

			operator := s.Inspector
			s.intercept().after = func(call string) error {
				if call != "Stats" {
					return nil
				}
				s.advance(time.Microsecond)
				if _, err := operator.Purge(t.Context(), "orders", inspect.DeadIDs("a", "b", "c")); err != nil {
					return err
				}
				s.dead("u", "v", "w", "x", "y", "z")
				return nil
			}

			var last inspect.Progress
			o := inspect.BulkOptions{Progress: func(p inspect.Progress) { last = p }}
			result, err := bulk(s.Inspector, o)[name](t.Context())
			if err != nil || result.Handled != 3 {
				t.Errorf("%+v, %v; want 3 handled", result, err)
			}
			if want := (inspect.Progress{Done: 6, Total: 6, Handled: 3}); last != want {
				t.Errorf("the last report is %+v, want %+v", last, want)
			}

			var fresh []string
			for dead := range must(t, operator.Morgue(t.Context(), "orders", inspect.ListOptions{Payloads: 1})) {
				if string(dead.Payloads[0].Data) == "p" {
					fresh = append(fresh, dead.ID)
				}
			}
			if diff := cmp.Diff([]string{"u", "v", "w", "x", "y", "z"}, fresh); diff != "" {
				t.Errorf("left as they were (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFilterEndsWhileAServerBuriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		inspector := inspect.New(store, inspect.Options{})
		client := skein.NewClient(store, skein.ClientOptions{})
		queue := skein.NewQueue("orders", skein.QueueOptions[int]{MaxRetries: skein.NoRetries})
		const jobs = 3000
		var entries []skein.Entry[int]
		for n, id := range numbered("order", jobs) {
			entries = append(entries, skein.Entry[int]{ID: id, Payload: n})
		}
		if err := queue.PushMany(t.Context(), client, entries); err != nil {
			t.Fatal(err)
		}
		handler := queue.Handler(func(context.Context, string, []int) error { return errors.New("boom") })
		served, stop := context.WithCancel(t.Context())
		server := skein.NewServer(store, skein.ServerOptions{Logger: slog.New(slog.DiscardHandler)}, handler)
		done := make(chan error, 1)
		go func() { done <- server.Run(served) }()
		time.Sleep(time.Minute)
		result, err := inspector.Revive(t.Context(), "orders", inspect.AllDead(func(d inspect.DeadLetter) bool {
			time.Sleep(time.Millisecond)
			return d.LastError == "boom"
		}, inspect.BulkOptions{}))

		if err != nil || result.Handled != jobs {
			t.Errorf("ReviveAll = %+v, %v; want each once", result, err)
		}
		time.Sleep(time.Minute)
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		stats, err := inspector.Stats(t.Context(), "orders")
		if err != nil || stats[0].Dead != jobs || stats[0].Failed != 2*jobs {
			t.Errorf("then there is %+v, %v; want all in the morgue for the second time", stats[0].Counts, err)
		}
	})
}

func TestProgressRisesToTheTotal(t *testing.T) {
	for name := range bulk(nil, inspect.BulkOptions{}) {
		t.Run(name, func(t *testing.T) {
			s := withManyEntries(t)
			var seen []inspect.Progress
			o := inspect.BulkOptions{Progress: func(p inspect.Progress) { seen = append(seen, p) }}
			result, err := bulk(s.Inspector, o)[name](t.Context())
			if err != nil {
				t.Fatal(err)
			}

			if want := manyEntries / ports.MaxStep; len(seen) < want {
				t.Errorf("%d reports, want %d at least", len(seen), want)
			}
			for at, p := range seen {
				if p.Total != manyEntries || at > 0 && p.Done <= seen[at-1].Done || p.Handled > p.Done {
					t.Fatalf("report %d is %+v", at, p)
				}
			}

			want := inspect.Progress{Done: manyEntries, Total: manyEntries, Handled: result.Handled}
			if last := seen[len(seen)-1]; last != want || result.Handled != manyEntries {
				t.Errorf("the last report is %+v, the result %+v; want %+v", last, result, want)
			}
		})
	}
}

func TestProgressCountsWhatIsPassedOverAndWhatIsGone(t *testing.T) {
	s := newFixture(t)
	s.dead("a", "b", "c", "d")
	for name, c := range map[string]struct {
		act  func(inspect.BulkOptions) (inspect.Result, error)
		want inspect.Progress
	}{
		"no match": {func(o inspect.BulkOptions) (inspect.Result, error) {
			return s.Purge(t.Context(), "orders", inspect.AllDead(func(inspect.DeadLetter) bool { return false }, o))
		}, inspect.Progress{Done: 4, Total: 4}},
		"ids that are not there": {func(inspect.BulkOptions) (inspect.Result, error) {
			return s.Purge(t.Context(), "orders", inspect.DeadIDs("x", "y"))
		}, inspect.Progress{Done: 2, Total: 2}},
		"edits of what is not there": {func(inspect.BulkOptions) (inspect.Result, error) {
			return s.Edit(t.Context(), "orders", inspect.DeadIDs("x", "y"), upper)
		}, inspect.Progress{Done: 2, Total: 2}},
		"edits that keep": {func(o inspect.BulkOptions) (inspect.Result, error) {
			return s.Edit(t.Context(), "orders", inspect.AllDead(nil,

				o), func(_ string, p core.Payload) ([]byte, bool, error) {
				return nil, false, nil
			})

		}, inspect.Progress{Done: 4, Total: 4}},
		"nothing later than now": {func(o inspect.BulkOptions) (inspect.Result, error) {
			return s.RunNow(t.Context(), "orders", inspect.AllJobs(nil, o))
		}, inspect.Progress{}},
	} {
		var last inspect.Progress
		result, err := c.act(inspect.BulkOptions{Progress: func(p inspect.Progress) { last = p }})
		if err != nil || result.Handled != 0 {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
		ended := inspect.Progress{Done: result.Done, Total: result.Total, Handled: result.Handled}
		if diff := cmp.Diff(c.want, ended); diff != "" {
			t.Errorf("%s: the result (-want +got):\n%s", name, diff)
		}
		if last == (inspect.Progress{}) { // actions on named entries report none
			last = ended
		}
		if diff := cmp.Diff(c.want, last); diff != "" {
			t.Errorf("%s: the last report (-want +got):\n%s", name, diff)
		}
	}
}

func TestProgressGoesOnWhereNothingIsToDo(t *testing.T) {
	s := newFixture(t)
	s.pushAll(numbered("due", 100)...)
	var reports int
	o := inspect.BulkOptions{Progress: func(inspect.Progress) { reports++ }}
	if _, err := s.RunNow(t.Context(), "orders", inspect.AllJobs(nil, o)); err != nil || reports != fixtureShards {
		t.Errorf("%d reports, %v; want one for each shard", reports, err)
	}
}

func TestBulkActionsStopInTheMiddle(t *testing.T) {
	for name := range bulk(nil, inspect.BulkOptions{}) {
		t.Run(name, func(t *testing.T) {
			s := withManyEntries(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()

			var last inspect.Progress
			o := inspect.BulkOptions{Progress: func(p inspect.Progress) {
				if last = p; p.Done >= manyEntries/2 {
					stop()
				}
			}}

			before := s.counts()
			result, err := bulk(s.Inspector, o)[name](ctx)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v; want context.Canceled", err)
			}

			if result.Handled < manyEntries/2 || result.Handled > manyEntries/2+ports.MaxStep ||
				result.Handled != last.Handled {
				t.Errorf("%+v, the last report %+v; want about half", result, last)
			}
			if after := s.counts(); changed(before, after) != int64(result.Handled) && name != "RunAllNow" &&
				name != "EditAll" {
				t.Errorf("%d handled, but from %+v it came to %+v", result.Handled, before, after)
			}
		})
	}
}

// changed returns how many failures or dead letters are gone.
func changed(before, after inspect.Counts) int64 {
	return max(before.Retrying-after.Retrying, before.Dead-after.Dead)
}
