package dispatch

import (
	"math"
	"slices"
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

// Order is how a pool asks its scheduler.
type Order interface {
	// showRun takes the head of the shard's runnable jobs, showClaim that of its jobs in the store.
	showRun(s *Shard)
	showClaim(s *Shard)
	// next returns the step of a lane without a batch.
	next(p *Pool, l *Lane, now Now) Step
	// claim returns the shard to be granted next, or nil.
	claim(p *Pool, now Now) *Shard
	// unclaim takes back the last choice of claim.
	unclaim(s *Shard)
	// turns may grant to a shard that turns anyway.
	turns(p *Pool, s *Shard, now Now)
	// answered takes how many batches a grant has brought.
	answered(s *Shard, batches int)
	// ended takes how a batch ended. ok is false also if there was no batch after all.
	ended(s *Shard, ok bool)
	// idle notes that no job of a shard with visits is claimed or granted.
	idle(s *Shard)
	// wanted returns how many lanes without a batch are to be awake.
	wanted(p *Pool, now Now) int
	// nextLook returns when to call the scheduler again even if nothing changes, or zero.
	nextLook(p *Pool, now Now) time.Time
	// look notes that this time has come.
	look()
}

// NewOrder returns the order of a pool with these shards, and its scheduler.
func NewOrder(build core.SchedulerFunc, c core.SchedulerConfig) (Order, core.Scheduler) {
	scheduler := build(c)
	claims, ok := scheduler.(HeadScheduler)
	if ok {
		if runs, ok := build(c).(HeadScheduler); ok {
			return &heads{runs: runs, claims: claims}, scheduler
		}
	}
	return &users{question: Question{Scheduler: scheduler, Heads: make([]core.Head, len(c.Shards))}}, scheduler
}

// heads is the order by two schedulers that keep the heads: one chooses what a free lane runs, the
// other what to grant.
type heads struct {
	runs, claims HeadScheduler
	// asleep is until when the scheduler wants to grant nothing. nextDue is the earliest head that was
	// not due when the scheduler was last called and had no head to choose.
	asleep  time.Time
	nextDue core.Head
	// declined is set if the scheduler has chosen none of the heads that it sees to run.
	declined bool
}

func (h *heads) showRun(s *Shard) {
	h.declined = false
	h.runs.SetHead(s.index, s.shownRun)
}

func (h *heads) showClaim(s *Shard) { h.claims.SetHead(s.index, s.shownClaim) }

func (h *heads) next(p *Pool, _ *Lane, _ Now) Step {
	for {
		choice := h.runs.Choose(math.MaxInt64) // claimed jobs were due
		if choice.Index < 0 {
			h.declined = true
			return Step{}
		}
		s := p.shards[choice.Index]
		s.shownRun = taken
		if s.part.start(s) {
			return Step{Run: s}
		}
		p.recount(s)
	}
}

func (h *heads) claim(p *Pool, now Now) *Shard {
	h.nextDue = core.Head{}
	if now.Local.Before(h.asleep) {
		return nil
	}
	choice := h.claims.Choose(now.Store)
	if choice.Index >= 0 {
		s := p.shards[choice.Index]
		s.visits++
		s.shownClaim = taken
		return s
	}
	if choice.Sleep && !p.active() { // else the scheduler does not see all
		h.asleep = now.Local.Add(choice.Wait)
	} else {
		h.nextDue = h.claims.NextDue()
	}
	return nil
}

// active reports whether any shard is.
func (p *Pool) active() bool { return slices.ContainsFunc(p.shards, (*Shard).Active) }

func (h *heads) unclaim(s *Shard) {
	h.claims.Charge(s.index, -1)
	h.ended(s, true)
}

func (h *heads) turns(*Pool, *Shard, Now) {}

func (h *heads) answered(s *Shard, batches int) {
	if batches > 0 {
		h.claims.Charge(s.index, batches-1)
	} else {
		h.ended(s, false)
	}
}

func (h *heads) ended(s *Shard, ok bool) {
	if s.visits > 0 {
		s.visits--
		h.claims.Ran(s.index, ok)
	}
}

func (h *heads) idle(s *Shard) {
	for s.visits > 0 {
		h.ended(s, false)
	}
}

// wanted returns 0 if a user's scheduler declines what it sees. The scheduler is called again when
// it sees something else, or after a poll interval.
func (h *heads) wanted(p *Pool, _ Now) int {
	if h.declined {
		return 0
	}
	return p.runnable()
}

func (h *heads) nextLook(p *Pool, now Now) time.Time {
	var at time.Time
	switch {
	case now.Local.Before(h.asleep):
		at = h.asleep
	case h.nextDue.OK:
		at = now.Local.Add(h.nextDue.Due.Sub(now.Store))
	}
	if again := now.Local.Add(p.node.PollInterval); h.declined && p.runnable() > 0 && (at.IsZero() || again.Before(at)) {
		return again
	}
	return at
}

func (h *heads) look() { h.nextDue, h.declined = core.Head{}, false }
