package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

// transaction keeps its settlements until it commits. As the port demands, a call fails if the job
// is not claimed with the receipt, as those see it who have not seen this transaction.
type transaction struct {
	*world
	shard   core.Shard
	settle  []core.Settlement
	payload *core.PayloadSettlement
}

func (tx *transaction) Settle(_ context.Context, shard core.Shard, settle []core.Settlement) error {
	for _, s := range settle {
		if err := tx.claimed(s.ID, s.Receipt); err != nil {
			return err
		}
	}
	tx.shard, tx.settle = shard, settle
	return nil
}

func (tx *transaction) claimed(id string, receipt core.Receipt) error {
	if c := tx.find(id).Claim; c == nil || c.Receipt != receipt {
		return fmt.Errorf("%w: %q is not claimed with receipt %v", ports.ErrLeaseLost, id, receipt)
	}
	return nil
}

func (tx *transaction) SettlePayload(_ context.Context, shard core.Shard, s core.PayloadSettlement) error {
	if err := tx.claimed(s.ID, s.Receipt); err != nil {
		return err
	}
	tx.shard, tx.payload = shard, &s
	return nil
}

func (tx *transaction) commit() error {
	if tx.payload != nil {
		return tx.store.SettlePayload(context.Background(), tx.shard, *tx.payload)
	}
	return tx.store.Settle(context.Background(), tx.shard, tx.settle)
}

// commit settles the handler's jobs in a transaction that commits at once.
func (w *world) commit(ctx context.Context) error {
	tx := &transaction{world: w}
	if err := execution.SettleIn(ctx, tx); err != nil {
		return err
	}
	return tx.commit()
}

// open settles the handler's jobs in a transaction that does not commit.
func (w *world) open(ctx context.Context) error {
	return execution.SettleIn(ctx, &transaction{world: w})
}

// wantHistory checks the counts by minute.
func (w *world) wantHistory(processed, failed uint64) {
	w.Helper()
	history, err := w.store.History(w.Context(), ports.HistoryRequest{Queue: queueName})
	if err != nil {
		w.Fatal(err)
	}
	var sum core.Stats
	for _, m := range history.Minutes {
		sum.Processed += m.Processed
		sum.Failed += m.Failed
	}
	if sum.Processed != processed || sum.Failed != failed {
		w.Errorf("the history has %d processed and %d failed, want %d and %d",
			sum.Processed, sum.Failed, processed, failed)
	}
}

func TestAJobEndsInItsTransactionOrFails(t *testing.T) {
	errOwn := errors.New("the handler's own")
	cases := []struct {
		name string
		run  func(w *world, ctx context.Context, b *execution.Batch) error
		// The job ends so; an error is that of the job that is back.
		processed, failed int64
		err               string
		back, dead        int
	}{
		{"committed", func(w *world, ctx context.Context, _ *execution.Batch) error { return w.commit(ctx) },
			1, 0, "", 0, 0},
		{"at once",
			func(w *world, ctx context.Context, _ *execution.Batch) error { return execution.SettleIn(ctx, w.store) },
			1, 0, "", 0, 0},
		{"committed, then an error", func(w *world, ctx context.Context, _ *execution.Batch) error {
			return errors.Join(w.commit(ctx), errOwn)
		}, 1, 0, "", 0, 0},
		{"committed, then a panic",
			func(w *world, ctx context.Context, _ *execution.Batch) error { panic(w.commit(ctx)) },
			1, 0, "", 0, 0},
		{"committed, then Goexit", func(w *world, ctx context.Context, _ *execution.Batch) error {
			defer runtime.Goexit()
			return w.commit(ctx)
		}, 1, 0, "", 0, 0},
		{"committed by the second try", func(w *world, ctx context.Context, _ *execution.Batch) error {
			return errors.Join(w.open(ctx), w.commit(ctx))
		}, 1, 0, "", 0, 0},
		{"not committed", func(w *world, ctx context.Context, _ *execution.Batch) error { return w.open(ctx) },
			0, 1, execution.ErrNotCommitted.Error(), 3, 0},
		{"not committed, although settled as done", func(w *world, ctx context.Context, b *execution.Batch) error {
			b.SetOutcome(0, nil)
			return w.open(ctx)
		}, 0, 1, execution.ErrNotCommitted.Error(), 3, 0},
		{"an error instead", func(w *world, ctx context.Context, _ *execution.Batch) error {
			return errors.Join(w.open(ctx), errOwn)
		}, 0, 1, errOwn.Error(), 3, 0},
		{"a failure, committed", func(w *world, ctx context.Context, b *execution.Batch) error {
			b.SetOutcome(0, errOwn)
			return w.commit(ctx)
		}, 0, 1, errOwn.Error(), 3, 0},
		{"payloads by themselves, committed", func(w *world, ctx context.Context, b *execution.Batch) error {
			b.MarkDone(0, 0)
			b.MarkBuried(0, 1, errOwn)
			b.SetOutcome(0, errOwn)
			return w.commit(ctx)
		}, 0, 1, errOwn.Error(), 1, 1},
		{"payloads by themselves, not committed", func(w *world, ctx context.Context, b *execution.Batch) error {
			b.MarkDone(0, 0)
			b.MarkBuried(0, 1, errOwn)
			return w.open(ctx)
		}, 0, 1, execution.ErrNotCommitted.Error(), 2, 1},
		{"payloads marked too late", func(w *world, ctx context.Context, b *execution.Batch) error {
			err := w.commit(ctx)
			b.MarkBuried(0, 1, errOwn)
			return err
		}, 1, 0, "", 0, 0},
	}

	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				w.push("job", "a", "b", "c")
				n := w.start(func(ctx context.Context, b *execution.Batch) error { return tt.run(w, ctx, b) })
				w.sleep(5 * poll)
				n.stop()

				w.wantCounts(int64(min(tt.back, 1)), 0, tt.processed, tt.failed)
				w.wantHistory(uint64(tt.processed), uint64(tt.failed))

				found := w.find("job")
				if tt.back > 0 &&
					(found.Queued == nil || len(found.Queued.Payloads) != tt.back ||
						!strings.Contains(found.Queued.Failures.Newest().Text, tt.err)) {
					w.Errorf("queued %+v; want %d payloads and an error that says %q", found.Queued, tt.back, tt.err)
				}
				if tt.dead > 0 && (found.DeadLetter == nil || len(found.DeadLetter.Payloads) != tt.dead) {
					w.Errorf("dead %+v; want %d payloads", found.DeadLetter, tt.dead)
				}
			})
		})
	}
}

func TestOnlyTheJobThatRunsIsSettled(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEach(4)
		w.start(func(ctx context.Context, b *execution.Batch) error {
			return each(func(ctx context.Context, c *core.Claim) error {
				if c.ID == "job-1" || c.ID == "job-2" {
					return w.commit(ctx)
				}
				return errors.New("no")
			})(ctx, b)
		}, batches(4))
		w.sleep(poll)
		w.wantCounts(2, 0, 2, 2)
	})
}

func TestAWholeBatchIsSettledAtOnce(t *testing.T) {
	for name, run := range map[string]handler{
		"by its handler": func(context.Context, *execution.Batch) error { return nil },
		"around handlers of one job": func(ctx context.Context, b *execution.Batch) error {
			defer b.End()
			return each(succeed)(ctx, b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				w.pushEach(4)
				var settled int
				w.start(func(ctx context.Context, b *execution.Batch) error {
					tx := &transaction{world: w}
					err := errors.Join(run(ctx, b), execution.SettleIn(ctx, tx), tx.commit())
					settled = len(tx.settle)
					return err
				}, batches(4))
				w.sleep(poll)
				w.wantCounts(0, 0, 4, 0)
				if settled != 4 {
					w.Errorf("%d jobs in the transaction, want 4", settled)
				}
			})
		})
	}
}

// A transaction that is still open when its handler has returned holds its job
// until it ends; nothing else waits.
func TestAnOpenTransactionHoldsItsJobAlone(t *testing.T) {
	for _, committed := range []bool{true, false} {
		t.Run(fmt.Sprintf("committed %t", committed), func(t *testing.T) {
			inWorld(t, func(w *world) {
				tx := &transaction{world: w}
				n := w.start(each(func(ctx context.Context, c *core.Claim) error {
					if c.ID == "slow" && tx.settle == nil {
						return execution.SettleIn(ctx, tx)
					}
					return nil
				}), func(s *setup) { s.link.deferSettlement = func(id string) bool { return id == "slow" } })

				w.sleep(poll)
				w.push("slow", "x")
				w.push("other", "x")
				w.push("slow", "y")
				w.sleep(3 * ttl)
				w.wantCounts(1, 1, 1, 0)

				if committed {
					if err := tx.commit(); err != nil {
						w.Fatal(err)
					}
				}

				n.link.change(func() { n.link.deferSettlement = func(string) bool { return false } })
				w.sleep(5 * poll)
				if committed {
					w.wantCounts(0, 0, 3, 0) // slow ran again for y
				} else {
					w.wantCounts(1, 0, 1, 1)
				}
			})
		})
	}
}

func TestASettlementInATransactionThatIsRefusedSaysWhy(t *testing.T) {
	inWorld(t, func(w *world) {
		if err := execution.SettleIn(w.Context(), w.store); err == nil {
			w.Error("outside a handler: no error")
		}

		w.declare(1)
		var cause, late error
		n := w.start(each(func(ctx context.Context, c *core.Claim) error {
			if c.ID == "leaves" {
				go func() {
					time.Sleep(time.Millisecond)
					late = execution.SettleIn(ctx, w.store)
				}()
				return nil
			}
			<-ctx.Done()
			cause = execution.SettleIn(ctx, w.store)
			return cause
		}))

		w.push("leaves", "x")
		w.sleep(poll)
		if late == nil {
			w.Error("after the handler has returned: no error")
		}

		w.push("loses", "x")
		n.link.set(down)
		w.sleep(ttl)
		if !errors.Is(cause, ports.ErrLeaseLost) {
			w.Errorf("after the lease was lost: %v, want %v", cause, ports.ErrLeaseLost)
		}
	})
}

// A node that lost its lease may find that its jobs are still where they were, or
// that their new owner has recovered them.
func TestTheClaimedJobIsTheFence(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		var late error
		first := w.start(func(ctx context.Context, b *execution.Batch) error {
			ctx = context.WithoutCancel(ctx)
			time.Sleep(2 * ttl)
			late = execution.SettleIn(ctx, w.store)
			return late
		})
		w.push("job", "x")
		w.sleep(poll)
		first.cutOff()
		w.start(each(succeed))
		w.sleep(3 * ttl)
		if !errors.Is(late, ports.ErrLeaseLost) {
			w.Errorf("the first node's Settle gave %v, want %v", late, ports.ErrLeaseLost)
		}
		w.wantCounts(0, 0, 1, 0)
	})
}
