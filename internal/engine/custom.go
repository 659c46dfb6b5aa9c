package engine

import (
	"time"

	"github.com/skeinq/skein/core"
)

// customChooser calls a user's scheduler. For each shard the scheduler sees the head of the jobs
// that may start, or else of those in the store. One lane at a time calls it, without holding a
// lock.
type customChooser struct {
	scheduler core.Scheduler
	members   []*member
	heads     []core.Head
	// asking is set while a lane calls the scheduler. changed is set if there is a reason to call it
	// again.
	asking, changed bool
	// last is the shard that was chosen last.
	last *member
	// brought are previously chosen shards to which turns have brought jobs. awaited counts the
	// choices whose turns are under way. A lane is reserved for each of both.
	brought []*member
	awaited int
	// ends are those that have not been passed to the scheduler yet.
	ends []batchEnd
	// asleep is until when the scheduler wants to start nothing, and again when to call it again.
	asleep, again time.Time
}

// batchEnd is how a batch of a shard ended.
type batchEnd struct {
	index int
	ok    bool
}

func (c *customChooser) showRun(*member) { c.changed = true }

func (c *customChooser) showAsk(*member) { c.changed = true }

func (c *customChooser) next(p *pool) *member {
	for refused := 0; refused <= len(c.members) && !p.node.stopping(); {
		m := c.choose(p, p.node.clock.local())
		now := p.node.clock.local() // the scheduler's call takes time
		switch {
		case m == nil:
			return nil
		case m.shownRun.OK && m.supply.start(m):
			c.changed = true // another lane may also run
			return m
		case !m.shownAsk.DueBy(p.node.clock.at(now)):
		case m.supply.limit.room(m.early()) <= 0:
			m.supply.limit.holdAsk(m)
		default:
			m.visits++
			c.awaited++
			p.grant(m, max(1, min(p.short()+p.soon(now), m.largestGrant())))
			continue
		}
		refused++
		c.refuse(p, m, now)
	}
	return nil
}

// choose returns the shard that the scheduler chooses, or nil if the lane has to wait.
func (c *customChooser) choose(p *pool, now time.Time) *member {
	if m := c.nextBrought(); m != nil {
		return m
	}
	if c.asking {
		c.changed = true
		return nil
	}
	if now.Before(c.asleep) {
		return nil
	}
	if len(p.lanes)-p.busy <= c.awaited || p.short() <= 0 && p.startable() == 0 { // the jobs for this lane are on their way
		c.changed = false
		return nil
	}
	choice := c.call(p, now)
	if p.chooser != chooser(c) { // the pool got another chooser meanwhile
		return nil
	}
	if choice.Index >= 0 && choice.Index < len(c.members) {
		c.last = c.members[choice.Index]
		return c.last
	}
	c.wait(p, choice, now)
	return nil
}

// refuse reports to the scheduler that no job of its chosen shard can run or come, and hides the
// shards that the queue's limit holds back. If the scheduler insists, it is called again after a
// poll interval, or once something is due or has changed.
func (c *customChooser) refuse(p *pool, m *member, now time.Time) {
	changed := c.changed
	c.ended(m, false)
	p.recount(m)
	c.changed = changed
	c.wait(p, core.Choice{Wait: p.node.cfg.PollInterval}, now)
}

// nextBrought returns a previously chosen shard that has jobs now.
func (c *customChooser) nextBrought() *member {
	for len(c.brought) > 0 {
		m := c.brought[0]
		c.brought = c.brought[1:]
		if m.shownRun.OK {
			return m
		}
		c.ended(m, false)
	}
	return nil
}

// call passes to the scheduler what has ended, and lets it choose. The lock is released meanwhile.
func (c *customChooser) call(p *pool, now time.Time) core.Choice {
	c.asking, c.changed, c.again = true, false, time.Time{}
	at := p.node.clock.at(now)
	for i, m := range c.members {
		c.heads[i] = m.shownAsk
		if m.shownRun.OK {
			c.heads[i] = core.Head{Due: min(m.shownRun.Due, at), OK: true}
		}
	}
	ends := c.ends
	c.ends = nil
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		c.asking = false
	}()
	for _, e := range ends {
		c.scheduler.Ran(e.index, e.ok)
	}
	return c.scheduler.Next(at, c.heads)
}

// wait notes for how long the scheduler wants to wait.
func (c *customChooser) wait(p *pool, choice core.Choice, now time.Time) {
	if choice.Wait > 0 {
		c.again = now.Add(choice.Wait)
	}
	if choice.Sleep && choice.Wait > 0 {
		c.asleep = c.again
		return
	}
	at := p.node.clock.at(now)
	for _, h := range c.heads {
		if d := h.Due.Sub(at); h.OK && d > 0 && (c.again.IsZero() || d < c.again.Sub(now)) {
			c.again = now.Add(d)
		}
	}
}

func (c *customChooser) ask(*pool, time.Time) *member { return nil }

func (c *customChooser) unask(*member) {}

// piggyback grants to the shard that was chosen last the jobs that its lanes will start soon.
func (c *customChooser) piggyback(p *pool, m *member) {
	now := p.node.clock.local()
	if m != c.last || !m.shownAsk.DueBy(p.node.clock.at(now)) {
		return
	}
	if n := p.demand(m, now); n > 0 {
		p.grant(m, n)
	}
}

func (c *customChooser) answered(m *member, batches int) {
	c.changed = true
	if m.visits == 0 { // the scheduler did not choose it for this
		return
	}
	m.visits--
	c.awaited--
	if batches > 0 {
		c.brought = append(c.brought, m)
	} else {
		c.ended(m, false)
	}
}

func (c *customChooser) ended(m *member, ok bool) {
	c.ends = append(c.ends, batchEnd{m.index, ok})
	c.changed = true
}

// wanted returns 1: one lane runs what the scheduler has chosen, or calls it. The next lane sees
// to the rest.
func (c *customChooser) wanted(p *pool) int {
	if len(c.brought) > 0 {
		return 1
	}
	if c.asking || !c.changed || p.node.clock.local().Before(c.asleep) {
		return 0
	}
	return 1
}

func (c *customChooser) idle(*member) {}

func (c *customChooser) nextLook(_ *pool, now time.Time) time.Time {
	if now.Before(c.asleep) {
		return c.asleep
	}
	return c.again
}

func (c *customChooser) look() { c.changed, c.again = true, time.Time{} }
