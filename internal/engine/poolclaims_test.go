package engine_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

// claimMeter is the store and the handlers of one node. With each turn it checks how many jobs the
// node has claimed, or requests, that have not started.
type claimMeter struct {
	*memory.Store
	*world
	lanes, batch int
	// ahead returns how many jobs may be claimed for lanes that are not free, by how many have
	// started within lookAhead.
	ahead func(started int) int

	mu        sync.Mutex
	unstarted map[core.ClaimRef]time.Duration
	busy      int
	starts    []time.Duration
	// longest is how long a claimed job has waited at most, and worst by how many jobs the bound
	// was exceeded at most.
	longest time.Duration
	worst   int
}

// lookAhead is how far ahead a node claims.
const lookAhead = 50 * time.Millisecond

func (m *claimMeter) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	reply, err := m.Store.Turn(ctx, r)
	for i := range r.Settlements {
		delete(m.unstarted, core.ClaimRef{ID: r.Settlements[i].ID, Receipt: r.Settlements[i].Receipt})
	}
	m.check(r)
	for i := range reply.Claims {
		m.unstarted[reply.Claims[i].Ref()] = m.elapsed()
	}
	return reply, err
}

// check checks the bound with a turn that requests jobs.
func (m *claimMeter) check(r ports.TurnRequest) {
	if r.Want == 0 {
		return
	}
	free := (m.lanes - m.busy) * m.batch
	held, bound := len(m.unstarted)+r.Want, free+m.ahead(m.startedLately()*11/10) // by estimates of the rate
	if over := held - bound; over > m.worst {
		m.worst = over
		m.Errorf("at %v: %d claimed, and %v wants %d, with %d places free and %d jobs started in %v; at most %d in all",
			m.elapsed(), len(m.unstarted), r.Lease.Shard, r.Want, free, m.startedLately(), lookAhead, bound)
	}
}

// startedLately returns how many jobs started in the last lookAhead, and a quarter more for those
// that were on their way to the store, or in as long before that: a node assumes that its earlier
// count continues.
func (m *claimMeter) startedLately() int {
	const window = lookAhead * 5 / 4
	last, _ := slices.BinarySearch(m.starts, m.elapsed()-window)
	before, _ := slices.BinarySearch(m.starts, m.elapsed()-2*window)
	return max(len(m.starts)-last, last-before)
}

// watch is a handler that takes the time that length returns.
func (m *claimMeter) watch(length func() time.Duration) handler {
	return func(_ context.Context, b *execution.Batch) error {
		m.mu.Lock()
		m.busy++
		for i := range b.Claims {
			m.longest = max(m.longest, m.elapsed()-m.unstarted[b.Claims[i].Ref()])
			delete(m.unstarted, b.Claims[i].Ref())
			m.starts = append(m.starts, m.elapsed())
		}
		m.mu.Unlock()
		if d := length(); d > 0 {
			time.Sleep(d)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.busy--
		return nil
	}
}

func always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

// longest returns the longest of many lengths.
func longest(length func() time.Duration) (most time.Duration) {
	for range 1000 {
		most = max(most, length())
	}
	return most
}

// A node claims for its free lanes, and for the jobs that start within 50 ms, over all its shards.
func TestWhatANodeClaimsIsBounded(t *testing.T) {
	t.Parallel()
	const exchange = time.Millisecond

	var mu sync.Mutex
	seeded := rand.New(rand.NewPCG(1, 2)) // A rare draw of lengths would break the bound.
	anyLength := func() time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(seeded.Int64N(int64(100 * time.Millisecond)))
	}
	byLanes := func(n int) func(int) int { return func(started int) int { return min(started, n) } }

	for name, c := range map[string]struct {
		shards, lanes, batch, jobs int
		prefetch                   int
		length                     func() time.Duration
		ahead                      func(started int) int
		// atLeast is how many jobs a second are to be done.
		atLeast int
	}{
		"long handlers":             {5, 10, 1, 100, 1000, always(time.Second), byLanes(0), 9},
		"long handlers, 100 shards": {100, 10, 1, 300, 1000, always(time.Second), byLanes(0), 9},
		"short handlers":            {5, 100, 1, 4000, 1000, always(10 * time.Millisecond), byLanes(500), 8000},
		"short handlers, 16 shards": {16, 100, 1, 4000, 1000, always(10 * time.Millisecond), byLanes(500), 8000},
		"short handlers in batches": {5, 20, 10, 4000, 1000, always(10 * time.Millisecond), byLanes(1000), 10000},
		"handlers of all lengths":   {5, 100, 1, 5000, 1000, anyLength, byLanes(200), 1500},
		"blank handlers": {5, 10, 1, 10000, 1000, always(0),
			func(started int) int { return started + core.MaxTurnJobs }, 10000},
		"one lane, 50 shards":   {50, 1, 1, 200, 1000, always(20 * time.Millisecond), byLanes(3), 40},
		"without prefetch":      {5, 10, 1, 1000, 0, always(10 * time.Millisecond), byLanes(0), 500},
		"batches, no prefetch":  {5, 10, 4, 1000, 0, always(10 * time.Millisecond), byLanes(0), 2000},
		"one lane, no prefetch": {50, 1, 1, 200, 0, always(time.Millisecond), byLanes(0), 200},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				m := &claimMeter{Store: w.store.Open(), world: w, lanes: c.lanes, batch: c.batch, ahead: c.ahead,
					unstarted: make(map[core.ClaimRef]time.Duration)}
				w.start(m.watch(c.length), shards(c.shards), pooled(c.lanes), batches(c.batch),
					roundTrip(exchange), func(s *setup) {
						s.Prefetch = c.prefetch
						s.link.swap(m)
					})

				w.sleep(2 * poll)
				w.fill(queueName, c.shards, c.jobs)
				w.sleep(time.Duration(c.jobs) * time.Second / time.Duration(c.atLeast))

				m.mu.Lock()
				defer m.mu.Unlock()
				if len(m.starts) < c.jobs {
					w.Errorf("%d of %d jobs have started; want %d a second", len(m.starts), c.jobs, c.atLeast)
				}
				if c.prefetch == 0 && m.longest > exchange { // half of it
					w.Errorf("a claimed job waited %v for a lane", m.longest)
				}
				if c.shards <= c.lanes && m.longest > 2*lookAhead+longest(c.length)+exchange {
					w.Errorf("a claimed job waited %v to start", m.longest)
				}
			})
		})
	}
}
