package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// heldEvery is the interval of the rate of the jobs that holdTwo makes wait.
const heldEvery = 20 * time.Second

var heldRates = map[string]core.Rate{"a": {Count: 1, Per: heldEvery}}

// holdTwo starts a server that holds two jobs of a key: their slots have come late, so one starts an
// interval from now, and the other two.
func (w *world) holdTwo(s *tenantStarts) (n *node, first, second string) {
	w.Helper()
	n = w.start(s.handler(0), shards(1), polling(time.Minute), ratedBy(heldRates))
	w.sleep(announces)
	w.pushTenant("a", 0, 5)
	w.sleep(time.Second)
	w.must(w.store.Pause(w.Context(), queueName))
	w.sleep(6 * heldEvery) // all slots come
	w.must(w.store.Resume(w.Context(), queueName))

	for range 10_000 {
		if _, claimed, _ := w.counts(queueName); claimed == 2 {
			break
		}
		w.sleep(10 * time.Millisecond)
	}
	var held []string
	for i := range 5 {
		if id := fmt.Sprint("a/", i); s.startOf(id).IsZero() {
			held = append(held, id)
		}
	}
	if len(held) != 2 {
		w.Fatalf("%q have not started, want two", held)
	}
	w.sleep(heldEvery / 2)
	return n, held[0], held[1]
}

func TestAHeldJobThatIsCancelledDoesNotStart(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		_, first, second := w.holdTwo(&s)
		w.cancel(true, second)
		w.sleep(3 * heldEvery)
		if !s.startOf(second).IsZero() || s.startOf(first).IsZero() {
			t.Errorf("%s has started at %v and %s, which was cancelled, at %v",
				first, s.startOf(first), second, s.startOf(second))
		}
		w.wantCounts(0, 0, 4, 0)
	})
}

// A server that stops gives its held jobs back with their slots, and a paused queue does.
func TestHeldJobsGoBackWithTheirSlots(t *testing.T) {
	for name, end := range map[string]func(w *world, n *node){
		"at the end of the server": func(_ *world, n *node) { n.stop() },
		"in a pause": func(w *world, _ *node) {
			w.must(w.store.Pause(w.Context(), queueName))
			w.sleep(ttl / 2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var s, other tenantStarts
				n, _, second := w.holdTwo(&s)
				end(w, n)
				if job := w.find(second).Queued; job == nil || job.Slot != "a" {
					t.Fatalf("the job is %+v, want it queued with its slot", job)
				}

				n.stop()
				w.start(other.handler(0), shards(1), ratedBy(heldRates))
				w.must(w.store.Resume(w.Context(), queueName))
				w.sleep(10 * heldEvery)
				w.wantCounts(0, 0, 5, 0)
				if !s.startOf(second).IsZero() {
					t.Errorf("%s has started on the server that gave it back", second)
				}
			})
		})
	}
}

// A server that has lost its lease starts none of the jobs that it held, also if it gets the shard
// back.
func TestHeldJobsDoNotStartAfterTheLease(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		n, _, second := w.holdTwo(&s)
		n.link.set(down)
		w.sleep(4 * ttl)
		if !s.startOf(second).IsZero() {
			t.Errorf("%s has started at %v after the lease", second, s.startOf(second).Sub(w.began))
		}

		n.link.set(up)
		w.sleep(10 * heldEvery)
		if runs := s.runs[second]; runs != 1 {
			t.Errorf("%s has started %d times, want once", second, runs)
		}
		w.wantCounts(0, 0, 5, 0)
	})
}

// Jobs that are held for keys of different paces start in the order of their times.
func TestHeldJobsStartInTheOrderOfTheirTimes(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		w.start(s.handler(0), shards(1), polling(time.Minute), ratedBy(map[string]core.Rate{
			"a": {Count: 1, Per: 20 * time.Second}, "b": {Count: 1, Per: 30 * time.Second},
		}))
		w.sleep(announces)
		w.pushTenant("a", 0, 5)
		w.pushTenant("b", 0, 4)
		w.sleep(time.Second)
		w.must(w.store.Pause(w.Context(), queueName))
		w.sleep(3 * time.Minute)
		w.must(w.store.Resume(w.Context(), queueName))
		w.sleep(3 * time.Minute)

		b := s.of("b").at
		if len(b) != 4 || b[2].Sub(b[1]) > time.Second || b[3].Sub(b[2]) > 31*time.Second {
			t.Errorf("the jobs of b start at %v, want two at once after the pause, and one 30 s later", b)
		}
	})
}

// Held jobs count among those that a server has claimed and not started.
func TestAServerAnnouncesHeldJobs(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		w.holdTwo(&s)
		if got := w.nodesListed()[0].Status.Claimed; got != 2 {
			t.Errorf("the server has %d claimed jobs that have not started, want 2", got)
		}
	})
}

// A turn claims many jobs only while most go back. Those that no rate holds stay in the store until a
// lane is free.
func TestTurnsClaimFewJobsAgainAfterABacklog(t *testing.T) {
	inWorld(t, func(w *world) {
		var s tenantStarts
		w.start(s.handler(time.Second), shards(1), lanes(1), s.counting,
			ratedBy(map[string]core.Rate{"a": {Count: 1, Per: time.Hour}}))
		w.sleep(announces)
		w.pushTenant("a", 0, 2000)
		w.sleep(10 * time.Second)
		backlog := s.claimed()
		w.pushMore(1000)
		for range 20 {
			w.sleep(time.Second / 4)
			if _, claimed, _ := w.counts(queueName); claimed > 10 {
				t.Fatalf("%d jobs are claimed, and one runs at a time", claimed)
			}
		}
		if backlog < 2000 {
			t.Errorf("%d of 2000 jobs were claimed and put back in ten seconds", backlog)
		}
	})
}
