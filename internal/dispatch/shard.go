package dispatch

import (
	"math"
	"slices"

	"github.com/skeinq/skein/core"
)

// Shard is a shard as its pool sees it.
type Shard struct {
	// Of is the caller's own name of the shard.
	Of   any
	view View
	// index is its place in the order. limit is that of its queue, and part is that of the limit.
	index int
	limit *Limit
	part  *part
	// perTurn is how many batches a turn may claim.
	perTurn int
	// runnable is how many of its batches the part counts as runnable. running counts the lanes that
	// the shard was chosen for, and chosen those of them that have not taken their batch yet.
	runnable, running, chosen int
	// granted is how many batches the next turn is to claim, or the turn in flight if sent is set.
	// size bounds the next grant. more is set if the last turn that claimed left due jobs in the
	// store.
	granted, size int
	sent, more    bool
	// visits are the choices of this shard whose end has not been passed to the scheduler.
	visits int
	// hidden is what hides its jobs from the order.
	hidden hidden
	// shownRun and shownClaim are the heads that the order has. They are taken if it has chosen the
	// shard by them.
	shownRun, shownClaim core.Head
}

// View is what a shard shows to its pool. Its numbers are of batches.
type View struct {
	// Run is the head of the first job that may start.
	Run core.Head
	// Waiting is the number of claimed batches that may start. Free is how many more batches of the
	// shard may run.
	Waiting, Free int
	// Stock is how many claimed batches may wait for lanes.
	Stock int
	// Claim is the head of the shard's jobs in the store.
	Claim core.Head
	// Idle is set if no job is claimed.
	Idle bool
}

// hidden is a set of reasons why the order doesn't see the jobs of a shard.
type hidden uint8

const (
	heldRun   hidden = 1 << iota // the runnable jobs, because the limit is reached
	heldClaim                    // the jobs in the store, because the limit is reached
	passedBy                     // the jobs in the store, which need no grant while no lane is free
	awaits                       // all jobs, because the next one waits for another job on its last chance
)

// taken marks a head that the order has taken with a choice. The order sees the shard again only
// after another head was shown.
var taken = core.Head{Due: math.MinInt64, OK: true}

// NewShard returns a shard of the pool, for SetShards. batch is how many jobs a batch has at most,
// and limit is that of its queue.
func (p *Pool) NewShard(of any, batch int, limit *Limit) *Shard {
	if !slices.Contains(limit.pools, p) {
		limit.pools = append(limit.pools, p)
	}
	return &Shard{
		Of:      of,
		view:    View{Idle: true},
		limit:   limit,
		part:    p.partFor(limit),
		size:    firstGrant,
		perTurn: max(1, core.MaxTurnJobs/batch),
	}
}

// Shards returns the shards of the pool, in order.
func (p *Pool) Shards() []*Shard { return p.shards }

// SetShards gives the pool other shards, and an order for these without a record of earlier
// choices. A shard that is still active stays.
func (p *Pool) SetShards(shards []*Shard, order Order, now Now) {
	p.shards, p.order = shards, order
	for i, s := range shards {
		s.index, s.visits = i, 0
		s.shownRun, s.shownClaim = core.Head{}, core.Head{}
	}
	for _, s := range shards {
		p.recount(s)
	}
	p.parts = slices.DeleteFunc(p.parts, func(t *part) bool {
		return t.limit != nil && !slices.ContainsFunc(shards, func(s *Shard) bool { return s.part == t })
	})
	p.dispatch(now)
}

// Active reports whether jobs of the shard are claimed or on their way.
func (s *Shard) Active() bool { return !s.view.Idle || s.granted > 0 || s.running > 0 }

// Show takes a shard's view. If news is set, the shard no longer waits for another job on its last
// chance.
func (p *Pool) Show(s *Shard, v View, news bool, now Now) {
	if news {
		s.hidden &^= awaits
	}
	p.show(s, v)
	p.dispatch(now)
}

// Await hides a shard while its next job waits for another one on its last chance.
func (p *Pool) Await(s *Shard, hides bool, now Now) {
	s.hidden &^= awaits
	if hides {
		s.hidden |= awaits
	}
	p.recount(s)
	p.dispatch(now)
}

// Taken notes that a batch of a shard has started or, if ok is false, that the lane found no batch.
// chosen is set if the shard was chosen for this lane.
func (p *Pool) Taken(s *Shard, chosen, ok bool, v View, now Now) {
	if chosen {
		s.chosen--
	}
	if ok {
		p.starts.Add(now.Local)
	}
	p.show(s, v)
	p.dispatch(now)
}

// show takes a shard's view.
func (p *Pool) show(s *Shard, v View) {
	s.view = v
	if s.hidden&passedBy != 0 && s.lacks() > 0 {
		s.hidden &^= passedBy
		p.passed--
	}
	p.recount(s)
}

// recount counts the runnable batches of a shard, and shows its heads to the order.
func (p *Pool) recount(s *Shard) {
	v := &s.view
	runnable := 0
	if v.Run.OK && s.hidden&awaits == 0 {
		runnable = max(0, min(v.Waiting, v.Free)-s.chosen)
	}

	s.part.change(runnable-s.runnable, 0)
	s.runnable = runnable
	if s.visits > 0 && !s.Active() {
		p.order.idle(s)
	}

	var run, claim core.Head
	if runnable > 0 && s.hidden&heldRun == 0 {
		run = v.Run
	}
	if s.granted == 0 && s.mayClaim() > 0 && s.hidden&(heldClaim|passedBy|awaits) == 0 {
		claim = v.Claim
	}

	if run != s.shownRun {
		s.shownRun = run
		p.order.showRun(s)
	}
	if s.shownClaim == taken && s.granted > 0 && s.more {
		return // for the scheduler the shard still has work
	}
	if claim != s.shownClaim {
		s.shownClaim = claim
		p.order.showClaim(s)
	}
}

// mayClaim returns how many batches the shard has room for.
func (s *Shard) mayClaim() int { return s.view.Free + s.view.Stock - s.view.Waiting }

// refill returns how many batches fill the stock up. It returns 0 while more than half of the stock
// is left.
func (s *Shard) refill() int {
	if 2*s.view.Waiting > s.view.Stock {
		return 0
	}
	return s.view.Stock - s.view.Waiting
}

// lacks returns how many batches may be claimed before lanes are free for them: those that refill
// the stock, or one for the next lane where none waits. While other shards keep the lanes busy, the
// shard gets no others.
func (s *Shard) lacks() int {
	n := s.refill()
	if n == 0 && s.view.Waiting == 0 && s.view.Free > 0 && s.part.limit.claimable(0) > 0 {
		return 1
	}
	return n
}

// claimable returns the largest possible grant, by what the shard is believed to have, what a turn
// can carry, and the user's limits.
func (s *Shard) claimable() int {
	return min(s.size, s.perTurn, s.mayClaim(), s.part.limit.claimable(s.refill()))
}
