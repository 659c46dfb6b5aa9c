package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

// seen is an observer that keeps the events that a test needs.
type seen struct {
	ports.NopObserver
	mu        sync.Mutex
	ended     []ports.EndedJob
	overruns  []ports.OverrunEvent
	failures  []ports.FailureEvent
	turns     []ports.TurnEvent
	waits     time.Duration
	recovered int
}

func (o *seen) do(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
}

func (o *seen) JobsEnded(e ports.EndEvent) { o.do(func() { o.ended = append(o.ended, e.Jobs...) }) }
func (o *seen) HandlerOverran(e ports.OverrunEvent) {
	o.do(func() { o.overruns = append(o.overruns, e) })
}
func (o *seen) StoreFailed(e ports.FailureEvent) { o.do(func() { o.failures = append(o.failures, e) }) }
func (o *seen) LeaseChanged(e ports.LeaseEvent)  { o.do(func() { o.recovered += e.Orphans }) }
func (o *seen) TurnEnd(e ports.TurnEvent) {
	o.do(func() { o.turns, o.recovered = append(o.turns, e), o.recovered+e.Recovered })
}
func (o *seen) BatchEnd(_ context.Context, e ports.BatchEvent) {
	o.do(func() {
		for i := range e.Claims {
			o.waits += e.Wait(i)
		}
	})
}

func (o *seen) by(s *setup) { s.Observer = o }

// counts counts the ends of each kind.
func (o *seen) counts() map[ports.JobEnd]int {
	counts := make(map[ports.JobEnd]int)
	o.do(func() {
		for _, e := range o.ended {
			counts[e.End]++
		}
	})
	return counts
}

func TestAnObserverSeesHowEachJobEnds(t *testing.T) {
	outcome := func(o core.Outcome) handler {
		return func(context.Context, *execution.Batch) error { return errOutcome{o} }
	}
	noRetries := func(s *setup) { s.queue.Policy.MaxRetries = 0 }
	holds := func(s *setup) { s.queue.Policy.MaxRetries, s.queue.Policy.Exhausted = 0, core.Hold }

	cases := []struct {
		name   string
		run    handler
		option func(*setup)
		want   ports.EndedJob
	}{
		{"done", each(succeed), nil, ports.EndedJob{End: ports.EndDone, Attempt: 1}},
		{"done but for a payload", func(_ context.Context, b *execution.Batch) error {
			b.MarkBuried(0, 0, errors.New("bad"))
			return nil
		}, nil,
			ports.EndedJob{End: ports.EndDone, Attempt: 1, Buried: 1}},
		{"failed", each(fails), nil, ports.EndedJob{End: ports.EndFailed, Attempt: 1}},
		{"failed for the last time", each(fails), noRetries,
			ports.EndedJob{End: ports.EndBuried, Attempt: 1, Buried: 1}},
		{"failed for the last time, and held", each(fails), holds, ports.EndedJob{End: ports.EndHeld, Attempt: 1}},
		{"held but for a payload", func(_ context.Context, b *execution.Batch) error {
			b.MarkBuried(0, 1, errors.New("bad"))
			return errors.New("boom")
		}, holds,
			ports.EndedJob{End: ports.EndHeld, Attempt: 1, Buried: 1}},
		{"buried by a queue that holds", outcome(core.Outcome{Kind: core.Buried, Error: "bad"}), holds,
			ports.EndedJob{End: ports.EndBuried, Attempt: 1, Buried: 3}},
		{"buried", outcome(core.Outcome{Kind: core.Buried, Error: "bad"}), nil,
			ports.EndedJob{End: ports.EndBuried, Attempt: 1, Buried: 3}},
		{"buried, one by itself", func(_ context.Context, b *execution.Batch) error {
			b.MarkBuried(0, 0, errors.New("bad"))
			return errOutcome{core.Outcome{Kind: core.Buried, Error: "bad"}}
		}, nil,
			ports.EndedJob{End: ports.EndBuried, Attempt: 1, Buried: 3}},
		{"snoozed", outcome(core.Outcome{Kind: core.Snoozed, Delay: time.Hour}), nil,
			ports.EndedJob{End: ports.EndSnoozed, Attempt: 1}},
		{"awaiting", outcome(core.Outcome{Kind: core.Awaiting, Delay: time.Hour}), nil,
			ports.EndedJob{End: ports.EndAwaiting, Attempt: 1}},
		{"panicked", each(func(context.Context, *core.Claim) error { panic("boom") }), nil,
			ports.EndedJob{End: ports.EndFailed, Attempt: 1}},
	}

	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				o := &seen{}
				w.start(tt.run, outcomes, o.by, func(s *setup) {
					if tt.option != nil {
						tt.option(s)
					}
				})

				w.sleep(poll)
				w.push("job", "a", "b", "c")
				w.sleep(poll)

				tt.want.ID = "job"
				if len(o.ended) == 0 {
					t.Fatal("no end was seen")
				}
				if diff := cmp.Diff(tt.want, o.ended[0]); diff != "" {
					t.Errorf("the first end (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Attempts are numbered as the log numbers them.
func TestEndsHaveTheNumberOfTheAttempt(t *testing.T) {
	inWorld(t, func(w *world) {
		o := &seen{}
		w.start(each(fails), o.by, func(s *setup) { s.queue.Policy.MaxRetries = 2 })
		w.sleep(poll)
		w.push("job", "x")
		w.sleep(time.Hour)
		want := []ports.EndedJob{
			{ID: "job", End: ports.EndFailed, Attempt: 1},
			{ID: "job", End: ports.EndFailed, Attempt: 2},
			{ID: "job", End: ports.EndBuried, Attempt: 3, Buried: 1},
		}
		if diff := cmp.Diff(want, o.ended); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
	})
}

// An execution that settles the first payload and then fails is the first failure of the rest.
func TestTheAttemptsOfTheRestBeginAnew(t *testing.T) {
	inWorld(t, func(w *world) {
		o := &seen{}
		w.start(func(_ context.Context, b *execution.Batch) error {
			if b.Claims[0].RetryCount == 1 {
				b.MarkDone(0, 0)
			}
			return errors.New("boom")
		}, o.by, func(s *setup) { s.queue.Policy.MaxRetries = 2 })
		w.sleep(poll)
		w.push("job", "x", "y")
		w.sleep(time.Hour)
		want := []ports.EndedJob{
			{ID: "job", End: ports.EndFailed, Attempt: 1},
			{ID: "job", End: ports.EndFailed, Attempt: 2},
			{ID: "job", End: ports.EndFailed, Attempt: 1},
			{ID: "job", End: ports.EndFailed, Attempt: 2},
		}
		if diff := cmp.Diff(want, o.ended[:len(want)]); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
	})
}

// However many replies are lost, an execution ends once, and as the store has kept it.
func TestEachEndIsSeenOnce(t *testing.T) {
	const jobs = 200
	for name, run := range map[string]func(*world) handler{
		"plain": func(*world) handler { return each(lasting(time.Millisecond)) },
		"in transactions": func(w *world) handler {
			return each(func(ctx context.Context, _ *core.Claim) error { return w.commit(ctx) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				o := &seen{}
				w.declare(1)
				w.pushEach(jobs)
				n := w.start(run(w), roundTrip(3*time.Millisecond), loseReplies("Turn"), o.by)
				w.sleep(5 * time.Minute)
				n.stop()
				w.wantCounts(0, 0, jobs, 0)
				if diff := cmp.Diff(map[ports.JobEnd]int{ports.EndDone: jobs}, o.counts()); diff != "" {
					t.Errorf("ends (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// Until the store knows whether a transaction has committed, nothing has ended.
func TestTheEndOfATransactionIsThatOfItsCommit(t *testing.T) {
	for name, want := range map[string]struct {
		committed bool
		end       ports.JobEnd
	}{"commits": {true, ports.EndDone}, "does not": {false, ports.EndFailed}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				o, tx := &seen{}, &transaction{world: w}
				n := w.start(each(func(ctx context.Context, c *core.Claim) error {
					if c.RetryCount >= 0 {
						return nil
					}
					return execution.SettleIn(ctx, tx)
				}), o.by, func(s *setup) { s.link.deferSettlement = func(string) bool { return true } })

				w.sleep(poll)
				w.push("job", "x")
				w.sleep(3 * ttl)
				if len(o.ended) > 0 {
					t.Errorf("an end was seen before the transaction's: %v", o.ended)
				}

				if want.committed {
					if err := tx.commit(); err != nil {
						t.Fatal(err)
					}
				}

				n.link.change(func() { n.link.deferSettlement = func(string) bool { return false } })
				w.sleep(5 * poll)
				if len(o.ended) == 0 || o.ended[0].End != want.end {
					t.Errorf("ends %v, want %v first", o.ended, want.end)
				}
			})
		})
	}
}

func TestWhatIsNotKeptIsLost(t *testing.T) {
	cases := []struct {
		name string
		play func(w *world, n *node)
	}{
		{"the lease runs out while it runs", func(w *world, n *node) {
			w.sleep(poll)
			n.link.set(down)
			w.sleep(3 * ttl)
		}},
		{"another lease while it runs", func(w *world, n *node) {
			w.sleep(poll)
			n.link.change(func() { n.link.state = leaseLost })
			w.sleep(5 * poll)
			n.link.set(up)
		}},
		{"the lease runs out before it is settled", func(w *world, n *node) {
			n.link.change(func() { n.link.deferSettlement = func(string) bool { return true } })
			w.sleep(5 * poll) // it has ended, and the store defers its settlement
			n.link.set(down)
			w.sleep(3 * ttl)
		}},
		{"somebody else settles it", func(w *world, n *node) {
			found := w.find("job")
			done := core.Settlement{ID: "job", Receipt: found.Claim.Receipt, Processed: true}
			if err := w.store.Settle(w.Context(), shardOfQueue(0), []core.Settlement{done}); err != nil {
				w.Fatal(err)
			}
		}},
	}

	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				o := &seen{}
				n := w.start(each(lasting(3*poll)), o.by)

				w.sleep(poll)
				w.push("job", "x")
				tt.play(w, n)
				w.sleep(5 * poll)

				if len(o.ended) == 0 || o.ended[0] != (ports.EndedJob{ID: "job", End: ports.EndLost, Attempt: 1}) {
					t.Errorf("ends %v, want that the job is lost", o.ended)
				}
				n.link.set(up)
			})
		})
	}
}

func TestAnObserverSeesCancelsAndWhatGoesBack(t *testing.T) {
	inWorld(t, func(w *world) {
		o := &seen{}
		n := w.start(each(untilCancelled), o.by, lanes(1), batches(1), func(s *setup) { s.ShutdownTimeout = poll })
		w.sleep(poll)
		w.push("job", "x")
		w.cancel(true, "job")
		w.sleep(2 * poll)
		w.push("other", "x")
		w.push("waits", "x") // goes back from before its handler, which is the end of no execution
		n.cancel()
		w.sleep(5 * poll)
		n.stop()
		want := []ports.EndedJob{
			{ID: "job", End: ports.EndCancelled, Attempt: 1},
			{ID: "other", End: ports.EndPutBack, Attempt: 1},
		}
		if diff := cmp.Diff(want, o.ended); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
	})
}

// Claims of earlier leases are counted, also those beyond what an acquire carries, and those that
// are buried or held.
func TestAnObserverSeesWhatIsRecovered(t *testing.T) {
	const jobs = core.MaxTurnPayloads + 300
	for exhausted, end := range map[core.Exhaustion]ports.JobEnd{
		core.BuryFirst: ports.EndBuried,
		core.Hold:      ports.EndHeld,
	} {
		t.Run(end.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				w.pushEach(jobs)
				w.claimAll(jobs)
				o := &seen{}
				w.start(each(succeed), o.by, func(s *setup) {
					s.queue.Policy.MaxRecoveries, s.queue.Policy.Exhausted = 0, exhausted
				})
				w.sleep(20 * ttl)
				if o.recovered != jobs {
					t.Errorf("%d were seen as recovered of %d, want all", o.recovered, jobs)
				}
				if diff := cmp.Diff(map[ports.JobEnd]int{end: jobs}, o.counts()); diff != "" {
					t.Errorf("ends (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A job that runs again after its server was lost is counted once, by the server that recovers it.
func TestAJobThatRanAgainIsCounted(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		first, second := &seen{}, &seen{}
		n := w.start(a.watch(untilCancelled), first.by)
		w.sleep(poll)
		w.push("job", "x")
		w.sleep(poll)
		a.wantRuns("job", 1)
		if first.recovered != 0 {
			t.Errorf("%d jobs were recovered at the first run, want none", first.recovered)
		}
		n.cutOff()
		w.start(a.watch(succeed), second.by)
		w.sleep(3 * ttl)
		a.wantRuns("job", 2)
		if first.recovered != 0 || second.recovered != 1 {
			t.Errorf("the servers have counted %d and %d recovered jobs, want 0 and 1",
				first.recovered, second.recovered)
		}
	})
}

// claimAll claims n jobs of the only shard for an owner that is not heard of again.
func (w *world) claimAll(jobs int) {
	w.Helper()
	lease, err := w.store.Acquire(w.Context(), ports.AcquireRequest{
		Shard:      shardOfQueue(0),
		Shards:     1,
		Generation: 1,
		Owner:      "gone",
		Attempt:    1,
		TTL:        ttl,
	})
	if err != nil {
		w.Fatal(err)
	}
	for number := int64(1); jobs > 0; number++ {
		reply, err := w.store.Turn(w.Context(), ports.TurnRequest{
			Lease: ports.Lease{Shard: shardOfQueue(0), Owner: "gone", Token: lease.Token}, Number: number, TTL: ttl,
			Want: min(jobs, core.MaxTurnJobs), PerJob: 1, Bytes: core.DefaultTurnBytes,
		})
		if err != nil || len(reply.Claims) == 0 {
			w.Fatalf("%d jobs were claimed, %v", len(reply.Claims), err)
		}
		jobs -= len(reply.Claims)
	}
}
