package engine

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/dispatch"
)

// pool is lanes and the shards that they work together. Any lane runs a batch of any of the
// shards, and many lanes may run batches of one shard at once. A node has one pool of all its
// lanes, or a pool of one lane for each set of shards that its splitter pins.
//
// Its state decides. Each method here is an event: it locks node.pooling, which guards the states
// of all pools, calls the state, and carries out the actions (node.unlockPools).
type pool struct {
	node *node
	// laneCount is how many lanes there are to be. shared is set if they share all shards of the
	// node.
	laneCount atomic.Int32
	shared    bool

	// node.pooling guards the fields below. timer calls onTimer when the state wants to look.
	state *dispatch.Pool
	lanes []*lane
	timer *time.Timer
}

// newPool returns a pool with the given number of lanes, without shards.
func newPool(n *node, lanes int) *pool {
	p := &pool{node: n}
	p.state = n.dispatcher.NewPool(p, lanes)
	p.timer = time.AfterFunc(time.Hour, p.onTimer)
	p.timer.Stop()
	p.laneCount.Store(int32(lanes))
	p.addLanes(lanes)
	return p
}

// unlockPools unlocks node.pooling and carries out the actions of the states. It sets timers
// before, so that they are set in the order of the events.
func (n *node) unlockPools() {
	if !n.dispatcher.Pending() {
		n.pooling.Unlock()
		return
	}

	var buf [4]dispatch.Action
	actions := n.dispatcher.Actions(buf[:0])
	for i := range actions {
		if a := &actions[i]; a.Kind == dispatch.Look {
			a.Pool.Of.(*pool).timer.Reset(max(0, time.Until(a.Pool.LookAt())))
		}
	}

	n.pooling.Unlock()
	for i := range actions {
		switch a := &actions[i]; a.Kind {
		case dispatch.WakeLane:
			signal(a.Lane.Of.(*lane).wake)
		case dispatch.Turn:
			signal(a.Shard.Of.(*shard).wake)
		case dispatch.ReviewPermits:
			signal(n.permitsNow)
		case dispatch.ReviewSlots:
			signal(n.slotsNow)
		}
	}
}

// moment returns a time of this process as the states take it.
func (n *node) moment(local time.Time) dispatch.Now {
	return dispatch.Now{Local: local, Store: n.clock.Steady(local)}
}

// now is moment for the present time.
func (n *node) now() dispatch.Now { return n.moment(n.clock.Local()) }

// next returns the shard from which the lane takes a batch. It waits until there is one. It
// returns nil if the node stops, or is to have fewer lanes.
func (p *pool) next(l *lane) *shard {
	step := p.step(l)
	for {
		switch {
		case step.Run != nil:
			return step.Run.Of.(*shard)
		case step.End:
			return nil
		case step.Ask != nil:
			step = p.ask(l, step.Ask)
		default:
			<-l.wake
			l.now = time.Time{}
			step = p.step(l)
		}
	}
}

// step notes how the lane's last batch has ended, and returns what the lane does next.
func (p *pool) step(l *lane) dispatch.Step {
	p.node.pooling.Lock()
	defer p.node.unlockPools()
	if l.now.IsZero() || p.state.Asks() {
		l.now = p.node.clock.Local()
	}
	now := p.node.moment(l.now)
	p.state.BatchEnded(&l.state, l.ran, l.succeeded, l.took, now)
	return p.take(l, p.state.Next(&l.state, now))
}

// take notes the lane's next step.
func (p *pool) take(l *lane, step dispatch.Step) dispatch.Step {
	switch {
	case step.End:
		at := slices.Index(p.lanes, l)
		p.lanes = slices.Delete(p.lanes, at, at+1)
	case step.Run == nil && step.Ask == nil:
		p.state.Wait(&l.state, p.node.now())
	}
	return step
}

// ask asks the user's scheduler, and returns what the lane does next. If the scheduler ends the
// goroutine, its answer is to wait.
func (p *pool) ask(l *lane, q *dispatch.Question) (step dispatch.Step) {
	choice := core.Choice{Index: -1}
	defer func() {
		p.node.pooling.Lock()
		defer p.node.unlockPools()
		l.now = p.node.clock.Local() // the scheduler's time counts
		step = p.take(l, p.state.Answer(&l.state, q, choice, p.node.moment(l.now)))
	}()
	for _, e := range q.Ends {
		q.Scheduler.Ran(e.Index, e.OK)
	}
	choice = q.Scheduler.Next(q.Now.Store, q.Heads)
	return step
}

// taken notes that a lane has taken a batch of the shard that was chosen for it, or that there was
// no batch after all. chosen is false where no lane was chosen. It takes the shard's current view.
// The caller holds shard.mu.
func (p *pool) taken(s *shard, chosen, ok bool, now time.Time) {
	v := s.view()
	p.node.pooling.Lock()
	defer p.node.unlockPools()
	p.state.Taken(s.member, chosen, ok, v, p.node.moment(now))
}

// update takes a shard's view. If news is set, the shard no longer waits for another job on its
// last chance. The caller holds shard.mu.
func (p *pool) update(s *shard, news bool) {
	v := s.view()
	p.node.pooling.Lock()
	defer p.node.unlockPools()
	p.state.Show(s.member, v, news, p.node.now())
}

// awaitChance hides a shard while its next job waits for another one on its last chance. await is
// false when it need no longer wait.
func (p *pool) awaitChance(s *shard, await bool) {
	p.node.pooling.Lock()
	defer p.node.unlockPools()
	p.state.Await(s.member, await, p.node.now())
}

// hasGrant reports whether the shard has a grant that no turn carries yet.
func (p *pool) hasGrant(s *shard) bool {
	p.node.pooling.Lock()
	defer p.node.pooling.Unlock()
	return s.member.Granted() > 0
}

// takeGrant returns how many batches the turn that is being made is to claim.
func (p *pool) takeGrant(s *shard) int {
	p.node.pooling.Lock()
	defer p.node.unlockPools()
	return p.state.Carry(s.member, p.node.now())
}

// grantAnswered notes that the turn that carried the shard's grant has brought the given number of
// batches. more is true if the store has others. The caller holds shard.mu.
func (p *pool) grantAnswered(s *shard, batches int, more bool) {
	v := s.view()
	p.node.pooling.Lock()
	defer p.node.unlockPools()
	p.state.Answered(s.member, batches, more, v, p.node.now())
}

// revokeGrant ends a grant that gets no answer. The caller holds shard.mu.
func (p *pool) revokeGrant(s *shard) {
	v := s.view()
	p.node.pooling.Lock()
	defer p.node.unlockPools()
	p.state.Lost(s.member, v, p.node.now())
}

// grantByHand grants to a shard in RunDue.
func (p *pool) grantByHand(s *shard, batches int) {
	p.node.pooling.Lock()
	defer p.node.unlockPools()
	p.state.GrantByHand(s.member, batches)
}

func (p *pool) onTimer() {
	p.node.pooling.Lock()
	defer p.node.unlockPools()
	p.state.Look(p.node.now())
}

// setShards adds shards to those of the pool, forgets those of removed queues, and gives the pool a
// new scheduler, which has no record of earlier choices. A removed queue's shards stay until their
// loops have ended. queues are those that the node serves. One goroutine at a time may call it.
func (p *pool) setShards(more []*shard, build core.SchedulerFunc, queues map[string]*Queue) error {
	c := core.SchedulerConfig{PollInterval: p.node.cfg.PollInterval}
	members := p.nextShards(more)
	for _, m := range members {
		c.Shards = append(c.Shards, m.Of.(*shard).ID)
	}
	order, scheduler := dispatch.NewOrder(build, c)
	if err := checkScheduler(scheduler, queues); err != nil {
		return err
	}
	p.node.pooling.Lock()
	defer p.node.unlockPools()
	p.state.SetShards(members, order, p.node.now())
	return nil
}

// nextShards returns the shards that the pool is to have.
func (p *pool) nextShards(more []*shard) (members []*dispatch.Shard) {
	p.node.pooling.Lock()
	defer p.node.pooling.Unlock()
	for _, m := range p.state.Shards() {
		if !m.Of.(*shard).queue.gone.Load() {
			members = append(members, m)
		}
	}
	for _, s := range more {
		s.pool, s.member = p, p.state.NewShard(s, s.queue.BatchSize, s.queue.limit)
		members = append(members, s.member)
	}
	return members
}

// addLanes adds lanes that do not run yet, and returns them.
func (p *pool) addLanes(n int) []*lane {
	before := len(p.lanes)
	for range n {
		p.lanes = append(p.lanes, newLane(p, int(p.node.laneNumbers.Add(1))-1))
	}
	return p.lanes[before:]
}

// startLanes lets lanes run.
func (p *pool) startLanes(lanes []*lane) {
	for _, l := range lanes {
		p.node.lanesRunning.Add(1)
		go l.run()
	}
}

// setLanes makes the pool have n lanes. Surplus lanes end when they are free.
func (p *pool) setLanes(n int) {
	p.node.pooling.Lock()
	defer p.node.unlockPools()
	p.laneCount.Store(int32(n))
	p.startLanes(p.addLanes(p.state.SetLanes(n)))
}

// nodeLanes returns how many lanes the node is to have, in this pool and others.
func (p *pool) nodeLanes() int {
	if p.shared {
		return int(p.laneCount.Load())
	}
	return p.node.cfg.Lanes
}

// stop ends all grants, and wakes the lanes, which end.
func (p *pool) stop() {
	p.node.pooling.Lock()
	defer p.node.pooling.Unlock()
	p.node.dispatcher.Stop()
	for _, l := range p.lanes {
		signal(l.wake)
	}
}

// full reports whether all lanes run batches, or are about to.
func (p *pool) full() bool {
	p.node.pooling.Lock()
	defer p.node.pooling.Unlock()
	return p.state.Full()
}
