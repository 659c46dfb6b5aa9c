package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/guard"
	"github.com/skeinq/skein/ports"
)

// errRefused has byPayload bury the payload.
var errRefused = errors.New("refused")

// byPayload is a handler that takes the payloads of each job one after another, as Each of the root
// package does. run counts the executions.
func byPayload(f func(ctx context.Context, run int, payload string) error) handler {
	var runs atomic.Int64
	return func(ctx context.Context, b *execution.Batch) error {
		defer b.End()
		run := int(runs.Add(1)) - 1
		for i := range b.Claims {
			job, ok := b.Begin(ctx, i)
			if !ok {
				continue
			}

			b.Return(i, func() error {
				for position, p := range b.Claims[i].Payloads {
					if !b.BeginPayload(i, position) {
						return nil
					}
					err := guard.Call(func() error {
						defer b.EndPayload()
						return f(job, run, string(p.Data))
					})

					switch {
					case errors.Is(err, errRefused):
						b.MarkBuried(i, position, err)
					case err != nil:
						return err
					default:
						b.MarkDone(i, position)
					}
				}
				return nil
			}())
		}
		return nil
	}
}

func TestPayloadsEndInTheirTransactions(t *testing.T) {
	errOwn := errors.New("the handler's own")
	type step func(w *world, ctx context.Context) error
	commit := func(w *world, ctx context.Context) error { return w.commit(ctx) }
	open := func(w *world, ctx context.Context) error { return w.open(ctx) }
	atOnce := func(w *world, ctx context.Context) error { return execution.SettleIn(ctx, w.store) }
	plain := func(*world, context.Context) error { return nil }
	then := func(first step, err error) step {
		return func(w *world, ctx context.Context) error { return errors.Join(first(w, ctx), err) }
	}
	again := func(w *world, ctx context.Context) error { return errors.Join(w.open(ctx), w.commit(ctx)) }

	cases := []struct {
		name string
		// first are the steps of the first execution, by payload. The later ones commit.
		first map[string]step
		calls string
		// failed is how often the job fails, and dead what is buried, without retries.
		failed int64
		dead   string
	}{
		{"all committed", map[string]step{"a": commit, "b": commit, "c": commit}, "abc", 0, ""},
		{"all at once", map[string]step{"a": atOnce, "b": atOnce, "c": atOnce}, "abc", 0, ""},
		{"committed by the second try", map[string]step{"a": again, "b": again, "c": again}, "abc", 0, ""},
		{"some without a transaction", map[string]step{"a": plain, "b": commit, "c": plain}, "abc", 0, ""},
		{"the last without one", map[string]step{"a": commit, "b": commit, "c": plain}, "abc", 0, ""},
		{"the last fails", map[string]step{"a": commit, "b": commit, "c": then(plain, errOwn)}, "abc c", 1, "c"},
		{"the last rolls back", map[string]step{"a": commit, "b": commit, "c": then(open, errOwn)}, "abc c", 1, "c"},
		{"the last returns nil without a commit", map[string]step{"a": commit, "b": commit, "c": open}, "abc c", 1,
			"c"},
		{"the last commits, then an error", map[string]step{"a": commit, "b": commit, "c": then(commit, errOwn)}, "abc",
			0, ""},
		{"the last rolls back behind others without a transaction",
			map[string]step{"a": plain, "b": plain, "c": then(open, errOwn)}, "abc c", 1, "c"},
		{"the last can't settle behind one without a commit",
			map[string]step{
				"a": open,
				"b": plain,
				"c": func(w *world, ctx context.Context) error { _ = w.commit(ctx); return nil },
			}, "abc ac", 1, "a"},
		{"one is buried after a rollback", map[string]step{"a": then(open, errRefused), "b": commit, "c": commit},
			"abc", 1, "a"},
		{"the last follows one that is buried after a rollback",
			map[string]step{"a": plain, "b": then(open, errRefused), "c": commit}, "abc", 1, "b"},
		{"one is buried after a commit", map[string]step{"a": then(commit, errRefused), "b": commit, "c": commit},
			"abc", 0, ""},
		{"one rolls back", map[string]step{"a": commit, "b": then(open, errOwn)}, "ab bc", 1, "b"},
		{"the first rolls back", map[string]step{"a": then(open, errOwn)}, "a abc", 1, "a"},
		{"one commits, then an error", map[string]step{"a": then(commit, errOwn)}, "a bc", 0, ""},
		{"one commits, then a panic", map[string]step{
			"a": commit,
			"b": func(w *world, ctx context.Context) error { panic(w.commit(ctx)) },
		}, "ab c", 0, ""},
		{"one returns nil without a commit", map[string]step{"a": open, "b": commit}, "ab abc", 1, "a"},
		{"one returns nil without a commit, the others have no transaction",
			map[string]step{"a": open, "b": plain, "c": plain}, "abc a", 1, "a"},
	}

	for _, tt := range cases {
		for _, lossy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, lossy %t", tt.name, lossy), func(t *testing.T) {
				inWorld(t, func(w *world) {
					w.declare(1)
					w.push("job", "a", "b", "c")

					var calls []string
					options := []func(*setup){func(s *setup) { s.queue.Policy.MaxRetries = 1 }}
					if lossy {
						options = append(options, loseReplies("Turn"))
					}

					w.start(byPayload(func(ctx context.Context, run int, payload string) error {
						for len(calls) <= run {
							calls = append(calls, "")
						}
						calls[run] += payload
						if do := tt.first[payload]; run == 0 && do != nil {
							return do(w, ctx)
						}
						return w.commit(ctx)
					}), options...)

					w.sleep(5 * time.Minute)
					if diff := cmp.Diff(tt.calls, strings.Join(calls, " ")); diff != "" {
						t.Errorf("calls (-want +got):\n%s", diff)
					}
					w.wantCounts(0, 0, 1, tt.failed)
					if !lossy {
						w.wantHistory(1, uint64(tt.failed))
					}
				})
			})
		}

		t.Run(tt.name+", without retries", func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				w.push("job", "a", "b", "c")
				w.start(byPayload(func(ctx context.Context, run int, payload string) error {
					if do := tt.first[payload]; run == 0 && do != nil {
						return do(w, ctx)
					}
					return w.commit(ctx)
				}), func(s *setup) { s.queue.Policy.MaxRetries = 0 })
				w.sleep(5 * time.Minute)

				dead := ""
				if found := w.find("job"); found.DeadLetter != nil {
					for _, p := range found.DeadLetter.Payloads {
						dead += string(p.Data)
					}
				}
				if dead != tt.dead {
					t.Errorf("dead %q, want %q", dead, tt.dead)
				}
			})
		})
	}
}

// The count of retries begins anew with each payload that commits.
func TestEachPayloadHasItsOwnRetries(t *testing.T) {
	inWorld(t, func(w *world) {
		o := &seen{}
		w.declare(1)
		w.push("job", "a", "b", "c")
		fails := map[string]int{"a": 2, "b": 2, "c": 3}
		w.start(byPayload(func(ctx context.Context, _ int, payload string) error {
			if fails[payload]--; fails[payload] >= 0 {
				return errors.Join(w.open(ctx), errors.New("boom"))
			}
			return w.commit(ctx)
		}), o.by, func(s *setup) { s.queue.Policy.MaxRetries = 2 })
		w.sleep(time.Hour)
		failed := func(attempt int) ports.EndedJob {
			return ports.EndedJob{ID: "job", End: ports.EndFailed, Attempt: attempt}
		}
		want := []ports.EndedJob{failed(1), failed(2), failed(1), failed(2), failed(1), failed(2),
			{ID: "job", End: ports.EndBuried, Attempt: 3, Buried: 1}}
		if diff := cmp.Diff(want, o.ended); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
		w.wantCounts(0, 0, 0, 7)
	})
}

// A transaction that is still open when the handler has returned may make another settlement right
// than the one that the store has deferred.
func TestAnOpenTransactionOfAPayloadDecidesLater(t *testing.T) {
	for _, committed := range []bool{true, false} {
		t.Run(fmt.Sprintf("committed %t", committed), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				tx := &transaction{world: w}
				var runs []string

				n := w.start(byPayload(func(ctx context.Context, run int, payload string) error {
					for len(runs) <= run {
						runs = append(runs, "")
					}
					runs[run] += payload
					if run > 0 {
						return w.commit(ctx)
					}
					return errors.Join(execution.SettleIn(ctx, tx), errors.New("no answer to the commit"))
				}), func(s *setup) { s.link.deferReceipt = func(r core.Receipt) bool { return r.Part() == 0 } })

				w.push("job", "a", "b")
				w.sleep(10 * poll)
				w.wantCounts(0, 1, 0, 0)

				if committed {
					if err := tx.commit(); err != nil {
						t.Fatal(err)
					}
				}
				n.link.change(func() { n.link.deferReceipt = func(core.Receipt) bool { return false } })

				w.sleep(5 * time.Minute)
				want := "a ab"
				if committed {
					want = "a b"
				}
				if got := strings.Join(runs, " "); got != want {
					t.Errorf("calls %q, want %q", got, want)
				}
			})
		})
	}
}

// A server that loses its lease leaves what has not committed to the next one.
func TestTheNextOwnerHasThePayloadsThatAreLeft(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		var first, second string
		late := errors.New("not called")
		lost := w.start(byPayload(func(ctx context.Context, _ int, payload string) error {
			first += payload
			if payload == "a" {
				return w.commit(ctx)
			}
			time.Sleep(3 * ttl)
			late = execution.SettleIn(context.WithoutCancel(ctx), w.store)
			return late
		}))

		w.push("job", "a", "b", "c")
		w.sleep(poll)
		lost.cutOff()

		w.start(byPayload(func(ctx context.Context, _ int, payload string) error {
			second += payload
			return w.commit(ctx)
		}))

		w.sleep(5 * ttl)
		if first != "ab" || second != "bc" {
			t.Errorf("the first server handled %q, the second %q", first, second)
		}
		if !errors.Is(late, ports.ErrLeaseLost) {
			t.Errorf("the first server's late settlement: %v, want %v", late, ports.ErrLeaseLost)
		}
		w.wantCounts(0, 0, 1, 0)
	})
}

// A job that is cancelled while it runs keeps its end, without the payloads that have committed.
func TestACancelFindsAJobWithSettledPayloads(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		var cause error
		w.start(byPayload(func(ctx context.Context, run int, payload string) error {
			if err := w.commit(ctx); err != nil || payload == "a" || run > 0 {
				return err
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return cause
		}))
		w.push("job", "a", "b", "c")
		w.sleep(poll)
		if _, err := w.store.Cancel(t.Context(),
			ports.CancelRequest{Shard: shardOfQueue(0), IDs: []string{"job"}}); err != nil {
			t.Fatal(err)
		}
		w.sleep(time.Minute)
		if !errors.Is(cause, execution.ErrCancelled) {
			t.Errorf("the handler's context ended with %v, want %v", cause, execution.ErrCancelled)
		}
		w.wantCounts(0, 0, 1, 0)
	})
}
