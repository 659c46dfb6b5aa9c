package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

func TestWhatTheStoreCannotReachNowIsSentAgainWithoutHaste(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed))
		w.sleep(poll)
		n.link.change(func() { n.link.deferSettlement = func(id string) bool { return id == "job-1" } })
		w.pushEach(3)
		w.sleep(poll)
		w.wantCounts(0, 1, 2, 0)
		before := n.link.count("Turn")
		w.sleep(10 * poll)
		if turns := n.link.count("Turn") - before; turns < 10 || turns > 20 {
			w.Errorf("the deferred settlement was sent %d times in 10 poll intervals, want 1 to 2 in each", turns)
		}
		n.link.change(func() { n.link.deferSettlement = func(string) bool { return false } })
		w.sleep(poll)
		w.wantCounts(0, 0, 3, 0)
	})
}

func TestWhatTheStoreCouldNotReachIsSentAgainAlsoAfterALostReply(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed))
		w.sleep(poll)
		turn := 0 // the first claims, the second settles
		n.link.change(func() {
			n.link.deferSettlement = func(string) bool { return turn == 2 }
			n.link.lose = func(method string) bool {
				if method == "Turn" {
					turn++
				}
				return method == "Turn" && turn == 2
			}
		})
		w.push("job", "x")
		w.sleep(2 * poll)
		w.wantCounts(0, 0, 1, 0)
	})
}

func TestShutdownWaitsForWhatTheStoreCannotReachNowAsLongAsForHandlers(t *testing.T) {
	for name, freed := range map[string]bool{"and settles it": true, "and leaves it to the next owner": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(each(succeed), func(s *setup) {
					s.link.deferSettlement = func(string) bool { return true }
					s.ShutdownTimeout = 10 * time.Second
				})

				w.sleep(poll)
				w.push("job", "x")
				n.cancel()
				asked := w.elapsed()
				w.sleep(5 * time.Second)

				if freed {
					n.link.change(func() { n.link.deferSettlement = func(string) bool { return false } })
				}
				n.awaitEnd()

				if freed {
					w.within("Run returned", w.elapsed(), asked+5*time.Second, asked+6*time.Second)
					w.wantCounts(0, 0, 1, 0)
					return
				}

				w.within("Run returned", w.elapsed(), asked+10*time.Second, asked+11*time.Second)
				w.wantCounts(0, 1, 0, 0)
				if owner := w.stats().Shards[0].Owner; owner != "" {
					w.Errorf("the shard still belongs to %q", owner)
				}
			})
		})
	}
}

// errOutcome is an error that means an outcome.
type errOutcome struct{ o core.Outcome }

func (errOutcome) Error() string { return "an outcome" }

// outcomes is an option: an error that names an outcome has this outcome.
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
				return execution.SettleIn(ctx, tx)
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

// Jobs that end meanwhile lead their turns, so that the deferred one seems not to have fitted.
func TestASettlementThatIsDeferredForLongIsInTheLogWhileOthersEnd(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(func(context.Context, *core.Claim) error {
			time.Sleep(poll / 20)
			return nil
		}), lanes(10), sharing, func(s *setup) {
			s.link.delay = poll / 20
			s.link.deferSettlement = func(id string) bool { return id == "slow" }
		})
		w.sleep(poll)
		w.push("slow", "x")
		for end := w.elapsed() + 3*ttl; w.elapsed() < end; {
			w.pushEach(40)
			w.sleep(poll / 10)
		}
		if got := n.log.count("idle_in_transaction_session_timeout"); got != 1 {
			w.Errorf("the log says %d times what to do, want once:\n%s", got, n.log)
		}
	})
}

func TestASecondSettlementSaysWhatItIs(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.push("job", "a")
		var err error
		w.start(func(ctx context.Context, _ *execution.Batch) error {
			if err := w.commit(ctx); err != nil {
				return err
			}
			err = execution.SettleIn(ctx, w.store)
			return nil
		})
		w.sleep(poll)
		if !errors.Is(err, ports.ErrLeaseLost) || !strings.Contains(err.Error(), "settle it once") {
			w.Errorf("the second Settle gave %v; want ErrLeaseLost that says that it is the second", err)
		}
	})
}
