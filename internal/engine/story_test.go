package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// TestStories lets a few nodes work through whatever can happen to them, by seeds: replies
// and requests are lost, calls come late, shards and stores hang, nodes stop and start,
// operators cancel and pause. No payload is lost, no two executions of an id overlap unless
// the first one's context has ended, nothing spins, and every Run ends. SKEIN_STORIES is how
// many seeds to run.
func TestStories(t *testing.T) {
	stories := 15
	if n, err := strconv.Atoi(os.Getenv("SKEIN_STORIES")); err == nil {
		stories = n
	}
	for seed := range stories {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			inWorld(t, func(w *world) { newStory(w, uint64(seed)).run() })
		})
	}
}

const storyShards = 3

// story is what happens by one seed.
type story struct {
	*world
	mu    sync.Mutex
	r     *rand.Rand
	a     *audit
	nodes []*node
	ids   []string
	seen  map[string]map[string]bool
	want  map[string]map[string]bool
	score float64
	over  chan struct{}
	runs  map[string]context.Context
}

func newStory(w *world, seed uint64) *story {
	s := &story{world: w, over: make(chan struct{}), runs: make(map[string]context.Context), r: rand.New(rand.NewPCG(seed, 11)), a: w.audit(),
		seen: make(map[string]map[string]bool), want: make(map[string]map[string]bool)}
	for i := range 12 {
		s.ids = append(s.ids, fmt.Sprintf("id-%d", i))
	}
	return s
}

func (s *story) n(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.r.IntN(n)
}

var errStory = errors.New("a failure of the story")

func (s *story) handle(ctx context.Context, c *core.Claim) error {
	s.mu.Lock()
	if other := s.runs[c.ID]; other != nil && other.Err() == nil {
		s.Errorf("at %v: two executions for %s overlap", s.elapsed(), c.ID)
	}
	s.runs[c.ID] = ctx
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.runs[c.ID] == ctx {
			delete(s.runs, c.ID)
		}
	}()
	switch s.n(10) {
	case 0:
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Duration(s.n(60)) * time.Second):
		}
	case 1:
		time.Sleep(time.Duration(s.n(20)) * time.Second)
	case 2, 3:
		return errStory
	case 4:
		panic("of the story")
	default:
		time.Sleep(time.Duration(s.n(300)) * time.Millisecond)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range c.Payloads {
		if s.seen[c.ID] == nil {
			s.seen[c.ID] = make(map[string]bool)
		}
		s.seen[c.ID][string(p.Data)] = true
	}
	return nil
}

func (s *story) startOne() {
	schedulers := []core.SchedulerFunc{core.Lag, core.Seq, core.StrictBy(queueName), core.WeightedBy(nil)}
	s.nodes = append(s.nodes, s.start(s.a.watch(s.handle), shards(storyShards), lanes(1+s.n(3)), batches(1+s.n(3)*s.n(3)), func(o *setup) {
		o.queue.Policy.MaxRetries = 1000
		o.queue.Policy.MaxRecoveries = 1 + s.n(3)
		o.queue.Policy.Backoff = func(int, int) time.Duration { return time.Duration(s.n(5000)) * time.Millisecond }
		o.Scheduler = schedulers[s.n(len(schedulers))]
		o.LeaseTTL = 10 * time.Second
		o.ShutdownTimeout = 20 * time.Second
		o.noWakeups = s.n(4) == 0
		o.link.delay = time.Duration(s.n(3)) * time.Millisecond
	}))
}

func (s *story) pushSome() {
	id := s.ids[s.n(len(s.ids))]
	s.score++
	data := fmt.Sprintf("p%v", s.score)
	if s.want[id] == nil {
		s.want[id] = make(map[string]bool)
	}
	s.want[id][data] = true
	s.pushEntries(core.Entry{ID: id, Payload: core.Payload{Data: []byte(data), Score: s.score}})
}

// disturb does one bad thing.
func (s *story) disturb() {
	n := s.nodes[s.n(len(s.nodes))]
	odds := func(most int) func(string) bool {
		p := s.n(most)
		return func(string) bool { return s.n(100) < p }
	}
	switch s.n(14) {
	case 0:
		f := odds(40)
		n.link.change(func() { n.link.lose = f })
	case 1:
		f := odds(40)
		n.link.change(func() { n.link.refuse = f })
	case 2:
		n.link.set(hanging)
	case 3:
		n.link.set(down)
	case 4, 5, 6:
		n.heal()
	case 7, 8:
		method := []string{"Turn", "Turn", "Turn", "Acquire", "Renew", "Heads"}[s.n(6)]
		packets := n.link.delayNext(method)
		go func() {
			select {
			case deliver := <-packets:
				time.Sleep(time.Duration(s.n(25000)) * time.Millisecond)
				_ = deliver()
			case <-s.over:
			}
		}()
	case 9:
		shard := shardOfQueue(s.n(storyShards))
		n.link.change(func() { n.link.stuck[shard] = true })
	case 10:
		shard := shardOfQueue(s.n(storyShards))
		n.link.change(func() { n.link.broken[shard] = errDown })
	case 11:
		p := s.n(60)
		n.link.change(func() { n.link.deferSettlement = func(string) bool { return s.n(100) < p } })
	case 12:
		i := s.n(len(s.nodes))
		s.nodes[i].stop()
		s.nodes[i].heal()
		s.nodes = append(s.nodes[:i], s.nodes[i+1:]...)
		s.startOne()
	case 13:
		shard := s.n(storyShards)
		_, _ = s.store.Cancel(context.Background(), ports.CancelRequest{Shard: shardOfQueue(shard), IDs: s.ids})
		if s.n(2) == 0 {
			_ = s.store.Pause(context.Background(), queueName)
			time.Sleep(time.Duration(s.n(3000)) * time.Millisecond)
			_ = s.store.Resume(context.Background(), queueName)
		}
	}
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

// run lets everything happen, then lets the nodes recover, and checks what became of the jobs.
func (s *story) run() {
	s.declare(storyShards)
	s.a.allowOverlap = true
	for range 2 {
		s.startOne()
	}
	for range 60 {
		for range s.n(6) {
			s.pushSome()
		}
		s.disturb()
		s.sleep(time.Duration(s.n(4000)) * time.Millisecond)
	}
	for _, n := range s.nodes {
		n.heal()
	}
	s.sleep(10 * time.Minute)
	stats := s.stats()
	if stats.Fresh+stats.Retrying+stats.Claimed > 0 {
		s.Errorf("after the story: %+v", stats)
		for id := range s.want {
			s.Logf("%s: %+v", id, s.find(id))
		}
		for _, n := range s.nodes {
			s.Logf("%s:\n%s", n.owner, n.log.tail(15))
		}
	}
	close(s.over)
	for _, n := range s.nodes {
		n.stop()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, all := range s.want {
		for data := range all {
			if s.seen[id][data] {
				continue
			}
			if dead := s.find(id).DeadLetter; dead != nil && contains(dead.Payloads, data) {
				continue
			}
			s.Errorf("%s: %s was lost", id, data)
		}
	}
}

func contains(payloads []core.Payload, data string) bool {
	for _, p := range payloads {
		if string(p.Data) == data {
			return true
		}
	}
	return false
}
