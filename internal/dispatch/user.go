package dispatch

import (
	"time"

	"github.com/skeinq/skein/core"
)

// Question is what a lane asks a user's scheduler: it passes Ends to Ran, and then Heads to Next.
// The lane has no lock meanwhile, and no other lane asks before Pool.Answer has taken the answer.
type Question struct {
	Scheduler core.Scheduler
	Ends      []End
	Now       core.Instant
	// Heads are those of the runnable jobs of each shard, or else of its jobs in the store.
	Heads []core.Head

	by *users
	at time.Time
}

// End is how a batch of a shard ended.
type End struct {
	Index int
	OK    bool
}

// users is the order of a user's scheduler, which sees one head for each shard. One lane at a time
// asks it.
type users struct {
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

func (u *users) showRun(*Shard) { u.changed = true }

func (u *users) showClaim(*Shard) { u.changed = true }

// next lets a lane run what turns have brought for it, or ask.
func (u *users) next(p *Pool, l *Lane, now Now) Step {
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
func (u *users) answer(p *Pool, l *Lane, choice core.Choice, now Now) Step {
	u.asking = false
	if choice.Index < 0 || choice.Index >= len(p.shards) {
		u.wait(choice, Now{u.question.at, u.question.Now})
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
func (u *users) start(s *Shard) bool {
	if !s.shownRun.OK || !s.part.start(s) {
		return false
	}
	u.changed = true // another lane may also run
	return true
}

// chosen grants to a shard that was chosen and can't start, or refuses the choice.
func (u *users) chosen(p *Pool, l *Lane, s *Shard, now Now) {
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
func (u *users) refuse(p *Pool, s *Shard, now Now) {
	changed := u.changed
	u.ended(s, false)
	p.recount(s)
	u.changed = changed
	u.wait(core.Choice{Wait: p.node.PollInterval}, now)
}

// nextBrought returns a previously chosen shard that has runnable jobs now.
func (u *users) nextBrought() *Shard {
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
func (u *users) ask(p *Pool, now Now) Step {
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
	q.by, q.at, q.Now = u, now.Local, now.Store
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
func (u *users) wait(choice core.Choice, now Now) {
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

func (u *users) claim(*Pool, Now) *Shard { return nil }

func (u *users) unclaim(*Shard) {}

// turns grants to the shard that was chosen last the jobs that its lanes will start.
func (u *users) turns(p *Pool, s *Shard, now Now) {
	if s != u.last || !s.shownClaim.DueBy(now.Store) {
		return
	}
	if n := p.demand(s, now); n > 0 {
		p.grant(s, n)
	}
}

func (u *users) answered(s *Shard, batches int) {
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

func (u *users) ended(s *Shard, ok bool) {
	u.ends = append(u.ends, End{s.index, ok})
	u.changed = true
}

func (u *users) idle(*Shard) {}

// wanted returns 1: one lane runs what the scheduler has chosen, or asks it. The next lane sees to
// the rest.
func (u *users) wanted(_ *Pool, now Now) int {
	if len(u.brought) > 0 {
		return 1
	}
	if u.asking || !u.changed || now.Local.Before(u.asleep) {
		return 0
	}
	return 1
}

func (u *users) nextLook(_ *Pool, now Now) time.Time {
	if now.Local.Before(u.asleep) {
		return u.asleep
	}
	return u.again
}

func (u *users) look() { u.changed, u.again = true, time.Time{} }
