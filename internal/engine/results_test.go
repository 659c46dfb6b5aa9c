package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

func TestAnOutcomeAfterACommittedSettlementIsInTheLog(t *testing.T) {
	const said = "job.Settle before skein.SettleIn"
	snooze := errOutcome{core.Outcome{Kind: core.Snoozed, Delay: time.Hour}}
	cases := []struct {
		name string
		run  func(w *world, ctx context.Context, b *execution.Batch) error
		want string
	}{
		{"snoozed", func(w *world, ctx context.Context, _ *execution.Batch) error {
			return errors.Join(w.commit(ctx), snooze)
		}, "Snooze"},
		{"buried", func(w *world, ctx context.Context, _ *execution.Batch) error {
			return errors.Join(w.commit(ctx), errOutcome{core.Outcome{Kind: core.Buried, Error: "bad"}})
		}, "Bury"},
		{"retried in its own time", func(w *world, ctx context.Context, _ *execution.Batch) error {
			return errors.Join(w.commit(ctx), errOutcome{core.Outcome{
				Kind:     core.Failed,
				OwnDelay: true,
				Delay:    time.Hour,
			}})
		}, "RetryIn"},
		{"an error alone", func(w *world, ctx context.Context, _ *execution.Batch) error {
			return errors.Join(w.commit(ctx), errors.New("the answer to the commit was lost"))
		}, ""},
		{"settled by itself before", func(w *world, ctx context.Context, b *execution.Batch) error {
			b.SetOutcome(0, snooze)
			return w.commit(ctx)
		}, ""},
		{"not committed", func(w *world, ctx context.Context, _ *execution.Batch) error {
			return errors.Join(w.open(ctx), snooze)
		}, ""},
	}

	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				w.push("job", "a")
				n := w.start(func(ctx context.Context, b *execution.Batch) error { return tt.run(w, ctx, b) }, outcomes)

				w.sleep(5 * poll)
				want := min(1, len(tt.want))
				if got := n.log.count(said); got != want || want == 1 && n.log.count("outcome="+tt.want) != 1 {
					w.Errorf("the log says %d times that the outcome %q does not count, want %d:\n%s",
						got, tt.want, want, n.log)
				}
			})
		})
	}
}

// The consequences of a settlement follow once the store has carried it out.
func TestNothingIsReportedOfADeferredSettlementUntilItIsCarriedOut(t *testing.T) {
	for name, c := range map[string]struct {
		committed         bool
		processed, failed uint64
		buried            int
	}{
		"the transaction commits":  {committed: true, processed: 1},
		"the transaction does not": {failed: 1, buried: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				tx := &transaction{world: w}
				buried := 0
				n := w.start(each(func(ctx context.Context, _ *core.Claim) error {
					return execution.SettleIn(ctx, tx)
				}), func(s *setup) {
					s.queue.Policy.MaxRetries = 0
					s.link.deferSettlement = func(string) bool { return true }
					s.Buried = func(context.Context, report.Buried) error {
						buried++
						return nil
					}
				})

				w.sleep(poll)
				w.push("job", "x")
				w.sleep(3 * ttl)
				w.wantHistory(0, 0)
				if buried != 0 {
					w.Error("a burial was reported before the store carried it out")
				}

				if c.committed {
					if err := tx.commit(); err != nil {
						w.Fatal(err)
					}
				}

				n.link.change(func() { n.link.deferSettlement = func(string) bool { return false } })
				w.sleep(5 * poll)
				n.stop()
				w.wantHistory(c.processed, c.failed)
				if buried != c.buried {
					w.Errorf("%d burials were reported, want %d", buried, c.buried)
				}
			})
		})
	}
}

// Another owner has settled the job: this node's result for it has not happened.
func TestNothingIsReportedOfASkippedSettlement(t *testing.T) {
	inWorld(t, func(w *world) {
		policy := core.RetryPolicy{MaxRetries: 0}
		reported := 0
		n := w.start(each(func(ctx context.Context, c *core.Claim) error {
			done := policy.Settlement(c, &core.Outcome{Kind: core.Done}, 0)
			if err := w.store.Settle(ctx, shardOfQueue(0), []core.Settlement{done}); err != nil {
				w.Error(err)
			}
			return errors.New("too late")
		}), func(s *setup) {
			s.queue.Policy = policy
			s.Buried = func(context.Context, report.Buried) error {
				reported++
				return nil
			}
		})

		w.sleep(poll)
		w.push("job", "x")
		w.sleep(5 * poll)

		if reported != 0 {
			w.Errorf("%d burials were reported of a job that was done", reported)
		}
		if skipped := n.skipped(); skipped != 1 {
			w.Errorf("%d settlements were skipped; the test needs one", skipped)
		}
		w.wantCounts(0, 0, 1, 0)
	})
}

func (n *node) skipped() (count int) {
	for _, turn := range n.link.turnsSent() {
		count += len(turn.reply.Skipped)
	}
	return count
}

// Turns without an answer don't make the engine forget committed transactions.
func TestTransactionsCountOnceThoughRepliesAreLost(t *testing.T) {
	inWorld(t, func(w *world) {
		const jobs = 200
		w.declare(1)
		w.pushEach(jobs)
		n := w.start(each(func(ctx context.Context, _ *core.Claim) error {
			time.Sleep(time.Millisecond)
			return w.commit(ctx)
		}), roundTrip(3*time.Millisecond), loseReplies("Turn"))
		w.sleep(5 * time.Minute)
		n.stop()
		w.wantCounts(0, 0, jobs, 0)
		w.wantHistory(jobs, 0)
	})
}

func TestBurialsAreReportedAsTheTransactionEnds(t *testing.T) {
	cases := []struct {
		name string
		run  func(w *world, ctx context.Context, b *execution.Batch) error
		want []string
	}{
		{"done and committed", func(w *world, ctx context.Context, _ *execution.Batch) error { return w.commit(ctx) },
			nil},
		{"committed, then an error", func(w *world, ctx context.Context, _ *execution.Batch) error {
			return errors.Join(w.commit(ctx), errors.New("late"))
		}, nil},
		{"not committed", func(w *world, ctx context.Context, _ *execution.Batch) error { return w.open(ctx) },
			[]string{execution.ErrNotCommitted.Error()}},
		{"failed and committed", func(w *world, ctx context.Context, b *execution.Batch) error {
			b.SetOutcome(0, errors.New("boom"))
			return w.commit(ctx)
		}, []string{"boom"}},
	}

	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				var reported []string
				w.start(func(ctx context.Context, b *execution.Batch) error {
					return tt.run(w, ctx, b)
				}, func(s *setup) {
					s.queue.Policy.MaxRetries = 0
					s.Buried = func(_ context.Context, b report.Buried) error {
						reported = append(reported, b.Error)
						return nil
					}
				})

				w.push("job", "x")
				w.sleep(5 * poll)

				if diff := cmp.Diff(tt.want, reported); diff != "" {
					w.Errorf("burials (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// recordBurials is an option: jobs are not retried, and the errors of their burials are listed.
func recordBurials(reported *[]string) func(*setup) {
	return func(s *setup) {
		s.queue.Policy.MaxRetries = 0
		s.Buried = func(_ context.Context, b report.Buried) error {
			*reported = append(*reported, b.Error)
			return nil
		}
	}
}

func TestABurialIsReportedAndCountedOnceAlthoughTheReplyIsLost(t *testing.T) {
	for name, losing := range map[string]bool{"the reply comes": false, "the reply is lost": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				var reported []string
				lost := 0
				n := w.start(each(fails), recordBurials(&reported), func(s *setup) {
					s.link.loseTurn = func(r ports.TurnRequest) bool {
						loses := losing && len(r.Settlements) > 0 && lost == 0
						if loses {
							lost++
						}
						return loses
					}
				})

				w.push("job", "x")
				w.sleep(5 * poll)

				if diff := cmp.Diff([]string{"boom"}, reported); diff != "" {
					w.Errorf("burials (-want +got):\n%s", diff)
				}
				if losing != (lost == 1) {
					w.Errorf("%d replies were lost", lost)
				}

				n.stop()
				w.wantHistory(0, 1)
			})
		})
	}
}

// A result that its lease did not live to settle has not happened: the next lease's settlement of
// the same claim is another one.
func TestABurialThatItsLeaseDidNotSettleIsNotReported(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		var reported []string
		var l *link
		runs := 0
		w.start(each(func(context.Context, *core.Claim) error {
			if runs++; runs > 1 {
				return nil
			}
			l.change(func() { l.broken[shardOfQueue(0)] = ports.ErrLeaseLost })
			return errors.New("boom")
		}), recordBurials(&reported), func(s *setup) { l = s.link })
		w.push("job", "x")
		w.sleep(2 * poll)
		l.heal()
		w.sleep(5 * poll)
		if runs != 2 || reported != nil {
			w.Errorf("%d runs, and %q were reported; want 2 runs and nothing reported", runs, reported)
		}
		w.wantCounts(0, 0, 1, 0)
	})
}

// Jobs of one turn have the same receipt: a result belongs to the job with its id as well.
func TestADeferredSettlementHoldsUpItsOwnResultAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEach(2)
		var reported []string
		w.start(each(fails), batches(2), func(s *setup) {
			s.queue.Policy.MaxRetries = 0
			s.link.deferSettlement = func(id string) bool { return id == "job-0" }
			s.Buried = func(_ context.Context, b report.Buried) error {
				reported = append(reported, b.ID)
				return nil
			}
		})
		w.sleep(5 * poll)
		if diff := cmp.Diff([]string{"job-1"}, reported); diff != "" {
			w.Errorf("burials (-want +got):\n%s", diff)
		}
	})
}
