package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

func TestAnOutageWhoseCausesNeverRepeatIsFewLines(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(untilCancelled))
		w.sleep(poll)
		w.push("job", "x")
		for cause := 'a'; cause <= 'z'; cause++ {
			n.link.change(func() { n.link.broken[shardOfQueue(0)] = fmt.Errorf("cause %c", cause) })
			w.sleep(poll)
		}
		n.link.heal()
		if lines := n.log.countByLoop("the store fails")["turn"]; lines < 8 || lines > 9 {
			w.Errorf("%d lines of 26 causes within 30 s, want 8 and one for the others", lines)
		}
	})
}

func TestTheHookIsCalledHoweverManyBurialsThereWere(t *testing.T) {
	inWorld(t, func(w *world) {
		calls := &hookLog{}
		w.start(each(fails), burying(calls, time.Millisecond))
		w.sleep(poll)
		for i := range 10 {
			w.push(fmt.Sprintf("job-%d", i), "x")
			w.sleep(poll)
			if got := calls.calls(); got != i+1 {
				w.Fatalf("the hook was called %d times for %d burials", got, i+1)
			}
		}
	})
}

// What is about to start when nothing may start any more goes back at once.
func TestWhatIsToStartGoesBackAtOnce(t *testing.T) {
	for name, end := range map[string]func(w *world, n *node){
		"the node stops": func(_ *world, n *node) { n.cancel() },
		"the queue is paused": func(w *world, _ *node) {
			if err := w.store.Pause(context.Background(), queueName); err != nil {
				w.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				w.placeRecovered(1, "recovered")
				started := make(chan *node, 1)
				n := w.start(each(func(context.Context, *core.Claim) error {
					w.Error("the handler runs")
					return nil
				}), onFirstBegin(func(ports.TurnRequest) {
					end(w, <-started)
					time.Sleep(time.Millisecond) // so that the node knows before the answer comes
				}))
				started <- n
				w.sleep(poll / 4)
				w.wantCounts(1, 0, 0, 0)
				n.stop()
				if got := w.find("recovered").Queued; got == nil || got.Recoveries != 1 {
					w.Errorf("in the queue is %+v, want the job as it was", got)
				}
			})
		})
	}
}

// nilError is an error whose methods panic.
type nilError struct{ text *string }

func (e nilError) Error() string { return *e.text }

func TestAnErrorThatPanicsIsLoggedWithItsStack(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(func(context.Context, *core.Claim) error { return nilError{} }))
		w.sleep(poll)
		w.push("job", "x")
		w.sleep(poll)
		if lines := n.log.lines("level=ERROR", "a handler panicked", "stack="); len(lines) != 1 {
			w.Errorf("%d lines of a panic with its stack, want 1; the log:\n%s", len(lines), n.log.tail(5))
		}
	})
}

// Of jobs that run one after another the log names the one that runs, and holds no
// earlier one's timeout against it.
func TestTheLogNamesTheJobThatGoesOn(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		n := w.start(func(ctx context.Context, b *engine.Batch) error {
			for i := range b.Claims {
				job, ok := b.Begin(ctx, i)
				if !ok {
					continue
				}
				switch b.Claims[i].ID {
				case "job-0": // in time
					_, cancel := b.WithTimeout(job, time.Second, errors.New("timeout"))
					cancel()
				case "job-1": // has none
					time.Sleep(2 * time.Minute)
				case "job-2": // overstays
					_, cancel := b.WithTimeout(job, time.Second, errors.New("timeout"))
					time.Sleep(90 * time.Second)
					cancel()
				}
				b.Return(i, nil)
			}
			return nil
		}, batches(3), func(s *setup) { s.Lanes = 1 })
		w.pushEach(3)
		w.sleep(5 * time.Minute)
		w.wantCounts(0, 0, 3, 0)
		lines := n.log.lines("goes on long after")
		if len(lines) != 1 || len(n.log.lines("goes on long after", "ids=[job-2]")) != 1 {
			w.Errorf("the log says %q, want one line, of job-2", lines)
		}
	})
}
