package engine_test

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
)

// queue is a queue of the story as a node serves it.
func (s *memberStory) queue(p *process, name string) *engine.Queue {
	q := newQueue(name, s.eachJob(p))
	q.Shards, q.Policy, q.Outcome, q.BatchSize = s.ledger.queues[name], s.ledger.policy, storyOutcome, 1+s.n(2)*s.n(3)
	q.MaxLanes = []int{0, 0, 2}[s.n(3)]
	return q
}

// startMember starts a node that serves some queues, with options that nobody has chosen.
func (s *memberStory) startMember() {
	n := &memberNode{process: &process{}, serves: make(map[string]bool)}
	var queues []*engine.Queue
	for _, at := range s.plot.Perm(len(s.queues))[:1+s.n(len(s.queues))] {
		n.serves[s.queues[at]] = true
		queues = append(queues, s.queue(n.process, s.queues[at]))
	}
	if len(s.members) == 0 { // somebody serves each of them
		for _, name := range s.queues {
			if !n.serves[name] {
				n.serves[name] = true
				queues = append(queues, s.queue(n.process, name))
			}
		}
	}
	n.node = s.start(nil, spread, lanes(2+s.n(7)), serving(queues...), func(o *setup) {
		o.Scheduler = []core.SchedulerFunc{core.Lag, core.Seq}[s.n(2)]
		o.ShutdownTimeout = 20 * time.Second
		o.noWakeups = s.n(4) == 0
		o.link.delay = time.Duration(s.n(3)) * time.Millisecond
		o.link.swap(s.ledger.open())
		if os.Getenv("SKEIN_STORY") == "" {
			o.Logger = slog.New(notOfJobs{o.Logger.Handler()})
		}
	})
	s.members = append(s.members, n)
	s.watch.started(n)
}

// disturbMembers does one thing to a node, or to the store's clock.
func (s *memberStory) disturbMembers() {
	i := s.n(len(s.members))
	n := s.members[i]
	switch s.n(17) {
	case 1:
		s.hang(n, hanging, memberTTL/2)
	case 2, 3:
		s.hang(n, hanging, 3*memberTTL)
	case 4:
		s.hang(n, down, 2*memberTTL)
	case 5, 0:
		s.shake(n)
	case 6, 7:
		s.kill(i)
	case 8, 9:
		s.stop(i)
	case 10, 11:
		if len(s.members) < 6 {
			s.startMember()
		}
	case 12:
		s.watch.event(n)
		_ = s.store.DrainNode(context.Background(), n.owner, true)
	case 13:
		for _, n := range s.members {
			_ = s.store.DrainNode(context.Background(), n.owner, false)
		}
	case 14:
		queue := s.queues[s.n(len(s.queues))]
		if n.serves[queue] {
			s.removeQueue(n, queue)
		} else {
			s.addQueue(n, queue)
		}
	case 15:
		_ = n.engine.SetLanes(1 + s.n(9)) // it may have ended
	case 16:
		s.jump()
	}
}

// jump sets the store's clock forwards or backwards. Leases that it ends at once are over before
// their holders know.
func (s *memberStory) jump() {
	by := time.Duration(s.n(int(6*memberTTL))) - 3*memberTTL
	s.ledger.mu.Lock()
	if by > 0 {
		s.ledger.excused = s.elapsed() + memberTTL
	}
	s.clock.ahead.Add(int64(by))
	s.ledger.mu.Unlock()
	s.watch.eventForAll()
}

// hang lets a node's link be in a state for up to some time.
func (s *memberStory) hang(n *memberNode, state linkState, most time.Duration) {
	s.watch.unwell(n, false)
	n.link.set(state)
	s.healLater(n, time.Duration(1+s.n(int(most))))
}

// shake makes a node's link lose requests and replies, of all calls or of one method, and deliver
// some late.
func (s *memberStory) shake(n *memberNode) {
	s.watch.unwell(n, true)
	lose, refuse := s.odds(50), s.odds(50)
	if only := []string{"", "Acquire", "Announce", "Renew", "Release", "Turn"}[s.n(6)]; only != "" {
		p, q := s.n(101), s.n(101)
		lose = func(method string) bool { return method == only && s.draw(100) < p }
		refuse = func(method string) bool { return method == only && s.draw(100) < q }
	}
	n.link.change(func() { n.link.lose, n.link.refuse = lose, refuse })
	for range s.n(4) {
		s.delayOne(&storyNode{node: n.node})
	}
	s.healLater(n, time.Duration(1+s.n(int(3*memberTTL))))
}

func (s *memberStory) healLater(n *memberNode, after time.Duration) {
	s.ending.Go(func() {
		select {
		case <-time.After(after):
		case <-s.over:
		}
		s.ledger.mu.Lock()
		killed := n.process.killed
		s.ledger.mu.Unlock()
		if !killed {
			s.watch.well(n)
			n.heal()
		}
	})
}

// kill ends a node's process. Mostly another one starts in its place, sooner or later.
func (s *memberStory) kill(i int) {
	n := s.members[i]
	s.watch.gone(n)
	s.ledger.kill(n.process)
	n.cutOff()
	n.cancel()
	s.leave(i)
	s.ending.Go(func() {
		<-s.over
		n.stop()
	})
}

// stop stops a node.
func (s *memberStory) stop(i int) {
	n := s.members[i]
	s.watch.stops(n)
	s.leave(i)
	n.cancel()
	s.ending.Go(func() {
		n.awaitEnd()
		s.watch.gone(n)
		s.ledger.mu.Lock()
		defer s.ledger.mu.Unlock()
		if left := s.ledger.left[n.owner]; len(left) > 0 {
			s.Errorf("at %v: %s has released claims that it did not put back: %v", s.elapsed(), n.owner, left)
		}
	})
}

func (s *memberStory) leave(i int) {
	s.members = slices.Delete(s.members, i, i+1)
	if len(s.members) < 2 || s.n(2) == 0 {
		s.startMember()
	}
}
