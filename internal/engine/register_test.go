package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

func TestAServerWaitsForAStoreThatIsAbsentWhenItStarts(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.push("job", "x")
		a := w.audit()
		n := w.start(a.watch(succeed), func(s *setup) { s.link.state = down })
		w.sleep(10 * time.Minute)
		n.link.set(up)
		w.sleep(2 * time.Second)
		a.wantRuns("job", 1)
		if fails, back := n.log.count("the store fails"), n.log.count("answers again"); fails != 10 || back != 1 {
			w.Errorf("the log says %d times that the store fails and %d that it is back, want 10 in 10 minutes, "+
				"and once",
				fails, back)
		}
	})
}

func TestAServerThatWaitsForItsStoreStopsWhenAsked(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), func(s *setup) { s.link.state = down })
		w.sleep(time.Minute)
		asked := w.elapsed()
		n.stop()
		w.within("Run returned", w.elapsed(), asked, asked)
	})
}

func TestAQueueWithAnotherShardCountEndsRunAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(3)
		queue := newQueue(queueName, each(succeed))
		e := engine.New(w.store, engine.Config{
			Queues: []*engine.Queue{queue}, Owner: "owner", Lanes: 1, PollInterval: poll, LeaseTTL: ttl,
			Splitter: core.LaneSplitter{}, Scheduler: core.Lag,
		})
		if err := e.Run(w.Context()); !errors.Is(err, ports.ErrShardCountMismatch) {
			w.Errorf("Run: %v, want ErrShardCountMismatch", err)
		}
		w.within("Run returned", w.elapsed(), 0, 0)
	})
}

func TestWhatNoWaitingCuresEndsRunIfTheFirstExchangeFailsSo(t *testing.T) {
	for name, absent := range map[string]time.Duration{"at once": 0, "after a minute without a store": time.Minute} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				link := newLink(unusable{w.store})
				link.spin.t = w.T
				if absent > 0 {
					link.set(down)
					time.AfterFunc(absent, func() { link.set(up) })
				}
				e := engine.New(link, engine.Config{
					Queues:       []*engine.Queue{newQueue(queueName, each(succeed))},
					Owner:        "owner",
					Lanes:        1,
					PollInterval: poll,
					LeaseTTL:     ttl,
					Splitter:     core.LaneSplitter{},
					Scheduler:    core.Lag,
					Logger:       discard,
				})
				ctx, cancel := context.WithTimeout(w.Context(), time.Hour)
				defer cancel()
				if err := e.Run(ctx); !errors.Is(err, ports.ErrUnusable) ||
					!strings.Contains(err.Error(), "wrong password") {
					w.Errorf("Run: %v, want the store's ErrUnusable", err)
				}
				w.within("Run returned", w.elapsed(), absent, absent+2*time.Second)
			})
		})
	}
}

func TestANodeIsListedUntilItDies(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed))
		w.sleep(5 * ttl)
		nodes := w.nodesListed()
		if len(nodes) != 1 || nodes[0].Name != "node-1" || nodes[0].Host != "host" || nodes[0].PID != 1 ||
			!cmp.Equal(nodes[0].Queues, []string{queueName}) || nodes[0].StartedAt != core.InstantOf(w.began) {
			w.Errorf("Nodes = %+v", nodes)
		}
		n.cutOff()
		w.sleep(ttl)
		if nodes := w.nodesListed(); len(nodes) != 0 {
			w.Errorf("a dead node is listed: %+v", nodes)
		}
	})
}

// nodesListed lists the nodes that run.
func (w *world) nodesListed() []ports.Node {
	w.Helper()
	reply, err := w.store.Nodes(context.Background())
	if err != nil {
		w.Fatal(err)
	}
	return slices.DeleteFunc(reply.Nodes, func(n ports.Node) bool { return n.State(reply.Now) == ports.NodeGone })
}
