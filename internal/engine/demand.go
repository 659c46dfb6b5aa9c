package engine

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/dispatch"
)

const (
	// firstGrant is how many batches a shard is granted at first: most shards that become due have few
	// jobs. While the shard has more, the grant grows by grantGrowth.
	firstGrant  = 4
	grantGrowth = 4
)

// grantDemand grants to the shards that the scheduler chooses. For free lanes it does so at once;
// ahead of them only if it is worth a turn.
func (p *pool) grantDemand(now time.Time) {
	soon := p.soon(now)
	for {
		short := p.short()
		if short > 0 {
			p.unskip()
		} else if short+soon < max(1, min(soon/2, core.MaxTurnJobs)) {
			return
		}
		m := p.chooser.ask(p, now)
		if m == nil {
			return
		}
		switch n := min(short+soon, max(short, m.early()), m.largestGrant()); {
		case n > 0:
			p.grant(m, n)
			continue
		case m.supply.limit.room(m.ahead) <= 0:
			m.supply.limit.holdAsk(m)
		default:
			p.skip(m)
		}
		p.chooser.unask(m)
		p.recount(m)
	}
}

// early returns how many batches of a shard may be claimed before lanes are free for them. While
// other shards keep the lanes busy, the shard gets no others.
func (m *member) early() int {
	if m.ahead == 0 && m.next && m.supply.limit.room(0) > 0 {
		return 1
	}
	return m.ahead
}

// largestGrant bounds a grant by what its shard is believed to have, by what a turn carries, and by
// the bounds that the user has set.
func (m *member) largestGrant() int {
	fullTurn := max(1, core.MaxTurnJobs/m.shard.queue.BatchSize)
	return min(m.size, fullTurn, m.room, m.supply.limit.room(m.ahead))
}

// skip grants nothing to a shard until a lane is free for it, or until it needs a grant ahead.
func (p *pool) skip(m *member) {
	m.skipped = true
	if !m.listed {
		m.listed = true
		p.skipped = append(p.skipped, m)
	}
}

// unskip lets skipped shards be granted again.
func (p *pool) unskip() {
	for _, m := range p.skipped {
		m.listed = false
		if m.skipped {
			m.skipped = false
			p.recount(m)
		}
	}
	p.skipped = p.skipped[:0]
}

// grant makes the next turn of a shard claim n batches.
func (p *pool) grant(m *member, n int) {
	m.grant, m.sent = n, false
	m.supply.change(0, n)
	p.recount(m)
	signal(m.shard.wake)
}

// grantByHand grants to a shard of a manual pool.
func (p *pool) grantByHand(m *member, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.grant == 0 && n > 0 {
		p.grant(m, n)
	}
}

// short returns how many free lanes would find no job. It is negative if more batches are claimed
// and granted than lanes are free.
func (p *pool) short() int {
	short := len(p.lanes) - p.busy
	for _, s := range p.supplies {
		short -= s.cut(s.startable + s.granted)
	}
	return short
}

// soon returns how many batches will start within the claim window. It is the lesser of two
// estimates: by how many have started, and by how long they take.
func (p *pool) soon(now time.Time) int {
	if p.node.cfg.Prefetch == 0 {
		return 0
	}
	window := p.node.claimWindow()
	started := int(time.Duration(p.starts.Count(now)) * window / dispatch.LookAhead)
	return min(started, len(p.lanes)*p.pace.JobsWithin(window))
}

// takeGrant returns how many batches the turn that is being made is to claim.
func (p *pool) takeGrant(m *member) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.grant > 0 {
		p.enlarge(m)
	} else {
		p.chooser.piggyback(p, m)
	}
	m.sent = m.grant > 0
	return m.grant
}

// demand returns how many batches of a shard are in demand beside its grant, as far as a turn that
// is made anyway may claim them.
func (p *pool) demand(m *member, now time.Time) int {
	short := p.short()
	return min(short+p.soon(now), max(short, m.ahead-m.grant), m.largestGrant()-m.grant)
}

// enlarge adds to a grant the demand that has arisen since it was given.
func (p *pool) enlarge(m *member) {
	if more := p.demand(m, p.node.clock.local()); more > 0 {
		m.grant += more
		m.supply.change(0, more)
	}
}

// hasGrant reports whether the shard has a grant that no turn carries yet.
func (p *pool) hasGrant(m *member) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return m.grant > 0 && !m.sent
}

// grantAnswered ends the grant that a turn has carried, which brought the given number of batches.
// more is true if the store has others. It takes the shard's current view. The caller holds
// shard.mu.
func (p *pool) grantAnswered(m *member, batches int, more bool, v view) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.sent {
		m.more = more
		if more {
			m.size = min(m.size*grantGrowth, core.MaxTurnJobs)
		} else {
			m.size = max(firstGrant, batches)
		}
		p.endGrant(m)
		p.chooser.answered(m, batches)
	}
	p.show(m, v)
	p.dispatch(p.node.clock.local())
}

// revokeGrant ends a grant that gets no answer. It takes the shard's current view. The caller
// holds shard.mu.
func (p *pool) revokeGrant(m *member, v view) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m.grant > 0 {
		m.size, m.more = firstGrant, false
		p.endGrant(m)
		p.chooser.answered(m, 0)
	}
	p.show(m, v)
	p.dispatch(p.node.clock.local())
}

// endGrant ends a grant.
func (p *pool) endGrant(m *member) {
	m.supply.change(0, -m.grant)
	m.grant, m.sent = 0, false
}
