package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/internal/dispatch"
)

// pool is k lanes and the shards that they work together. Any lane runs a batch of any of the
// shards, and many lanes may run batches of one shard at once. A node has one pool of all its
// lanes, or a pool of one lane for each set of shards that its splitter pins.
//
// The scheduler keeps its shards in two orders: by the jobs that may start, for the lanes, and by
// the jobs in the store, for grants. A grant is how many batches the next turn of a shard claims.
// The batches that are claimed or granted and have not started are bounded by what the lanes will
// start: one for each free lane, and those that start within dispatch.LookAhead.
type pool struct {
	node *node
	// laneCount is how many lanes there are to be. shared is set if they share all shards of the node.
	laneCount atomic.Int32
	shared    bool
	// custom is set if the scheduler is a user's.
	custom bool
	// manual is set if RunDue works the shards. Then nothing is granted or run by itself.
	manual bool

	// mu is node.pooling, which guards the fields below in all pools of the node.
	mu      *sync.Mutex
	lanes   []*lane
	members []*member
	chooser chooser
	// free are the lanes that wait; woken more are on their way. busy counts the lanes that run a
	// batch or are about to.
	free  []*lane
	woken int
	busy  int
	// supplies are the batches that lanes may start, apart for each limited queue. The first is that
	// of all queues without a limit.
	supplies []*supply
	// active counts the shards that have jobs claimed or on their way.
	active int
	starts dispatch.Recent
	pace   dispatch.Pace
	// skipped are the shards that need no grant while no lane is free.
	skipped []*member
	timer   *time.Timer
	timerAt time.Time
}

// newPool returns a pool with the given number of lanes, without shards.
func newPool(n *node, lanes int) *pool {
	p := &pool{node: n, starts: dispatch.Recent{Window: dispatch.LookAhead}, mu: &n.pooling}
	p.supplies = []*supply{{pool: p}}
	p.timer = time.AfterFunc(time.Hour, p.onTimer)
	p.timer.Stop()
	p.laneCount.Store(int32(lanes))
	p.addLanes(lanes)
	return p
}

// next returns the shard from which the lane takes a batch. It waits until there is one. It
// returns nil if the node stops, or is to have fewer lanes.
func (p *pool) next(l *lane) *shard {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.batchEnded(l)
	for !p.node.stopping() && !p.dismiss(l) {
		if m := p.chooser.next(p); m != nil {
			if p.custom { // the scheduler's time counts
				l.now = time.Time{}
			}
			l.working = m
			m.chosen++
			m.lanes++
			p.busy++
			p.recount(m)
			p.wakeLanes() // the demand is the same
			return m.shard
		}
		p.breakPromises()
		p.free = append(p.free, l)
		p.dispatch(p.node.clock.local())
		p.mu.Unlock()
		<-l.wake
		l.now = time.Time{}
		p.mu.Lock()
		p.unpark(l)
	}
	return nil
}

// unpark removes a woken lane from those that wait.
func (p *pool) unpark(l *lane) {
	if l.woken {
		l.woken = false
		p.woken--
		return
	}
	if p.node.stopping() { // then nobody is woken, and looking for each of many lanes is slow
		return
	}
	for i, f := range p.free {
		if f == l {
			p.free = append(p.free[:i], p.free[i+1:]...)
			return
		}
	}
}

// taken notes that a lane has taken a batch of the shard that was chosen for it, or that there was
// no batch after all. The lane is nil for RunDue. It takes the shard's current view. The caller
// holds shard.mu.
func (p *pool) taken(l *lane, m *member, ok bool, v view, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l != nil {
		m.chosen--
	}
	if ok {
		p.starts.Add(now)
	}
	p.show(m, v)
	p.dispatch(now)
}

// batchEnded notes how the lane's last batch ended.
func (p *pool) batchEnded(l *lane) {
	m := l.working
	if m == nil {
		return
	}
	l.working = nil
	m.lanes--
	p.busy--
	if l.ran {
		p.pace.Observe(l.took, 1)
	}
	p.chooser.ended(m, l.succeeded)
	p.recount(m)
	if limit := m.supply.limit; limit != nil {
		limit.running--
		m.supply.running--
		now := p.node.clock.local()
		limit.promise(now)
		p.dispatch(now)
	}
}

// update takes a shard's view. If news is set, the shard no longer waits for another job on its
// last chance. The caller holds shard.mu.
func (p *pool) update(m *member, v view, news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if news {
		m.awaitsChance = false
	}
	p.show(m, v)
	p.dispatch(p.node.clock.local())
}

// show takes a shard's view.
func (p *pool) show(m *member, v view) {
	m.view = v
	if m.skipped && m.early() > 0 {
		m.skipped = false
	}
	p.recount(m)
}

// awaitChance hides a shard while its next job waits for another one on its last chance. await is
// false when it need no longer wait.
func (p *pool) awaitChance(m *member, await bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.awaitsChance = await
	p.recount(m)
	p.dispatch(p.node.clock.local())
}

// startable returns how many batches lanes may start now.
func (p *pool) startable() (n int) {
	for _, s := range p.supplies {
		n += s.cut(s.startable)
	}
	return n
}

// dispatch grants what is in demand and wakes lanes for batches that may start. It is called after
// each change.
func (p *pool) dispatch(now time.Time) {
	defer p.reviewPermits()
	if p.manual || p.node.stopping() {
		return
	}
	for _, s := range p.supplies {
		s.unhold()
		s.limit.unhold(p)
	}
	p.grantDemand(now)
	p.wakeLanes()
	p.arm(p.chooser.nextLook(p, now))
}

// reviewPermits checks whether more or fewer permits are needed than before.
func (p *pool) reviewPermits() {
	for _, s := range p.supplies[1:] {
		s.limit.permits.review()
	}
}

// wakeLanes wakes lanes for batches that may start.
func (p *pool) wakeLanes() {
	for n := p.chooser.wanted(p) - p.woken; n > 0 && len(p.free) > 0; n-- {
		p.wakeLane()
	}
	for _, s := range p.supplies {
		if s.limit != nil && len(p.free) > 0 && s.startable > s.mayStart() {
			s.limit.wait(s)
		}
	}
}

// breakPromises passes on the turn of a lane that has found nothing to start.
func (p *pool) breakPromises() {
	for _, s := range p.supplies {
		if s.promised {
			s.breakPromise()
			s.limit.promise(p.node.clock.local())
		}
	}
}

// arm sets the timer for the next time at which to dispatch. It does nothing if that is zero.
func (p *pool) arm(at time.Time) {
	if at.IsZero() || !p.timerAt.IsZero() && !at.Before(p.timerAt) {
		return
	}
	p.timerAt = at
	p.timer.Reset(max(0, time.Until(at)))
}

func (p *pool) onTimer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timerAt = time.Time{}
	p.chooser.look()
	p.dispatch(p.node.clock.local())
}
