package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// errOutcome is an error that means an outcome.
type errOutcome struct{ o core.Outcome }

func (errOutcome) Error() string { return "an outcome" }

// outcomes is an option: such errors mean what they say.
func outcomes(s *setup) {
	others := s.queue.Outcome
	s.queue.Outcome = func(err error) core.Outcome {
		if own := (errOutcome{}); errors.As(err, &own) {
			return own.o
		}
		return others(err)
	}
}

func TestASettlementThatIsDeferredForLongIsInTheLog(t *testing.T) {
	const said = "idle_in_transaction_session_timeout"
	inWorld(t, func(w *world) {
		tx := &transaction{world: w}
		n := w.start(each(func(ctx context.Context, c *core.Claim) error {
			if c.ID == "slow" && tx.settle == nil {
				return engine.SettleIn(ctx, tx)
			}
			return nil
		}), func(s *setup) { s.link.deferSettlement = func(id string) bool { return id == "slow" } })
		w.sleep(poll)
		w.push("slow", "x")
		w.push("other", "x")
		w.sleep(ttl / 2)
		if n.log.count(said) > 0 {
			w.Errorf("half a TTL is no time to speak of:\n%s", n.log)
		}
		w.sleep(5 * ttl)
		if got := n.log.count(said); got != 1 || n.log.count("id=slow") == 0 {
			w.Errorf("the log says %d times what to do, want once, with the job's id:\n%s", got, n.log)
		}
		if err := tx.commit(); err != nil {
			w.Fatal(err)
		}
		n.link.change(func() { n.link.deferSettlement = func(string) bool { return false } })
		w.sleep(5 * ttl)
		if got := n.log.count(said); got != 1 {
			w.Errorf("the log says it %d times, want once", got)
		}
	})
}

func TestAnOutcomeAfterACommittedSettlementIsInTheLog(t *testing.T) {
	const said = "job.Settle before skein.SettleIn"
	snooze := errOutcome{core.Outcome{Kind: core.Snoozed, Delay: time.Hour}}
	cases := []struct {
		name string
		run  func(w *world, ctx context.Context, b *engine.Batch) error
		want string
	}{
		{"snoozed", func(w *world, ctx context.Context, _ *engine.Batch) error {
			return errors.Join(w.commit(ctx), snooze)
		}, "Snooze"},
		{"buried", func(w *world, ctx context.Context, _ *engine.Batch) error {
			return errors.Join(w.commit(ctx), errOutcome{core.Outcome{Kind: core.Buried, Error: "bad"}})
		}, "Bury"},
		{"retried in its own time", func(w *world, ctx context.Context, _ *engine.Batch) error {
			return errors.Join(w.commit(ctx), errOutcome{core.Outcome{Kind: core.Failed, OwnDelay: true, Delay: time.Hour}})
		}, "RetryIn"},
		{"an error alone", func(w *world, ctx context.Context, _ *engine.Batch) error {
			return errors.Join(w.commit(ctx), errors.New("the answer to the commit was lost"))
		}, ""},
		{"settled by itself before", func(w *world, ctx context.Context, b *engine.Batch) error {
			b.SetOutcome(0, snooze)
			return w.commit(ctx)
		}, ""},
		{"not committed", func(w *world, ctx context.Context, _ *engine.Batch) error {
			return errors.Join(w.open(ctx), snooze)
		}, ""},
	}
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				w.push("job", "a")
				n := w.start(func(ctx context.Context, b *engine.Batch) error { return tt.run(w, ctx, b) }, outcomes)
				w.sleep(5 * poll)
				want := min(1, len(tt.want))
				if got := n.log.count(said); got != want || want == 1 && n.log.count("outcome="+tt.want) != 1 {
					w.Errorf("the log says %d times that the outcome %q does not count, want %d:\n%s", got, tt.want, want, n.log)
				}
			})
		})
	}
}

func TestASecondSettlementSaysWhatItIs(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.push("job", "a")
		var err error
		w.start(func(ctx context.Context, _ *engine.Batch) error {
			if err := w.commit(ctx); err != nil {
				return err
			}
			err = engine.SettleIn(ctx, w.store)
			return nil
		})
		w.sleep(poll)
		if !errors.Is(err, ports.ErrLeaseLost) || !strings.Contains(err.Error(), "settle it once") {
			w.Errorf("the second Settle gave %v; want ErrLeaseLost that says that it is the second", err)
		}
	})
}
