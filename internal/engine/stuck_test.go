package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// A shard whose turns are never answered while its renewals are.
var stuckTurns = map[string]func(l *link){
	"its turns fail": func(l *link) { l.broken[shardOfQueue(0)] = errDown },
	"its turns hang": func(l *link) { l.stuck[shardOfQueue(0)] = true },
}

func (l *link) heal() {
	l.change(func() {
		clear(l.broken)
		clear(l.stuck)
	})
}

func TestRunEndsAlthoughTheTurnsOfAShardAreNeverAnswered(t *testing.T) {
	for name, breaks := range stuckTurns {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(each(lasting(time.Second)), shards(2))
				w.sleep(poll)
				w.push(idIn(0, 2), "x")
				n.link.change(func() { breaks(n.link) })
				w.sleep(2 * time.Second) // the settlement is under way
				asked := w.elapsed()
				n.stop()
				w.within("Run returned", w.elapsed(), asked, asked+ttl)
				n.link.heal()
				w.start(each(succeed), shards(2))
				w.sleep(2 * ttl)
				w.wantCounts(0, 0, 1, 0)
			})
		})
	}
}

func TestALeaseWhoseTurnIsNotAnsweredForATTLIsGivenUp(t *testing.T) {
	for name, breaks := range stuckTurns {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				a := w.audit()
				long := func(ctx context.Context, c *core.Claim) error {
					if c.Recoveries == 0 {
						<-ctx.Done()
					}
					return nil
				}
				n := w.start(a.watch(long), shards(2))
				w.sleep(poll)
				w.push(idIn(0, 2), "x") // it runs, and turns look whether it was cancelled
				n.link.change(func() { breaks(n.link) })
				broke := w.elapsed()
				w.sleep(3 * ttl)
				runs := a.wantRuns(idIn(0, 2), 1)
				w.within("the handler was cancelled", runs[0].ended, broke+ttl, broke+ttl+2*poll)
				if !errors.Is(runs[0].cause, ports.ErrLeaseLost) {
					w.Errorf("its context ended with cause %v, want ErrLeaseLost", runs[0].cause)
				}
				if acquired := n.link.count("Acquire"); acquired < 3 || acquired > 5 {
					w.Errorf("%d calls of Acquire for 2 shards, one of which was given up twice", acquired)
				}
				n.link.heal()
				w.sleep(2 * poll)
				a.wantRuns(idIn(0, 2), 2)
				w.wantCounts(0, 0, 1, 0)
			})
		})
	}
}
