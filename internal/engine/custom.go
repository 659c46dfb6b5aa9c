package engine

import (
	"time"

	"github.com/skeinq/skein/core"
)

// customChooser asks a user's scheduler, which sees of each shard the head of what may start or else
// of what the store has. One lane at a time asks it, under no lock.
type customChooser struct {
	scheduler core.Scheduler
	members   []*member
	heads     []core.Head
	// asking says that a lane asks now, and changed that there is a reason to ask again.
	asking, changed bool
	// last is the shard that was chosen last.
	last *member
	// brought are the shards, chosen before, to which turns have brought jobs, and awaited counts the
	// choices for which turns are under way. A lane is kept for each of both.
	brought []*member
	awaited int
	// ends are what the scheduler has not been told yet.
	ends []batchEnd
	// asleep is until when the scheduler wants to start nothing, and again when it is asked again.
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
		now := p.node.clock.local() // the scheduler takes its time
		switch {
		case m == nil:
			return nil
		case m.shownRun.OK && m.supply.start(m):
			c.changed = true // another lane may run as well
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

// choose returns the shard that the scheduler chooses, or nil if the lane is to wait.
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
	if len(p.lanes)-p.busy <= c.awaited || p.short() <= 0 && p.startable() == 0 { // what this lane is to run is on its way
		c.changed = false
		return nil
	}
	choice := c.call(p, now)
	if p.chooser != chooser(c) { // the pool has got others to choose among meanwhile
		return nil
	}
	if choice.Index >= 0 && choice.Index < len(c.members) {
		c.last = c.members[choice.Index]
		return c.last
	}
	c.wait(p, choice, now)
	return nil
}

// refuse tells the scheduler that nothing of the shard that it has chosen can run or come, and hides what the limit of
// the queue holds back. If the scheduler insists, it is asked again after a poll interval, or once something is due or
// has changed.
func (c *customChooser) refuse(p *pool, m *member, now time.Time) {
	changed := c.changed
	c.ended(m, false)
	p.recount(m)
	c.changed = changed
	c.wait(p, core.Choice{Wait: p.node.cfg.PollInterval}, now)
}

// nextBrought returns a shard that was chosen before and has jobs now.
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

// call tells the scheduler what has ended, and lets it choose. The lock is released meanwhile.
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

// piggyback grants to the shard that was chosen last what its lanes will start soon.
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

// wanted is one lane, which runs what the scheduler has chosen, or asks it; what it leaves, the next one sees to.
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
