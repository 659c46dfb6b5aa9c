package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

// announced returns a node's entry in the store's list.
func (w *world) announced(n *node) (found ports.Node, now core.Instant) {
	w.Helper()
	reply, err := w.store.Nodes(w.Context())
	w.must(err)
	for _, found = range reply.Nodes {
		if found.Owner == n.owner {
			return found, reply.Now
		}
	}
	w.Fatalf("at %v: the store does not list %s", w.elapsed(), n.owner)
	return found, now
}

func TestANodeAnnouncesWhatItIsAndDoes(t *testing.T) {
	inWorld(t, func(w *world) {
		began := core.InstantOf(time.Now())
		version := func(s *setup) { s.Version = "v1.2.3" }

		var length atomic.Int64
		length.Store(int64(time.Millisecond))
		n := w.start(each(func(context.Context, *core.Claim) error {
			time.Sleep(time.Duration(length.Load()))
			return nil
		}), spread, shards(1), lanes(2), batches(3), polling(time.Minute), version, func(s *setup) {
			s.queue.MaxLanes, s.queue.Parallel = 2, 3
		})

		w.sleep(time.Millisecond)
		w.pushEach(1000)
		w.sleep(50 * time.Millisecond) // jobs are claimed ahead by now
		length.Store(int64(time.Minute))
		w.sleep(2 * announceInterval)

		got, _ := w.announced(n)
		claimed := int(w.stats().Claimed)
		want := ports.Node{
			Owner:     n.owner,
			Name:      "node-1",
			Host:      "host",
			PID:       1,
			Lanes:     2,
			Queues:    []string{queueName},
			Version:   "v1.2.3",
			StartedAt: began,
			ExpiresAt: got.ExpiresAt,
			Status: ports.NodeStatus{
				Shards:    1,
				Running:   6,
				Busy:      2,
				Claimed:   claimed - 6,
				StartedAt: began,
				Queues: []ports.QueueStatus{
					{
						Queue:         queueName,
						MaxRetries:    got.Status.Queues[0].MaxRetries,
						MaxRecoveries: 3,
						MaxLanes:      2,
						Parallel:      3,
						BatchSize:     3,
						Shards:        1,
						Running:       6,
						Busy:          2,
						Claimed:       claimed - 6,
						Code:          map[string]string{core.SettingMaxLanes: "2"},
					},
				},
			},
		}

		if st := &got.Status; st.Memory < 1<<20 || st.Goroutines < 2 {
			w.Errorf("%d bytes and %d goroutines are announced", st.Memory, st.Goroutines)
		}
		w.checkLongest(got.Status.Longest, 2) // of each batch the one that has begun
		if diff := cmp.Diff(
			want, got, cmpopts.IgnoreFields(ports.NodeStatus{}, "Memory", "Goroutines", "Longest"),
		); diff != "" {
			w.Errorf("what the node announces (-want +got):\n%s", diff)
		}
		if claimed <= 6 {
			w.Errorf("%d jobs are claimed, want more than the 6 that run", claimed)
		}

		w.drain(n, true)
		w.sleep(2 * announceInterval)
		got, _ = w.announced(n)
		if got.Status.Shards != 1 || got.Status.Running != 6 || got.Status.Busy != 2 || got.Status.Claimed != 0 {
			w.Errorf("the status of a node that drains is %+v, want that it holds its shard while 6 jobs run",
				got.Status)
		}
	})
}

// A node names the jobs that have run longest, not those that began last.
func TestANodeAnnouncesTheJobsThatRunLongest(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(func(context.Context, *execution.Batch) error {
			time.Sleep(time.Hour)
			return nil
		}, spread, shards(1), lanes(20), batches(2), polling(time.Minute))
		w.sleep(time.Millisecond)
		for i := range 20 {
			w.pushEntries(
				core.Entry{ID: fmt.Sprintf("%02d a", i), Payload: core.Payload{Data: []byte("x")}},
				core.Entry{ID: fmt.Sprintf("%02d b", i), Payload: core.Payload{Data: []byte("x")}})
			w.sleep(time.Second)
		}
		w.sleep(2 * announceInterval)
		got, _ := w.announced(n)
		w.checkLongest(got.Status.Longest, ports.MaxLongest)
		if last := got.Status.Longest[ports.MaxLongest-1]; last.ID[:2] != "15" {
			w.Errorf("the last of the longest is %q, want one of the 16th push", last.ID)
		}
	})
}

// checkLongest checks that the running jobs that a node announces are the given number of claimed
// ones, each once, that began at their Began at the latest, the longest first.
func (w *world) checkLongest(jobs []ports.RunningJob, want int) {
	w.Helper()
	page, err := w.store.Claimed(w.Context(), ports.PageRequest{Queue: queueName, Limit: 1000})
	if err != nil {
		w.Fatal(err)
	}
	claimed := make(map[string]ports.ClaimView)
	for _, c := range page.Claims {
		claimed[c.ID] = c
	}
	if len(jobs) != want {
		w.Errorf("%d running jobs are announced, want %d", len(jobs), want)
	}
	for i, j := range jobs {
		c, ok := claimed[j.ID]
		switch {
		case !ok || j.Shard != c.Shard || j.Receipt != c.Receipt:
			w.Errorf("%+v is announced as running, which is not claimed so", j)
		case j.Began < c.Since || i > 0 && j.Began < jobs[i-1].Began:
			w.Errorf("job %d of the longest, %q, began at %d; it was claimed at %d", i, j.ID, j.Began, c.Since)
		}
		delete(claimed, j.ID)
	}
}

// An announcement that gets no answer is repeated soon, however often that happens.
func TestALostAnnouncementIsRepeatedSoon(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), spread, shards(2))
		w.sleep(poll)
		least := memberTTL
		for range 12 {
			n.link.delayNext("Announce")
			for range 60 {
				w.sleep(3 * announceInterval / 60)
				node, now := w.announced(n)
				least = min(least, node.ExpiresAt.Sub(now))
			}
		}
		if want := memberTTL - 2*announceInterval - 100*time.Millisecond; least < want {
			w.Errorf("an announcement lasted only %v more, want at least %v", least, want)
		}
	})
}

// A node that dies is missed when its announcement ends, and not an interval later.
func TestADeadNodeIsMissedWhenItsAnnouncementEnds(t *testing.T) {
	inWorld(t, func(w *world) {
		events := &memberEvents{}
		n := w.start(each(succeed), spread, shards(2), func(s *setup) { s.Observer = events })
		w.sleep(poll)
		lives := w.start(each(succeed), spread, shards(2))
		w.sleep(poll / 2)
		dies := w.start(each(succeed), spread, shards(2))

		w.sleep(2*memberTTL + poll/4)
		dies.cutOff()
		node, now := w.announced(dies)
		left := node.ExpiresAt.Sub(now)
		heard := len(events.heard())

		w.sleep(left - time.Millisecond)
		if more := events.heard()[heard:]; len(more) > 0 {
			w.Errorf("before the announcement ends the others hear %q", more)
		}

		w.sleep(3 * announcePause)
		if got, want := events.heard()[heard:], []string{"node-3 left"}; !cmp.Equal(got, want) {
			w.Errorf("when the announcement has ended the others hear %q, want %q", got, want)
		}

		lives.stop()
		w.sleep(poll)
		before := n.link.count("Announce")
		w.sleep(10 * announceInterval)
		if calls := n.link.count("Announce") - before; calls > 10 {
			w.Errorf("a node that is alone announces itself %d times in 10 intervals", calls)
		}
	})
}

// announcePause is the least time between two announcements of a node.
const announcePause = 10 * time.Millisecond

// The shards of a node that stops are taken although handlers of another one run on.
func TestAStoppingNodeSaysThatItDrains(t *testing.T) {
	inWorld(t, func(w *world) {
		stays := w.start(each(succeed), spread, shards(8))
		w.sleep(poll)
		goes := w.start(each(lasting(10*time.Second)), spread, shards(8))
		w.sleep(3 * memberTTL)
		for i, s := range w.stats().Shards {
			if s.Owner == goes.owner {
				w.push(idIn(i, 8), "x")
				break
			}
		}
		w.wantCounts(0, 1, 0, 0)
		goes.cancel()
		w.sleep(100 * time.Millisecond)
		goes.wantLines(0, "an operator drains this server")
		goes.wantLines(1, "share of a queue has changed", "DEBUG", "shards=0")
		w.wantOwners(map[string]int{stays.owner: 7, goes.owner: 1})
		if got, _ := w.announced(goes); !got.Draining {
			w.Errorf("the store lists %+v, want that it drains", got)
		}
		w.sleep(10 * time.Second)
		w.wantOwners(map[string]int{stays.owner: 8})
		stays.wantLines(1, "share of a queue has changed", "INFO", "shards=4 of=8 servers=2")
		stays.wantLines(2, "share of a queue has changed", "DEBUG", "shards=8 of=8 servers=1") // alone it has them all
	})
}

// A node that drains also gives up shards that no other node takes, and logs it once.
func TestANodeThatDrainsAloneWorksNothing(t *testing.T) {
	for name, splitter := range map[string]core.Splitter{
		"shards that nodes share": core.SpreadSplitter{}, "shards that are pinned to its lanes": core.LaneSplitter{},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				events := &memberEvents{}
				n := w.start(each(succeed), spread, shards(4),
					func(s *setup) { s.Splitter, s.Observer = splitter, events })

				w.sleep(poll)
				w.wantOwners(even(4, n))
				w.drain(n, true)
				w.sleep(100 * time.Millisecond)
				w.wantOwners(map[string]int{})

				w.push("waits", "x")
				w.sleep(10 * announceInterval)
				w.wantCounts(1, 0, 0, 0)
				if told := n.log.count("an operator drains this server"); told != 1 {
					w.Errorf("the log says %d times that the node drains, want once", told)
				}

				w.drain(n, false)
				w.sleep(100 * time.Millisecond)
				w.wantOwners(even(4, n))
				w.wantCounts(0, 0, 1, 0)

				want := []string{"node-1 joined", "gained 4", "node-1 drains", "lost 4", "node-1 resumed", "gained 4"}
				if diff := cmp.Diff(want, events.heard()); diff != "" {
					w.Errorf("what the observer heard (-want +got):\n%s", diff)
				}

				n.wantLines(0, "it is a standby")
				n.wantLines(3, "share of a queue has changed")
				n.wantLines(1, "share of a queue has changed", "INFO", "shards=0 of=4")
			})
		})
	}
}

// A node without shards announces that it holds none.
func TestANodeThatStandsByHoldsNoShards(t *testing.T) {
	inWorld(t, func(w *world) {
		nodes := []*node{w.start(each(succeed), spread, shards(1)), w.start(each(succeed), spread, shards(1))}
		w.sleep(3 * memberTTL)
		owners := w.owners()
		for _, n := range nodes {
			if got, _ := w.announced(n); got.Status.Shards != owners[n.owner] {
				w.Errorf("%s announces %d shards, and holds %d", n.owner, got.Status.Shards, owners[n.owner])
			}
		}
	})
}

// A change that a node does not see between two of its announcements changes its share all the
// same.
func TestANodeThatIsReplacedUnseenLeavesNoShardBehind(t *testing.T) {
	inWorld(t, func(w *world) {
		options := []func(*setup){spread, shards(24), noWakeups}
		stays := w.start(each(succeed), options...)
		goes := w.start(each(succeed), options...)
		w.sleep(3*memberTTL + 100*time.Millisecond)
		w.wantOwners(even(24, stays, goes))
		before := stays.link.count("Announce")
		goes.stop()
		comes := w.start(each(succeed), options...)
		w.sleep(time.Millisecond)
		if stays.link.count("Announce") != before {
			w.Fatal("the node has announced itself meanwhile, so that this test tests nothing")
		}
		w.sleep(3 * memberTTL)
		w.wantOwners(even(24, stays, comes))
	})
}

// splitFunc is a splitter of a user.
type splitFunc func(r core.SplitRequest) (core.Split, error)

func (f splitFunc) Split(r core.SplitRequest) (core.Split, error) { return f(r) }

// A splitter sees the nodes in order, including the one that calls it. While it fails, the shards
// stay where they are.
func TestAUsersSplitterSeesTheNodesAndMayFail(t *testing.T) {
	inWorld(t, func(w *world) {
		var fails atomic.Bool

		split := func(s *setup) {
			s.Splitter = splitFunc(func(r core.SplitRequest) (core.Split, error) {
				ids := make([]string, len(r.Nodes))
				for i, n := range r.Nodes {
					ids[i] = n.ID
				}
				if !slices.IsSorted(ids) || !slices.Contains(ids, r.Self) {
					w.Errorf("at %v: %s is asked to split for %q", w.elapsed(), r.Self, ids)
				}
				if fails.Load() {
					return core.Split{}, errors.New("no idea")
				}
				return core.SpreadSplitter{}.Split(r)
			})
		}

		first := w.start(each(succeed), spread, shards(8), split)
		w.sleep(poll)
		fails.Store(true)
		w.start(each(succeed), spread, shards(8))
		w.sleep(2 * memberTTL)
		w.wantOwners(even(8, first))
		first.wantLines(1, "the splitter failed; this server keeps the shards that it has", "no idea")

		fails.Store(false)
		w.start(each(succeed), spread, shards(8))
		w.sleep(2 * memberTTL)
		if n := w.owners()[first.owner]; n > 3 {
			w.Errorf("the first of three nodes works %d of 8 shards", n)
		}
	})
}

// A node with more lanes gets more shards.
func TestTheShareOfANodeFollowsItsLanes(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.start(each(succeed), spread, shards(8))
		b := w.start(each(succeed), spread, shards(8))
		w.sleep(3*memberTTL + 100*time.Millisecond)
		w.wantOwners(even(8, a, b))
		w.must(a.engine.SetLanes(60))
		w.sleep(announceInterval + 200*time.Millisecond)
		w.wantOwners(map[string]int{a.owner: 6, b.owner: 2})
	})
}
