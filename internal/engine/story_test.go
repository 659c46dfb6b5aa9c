package engine_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/tier"
)

// Stories let nodes work through whatever can happen to them, by seeds: replies and requests are
// lost, calls come late, shards and stores hang, nodes stop, are killed and start, operators
// cancel and pause, handlers fail, panic and dawdle. A ledger checks all that the store carries
// out and all that runs; nothing spins, and every Run ends.
//
// SKEIN_STORIES is how many seeds to run, and SKEIN_STORY is the seed of a single one, with the
// nodes' logs.
func runStories(t *testing.T, count int, k storyKind) {
	tellStories(t, count, func(w *world, seed uint64) { newStory(w, seed, k).run() })
}

func tellStories(t *testing.T, count int, tell func(w *world, seed uint64)) {
	if n, err := strconv.Atoi(os.Getenv("SKEIN_STORIES")); err == nil {
		count = n
	}
	seeds := make([]uint64, count)
	for i := range seeds {
		seeds[i] = uint64(i)
	}
	if seed, err := strconv.ParseUint(os.Getenv("SKEIN_STORY"), 10, 64); err == nil {
		seeds = []uint64{seed}
	}
	for _, seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			defer func() {
				if t.Failed() {
					t.Logf("SKEIN_STORY=%d tells this story again", seed)
				}
			}()
			inWorld(t, func(w *world) { tell(w, seed) })
		})
	}
}

// TestStories is about nodes whose lanes have shards of their own.
func TestStories(t *testing.T) {
	runStories(t, tier.Count(5, 15), storyKind{
		ids:      12,
		steps:    60,
		step:     4 * time.Second,
		burst:    6,
		long:     60 * time.Second,
		lanes:    func(s *story) int { return 1 + s.n(3) },
		splitter: func(*story, int) core.Splitter { return core.LaneSplitter{} },
	})
}

// storyKind is the parameters of a kind of story.
type storyKind struct {
	ids int
	// first is how many jobs there are at first. burst bounds how many are pushed in each of the
	// steps, the longest of which takes step.
	first, burst int
	steps        int
	step         time.Duration
	// long bounds how long handlers run.
	long     time.Duration
	lanes    func(s *story) int
	splitter func(s *story, node int) core.Splitter
}

const (
	storyShards = 3
	storyNodes  = 2
)

// story is the events of one seed.
type story struct {
	*world
	storyKind
	seed   uint64
	ledger *ledger
	nodes  []*storyNode
	killed []*storyNode
	ids    []string
	score  float64
	// over is closed when no call is to be delayed any more.
	over    chan struct{}
	endOnce sync.Once

	// mu guards r, which draws the events on links. The plot and each execution have draws of their
	// own, so that a seed's story stays the same as far as possible.
	mu   sync.Mutex
	r    *rand.Rand
	plot *rand.Rand
	runs map[string]uint64
}

func newStory(w *world, seed uint64, k storyKind) *story {
	s := &story{
		world:     w,
		storyKind: k,
		seed:      seed,
		over:      make(chan struct{}),
		r:         rand.New(rand.NewPCG(seed, 12)),
		plot:      rand.New(rand.NewPCG(seed, 11)),
		runs:      make(map[string]uint64),
	}
	s.ledger = newLedger(w, map[string]int{queueName: storyShards}, core.RetryPolicy{
		MaxRetries: []int{2, 5, 1000}[s.n(3)], MaxRecoveries: 1 + s.n(3),
		Backoff: func(n, _ int) time.Duration { return time.Duration(min(n, 8)) * 600 * time.Millisecond },
	})
	for i := range k.ids {
		s.ids = append(s.ids, fmt.Sprintf("id-%d", i))
	}
	return s
}

// n draws a number of the plot.
func (s *story) n(n int) int { return s.plot.IntN(n) }

// run lets everything happen, then lets the nodes recover, and checks what became of the jobs.
func (s *story) run() {
	s.declare(storyShards)
	defer s.endDelays()
	for number := range storyNodes {
		s.startOne(number)
	}
	for _, id := range s.ids[:s.first] {
		s.pushOne(id)
	}
	for range s.steps {
		s.pushSome()
		s.disturb()
		s.sleep(time.Duration(s.n(int(s.step))))
	}
	for _, n := range s.nodes {
		n.heal()
	}
	s.awaitNothingLeft()
	s.endDelays()
	for _, n := range slices.Concat(s.nodes, s.killed) {
		n.stop()
		n.heal()
	}
	s.sleep(longestDelay) // for packets on their way
	s.ledger.close()
}

// endDelays ends the wait for calls to be delayed. It may be repeated.
func (s *story) endDelays() { s.endOnce.Do(func() { close(s.over) }) }

// pushSome pushes a payload for each of some ids; half of them for the first few, which are pushed
// again and again.
func (s *story) pushSome() {
	for range s.n(s.burst) {
		s.pushOne(s.ids[s.n([]int{len(s.ids), min(len(s.ids), 12)}[s.n(2)])])
	}
}

func (s *story) pushOne(id string) {
	s.score++
	data := fmt.Sprintf("p%v", s.score)
	s.ledger.push(queueName, core.Entry{ID: id, Payload: core.Payload{Data: []byte(data), Score: s.score}})
}

// awaitNothingLeft waits while the nodes make progress with the remaining jobs. Jobs on their last
// chance run one after another, so it may take hours; progress may not stop for twenty minutes.
func (s *story) awaitNothingLeft() {
	var ended int64
	for since := s.elapsed(); s.elapsed() < since+20*time.Minute; s.sleep(3 * time.Second) {
		stats := s.stats()
		if stats.Fresh+stats.Retrying+stats.Claimed == 0 {
			return
		}
		if n := stats.Processed + stats.Failed; n != ended {
			ended, since = n, s.elapsed()
		}
	}
	s.Errorf("twenty minutes without a job that ends: %+v", s.stats())
	for _, n := range s.nodes {
		s.Logf("%s:\n%s", n.owner, n.log.tail(15))
	}
}

func contains(payloads []core.Payload, data string) bool {
	return slices.ContainsFunc(payloads, func(p core.Payload) bool { return string(p.Data) == data })
}
