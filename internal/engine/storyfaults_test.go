package engine_test

import (
	"context"
	"slices"
	"time"
)

// draw draws a number for an event on a link.
func (s *story) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.IntN(n)
}

// disturb does one bad thing.
func (s *story) disturb() {
	i := s.n(len(s.nodes))
	n := s.nodes[i]
	switch s.n(18) {
	case 0:
		odds := s.odds(40)
		n.link.change(func() { n.link.lose = odds })
	case 1:
		odds := s.odds(40)
		n.link.change(func() { n.link.refuse = odds })
	case 2:
		n.link.set(hanging)
	case 3:
		n.link.set(down)
	case 4, 5, 6:
		n.heal()
	case 7, 8:
		s.delayOne(n)
	case 9:
		shard := shardOfQueue(s.n(storyShards))
		n.link.change(func() { n.link.stuck[shard] = true })
	case 10:
		shard := shardOfQueue(s.n(storyShards))
		n.link.change(func() { n.link.broken[shard] = errDown })
	case 11:
		odds := s.odds(60)
		n.link.change(func() { n.link.deferSettlement = odds })
	case 12, 13:
		s.restart(i)
	case 14:
		s.kill(i)
	case 15:
		s.ledger.cancel(queueName, s.n(2) == 0, s.ids...)
	case 16:
		from := s.n(len(s.ids))
		s.ledger.cancel(queueName, s.n(2) == 0, s.ids[from:min(from+10, len(s.ids))]...)
	case 17:
		_ = s.store.Pause(context.Background(), queueName)
		s.sleep(time.Duration(s.n(3000)) * time.Millisecond)
		_ = s.store.Resume(context.Background(), queueName)
	}
}

// odds is true in as many of 100 cases as it is drawn.
func (s *story) odds(most int) func(string) bool {
	p := s.n(most)
	return func(string) bool { return s.draw(100) < p }
}

// longestDelay bounds how late a call comes: in a new lease, too.
const longestDelay = 25 * time.Second

// delayOne makes a node's next call of some method come late, after its sender has given it up or
// made it again.
func (s *story) delayOne(n *storyNode) {
	method := []string{"Turn", "Turn", "Turn", "Acquire", "Renew", "Heads"}[s.n(6)]
	late := time.Duration(s.n(int(longestDelay)))
	packets := n.link.delayNext(method)
	go func() {
		select {
		case deliver := <-packets:
			time.Sleep(late)
			_ = deliver()
		case <-s.over:
		}
	}()
}

// restart stops a node, often over a link that is well, and starts another one in its place.
func (s *story) restart(i int) {
	n := s.nodes[i]
	healthy := s.n(3) > 0
	if healthy {
		n.heal()
	}
	n.stop()
	if left := s.ledger.left[n.owner]; healthy && len(left) > 0 {
		s.Errorf("at %v: %s has released claims that it did not put back: %v; its log:\n%s",
			s.elapsed(), n.owner, left, n.log.tail(30))
	}
	n.heal() // for packets that it left on their way
	s.nodes = slices.Delete(s.nodes, i, i+1)
	s.startOne(n.number)
}

// kill ends a node's process, and starts another one in its place.
func (s *story) kill(i int) {
	n := s.nodes[i]
	s.ledger.kill(n.process)
	n.cutOff()
	n.cancel()
	s.killed = append(s.killed, n)
	s.nodes = slices.Delete(s.nodes, i, i+1)
	s.startOne(n.number)
}

// heal ends all that disturb did to a node's link.
func (n *node) heal() {
	n.link.change(func() {
		n.link.state = up
		n.link.lose = func(string) bool { return false }
		n.link.refuse = func(string) bool { return false }
		n.link.deferSettlement = func(string) bool { return false }
		clear(n.link.broken)
		clear(n.link.stuck)
		clear(n.link.late)
	})
}
