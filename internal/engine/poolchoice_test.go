package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// choosing is a scheduler of a user that is made of one function.
type choosing func(now core.Instant, heads []core.Head) core.Choice

func (f choosing) Next(now core.Instant, heads []core.Head) core.Choice { return f(now, heads) }

func (choosing) Ran(int, bool) {}

// choose is an option: the scheduler is a user's.
func choose(f choosing) func(*setup) {
	return scheduled(func(core.SchedulerConfig) core.Scheduler { return f })
}

func firstDue(now core.Instant, heads []core.Head) core.Choice {
	for i, h := range heads {
		if h.DueBy(now) {
			return core.Choice{Index: i}
		}
	}
	return core.Choice{Index: -1}
}

// The shard that a scheduler has chosen starts although the scheduler sleeps meanwhile, and no
// other does.
func TestASchedulerThatSleepsBetweenChoicesStartsEachAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		const every, jobs = 3 * poll, 4
		var next core.Instant
		throttle := func(now core.Instant, heads []core.Head) core.Choice {
			if now < next {
				return core.Choice{Index: -1, Wait: next.Sub(now), Sleep: true}
			}
			choice := firstDue(now, heads)
			if choice.Index >= 0 {
				next = now.Add(every)
			}
			return choice
		}
		r := w.record()
		w.fill(queueName, 1, jobs)
		w.start(r.watch(succeed), pooled(20), roundTrip(2*time.Millisecond), choose(throttle))
		w.sleep(jobs * every)
		starts := r.all()
		if len(starts) != jobs {
			w.Fatalf("%d of %d jobs have started", len(starts), jobs)
		}
		for i, s := range starts {
			w.within("a job started", s.at, time.Duration(i)*every, time.Duration(i)*every+50*time.Millisecond)
		}
	})
}

// A scheduler that chooses shards of a queue that has all its lanes brings none of its jobs, and
// the turns rest.
func TestAUsersSchedulerClaimsNoMoreThanALimitLets(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.record()
		q := r.queue(queueName, 3, lasting(10*time.Second))
		q.MaxLanes = 2
		free := r.queue("free", 1, succeed)
		w.fill(queueName, 3, 500)
		w.fill("free", 1, 0)
		n := w.start(nil, serving(q, free), pooled(6), roundTrip(2*time.Millisecond), choose(firstDue))
		w.sleep(3 * poll)
		w.wantCounts(498, 2, 0, 0)
		if turns := n.link.count("Turn"); turns > 20 {
			w.Errorf("%d turns in %v, in which nothing changed", turns, w.elapsed())
		}
		at := w.elapsed()
		w.fill("free", 1, 1)
		w.sleep(poll / 2)
		if starts := r.of("free"); len(starts) != 1 || starts[0].at > at+20*time.Millisecond {
			w.Errorf("the job of the other queue, pushed at %v, started as of %v", at, starts)
		}
	})
}

// A scheduler that insists on a shard, whatever its head, makes no turn until a job of it is due.
func TestASchedulerThatInsistsOnAShardCostsNothing(t *testing.T) {
	first := func(core.Instant, []core.Head) core.Choice { return core.Choice{} }

	at := 0
	blind := func(_ core.Instant, heads []core.Head) core.Choice {
		at++
		return core.Choice{Index: at % len(heads)}
	}

	for name, f := range map[string]choosing{"one": first, "each in turn": blind} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var runs atomic.Int64
				n := w.start(each(func(context.Context, *core.Claim) error {
					if runs.Add(1) == 1 {
						return context.Canceled // and is due again after 15 s
					}
					return nil
				}), shards(4), pooled(4), choose(f))

				w.sleep(5 * poll)
				w.push(idIn(0, 4), "x")
				pushed := w.elapsed()

				w.sleep(5 * poll)
				if runs.Load() != 1 {
					w.Errorf("the job ran %d times by %v, want once", runs.Load(), w.elapsed())
				}

				w.sleepUntil(pushed + 15*time.Second + poll/10)
				if runs.Load() != 2 {
					w.Errorf("the job ran %d times by %v, want twice", runs.Load(), w.elapsed())
				}

				if turns := n.link.count("Turn"); turns > 20 {
					w.Errorf("%d turns in %v for one job", turns, w.elapsed())
				}
			})
		})
	}
}
