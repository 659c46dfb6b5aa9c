package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// TestMemberStories is about nodes that share queues by membership: they start, stop, are killed,
// hang and recover, are drained, and change their queues and lanes, while the store's clock jumps.
// Whatever happens, no id runs twice at once and, as memberWatch checks, no shard is forgotten.
func TestMemberStories(t *testing.T) {
	k := storyKind{ids: 12, steps: 40, step: 3 * time.Second, burst: 5, long: 9 * time.Second}
	tellStories(t, tier.Count(10, 40), func(w *world, seed uint64) { newMemberStory(w, seed, k).run() })
}

// memberStory is a story of nodes that share queues.
type memberStory struct {
	*story
	clock   *jumpingClock
	queues  []string
	members []*memberNode
	watch   *memberWatch
	ending  sync.WaitGroup
}

// memberNode is a node of a memberStory, and the queues that it serves.
type memberNode struct {
	*node
	process *process
	serves  map[string]bool
}

// jumpingClock is a store's clock that does not keep to the time.
type jumpingClock struct{ ahead atomic.Int64 }

func (c *jumpingClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func newMemberStory(w *world, seed uint64, k storyKind) *memberStory {
	s := &memberStory{clock: &jumpingClock{}}
	w.store = memory.New(memory.Options{Clock: s.clock.now})
	s.story = newStory(w, seed, k)
	s.ledger.queues = make(map[string]int)
	for i := range 1 + s.n(3) {
		queue := fmt.Sprintf("queue-%d", i)
		s.queues = append(s.queues, queue)
		s.ledger.queues[queue] = 1 + s.n(8)
	}
	s.watch = newMemberWatch(s)
	return s
}

// run lets everything happen, then lets the nodes recover, and checks which node works which
// shard, and what became of the jobs.
func (s *memberStory) run() {
	defer s.endDelays()
	for range 2 + s.n(3) {
		s.startMember()
	}

	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch.run(s.over)
	}()

	s.sleep(poll) // the queues are declared
	for range s.steps {
		s.pushSome()
		if s.n(2) == 0 {
			s.disturbMembers()
		}
		length := s.step
		if s.n(8) == 0 {
			length = 4 * memberTTL
		}
		s.sleep(time.Duration(s.n(int(length))))
	}

	s.healAll()
	s.sleep(memberTTL + 3*announceInterval + s.long + maxHeldPause)
	s.wantShared()
	s.awaitNothingLeft()
	s.endDelays()

	<-watched
	for _, n := range s.members {
		n.stop()
	}
	s.ending.Wait()
	s.sleep(longestDelay) // for packets on their way
	s.ledger.close()
}

// pushSome pushes payloads for ids of any queues.
func (s *memberStory) pushSome() {
	for range s.n(s.burst) {
		queue := s.queues[s.n(len(s.queues))]
		s.score++
		s.ledger.push(queue, core.Entry{
			ID:      queue + "/" + s.ids[s.n(len(s.ids))],
			Payload: core.Payload{Data: fmt.Appendf(nil, "p%v", s.score), Score: s.score},
		})
	}
}

// healAll ends all that was done to nodes and their links.
func (s *memberStory) healAll() {
	for _, n := range s.members {
		s.watch.well(n)
		n.heal()
	}
	for _, n := range s.members {
		_ = s.store.DrainNode(s.Context(), n.owner, false) // it may be unknown
	}
	for _, queue := range s.queues {
		if !slices.ContainsFunc(s.members, func(n *memberNode) bool { return n.serves[queue] }) {
			s.addQueue(s.members[0], queue)
		}
	}
}

// wantShared checks that each shard is held by the node that it is assigned to.
func (s *memberStory) wantShared() {
	reply, err := s.store.Nodes(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, queue := range s.queues {
		var serving []ports.Node
		for _, n := range reply.Nodes {
			if n.ExpiresAt > reply.Now && slices.Contains(n.Queues, queue) {
				serving = append(serving, n)
			}
		}
		stats := s.statsOf(queue)
		for i, owner := range spreadOver(s, queue, s.ledger.queues[queue], serving) {
			if shard := stats.Shards[i]; shard.Owner != owner || shard.ExpiresAt <= stats.Now {
				s.Errorf("at %v: %v is held by %q and is to be held by %q, of %v\n%s",
					s.elapsed(), shard.Shard, shard.Owner, owner, serving, s.logs(60))
			}
		}
	}
}

// logs returns the last lines of all nodes' logs.
func (s *memberStory) logs(lines int) (all string) {
	for _, n := range s.members {
		all += fmt.Sprintf("\n%s:\n%s", n.owner, n.log.tail(lines))
	}
	return all
}

// awaitNothingLeft waits while the nodes make progress with the remaining jobs.
func (s *memberStory) awaitNothingLeft() {
	var ended int64
	for since := s.elapsed(); s.elapsed() < since+10*time.Minute; s.sleep(3 * time.Second) {
		var open, now int64
		for _, queue := range s.queues {
			stats := s.statsOf(queue)
			open += stats.Fresh + stats.Retrying + stats.Claimed
			now += stats.Processed + stats.Failed
		}
		if open == 0 {
			return
		}
		if now != ended {
			ended, since = now, s.elapsed()
		}
	}
	s.Errorf("ten minutes without a job that ends:\n%s", s.logs(30))
}

// addQueue makes a running node serve a queue more.
func (s *memberStory) addQueue(n *memberNode, queue string) {
	if err := n.engine.AddQueue(s.queue(n.process, queue)); err == nil {
		n.serves[queue] = true
		s.watch.serves(n, queue, true)
	}
}

// removeQueue makes a running node serve a queue no longer.
func (s *memberStory) removeQueue(n *memberNode, queue string) {
	if len(n.serves) == 1 {
		return
	}
	s.watch.serves(n, queue, false)
	delete(n.serves, queue)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+s.n(3000))*time.Millisecond)
	defer cancel()
	_ = n.engine.RemoveQueue(ctx, queue) // it continues by itself
}
