package dispatch

import (
	"math"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
)

// Order is how a pool asks its scheduler.
type Order interface {
	// showRun takes the head of the shard's runnable jobs, showClaim that of its jobs in the store.
	showRun(s *Shard)
	showClaim(s *Shard)
	// next returns the step of a lane without a batch. The lane is the order's affair: schedulers
	// choose a shard for any lane.
	next(p *Pool, l *Lane, now Now) Step
	// claim returns the shard to be granted next, or nil.
	claim(p *Pool, now Now) *Shard
	// unclaim undoes the last choice of claim.
	unclaim(s *Shard)
	// mayAdd reports whether a turn of a shard without a grant may claim, if it is made anyway.
	mayAdd(s *Shard, now Now) bool
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
	// look notes that the time of nextLook has come.
	look()
}

// NewOrder returns the order of a pool with these shards, and its scheduler.
func NewOrder(build core.SchedulerFunc, c core.SchedulerConfig) (Order, core.Scheduler) {
	scheduler := build(c)
	claims, ok := scheduler.(core.HeadScheduler)
	if ok {
		if runs, ok := build(c).(core.HeadScheduler); ok {
			return &byHeads{runs: runs, claims: claims}, scheduler
		}
	}
	return &byUser{question: Question{Scheduler: scheduler, Heads: make([]core.Head, len(c.Shards))}}, scheduler
}

// byHeads is the order by two schedulers that keep the heads: one chooses what a free lane runs,
// the other what to grant.
type byHeads struct {
	runs, claims core.HeadScheduler
	// asleep is the time until which the scheduler wants no grant. nextDue is the earliest head that
	// was not due when the scheduler was last called and had no head to choose.
	asleep  time.Time
	nextDue core.Head
	// declined is set if the scheduler has chosen no head to run, of those that it sees.
	declined bool
}

func (h *byHeads) showRun(s *Shard) {
	h.declined = false
	h.runs.SetHead(s.index, s.shownRun)
}

func (h *byHeads) showClaim(s *Shard) { h.claims.SetHead(s.index, s.shownClaim) }

func (h *byHeads) next(p *Pool, _ *Lane, _ Now) Step {
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

func (h *byHeads) claim(p *Pool, now Now) *Shard {
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

	if choice.Sleep && !p.active() { // otherwise the scheduler does not see all jobs
		h.asleep = now.Local.Add(choice.Wait)
	} else {
		h.nextDue = h.claims.NextDue()
	}
	return nil
}

// active reports whether any shard is.
func (p *Pool) active() bool { return slices.ContainsFunc(p.shards, (*Shard).Active) }

func (h *byHeads) unclaim(s *Shard) {
	h.claims.Charge(s.index, -1)
	h.ended(s, true)
}

func (h *byHeads) mayAdd(*Shard, Now) bool { return false }

func (h *byHeads) answered(s *Shard, batches int) {
	if batches > 0 {
		h.claims.Charge(s.index, batches-1)
	} else {
		h.ended(s, false)
	}
}

func (h *byHeads) ended(s *Shard, ok bool) {
	if s.visits > 0 {
		s.visits--
		h.claims.Ran(s.index, ok)
	}
}

func (h *byHeads) idle(s *Shard) {
	for s.visits > 0 {
		h.ended(s, false)
	}
}

// wanted returns 0 while a scheduler declines what it sees. The scheduler is called again when it
// sees something else, or after a poll interval.
func (h *byHeads) wanted(p *Pool, _ Now) int {
	if h.declined {
		return 0
	}
	return p.runnable()
}

func (h *byHeads) nextLook(p *Pool, now Now) time.Time {
	var at time.Time
	switch {
	case now.Local.Before(h.asleep):
		at = h.asleep
	case h.nextDue.OK:
		at = now.Local.Add(h.nextDue.Due.Sub(now.Store))
	}
	if again := now.Local.Add(p.node.PollInterval); h.declined && p.runnable() > 0 &&
		(at.IsZero() || again.Before(at)) {
		return again
	}
	return at
}

func (h *byHeads) look() { h.nextDue, h.declined = core.Head{}, false }

// Question is what a lane asks a user's scheduler: it passes Ends to Ran, and then Heads to Next.
// The lane has no lock meanwhile, and no other lane asks before Pool.Answer has taken the answer.
type Question struct {
	Scheduler core.Scheduler
	Ends      []End
	Now       Now
	// Heads are those of the runnable jobs of each shard, or else of its jobs in the store.
	Heads []core.Head
}

// End is how a batch of a shard ended.
type End struct {
	Index int
	OK    bool
}

// byUser is the order of a user's scheduler, which sees one head for each shard. One lane at a time
// asks it.
type byUser struct {
	question Question
	// asking is set while a lane asks. changed is set if there is a reason to ask again.
	asking, changed bool
	// last is the shard that was chosen last.
	last *Shard
	// brought are previously chosen shards to which turns have brought jobs. A lane is kept for each,
	// and for each choice whose turn is under way.
	brought []*Shard
	// ends are those that have not been passed to the scheduler yet.
	ends []End
	// asleep is until when the scheduler wants to start nothing, and again when to ask it again.
	asleep, again time.Time
}

func (u *byUser) showRun(*Shard) { u.changed = true }

func (u *byUser) showClaim(*Shard) { u.changed = true }

// next lets a lane run what turns have brought for it, or ask.
func (u *byUser) next(p *Pool, l *Lane, now Now) Step {
	for l.refused <= len(p.shards) && !p.node.stopped {
		s := u.nextBrought()
		if s == nil {
			return u.ask(p, now)
		}
		if u.start(s) {
			return Step{Run: s}
		}
		u.chosen(p, l, s, now)
	}
	return Step{}
}

// answer takes the scheduler's answer to the question of a lane.
func (u *byUser) answer(p *Pool, l *Lane, choice core.Choice, now Now) Step {
	u.asking = false
	if choice.Index < 0 || choice.Index >= len(p.shards) {
		u.wait(choice, u.question.Now)
		return Step{}
	}
	s := p.shards[choice.Index]
	u.last = s
	if u.start(s) {
		return Step{Run: s}
	}
	u.chosen(p, l, s, now)
	return u.next(p, l, now)
}

// start reports whether a lane runs a batch of a shard.
func (u *byUser) start(s *Shard) bool {
	if !s.shownRun.OK || !s.part.start(s) {
		return false
	}
	u.changed = true // another lane may also run
	return true
}

// chosen grants to a shard that was chosen and can't start, or refuses the choice.
func (u *byUser) chosen(p *Pool, l *Lane, s *Shard, now Now) {
	switch limit := s.part.limit; {
	case !s.shownClaim.DueBy(now.Store):
	case limit.claimable(s.lacks()) <= 0:
		limit.hold(s)
	default:
		s.visits++
		p.grant(s, max(1, min(p.short()+p.starting(now), s.claimable())))
		return
	}
	l.refused++
	u.refuse(p, s, now)
}

// refuse reports to the scheduler that no job of its chosen shard can run or come, and hides the
// shards that the queue's limit holds back. If the scheduler insists, it is asked again after a
// poll interval, or once something is due or has changed.
func (u *byUser) refuse(p *Pool, s *Shard, now Now) {
	changed := u.changed
	u.ended(s, false)
	p.recount(s)
	u.changed = changed
	u.wait(core.Choice{Wait: p.node.PollInterval}, now)
}

// nextBrought returns a previously chosen shard that has runnable jobs now.
func (u *byUser) nextBrought() *Shard {
	for len(u.brought) > 0 {
		s := u.brought[0]
		u.brought = u.brought[1:]
		if s.shownRun.OK {
			return s
		}
		u.ended(s, false)
	}
	return nil
}

// ask lets a lane ask the scheduler, unless another one does, or the jobs for the lane are on their
// way.
func (u *byUser) ask(p *Pool, now Now) Step {
	switch {
	case u.asking:
		u.changed = true
		return Step{}
	case now.Local.Before(u.asleep):
		return Step{}
	case p.lanes-p.running <= awaited(p) || p.short() <= 0 && p.runnable() == 0:
		u.changed = false
		return Step{}
	}

	u.asking, u.changed, u.again = true, false, time.Time{}
	q := &u.question
	q.Now = now
	for i, s := range p.shards {
		q.Heads[i] = s.shownClaim
		if s.shownRun.OK {
			q.Heads[i] = core.Head{Due: min(s.shownRun.Due, now.Store), OK: true}
		}
	}

	q.Ends, u.ends = u.ends, q.Ends[:0]
	return Step{Ask: q}
}

// awaited counts the choices whose turns are under way.
func awaited(p *Pool) (n int) {
	for _, s := range p.shards {
		n += s.visits
	}
	return n
}

// wait notes for how long the scheduler wants to wait.
func (u *byUser) wait(choice core.Choice, now Now) {
	if choice.Wait > 0 {
		u.again = now.Local.Add(choice.Wait)
	}
	if choice.Sleep && choice.Wait > 0 {
		u.asleep = u.again
		return
	}
	for _, h := range u.question.Heads {
		if d := h.Due.Sub(now.Store); h.OK && d > 0 && (u.again.IsZero() || d < u.again.Sub(now.Local)) {
			u.again = now.Local.Add(d)
		}
	}
}

func (u *byUser) claim(*Pool, Now) *Shard { return nil }

func (u *byUser) unclaim(*Shard) {}

// mayAdd returns true for the shard that was chosen last: its lanes will start more of its jobs.
func (u *byUser) mayAdd(s *Shard, now Now) bool {
	return s == u.last && s.shownClaim.DueBy(now.Store)
}

func (u *byUser) answered(s *Shard, batches int) {
	u.changed = true
	if s.visits == 0 { // the scheduler did not choose it for this
		return
	}
	s.visits--
	if batches > 0 {
		u.brought = append(u.brought, s)
	} else {
		u.ended(s, false)
	}
}

func (u *byUser) ended(s *Shard, ok bool) {
	u.ends = append(u.ends, End{s.index, ok})
	u.changed = true
}

func (u *byUser) idle(*Shard) {}

// wanted returns 1: one lane runs what the scheduler has chosen, or asks it. The next lane sees to
// the rest.
func (u *byUser) wanted(_ *Pool, now Now) int {
	if len(u.brought) > 0 {
		return 1
	}
	if u.asking || !u.changed || now.Local.Before(u.asleep) {
		return 0
	}
	return 1
}

func (u *byUser) nextLook(_ *Pool, now Now) time.Time {
	if now.Local.Before(u.asleep) {
		return u.asleep
	}
	return u.again
}

func (u *byUser) look() { u.changed, u.again = true, time.Time{} }
