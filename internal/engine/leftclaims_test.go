package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// large returns an entry whose claim no acquire hands over.
func large(id string) core.Entry {
	return core.Entry{ID: id, Payload: core.Payload{Data: bytes.Repeat([]byte("x"), core.AcquireBytes+1)}}
}

func TestALargeOrphanOfAPausedQueueIsPutBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEntries(large("a"), large("b"))
		w.leaveClaimed()
		if err := w.store.Pause(w.Context(), queueName); err != nil {
			w.Fatal(err)
		}
		w.start(each(func(context.Context, *core.Claim) error {
			w.Error("a job of a paused queue was handled")
			return nil
		}), lanes(1))
		w.sleep(time.Minute)
		w.wantCounts(2, 0, 0, 0)
	})
}

func TestALargeOrphanIsPutBackWhileAllLanesAreBusy(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(2)
		ids := make(map[int]string) // one for each shard
		for i := 0; len(ids) < 2; i++ {
			id := fmt.Sprint("job-", i)
			ids[core.ShardOf(id, 2)] = id
		}

		w.pushEntries(large(ids[0]))
		ghost := ports.Lease{Shard: shardOfQueue(0), Owner: "ghost"}
		acquired, err := w.store.Acquire(w.Context(), ports.AcquireRequest{
			Shard: ghost.Shard, Shards: 2, Generation: 1, Owner: ghost.Owner, Attempt: 1, TTL: time.Minute,
		})
		ghost.Token = acquired.Token
		if err == nil {
			_, err = w.store.Turn(w.Context(), ports.TurnRequest{Lease: ghost, Number: 1, TTL: time.Minute, Want: 1})
		}

		if err != nil {
			w.Fatal(err)
		}

		w.push(ids[1], "x")
		w.start(each(func(ctx context.Context, c *core.Claim) error {
			if c.ID == ids[1] {
				w.sleep(time.Hour)
			}
			return nil
		}), lanes(1), shards(2))

		w.sleep(10 * time.Minute)
		if c := w.stats().Shards[0].Counts; c.Claimed != 0 || c.Fresh != 1 {
			w.Errorf("%d jobs of the dead owner's shard are claimed and %d wait, want 0 and 1", c.Claimed, c.Fresh)
		}

		w.sleep(time.Hour)
	})
}

func TestRunDueRunsLargeOrphans(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEntries(large("a"), large("b"), large("c"))
		w.leaveClaimed()
		jobs, err := w.runDue(newLink(w.store.Open()), newQueue(queueName, each(succeed)), "owner")
		if jobs != 3 || err != nil {
			w.Errorf("RunDue ran %d jobs, %v; want 3", jobs, err)
		}
		w.wantCounts(0, 0, 3, 0)
	})
}

// The end of a recovered job is known by its claim as a whole, also if the dead owner's handler had
// settled a payload by itself.
func TestABurialOfARecoveredRestIsCountedAndLogged(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		for i := range 3 {
			w.pushEntries(core.Entry{ID: "job", Payload: core.Payload{Data: []byte{byte('a' + i)}, Score: float64(i)}})
		}
		lease := ports.Lease{Shard: shardOfQueue(0), Owner: "ghost", Token: w.acquire("ghost", time.Second).Token}
		reply, err := w.store.Turn(w.Context(), ports.TurnRequest{Lease: lease, Number: 1, TTL: time.Second, Want: 1})
		if err == nil {
			err = w.store.SettlePayload(w.Context(), lease.Shard, core.PayloadSettlement{
				ID:      "job",
				Receipt: reply.Claims[0].Receipt,
			})
		}
		if err != nil {
			w.Fatal(err)
		}
		w.sleep(time.Second)
		n := w.start(each(succeed), lanes(1), func(s *setup) { s.queue.Policy.MaxRecoveries = 0 })
		w.sleep(time.Minute)
		n.stop()
		if failed, lines := w.history().Failed, n.log.count("job buried"); failed != 1 || lines != 1 {
			w.Errorf("%d burials are counted and %d logged, want 1 and 1; the log:\n%v", failed, lines, n.log)
		}
	})
}

// An operator's cancel ends a job that its dead owner left claimed. It is no recovery, whether an
// acquire or a turn hands the job over.
func TestACancelledOrphanIsNotLoggedAsRecovered(t *testing.T) {
	for name, entry := range map[string]core.Entry{
		"by an acquire": {ID: "job", Payload: core.Payload{Data: []byte("x")}},
		"by a turn":     large("job"),
	} {
		t.Run(name, func(t *testing.T) { cancelOrphan(t, entry) })
	}
}

func cancelOrphan(t *testing.T, entry core.Entry) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEntries(entry)
		w.leaveClaimed()
		if _, err := w.store.Cancel(w.Context(),
			ports.CancelRequest{Shard: shardOfQueue(0), IDs: []string{"job"}}); err != nil {
			w.Fatal(err)
		}
		n := w.start(each(succeed), lanes(1), func(s *setup) { s.queue.Policy.MaxRecoveries = 0 })
		w.sleep(time.Minute)
		w.wantCounts(0, 0, 1, 0)
		if n.log.count("job recovered") > 0 {
			w.Errorf("the log has a recovery:\n%v", n.log)
		}
	})
}

// Jobs that were recovered more often than their queue allows, as in a queue with a larger bound
// from which they were moved, are buried without a run, however many a turn claims. Others run.
func TestWhatWasRecoveredTooOftenElsewhereIsBuriedWithoutARun(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.placeRecovered(1, "a", "c")
		w.push("b", "x")
		w.push("d", "x")
		a := w.audit()
		n := w.start(a.watch(succeed), batches(10), func(s *setup) { s.queue.Policy.MaxRecoveries = 0 })
		w.sleep(poll)
		for id, runs := range map[string]int{"a": 0, "b": 1, "c": 0, "d": 1} {
			a.wantRuns(id, runs)
			if dead := w.find(id).DeadLetter != nil; dead != (runs == 0) {
				w.Errorf("%s is in the morgue: %v", id, dead)
			}
		}
		w.wantCounts(0, 0, 2, 2)
		if lines := n.log.count("job buried"); lines != 2 {
			w.Errorf("the log has %d burials, want 2:\n%v", lines, n.log)
		}
	})
}
