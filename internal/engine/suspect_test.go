package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

// payloadsUpTo returns the payloads p1 to pn.
func payloadsUpTo(n int) (payloads []string) {
	for i := range n {
		payloads = append(payloads, fmt.Sprintf("p%d", i+1))
	}
	return payloads
}

// countRuns counts how often payloads were handled.
func countRuns(calls []string) map[string]int {
	runs := map[string]int{}
	for _, payload := range calls {
		runs[payload]++
	}
	return runs
}

// A payload that kills its process is found and goes to the morgue, or is held, within
// MaxRecoveries + 1 crashes, if payloads are handled one by one. The payloads before it run at most
// twice and those behind it once.
func TestAPayloadThatKillsItsProcessIsBlamedAlone(t *testing.T) {
	const culprit, others = "p5", 20
	for _, exhausted := range []core.Exhaustion{core.BuryFirst, core.Hold} {
		for _, batchSize := range []int{1, 7} {
			t.Run(fmt.Sprintf("exhausted %d, batches of %d", exhausted, batchSize), func(t *testing.T) {
				inWorld(t, func(w *world) {
					w.declare(1)
					w.push("suspect", payloadsUpTo(10)...)
					w.sleep(time.Millisecond)
					w.pushEach(others)

					var calls []string
					crashes := 0
					for range 6 {
						var process *link
						dead := false
						w.start(byPayload(func(ctx context.Context, _ int, payload string) error {
							if dead {
								<-ctx.Done()
								return ctx.Err()
							}
							calls = append(calls, payload)
							if payload == culprit {
								crashes++
								dead = true
								process.set(hanging)
								<-ctx.Done()
							}
							return nil
						}), batches(batchSize), func(s *setup) {
							s.queue.Policy.Exhausted = exhausted
							process = s.link
						})
						w.sleep(2 * ttl)
					}

					if crashes != 4 {
						t.Errorf("%d crashes, want MaxRecoveries + 1", crashes)
					}
					runs := countRuns(calls)
					for i, payload := range payloadsUpTo(10) {
						most := 1
						if payload < culprit {
							most = 2
						}
						if exhausted == core.Hold && i >= 5 && payload != culprit {
							most = 0
						}
						if payload != culprit && (runs[payload] > most || runs[payload] == 0 && most > 0) {
							t.Errorf("%s ran %d times, want at most %d", payload, runs[payload], most)
						}
					}
					w.wantBlamed("suspect", culprit, exhausted)
				})
			})
		}
	}
}

// wantBlamed checks that only one payload of an id was blamed for crashes.
func (w *world) wantBlamed(id, culprit string, exhausted core.Exhaustion) {
	w.Helper()
	found := w.find(id)
	if exhausted == core.Hold {
		if found.DeadLetter != nil || found.Queued == nil || !found.Queued.Held() ||
			string(found.Queued.Payloads[0].Data) != culprit {
			w.Errorf("found %+v, want a held job whose first payload is %s", found, culprit)
		}
		return
	}
	if found.DeadLetter == nil || !slices.Equal(texts(found.DeadLetter.Payloads), []string{culprit}) {
		w.Errorf("the morgue has %+v, want %s alone", found.DeadLetter, culprit)
	}
	if found.Queued != nil || found.Claim != nil {
		w.Errorf("found %+v, want nothing but the dead letter", found)
	}
}

// What a handler makes of the payloads of a recovered job counts as it does for any other job.
func TestPayloadsOfARecoveredJobEndAsOthers(t *testing.T) {
	boom := errors.New("boom")
	plain := func(*world, context.Context) error { return nil }
	commit := func(w *world, ctx context.Context) error { return w.commit(ctx) }
	open := func(w *world, ctx context.Context) error { return w.open(ctx) }
	fail := func(*world, context.Context) error { return boom }
	bury := func(*world, context.Context) error { return errRefused }

	cases := []struct {
		name string
		// first are the first steps of payloads. Their later ones succeed.
		first             map[string]func(*world, context.Context) error
		calls             string
		processed, failed int64
		dead              string
		// parts is the number of payloads that turns ended one by one.
		parts int
	}{
		{"all succeed", nil, "abcd", 1, 0, "", 3},
		{"one fails", map[string]func(*world, context.Context) error{"c": fail}, "abc cd", 1, 1, "", 2},
		{"the last fails", map[string]func(*world, context.Context) error{"d": fail}, "abcd d", 1, 1, "", 3},
		{"one is buried", map[string]func(*world, context.Context) error{"b": bury}, "ab cd", 1, 1, "b", 2},
		{"the last is buried", map[string]func(*world, context.Context) error{"d": bury}, "abcd", 1, 1, "d", 3},
		{"all commit", map[string]func(*world, context.Context) error{
			"a": commit, "b": commit, "c": commit, "d": commit,
		}, "abcd", 1, 0, "", 0},
		{"some commit", map[string]func(*world, context.Context) error{"b": commit, "d": commit}, "abcd", 1, 0, "", 2},
		{"one does not commit", map[string]func(*world, context.Context) error{"a": open, "b": plain}, "ab acd", 1, 1,
			"", 1},
	}

	for _, tt := range cases {
		for _, lossy := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, lossy %t", tt.name, lossy), func(t *testing.T) {
				inWorld(t, func(w *world) {
					w.declare(1)
					w.push("job", "a", "b", "c", "d")
					w.makeRecovered(0, 2, "job")

					var calls []string
					options := []func(*setup){}
					if lossy {
						options = append(options, loseReplies("Turn"))
					}

					n := w.start(byPayload(func(ctx context.Context, run int, payload string) error {
						for len(calls) <= run {
							calls = append(calls, "")
						}
						ran := strings.Contains(strings.Join(calls, ""), payload)
						calls[run] += payload
						if do := tt.first[payload]; do != nil && !ran {
							return do(w, ctx)
						}
						return nil
					}), options...)
					w.sleep(5 * time.Minute)

					if diff := cmp.Diff(strings.ReplaceAll(tt.calls, " ", ""), strings.Join(calls, "")); diff != "" {
						t.Errorf("calls %q (-want +got):\n%s", calls, diff)
					}
					w.wantCounts(0, 0, tt.processed, tt.failed)

					dead := ""
					if found := w.find("job"); found.DeadLetter != nil {
						dead = strings.Join(texts(found.DeadLetter.Payloads), "")
					}
					if dead != tt.dead {
						t.Errorf("dead %q, want %q", dead, tt.dead)
					}
					if parts := n.partsSent(); !lossy && parts != tt.parts {
						t.Errorf("turns ended %d payloads one by one, want %d", parts, tt.parts)
					}
				})
			})
		}
	}
}

// partsSent returns the number of payloads that the node's turns have ended one by one.
func (n *node) partsSent() (parts int) {
	for _, turn := range n.link.turnsSent() {
		parts += len(turn.request.Parts)
	}
	return parts
}

// onFirstPart calls f before the first turn with a part reaches the store.
func onFirstPart(f func(l *link, r ports.TurnRequest)) func(*setup) {
	var once sync.Once
	return func(s *setup) {
		l := s.link
		l.beforeTurn = func(r ports.TurnRequest) {
			if len(r.Parts) > 0 {
				once.Do(func() { f(l, r) })
			}
		}
	}
}

// However the store's answer to the end of a payload fails to come, the next payload does not start
// beside another execution, no payload is lost, and those that are done don't run again where the
// store could know of them.
func TestThePayloadsBehindAnEndThatTheStoreDoesNotConfirm(t *testing.T) {
	cases := map[string]struct {
		befall func(w *world, l *link, r ports.TurnRequest)
		calls  string
		// most is the number of Recoveries that the job may get.
		most int
	}{
		"the reply is lost": {func(_ *world, l *link, _ ports.TurnRequest) {
			lost := false
			l.change(func() {
				l.loseTurn = func(r ports.TurnRequest) bool {
					first := !lost && len(r.Parts) > 0
					lost = lost || first
					return first
				}
			})
		}, "abc", 1},
		"the store hangs": {func(w *world, l *link, _ ports.TurnRequest) {
			l.set(hanging)
			time.AfterFunc(3*poll, func() { l.set(up) })
		}, "abc", 1},
		"the lease is lost": {func(_ *world, l *link, r ports.TurnRequest) {
			l.change(func() { l.broken[r.Lease.Shard] = ports.ErrLeaseLost })
			time.AfterFunc(poll, func() { l.change(func() { delete(l.broken, r.Lease.Shard) }) })
		}, "aabc", 2},
		"the reply and the lease are lost": {func(w *world, l *link, _ ports.TurnRequest) {
			l.change(func() {
				l.loseTurn = func(r ports.TurnRequest) bool {
					if len(r.Parts) == 0 || l.broken[r.Lease.Shard] != nil {
						return false
					}
					l.broken[r.Lease.Shard] = ports.ErrLeaseLost
					time.AfterFunc(poll, func() { l.change(func() { delete(l.broken, r.Lease.Shard) }) })
					return true
				}
			})
			time.AfterFunc(poll/2, func() {
				l.change(func() { l.loseTurn = func(ports.TurnRequest) bool { return false } })
			})
		}, "abc", 1},
		"the job was settled elsewhere": {func(w *world, _ *link, r ports.TurnRequest) {
			w.settleElsewhere(core.ClaimRef{ID: r.Parts[0].ID, Receipt: r.Parts[0].Receipt}, r.Lease.Shard)
		}, "a", 1},
		"the job is cancelled": {func(w *world, _ *link, r ports.TurnRequest) {
			if _, err := w.store.Cancel(w.Context(),
				ports.CancelRequest{Shard: r.Lease.Shard, IDs: []string{"job"}}); err != nil {
				w.Error(err)
			}
		}, "abc", 1},
	}

	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				w.push("job", "a", "b", "c")
				w.makeRecovered(0, 1, "job")

				var calls string
				n := w.start(byPayload(func(_ context.Context, _ int, payload string) error {
					calls += payload
					if found := w.find("job"); found.Claim != nil && found.Claim.Recoveries > tt.most {
						w.Errorf("Recoveries %d at %s, want at most %d", found.Claim.Recoveries, payload, tt.most)
					}
					return nil
				}), lanes(1), onFirstPart(func(l *link, r ports.TurnRequest) { tt.befall(w, l, r) }))
				w.sleep(5 * ttl)

				if calls != tt.calls {
					t.Errorf("calls %q, want %q", calls, tt.calls)
				}
				n.stop()
				if found := w.find("job"); found.Queued != nil || found.Claim != nil || found.DeadLetter != nil {
					t.Errorf("found %+v, want nothing", found)
				}
			})
		})
	}
}

// While the store does not answer the end of a payload, its lane runs other shards.
func TestALaneDoesNotWaitLongForTheEndOfAPayload(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(2)
		suspect, other := idIn(0, 2), idIn(1, 2)
		w.push(suspect, "a", "b")
		w.makeRecovered(0, 1, suspect)
		var ran []time.Duration
		w.start(byPayload(func(_ context.Context, _ int, payload string) error {
			if payload == "other" {
				ran = append(ran, w.elapsed())
			}
			return nil
		}), shards(2), lanes(1), onFirstPart(func(l *link, r ports.TurnRequest) {
			l.change(func() { l.stuck[r.Lease.Shard] = true })
		}))
		w.sleep(poll / 10)
		pushed := w.elapsed()
		w.push(other, "other")
		w.sleep(10 * poll)
		if len(ran) != 1 {
			t.Fatalf("the other shard's job ran %d times, want once", len(ran))
		}
		w.within("the other shard's job", ran[0]-pushed, 0, poll)
	})
}

// A payload that ends on the job's last chance gives the chance to the next job, since the others
// of its job are no longer on theirs. With MaxRecoveries 1 each of them is, so the next job waits
// for all of them.
func TestALastChanceEndsWithItsPayload(t *testing.T) {
	for most, want := range map[int][]string{
		3: {"first", "endless", "x"},
		1: {"first", "endless"},
	} {
		t.Run(fmt.Sprint("MaxRecoveries ", most), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(2)
				long, next := idIn(0, 2), idIn(1, 2)
				w.push(long, "first", "endless")
				w.makeRecovered(0, most, long)
				w.placeRecoveredIn(poll, most, next)

				var mu sync.Mutex
				var ran []string
				w.start(byPayload(func(_ context.Context, _ int, payload string) error {
					mu.Lock()
					ran = append(ran, payload)
					mu.Unlock()
					if payload == "endless" {
						time.Sleep(100 * poll)
					}
					return nil
				}), shards(2), lanes(2), func(s *setup) { s.queue.Policy.MaxRecoveries = most })
				w.sleep(10 * poll)

				mu.Lock()
				defer mu.Unlock()
				if !slices.Equal(ran, want) {
					t.Errorf("ran %q, want %q", ran, want)
				}
			})
		})
	}
}

// A store that repeats a turn by itself answers it as a repeat. Its part is sent again, so a
// skipped one is not taken for stored.
func TestARepeatedAnswerDoesNotEndAPayload(t *testing.T) {
	for skipped, want := range map[bool]string{false: "abc", true: "a"} {
		t.Run(fmt.Sprintf("skipped %t", skipped), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				w.push("job", "a", "b", "c")
				w.makeRecovered(0, 1, "job")
				var calls string
				w.start(byPayload(func(_ context.Context, _ int, payload string) error {
					calls += payload
					return nil
				}), onFirstPart(func(l *link, r ports.TurnRequest) {
					if skipped {
						w.settleElsewhere(core.ClaimRef{ID: r.Parts[0].ID, Receipt: r.Parts[0].Receipt}, r.Lease.Shard)
					}
					if _, err := l.store().Turn(w.Context(), r); err != nil {
						w.Error(err)
					}
				}))
				w.sleep(5 * poll)
				if calls != want {
					t.Errorf("calls %q, want %q", calls, want)
				}
			})
		})
	}
}

// A handler may return while a goroutine that it has left behind waits for the end of a payload.
// The answer does not give the chance to another job once more.
func TestALastChanceIsGivenBackOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(3)
		left, second, third := idIn(0, 3), idIn(1, 3), idIn(2, 3)
		w.push(left, "first", "next")
		w.makeRecovered(0, 3, left)
		w.placeRecoveredIn(poll/100, 3, second)
		w.placeRecoveredIn(poll/50, 3, third)

		ran := 0
		work := byPayload(func(_ context.Context, _ int, payload string) error {
			if payload == "x" {
				ran++
				time.Sleep(100 * poll)
			}
			return nil
		})

		w.start(func(ctx context.Context, b *execution.Batch) error {
			if b.Claims[0].ID != left {
				return work(ctx, b)
			}
			go func() { _ = work(ctx, b) }()
			time.Sleep(poll / 50)
			return errors.New("returned early")
		}, shards(3), lanes(3), onFirstPart(func(*link, ports.TurnRequest) { time.Sleep(poll / 20) }))

		w.sleep(5 * poll)
		if ran != 1 {
			t.Errorf("%d jobs ran on their last chance at once, want 1", ran)
		}
	})
}

// A server that stops lets the payload end that runs, and puts the others back without a recovery.
func TestAStopBetweenPayloadsOfARecoveredJob(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.push("job", "a", "b", "c")
		w.makeRecovered(0, 3, "job")
		var first, second string
		n := w.start(byPayload(func(_ context.Context, _ int, payload string) error {
			first += payload
			time.Sleep(poll)
			return nil
		}))
		w.sleep(poll + poll/2)
		n.stop()
		found := w.find("job").Queued
		if found == nil || found.Recoveries != 1 || found.RetryCount != core.FreshRetryCount {
			t.Fatalf("found %+v, want a fresh job with one recovery", found)
		}
		w.start(byPayload(func(_ context.Context, _ int, payload string) error {
			second += payload
			return nil
		}))
		w.sleep(poll)
		if first != "ab" || second != "c" {
			t.Errorf("the first server handled %q, the second %q", first, second)
		}
		w.wantCounts(0, 0, 1, 0)
	})
}

func TestRunDueRunsARecoveredJobPayloadByPayload(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.push("job", "a", "b", "c")
		w.makeRecovered(0, 3, "job")
		var calls string
		queue := newQueue(queueName, byPayload(func(_ context.Context, _ int, payload string) error {
			calls += payload
			if claim := w.find("job").Claim; string(claim.Payloads[0].Data) != payload || !claim.Begun {
				t.Errorf("at %s the store has %+v", payload, claim)
			}
			return nil
		}))
		l := newLink(w.store.Open())
		e := engine.New(notifyingLink{l}, engine.Config{
			Owner: "by-hand", Node: "by hand", Lanes: 1, PollInterval: poll, LeaseTTL: ttl, ShutdownTimeout: ttl,
			Prefetch: core.MaxTurnJobs, Splitter: core.LaneSplitter{}, Scheduler: core.Lag,
			Logger: slog.New(slog.DiscardHandler), Jitter: func() int { return 0 }, Queues: []*engine.Queue{queue},
		})
		if jobs, err := e.RunDue(context.Background()); jobs != 1 || err != nil {
			t.Errorf("RunDue: %d, %v", jobs, err)
		}
		if calls != "abc" {
			t.Errorf("calls %q, want abc", calls)
		}
		w.wantCounts(0, 0, 1, 0)
	})
}
