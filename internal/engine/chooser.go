package engine

import (
	"math"
	"time"

	"github.com/skeinq/skein/core"
)

// HeadScheduler is a [core.Scheduler] that keeps the heads, so that a choice among many shards
// does not look at each of them. All that package core builds are such, and take O(log shards)
// for SetHead and Choose. It is called under the pool's lock, one call at a time, and must not
// block.
type HeadScheduler interface {
	core.Scheduler
	// SetHead sets the head of a shard. At first no head is OK.
	SetHead(index int, h core.Head)
	// Choose is Next by the heads that were set. It takes the head of the shard that it
	// returns: the shard is not chosen again before SetHead, and until then it
	// counts as one that has work. now may be earlier than at the last call, since
	// clocks are estimates: a head that was due stays due until SetHead.
	Choose(now core.Instant) core.Choice
	// NextDue returns the earliest of the heads that no Choose has found due yet. It is
	// not OK if there is none.
	NextDue() core.Head
	// Charge reports that the last choice of the shard stood for n batches more than the
	// one that Choose has counted, or for fewer if n is negative. It is for schedulers
	// that share turns, such as those of [core.WeightedBy]; the others ignore it.
	Charge(index, n int)
}

// QueueNamer is a [core.Scheduler] that knows queues by name, such as those of [core.StrictBy] and
// [core.WeightedBy]. A server that does not serve each of these queues refuses to run.
type QueueNamer interface {
	// QueueNames lists the names, each once.
	QueueNames() []string
}

// chooser is how a pool calls its scheduler. All methods are called with pool.mu held.
type chooser interface {
	// showRun takes the head of the shard's jobs that may start, showAsk that of its jobs in the
	// store.
	showRun(m *member)
	showAsk(m *member)
	// next returns the shard from which a free lane runs a batch now, or nil.
	next(p *pool) *member
	// ask returns the shard to be granted next, or nil.
	ask(p *pool, now time.Time) *member
	// unask takes back the last choice of ask.
	unask(m *member)
	// piggyback may grant to a shard that turns anyway.
	piggyback(p *pool, m *member)
	// answered takes how many batches a grant has brought.
	answered(m *member, batches int)
	// ended takes how a batch ended. ok is false also if there was no batch after all.
	ended(m *member, ok bool)
	// idle notes that no job of a shard is claimed or granted.
	idle(m *member)
	// wanted returns how many idle lanes are to be awake.
	wanted(p *pool) int
	// nextLook returns when to call the scheduler again even if nothing changes, or zero.
	nextLook(p *pool, now time.Time) time.Time
	// look notes that this time has come.
	look()
}

// newChooser returns the chooser of a pool with these members, and its scheduler.
func newChooser(p *pool, members []*member, build core.SchedulerFunc) (chooser, core.Scheduler) {
	c := core.SchedulerConfig{PollInterval: p.node.cfg.PollInterval}
	for _, m := range members {
		c.Shards = append(c.Shards, m.shard.id)
	}
	scheduler := build(c)
	heads, ok := scheduler.(HeadScheduler)
	if ok {
		if run, ok := build(c).(HeadScheduler); ok {
			return &headChooser{toRun: run, toAsk: heads, members: members}, scheduler
		}
	}
	return &customChooser{scheduler: scheduler, members: members, heads: make([]core.Head, len(members))}, scheduler
}

// headChooser uses two schedulers that keep the heads in order: one chooses what a free lane runs,
// the other what to grant.
type headChooser struct {
	members      []*member
	toRun, toAsk HeadScheduler
	// asleep is until when the scheduler wants to grant nothing. nextDue is the earliest head that was
	// not due when the scheduler was last called and had no head to choose.
	asleep  time.Time
	nextDue core.Head
	// declined is set if the scheduler has chosen none of the heads that it sees to run.
	declined bool
}

func (c *headChooser) showRun(m *member) {
	c.declined = false
	c.toRun.SetHead(m.index, m.shownRun)
}

func (c *headChooser) showAsk(m *member) { c.toAsk.SetHead(m.index, m.shownAsk) }

func (c *headChooser) next(p *pool) *member {
	for {
		choice := c.toRun.Choose(math.MaxInt64) // claimed jobs were due
		if choice.Index < 0 {
			c.declined = true
			return nil
		}
		m := c.members[choice.Index]
		m.runTaken = true
		if m.supply.start(m) {
			return m
		}
		p.recount(m)
	}
}

func (c *headChooser) ask(p *pool, now time.Time) *member {
	c.nextDue = core.Head{}
	if now.Before(c.asleep) {
		return nil
	}
	choice := c.toAsk.Choose(p.node.clock.at(now))
	if choice.Index >= 0 {
		m := c.members[choice.Index]
		m.visits++
		m.askTaken = true
		return m
	}
	if choice.Sleep && p.active == 0 { // else the scheduler does not see all
		c.asleep = now.Add(choice.Wait)
	} else {
		c.nextDue = c.toAsk.NextDue()
	}
	return nil
}

func (c *headChooser) unask(m *member) {
	c.toAsk.Charge(m.index, -1)
	c.ended(m, true)
}

func (c *headChooser) piggyback(*pool, *member) {}

func (c *headChooser) answered(m *member, batches int) {
	if batches > 0 {
		c.toAsk.Charge(m.index, batches-1)
	} else {
		c.ended(m, false)
	}
}

func (c *headChooser) ended(m *member, ok bool) {
	if m.visits > 0 {
		m.visits--
		c.toAsk.Ran(m.index, ok)
	}
}

func (c *headChooser) idle(m *member) {
	for m.visits > 0 {
		c.ended(m, false)
	}
}

// wanted returns 0 if a user's scheduler declines what it sees. The scheduler is called again when
// it sees something else, or after a poll interval.
func (c *headChooser) wanted(p *pool) int {
	if c.declined {
		return 0
	}
	return p.startable()
}

func (c *headChooser) nextLook(p *pool, now time.Time) time.Time {
	var at time.Time
	switch {
	case now.Before(c.asleep):
		at = c.asleep
	case c.nextDue.OK:
		at = now.Add(c.nextDue.Due.Sub(p.node.clock.at(now)))
	}
	if again := now.Add(p.node.cfg.PollInterval); c.declined && p.startable() > 0 && (at.IsZero() || again.Before(at)) {
		return again
	}
	return at
}

func (c *headChooser) look() { c.nextDue, c.declined = core.Head{}, false }
