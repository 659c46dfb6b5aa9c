package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// A turn carries and moves 1,000 payloads. The payloads beyond come with the next turns, at once.

// pushLarge pushes n jobs, job-0 and on, each with the given number of payloads.
func (w *world) pushLarge(n, payloads int) {
	w.Helper()
	var entries []core.Entry
	for i := range n {
		for p := range payloads {
			entries = append(entries, core.Entry{
				ID: fmt.Sprintf("job-%d", i), Payload: core.Payload{Data: fmt.Append(nil, p), Score: float64(p)},
			})
		}
	}
	w.pushEntries(entries...)
}

// leaveClaimed claims all jobs of the queue's only shard for an owner whose lease then runs out.
func (w *world) leaveClaimed() {
	w.Helper()
	lease := ports.Lease{Shard: shardOfQueue(0), Owner: "ghost", Token: w.acquire("ghost", time.Second).Token}
	for number := int64(1); ; number++ {
		reply, err := w.store.Turn(w.Context(), ports.TurnRequest{
			Lease: lease, Number: number, TTL: time.Second, Want: core.MaxTurnJobs,
		})
		if err != nil {
			w.Fatal(err)
		}
		if len(reply.Claims) == 0 {
			break
		}
	}
	w.sleep(time.Second)
}

func TestJobsThatAnEarlierOwnerLeftAreRecoveredAtOnceHoweverMany(t *testing.T) {
	const way = time.Millisecond
	for _, c := range []struct{ jobs, payloads int }{{600, 1}, {10_000, 1}, {40, 250}} {
		t.Run(fmt.Sprintf("%d of %d payloads", c.jobs, c.payloads), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(1)
				w.pushLarge(c.jobs, c.payloads)
				w.leaveClaimed()
				w.wantCounts(0, int64(c.jobs), 0, 0)
				a := w.audit()
				n := w.start(a.watch(succeed), lanes(50), sharing, func(s *setup) { s.link.delay = way })
				w.sleep(time.Second)
				w.wantCounts(0, 0, int64(c.jobs), 0)
				for i := range c.jobs {
					if r := a.wantRuns(fmt.Sprintf("job-%d", i), 1)[0].recoveries; r != 1 {
						w.Errorf("job-%d ran with Recoveries %d, want 1", i, r)
					}
				}
				for i, turn := range n.link.turnsSent() {
					if got := len(turn.request.Settlements); got > core.MaxTurnJobs {
						w.Errorf("turn %d settles %d jobs, want %d at most", i+1, got, core.MaxTurnJobs)
					}
				}
			})
		})
	}
}

func TestWhatDoesNotFitATurnIsSettledWithTheNextAtOnce(t *testing.T) {
	const jobs, payloads, runs = 20, 500, 100 * time.Millisecond
	for name, refuse := range map[string]error{
		"put back": errors.New("boom"),
		"buried":   errOutcome{core.Outcome{Kind: core.Buried, Error: "boom"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(each(func(context.Context, *core.Claim) error {
					time.Sleep(runs)
					return refuse
				}), lanes(jobs), sharing, outcomes)
				w.sleep(poll)
				w.pushLarge(jobs, payloads)
				synctest.Wait()
				w.wantCounts(0, jobs, 0, 0)
				before := n.link.count("Turn")
				w.sleep(runs)
				if s := w.stats(); s.Claimed != 0 || s.Failed != jobs {
					w.Errorf("%d are claimed and %d have failed, want none and %d", s.Claimed, s.Failed, jobs)
				}
				if turns := n.link.count("Turn") - before; turns < jobs*payloads/core.MaxTurnPayloads {
					w.Errorf("%d turns settled %d payloads", turns, jobs*payloads)
				}
			})
		})
	}
}

// While much is put back turn by turn, other jobs are claimed and settled.
func TestWhatDoesNotFitATurnHoldsUpNoOthers(t *testing.T) {
	const jobs, payloads, way = 100, 500, 5 * time.Millisecond
	inWorld(t, func(w *world) {
		a := w.audit()
		fail := time.Now().Add(5 * time.Second)
		w.start(a.watch(func(_ context.Context, c *core.Claim) error {
			if len(c.Payloads) == 1 {
				return nil
			}
			time.Sleep(time.Until(fail))
			return errors.New("boom")
		}), lanes(jobs+1), sharing, func(s *setup) { s.link.delay = way })
		w.sleep(poll)
		w.pushLarge(jobs, payloads)
		w.sleep(2 * time.Second)
		w.wantCounts(0, jobs, 0, 0)
		w.sleep(time.Until(fail) + 4*way)
		w.push("small", "x")
		pushed := w.elapsed()
		w.sleep(10 * way)
		w.within("the small job", a.wantRuns("small", 1)[0].at, pushed, pushed+8*way)
		if s := w.stats(); s.Processed != 1 || s.Claimed == 0 {
			w.Errorf("%d done and %d claimed; want the small one done while others are put back",
				s.Processed, s.Claimed)
		}
		w.sleep((jobs/2 + 10) * 2 * way)
		w.wantCounts(jobs, 0, 1, jobs)
	})
}

func TestOrphansOfManyPayloadsOfAQueueThatNobodyServesArePutBackAtOneLook(t *testing.T) {
	const small, large, payloads = 1000, 40, 250 // so that the large ones come while small ones are settled
	inWorld(t, func(w *world) {
		other := w.startKeeper()
		w.declare(1)
		var entries []core.Entry
		for i := range small {
			entries = append(entries, entry(fmt.Sprintf("a-%d", i)))
		}
		w.pushEntries(entries...)
		w.pushLarge(large, payloads)
		w.leaveClaimed()
		w.sleep(lookWithin)
		w.wantCounts(small+large, 0, 0, 0)
		w.wantFree()
		if got := len(other.acquired()); got != 1 {
			w.Errorf("it took the shard %d times, want once", got)
		}
	})
}

// A store may defer jobs that are done, too, if ending them takes it too long.
func TestADoneJobThatDoesNotFitATurnIsSentAgainAtOnce(t *testing.T) {
	const way = time.Millisecond
	inWorld(t, func(w *world) {
		end := time.Now().Add(2*poll + poll/10)
		n := w.start(each(func(context.Context, *core.Claim) error {
			time.Sleep(time.Until(end))
			return nil
		}), lanes(3), sharing, func(s *setup) { s.link.delay = way })

		w.sleep(2 * poll)
		w.pushEach(3)
		w.sleep(poll / 20)
		w.wantCounts(0, 3, 0, 0)

		var turn time.Time
		deferred := false
		n.link.change(func() {
			n.link.deferSettlement = func(string) bool { // the second one of a turn, once
				second := turn.Equal(time.Now())
				turn = time.Now()
				now := second && !deferred
				deferred = deferred || now
				return now
			}
		})

		w.sleep(time.Until(end) + 10*way)
		w.wantCounts(0, 0, 3, 0)
		if !deferred {
			w.Error("no settlement was deferred")
		}
	})
}

// Settlements that did not fit lead the next turn: the store applies the first one that is
// deferred, so each turn makes progress, however much else has ended meanwhile.
func TestWhatDoesNotFitATurnLeadsTheNext(t *testing.T) {
	const jobs, payloads, way = 30, 500, 5 * time.Millisecond
	inWorld(t, func(w *world) {
		n := w.start(each(func(_ context.Context, c *core.Claim) error {
			time.Sleep(time.Duration(len(c.ID)+int(c.ID[len(c.ID)-1])) * time.Millisecond)
			return errors.New("boom")
		}), lanes(jobs), sharing, func(s *setup) { s.link.delay = way })
		w.sleep(poll)
		w.pushLarge(jobs, payloads)
		w.sleep(poll)

		led := 0
		turns := n.link.turnsSent()
		for i := range turns[:len(turns)-1] {
			unfit := turns[i].reply.Deferred
			if len(unfit) == 0 {
				continue
			}
			next := turns[i+1].request.Settlements
			for k, at := range unfit {
				if k >= len(next) || next[k].ID != turns[i].request.Settlements[at].ID {
					w.Fatalf("turn %d deferred %d settlements, and turn %d does not begin with them",
						i+1, len(unfit), i+2)
				}
			}
			if len(next) > len(unfit) {
				led++
			}
		}

		if led == 0 {
			w.Error("no turn had other settlements beside those that had not fitted")
		}
	})
}
