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

// Of jobs that run one after another the log names the one that runs, and holds no
// earlier one's timeout against it.
func TestTheLogNamesTheJobThatGoesOn(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		n := w.start(func(ctx context.Context, b *execution.Batch) error {
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
		lines := n.log.lines("still runs long after")
		if len(lines) != 1 || len(n.log.lines("still runs long after", "id=job-2")) != 1 {
			w.Errorf("the log says %q, want one line, of job-2", lines)
		}
	})
}

const heldBy = "waits for its shards, which other servers hold"

func TestAStandbySaysWhoHoldsAllShards(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.start(each(succeed), shards(5))
		w.sleep(poll)
		standby := w.start(each(succeed), shards(5))
		w.sleep(10 * ttl)
		standby.wantLines(1, heldBy)
		standby.wantLines(1, heldBy, "node-1 (host host, pid 1)", "level=INFO")
		first.wantLines(0, heldBy)

		third := w.start(each(succeed), shards(5))
		first.stop() // one of the others takes each shard
		w.sleep(ttl)
		standby.stop()
		w.sleep(ttl)
		fourth := w.start(each(succeed), shards(5))
		w.sleep(ttl)
		fourth.wantLines(1, heldBy, "node-3 (host host, pid 1)")
		third.stop()
		w.sleep(ttl)
		fourth.wantLines(1, heldBy)
	})
}

func TestAStandbySaysAgainWhoHoldsAllShardsWhenThatChanges(t *testing.T) {
	inWorld(t, func(w *world) {
		first := w.start(each(succeed))
		w.sleep(poll)
		standby := w.start(each(succeed), noWakeups) // it does not hear of the release at once
		w.sleep(ttl)
		first.stop()
		if reply := w.acquire("a-ghost-without-announcement", time.Hour); reply.Token == 0 {
			w.Fatal("the test did not get the shard")
		}
		w.sleep(2 * ttl)
		lines := append([]string{""}, standby.wantLines(2, heldBy)...)
		if last := lines[len(lines)-1]; !strings.Contains(last, "a-ghost-without-announcement") {
			w.Errorf("the last line is %q, want the new owner in it", last)
		}
	})
}

func TestANodeThatHoldsAShardDoesNotStandBy(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(2)
		w.acquireShard("ghost", shardOfQueue(0), 2)
		n := w.start(each(succeed), shards(2))
		w.sleep(ttl)
		n.wantLines(0, heldBy)
	})
}

// acquireShard acquires a shard for an owner that is no node of the test.
func (w *world) acquireShard(owner string, shard core.Shard, shards int) {
	w.Helper()
	if _, err := w.store.Acquire(context.Background(), ports.AcquireRequest{
		Shard: shard, Shards: shards, Generation: 1, Owner: owner, Attempt: 1, TTL: time.Hour,
	}); err != nil {
		w.Fatal(err)
	}
}

func TestAShardWithoutAnOwnerFor30sIsAWarning(t *testing.T) {
	inWorld(t, func(w *world) {
		refused := true
		n := w.start(each(succeed), shards(3), func(s *setup) {
			s.link.refuse = func(method string) bool { return method == "Acquire" && refused }
		})
		w.sleep(29 * time.Second)
		n.wantLines(0, "no owner")
		w.sleep(3 * time.Second)
		n.wantLines(1, "no owner", "for=30s", "level=WARN", "orders/0 orders/1 orders/2", errDown.Error())
		w.sleep(5 * time.Minute)
		n.wantLines(1, "no owner")
		n.link.change(func() { refused = false })
		w.sleep(time.Minute)
		n.link.change(func() { refused = true; n.link.broken[shardOfQueue(1)] = ports.ErrLeaseLost })
		w.push(idIn(1, 3), "x")
		w.sleep(time.Minute)
		n.wantLines(1, "no owner", "shards=[orders/1]")
		n.wantLines(2, "no owner")
	})
}

// A handler that ignores the end of its context keeps its shard and its lane.
func TestAHandlerThatIgnoresItsEndIsLoggedEachMinute(t *testing.T) {
	errLate := context.DeadlineExceeded
	for name, c := range map[string]struct {
		cause string
		// ends the handler's context at 10 s.
		end func(w *world, n *node, id string)
	}{
		"timeout": {cause: errLate.Error(), end: func(*world, *node, string) {}},
		"cancel": {cause: execution.ErrCancelled.Error(), end: func(w *world, _ *node, id string) {
			w.cancel(false, id)
		}},
		"lost lease": {cause: ports.ErrLeaseLost.Error(), end: func(w *world, n *node, _ string) {
			n.link.change(func() { n.link.broken[shardOfQueue(0)] = ports.ErrLeaseLost })
		}},
		"shutdown": {cause: execution.ErrShutdown.Error(), end: func(w *world, n *node, _ string) { n.cancel() }},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(func(ctx context.Context, b *execution.Batch) error {
					job, _ := b.Begin(ctx, 0)
					if name == "timeout" {
						_, cancel := b.WithTimeout(job, 9*time.Second, errLate)
						defer cancel()
					}
					w.sleepInHandler(10*time.Second + 200*time.Second)
					return nil
				}, func(s *setup) { s.ShutdownTimeout = time.Millisecond })

				w.sleep(time.Second)
				w.push("stuck", "x")
				w.sleepUntil(10 * time.Second)
				c.end(w, n, "stuck")

				w.sleepUntil(10*time.Second + 55*time.Second)
				n.wantLines(0, "still runs")
				w.sleepUntil(10*time.Second + 65*time.Second)
				n.wantLines(1, "still runs",
					"level=WARN", "queue=orders", "shard=orders/0", "id=stuck", c.cause, "for=1m")
				w.sleepUntil(10*time.Second + 190*time.Second)
				n.wantLines(3, "still runs")
				w.sleepUntil(10*time.Second + 10*time.Minute)
				n.wantLines(3, "still runs")
			})
		})
	}
}
