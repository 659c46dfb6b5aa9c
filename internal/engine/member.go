package engine

import (
	"slices"

	"github.com/skeinq/skein/core"
)

// member is a pool's knowledge of a shard.
type member struct {
	view
	shard  *shard
	pool   *pool
	index  int
	supply *supply
	// active is set if jobs of the shard are claimed or on their way.
	active bool
	// lanes counts the lanes that the shard was chosen for, and chosen those of them that have not
	// taken their batch yet. counted is the shard's share in the supply.
	lanes, chosen, counted int
	// grant is how many batches the next turn is to claim, or the turn in flight if sent is set. size
	// bounds the next grant.
	grant, size int
	sent        bool
	// more is set if the last turn that claimed left due jobs in the store.
	more bool
	// visits are the choices of this shard whose end has not been passed to the scheduler.
	visits int
	// awaitsChance is set if a job on its last chance waits for another one.
	awaitsChance bool
	// runHeld and askHeld are set if the limit of the queue hides the shard. skipped is set if it
	// needs no grant.
	runHeld, askHeld, skipped bool
	// askCounted is set if supply.asksHeld includes the shard.
	askCounted bool
	// listed is set if the shard is in pool.skipped.
	listed bool
	// shownRun and shownAsk are the heads that the scheduler sees. runTaken and askTaken are set if it
	// has chosen the shard by one of them and has to be shown the result.
	shownRun, shownAsk core.Head
	runTaken, askTaken bool
}

// view is what a shard shows its pool.
type view struct {
	// run is the head of the first job that may start, and startable how many batches may start.
	run       core.Head
	startable int
	// ask is the head of the shard's jobs in the store.
	ask core.Head
	// ahead is how many more batches may be claimed before lanes are free for them, and room how many
	// may be claimed in all. next is set if no batch waits and one may start; then one may be claimed
	// for the next lane, whatever ahead is.
	ahead, room int
	next        bool
	// idle is set if no job is claimed.
	idle bool
}

// supply counts the batches of queues that lanes may start now, and those that turns are to bring.
type supply struct {
	pool               *pool
	limit              *laneLimit // nil if there is none
	startable, granted int
	// running counts the lanes of the pool that run a batch of a limited queue or are about to.
	running int
	// asksHeld counts the shards that the limit hides from the scheduler although the store has jobs
	// of them.
	asksHeld int
	// runHeld are the shards that are hidden from the scheduler since the limit is reached, in the
	// order in which they were chosen.
	runHeld []*member
	// waits is set if the pool waits for the limit, and promised if a lane was woken for its turn.
	waits, promised bool
}

// change adds to the batches that may start and to the granted ones.
func (s *supply) change(startable, granted int) {
	s.startable += startable
	s.granted += granted
	if s.limit != nil {
		s.limit.claimed += startable + granted
	}
}

// newMember makes a shard a member of the pool.
func (p *pool) newMember(s *shard) *member {
	m := &member{view: view{idle: true}, shard: s, pool: p, size: firstGrant}
	m.supply = p.supplyOf(s.queue.limit)
	s.member = m
	return m
}

// setMembers adds shards to the pool's members, forgets those of removed queues, and gives the
// pool a new scheduler, which has no record of earlier choices. queues are those that the node
// serves. One goroutine at a time may call it.
func (p *pool) setMembers(more []*shard, build core.SchedulerFunc, queues map[string]*Queue) error {
	members := p.nextMembers(more)
	chooser, scheduler := newChooser(p, members, build)
	if err := checkScheduler(scheduler, queues); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.members, p.chooser = members, chooser
	_, p.custom = chooser.(*customChooser)
	for i, m := range members {
		m.index, m.visits = i, 0
		m.runTaken, m.askTaken = false, false
		m.shownRun, m.shownAsk = core.Head{}, core.Head{}
	}
	for _, m := range members {
		p.recount(m)
	}
	p.supplies = slices.DeleteFunc(p.supplies, func(s *supply) bool {
		return s.limit != nil && !slices.ContainsFunc(members, func(m *member) bool { return m.supply == s })
	})
	p.dispatch(p.node.clock.local())
	return nil
}

// nextMembers returns the members that the pool is to have. A member that is still in use stays.
func (p *pool) nextMembers(more []*shard) (members []*member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.members {
		if m.active || !m.shard.queue.removed.Load() {
			members = append(members, m)
		}
	}
	for _, s := range more {
		members = append(members, p.newMember(s))
	}
	return members
}

// supplyOf returns the supply of the queues with a limit.
func (p *pool) supplyOf(limit *laneLimit) *supply {
	for _, s := range p.supplies {
		if s.limit == limit {
			return s
		}
	}
	s := &supply{pool: p, limit: limit}
	p.supplies = append(p.supplies, s)
	if limit != nil {
		limit.supplies = append(limit.supplies, s)
	}
	return s
}

// recount counts the batches of a shard that lanes may start, and shows its heads to the
// scheduler.
func (p *pool) recount(m *member) {
	startable := max(0, m.startable-m.chosen)
	if m.awaitsChance {
		startable = 0
	}
	m.supply.change(startable-m.counted, 0)
	m.counted = startable
	if active := !m.idle || m.grant > 0 || m.lanes > 0; active != m.active {
		m.active = active
		if active {
			p.active++
		} else {
			p.active--
			p.chooser.idle(m)
		}
	}
	if held := m.askHeld && m.ask.OK; held != m.askCounted {
		m.askCounted = held
		if held {
			m.supply.asksHeld++
		} else {
			m.supply.asksHeld--
		}
	}
	var run, ask core.Head
	if startable > 0 && !m.runHeld {
		run = m.run
	}
	if m.grant == 0 && m.room > 0 && !m.awaitsChance && !m.askHeld && !m.skipped {
		ask = m.ask
	}
	if run != m.shownRun || m.runTaken {
		m.shownRun, m.runTaken = run, false
		p.chooser.showRun(m)
	}
	if m.askTaken && m.grant > 0 && m.more {
		return // to the scheduler it still has work
	}
	if ask != m.shownAsk || m.askTaken {
		m.shownAsk, m.askTaken = ask, false
		p.chooser.showAsk(m)
	}
}
