package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// lookWithin is how long after the death of a queue's last server its jobs are put back at the
// latest: its lease and its announcement last a TTL, others hear of that within a third, and look
// once per TTL.
const lookWithin = 2*ttl + ttl/3

// startKeeper starts a node that serves another queue than the test's, and recovers orphans of any.
func (w *world) startKeeper(options ...func(*setup)) *node {
	w.Helper()
	return w.start(each(succeed), append([]func(*setup){func(s *setup) {
		s.queue.Name, s.RecoverOrphans = "other", true
	}}, options...)...)
}

// leaveOrphans lets a server claim n jobs of a queue with the given number of shards, and cuts it
// off while they run.
func (w *world) leaveOrphans(queueShards, n int) {
	w.Helper()
	dead := w.start(each(untilCancelled), shards(queueShards), lanes(n), sharing)
	w.sleep(poll)
	w.pushEach(n)
	w.sleep(poll)
	w.wantCounts(0, int64(n), 0, 0)
	dead.cutOff()
}

// sharing is an option: all lanes work all shards.
func sharing(s *setup) { s.Splitter = core.SpreadSplitter{} }

// wantOrphans checks how many jobs are claimed, and how many of them are orphans.
func (w *world) wantOrphans(claimed, orphaned int64) {
	w.Helper()
	if s := w.stats(); s.Claimed != claimed || s.Orphaned() != orphaned {
		w.Errorf("at %v: %d claimed and %d orphaned; want %d and %d",
			w.elapsed(), s.Claimed, s.Orphaned(), claimed, orphaned)
	}
}

// wantFree checks that nobody has a shard of the queue.
func (w *world) wantFree() {
	w.Helper()
	for _, s := range w.stats().Shards {
		if s.Owner != "" {
			w.Errorf("at %v: %v belongs to %q, want nobody", w.elapsed(), s.Shard, s.Owner)
		}
	}
}

// acquired lists the shards of the test's queue that a node has tried to acquire.
func (n *node) acquired() (shards []core.Shard) {
	for _, r := range n.link.acquiresSent() {
		if r.Shard.Queue == queueName {
			shards = append(shards, r.Shard)
		}
	}
	return shards
}

func TestOrphansOfAQueueThatNobodyServesArePutBackByWhoMay(t *testing.T) {
	const jobs, queueShards = 40, 3
	for name, may := range map[string]bool{"a node that may": true, "a node that may not": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				other := w.startKeeper(func(s *setup) { s.RecoverOrphans = may })
				w.leaveOrphans(queueShards, jobs)
				killed := w.elapsed()

				w.sleepUntil(killed + ttl/2)
				w.wantOrphans(jobs, 0)
				w.sleepUntil(killed + ttl)
				w.wantOrphans(jobs, jobs)
				w.sleepUntil(killed + lookWithin)

				if !may {
					w.sleep(10 * ttl)
					w.wantOrphans(jobs, jobs)
					if looks, tries := other.link.count("Stats"), len(other.acquired()); looks+tries > 0 {
						w.Errorf("it looked %d times for orphans, and tried to acquire %d shards", looks, tries)
					}
					return
				}

				w.wantOrphans(0, 0)
				w.wantCounts(jobs, 0, 0, 0)
				w.wantFree()
				if found := w.find("job-0").Queued; found == nil || found.Recoveries != 1 ||
					found.RetryCount != core.FreshRetryCount {
					w.Errorf("job-0 is %+v; want it fresh and recovered once", found)
				}
				if got := other.log.count("that no server runs"); got != 1 || other.log.count("jobs=40") != 1 {
					w.Errorf("the log says it %d times, want once, with how many:\n%s", got, other.log)
				}

				a := w.audit()
				w.start(a.watch(succeed), shards(queueShards))
				w.sleep(poll)
				a.wantHandledOnce(jobs, "x")
			})
		})
	}
}

func TestAQueueThatSomebodyServesIsLeftToHim(t *testing.T) {
	inWorld(t, func(w *world) {
		keeper := w.startKeeper()
		numbered := func(number int) func(*setup) {
			return func(s *setup) { s.Splitter = core.NodeSplitter{Nodes: 2, Node: number, Share: true} }
		}
		w.start(each(untilCancelled), shards(2), numbered(0))
		dead := w.start(each(untilCancelled), shards(2), numbered(1))
		w.sleep(poll)
		w.push(idIn(0, 2), "x")
		w.push(idIn(1, 2), "x")
		dead.cutOff()
		w.sleep(10 * ttl)
		w.wantOrphans(2, 1)
		if got := keeper.acquired(); len(got) > 0 {
			w.Errorf("it acquired %v of a queue that is served", got)
		}
	})
}

func TestAServerThatComesWhileOrphansArePutBackWaitsForThat(t *testing.T) {
	const jobs = 2*core.MaxTurnJobs + 1
	for name, option := range map[string]func(*setup){"with wake-ups": func(*setup) {}, "by polling": noWakeups} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.leaveOrphans(1, jobs)

				var came, last time.Duration
				a := w.audit()

				w.startKeeper(func(s *setup) {
					s.link.beforeTurn = func(r ports.TurnRequest) {
						if r.Lease.Shard.Queue != queueName {
							return
						}
						if came == 0 {
							came = w.elapsed()
							w.start(a.watch(succeed), option)
						}
						time.Sleep(ttl / 10)
						last = w.elapsed()
					}
				})

				w.sleep(lookWithin + ttl)
				w.wantCounts(0, 0, jobs, 0)
				a.wantHandledOnce(jobs, "x")
				w.within("the first handler after the release", a.starts("job-0")[0], last, last+5*poll)
				if runs := a.wantRuns("job-0", 1); runs[0].recoveries != 1 {
					w.Errorf("%d recoveries, want 1", runs[0].recoveries)
				}
			})
		})
	}
}

func TestOrphansOfAPausedQueueArePutBackAndWait(t *testing.T) {
	inWorld(t, func(w *world) {
		w.startKeeper()
		w.leaveOrphans(2, 10)
		if err := w.store.Pause(context.Background(), queueName); err != nil {
			w.Fatal(err)
		}
		w.sleep(lookWithin)
		w.wantCounts(10, 0, 0, 0)
		w.wantFree()
		w.start(each(succeed), shards(2))
		w.sleep(10 * poll)
		w.wantCounts(10, 0, 0, 0)
	})
}

// The fate of the first look at the orphans of a queue, how many jobs it leaves, and whether their
// shard is free then.
var looks = map[string]struct {
	befalls func(l *link)
	left    int64
	free    bool
}{
	"a settlement is deferred": {func(l *link) {
		l.deferSettlement = func(id string) bool { return id == "job-1" }
	}, 1, true},
	"the reply of a turn is lost": {func(l *link) {
		l.loseTurn = func(ports.TurnRequest) bool { return true }
	}, 0, true},
	"a turn is refused":               {func(l *link) { l.refuse = only("Turn") }, 3, true},
	"a look is refused":               {func(l *link) { l.refuse = only("Stats") }, 3, true},
	"the list is refused":             {func(l *link) { l.refuse = only("Queues") }, 3, true},
	"the reply of an acquire is lost": {func(l *link) { l.lose = only("Acquire") }, 3, false},
}

// only reports true for one method.
func only(which string) func(string) bool { return func(method string) bool { return method == which } }

func TestWhatALookLeavesTheNextOnePutsBack(t *testing.T) {
	for name, c := range looks {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.leaveOrphans(1, 3)
				w.sleep(2 * ttl) // it looks while no announcement of the dead node lasts

				keeper := w.startKeeper()
				w.sleep(poll)
				keeper.link.change(func() { c.befalls(keeper.link) })
				w.sleep(ttl)

				orphaned := c.left
				if !c.free {
					orphaned = 0
				}
				w.wantOrphans(c.left, orphaned)

				keeper.link.change(func() {
					keeper.link.deferSettlement = func(string) bool { return false }
					keeper.link.loseTurn = func(ports.TurnRequest) bool { return false }
					keeper.link.refuse = func(string) bool { return false }
					keeper.link.lose = keeper.link.refuse
				})

				w.sleep(2 * ttl) // it may wait for a lease of its own
				w.wantCounts(3, 0, 0, 0)
				w.wantFree()
				for i := range 3 {
					if found := w.find(fmt.Sprintf("job-%d", i)).Queued; found == nil || found.Recoveries != 1 {
						w.Errorf("job-%d is %+v; want it recovered once", i, found)
					}
				}
			})
		})
	}
}

func TestAnObserverSeesAllOrphansOfAQueueThatNobodyServes(t *testing.T) {
	const jobs = core.MaxTurnPayloads + 300 // more than an acquire hands over
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEach(jobs)
		w.claimAll(jobs)
		o := &seen{}
		w.startKeeper(o.by)
		w.sleep(4 * ttl)
		w.wantCounts(jobs, 0, 0, 0)
		if o.recovered != jobs {
			w.Errorf("%d were seen as recovered of %d, want all", o.recovered, jobs)
		}
	})
}

func TestCancelledOrphansEndAsTheOperatorChose(t *testing.T) {
	inWorld(t, func(w *world) {
		w.startKeeper()
		w.leaveOrphans(1, 3)
		for id, drop := range map[string]bool{"job-0": true, "job-1": false} {
			if _, err := w.store.Cancel(context.Background(),
				ports.CancelRequest{Shard: shardOfQueue(0), IDs: []string{id}, Drop: drop}); err != nil {
				w.Fatal(err)
			}
		}
		w.sleep(lookWithin)
		w.wantCounts(2, 0, 0, 0)
		if found := w.find("job-1").Queued; found == nil || found.Recoveries != 0 {
			w.Errorf("the job that was to be put back is %+v; want it untouched", found)
		}
	})
}

func TestANodeThatStopsReleasesTheShardWhoseOrphansItPutsBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.leaveOrphans(2, 10)
		w.sleep(2 * ttl)
		keeper := w.startKeeper(func(s *setup) {
			s.link.beforeTurn = func(ports.TurnRequest) { time.Sleep(ttl / 10) }
		})
		w.sleep(ttl + ttl/20)
		if w.stats().Shards[0].Owner == "" {
			w.Fatal("it is not at work")
		}
		keeper.stop()
		if owner := w.stats().Shards[0].Owner; owner != "" {
			w.Errorf("after the stop the shard belongs to %q, want nobody", owner)
		}
		if got := slices.Compact(keeper.acquired()); len(got) != 1 {
			w.Errorf("it acquired %v; want one shard, and none after the stop", got)
		}
	})
}

// A node that drains takes no shard, so the remaining jobs of its queue are for others.
func TestOrphansOfAQueueWhoseOnlyServerDrainsArePutBack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.startKeeper()
		w.leaveOrphans(1, 3)
		w.sleep(ttl / 2)
		draining := ports.Node{Owner: "d", Name: "d", Queues: []string{queueName}, Draining: true}
		w.announceNode(draining, 100*ttl)
		w.sleep(lookWithin)
		w.wantCounts(3, 0, 0, 0)
	})
}
