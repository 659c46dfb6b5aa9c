package dispatch

import (
	"time"

	"github.com/skeinq/skein/core"
)

// Node is what the pools of one server share. The Node, its pools and their parts are one state:
// the caller makes one call at a time to any of them, and takes the actions after each call.
type Node struct {
	Config
	stopped bool
	actions []Action
}

// Config has the settings of a Node.
type Config struct {
	// Owner is the server's own id among the holders of permits.
	Owner        string
	PollInterval time.Duration
	LeaseTTL     time.Duration
	// Prefetch is 0 if no batch is claimed before a lane is free for it.
	Prefetch int
	// ByHand is set if the Node grants and runs nothing by itself: Pool.GrantByHand grants, and the
	// caller runs jobs.
	ByHand bool
}

// Now is a time of this process, and the estimated time of the store at that time. The heads of
// shards must be converted to that store's time, since the clocks of their servers may differ.
type Now struct {
	Local time.Time
	Store core.Instant
}

// Kind is the kind of an Action.
type Kind uint8

// The kinds of actions.
const (
	WakeLane      Kind = iota // Lane is to call Pool.Next
	Turn                      // Shard has a grant, so its next turn is to be made
	ReviewPermits             // Permits.Plan is to be called for the queues with a limit
	ReviewSlots               // Slots.Plan is to be called for the queues with a rate
	Look                      // Pool.Look is to be called at Pool.LookAt, and not at another time
)

// Action is what the caller has to do. Its Kind names the fields that are set.
type Action struct {
	Kind  Kind
	Lane  *Lane
	Shard *Shard
	Pool  *Pool
}

// Pending reports whether there are actions.
func (n *Node) Pending() bool { return len(n.actions) > 0 }

// Actions appends the actions since the last call to a slice, in order.
func (n *Node) Actions(to []Action) []Action {
	to = append(to, n.actions...)
	n.actions = n.actions[:0]
	return to
}

func (n *Node) act(a Action) { n.actions = append(n.actions, a) }

// Stop ends all grants and choices: Next ends each lane that calls it.
func (n *Node) Stop() { n.stopped = true }

// Pool is lanes and the shards that they work together. The scheduler keeps its shards in two
// orders: by the runnable jobs, for the lanes, and by the jobs in the store, for grants.
type Pool struct {
	// Of is the caller's own name of the pool.
	Of   any
	node *Node
	// lanes is the present number of lanes, and target the wanted number.
	lanes, target int
	shards        []*Shard
	order         Order
	// waiting are the lanes without a batch that have not been woken. woken counts the woken lanes
	// that have not called Next yet. running counts the lanes that run a batch or are about to.
	waiting []*Lane
	woken   int
	running int
	// parts are the shards, grouped by the limit of their queues. The first part has the shards of all
	// queues without bounds.
	parts []*part
	// starts and pace estimate how many batches will start.
	starts Recent
	pace   Pace
	// passed counts the shards that need no grant while no lane is free.
	passed int
	// lookAt is when to look, or zero.
	lookAt time.Time
}

// Lane is a lane as its pool sees it. The zero value is a lane that has not called Next yet.
type Lane struct {
	// Of is the caller's own name of the lane.
	Of any
	// shard is the one that was chosen for the lane, until its batch has ended.
	shard *Shard
	state laneState
	// refused counts the choices of a user's scheduler that brought the lane no batch.
	refused int
}

// laneState is what a lane does. A new state also requires changes of unpark, wakeLane, short,
// SetLanes and, in dispatch, of the time of the next look.
type laneState uint8

const (
	laneCalls laneState = iota // it calls Next, or runs a batch
	laneWaits                  // it is in Pool.waiting
	laneWoken                  // it is one of Pool.woken
)

// Step is what a lane does next. The zero value means: call Pool.Wait, and wait for a WakeLane.
type Step struct {
	// Run is the shard from which the lane takes a batch.
	Run *Shard
	// Ask is the question for the user's scheduler, which is called without a lock. Pool.Answer takes
	// the answer.
	Ask *Question
	// End is set if the lane is to end.
	End bool
}

// NewPool returns a pool of lanes, which still have to call Next, without shards. of is the
// caller's own name of it.
func (n *Node) NewPool(of any, lanes int) *Pool {
	p := &Pool{Of: of, node: n, lanes: lanes, target: lanes, starts: Recent{Window: LookAhead}}
	p.parts = []*part{{pool: p}}
	return p
}

// Next decides what a lane does that runs no batch.
func (p *Pool) Next(l *Lane, now Now) Step {
	p.unpark(l)
	switch {
	case p.node.stopped:
		return Step{End: true}
	case p.lanes > p.target: // the lane is surplus
		p.lanes--
		p.wakeLanes(now) // it may have been woken for a batch
		return Step{End: true}
	}
	l.refused = 0
	return p.begin(l, now, p.order.next(p, l, now))
}

// Answer takes what the user's scheduler has answered a lane, and decides what the lane does.
func (p *Pool) Answer(l *Lane, q *Question, choice core.Choice, now Now) Step {
	u, ok := p.order.(*byUser)
	if !ok || q != &u.question { // the pool has another order meanwhile
		return Step{}
	}
	return p.begin(l, now, u.answer(p, l, choice, now))
}

// begin notes the shard of a step.
func (p *Pool) begin(l *Lane, now Now, step Step) Step {
	if s := step.Run; s != nil {
		l.shard = s
		s.chosen++
		s.running++
		p.running++
		p.recount(s)
		p.wakeLanes(now) // another lane may be needed for the remaining batches
	}
	return step
}

// Wait notes that a lane waits to be woken.
func (p *Pool) Wait(l *Lane, now Now) {
	for _, t := range p.parts {
		if t.place == placeReserved { // the lane has not used it
			t.endReservation()
			t.limit.reserve(now)
		}
	}
	l.state = laneWaits
	p.waiting = append(p.waiting, l)
	p.dispatch(now)
}

// unpark notes that a lane waits no longer.
func (p *Pool) unpark(l *Lane) {
	switch l.state {
	case laneWoken:
		p.woken--
	case laneWaits: // something else woke it
		if p.node.stopped { // then no lane is woken, and a search for each of many lanes is slow
			return
		}
		for i, w := range p.waiting {
			if w == l {
				p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
				break
			}
		}
	}

	l.state = laneCalls
}

// wakeLane wakes the lane that began to wait last.
func (p *Pool) wakeLane() {
	last := len(p.waiting) - 1
	l := p.waiting[last]
	p.waiting = p.waiting[:last]
	l.state = laneWoken
	p.woken++
	p.node.act(Action{Kind: WakeLane, Lane: l})
}

// wakeLanes wakes lanes for runnable batches.
func (p *Pool) wakeLanes(now Now) {
	for n := p.order.wanted(p, now) - p.woken; n > 0 && len(p.waiting) > 0; n-- {
		p.wakeLane()
	}
	for _, t := range p.parts {
		if t.limit != nil && len(p.waiting) > 0 && t.runnable > t.mayStart() {
			t.limit.wait(t)
		}
	}
}

// BatchEnded notes how the batch of a lane has ended, if one was chosen for it. ran is false if the
// lane found no batch to run. ok is false if no job of the batch succeeded.
func (p *Pool) BatchEnded(l *Lane, ran, ok bool, took time.Duration, now Now) {
	s := l.shard
	if s == nil {
		return
	}

	l.shard = nil
	s.running--
	p.running--
	if ran {
		p.pace.Observe(took, 1)
	}

	p.order.ended(s, ok)
	p.recount(s)

	if limit := s.part.limit; limit != nil {
		s.part.ran(-1)
		if !ran {
			s.part.use(-1)
		}
		limit.reserve(now)
		p.dispatch(now)
	}
}

// SetLanes changes how many lanes the pool is to have. The caller starts the returned number of new
// lanes. Surplus lanes end when they have no batch.
func (p *Pool) SetLanes(n int) (more int) {
	p.target = n
	if more = n - p.lanes; more > 0 {
		p.lanes = n
	}
	for fewer := p.lanes - n; fewer > 0 && len(p.waiting) > 0; fewer-- {
		p.wakeLane()
	}
	return max(0, more)
}

// Asks reports whether the lanes ask a user's scheduler.
func (p *Pool) Asks() bool {
	_, asks := p.order.(*byUser)
	return asks
}

// Full reports whether all lanes run batches, or are about to.
func (p *Pool) Full() bool { return p.running >= p.target }

// Look is the tick. The caller calls it at LookAt.
func (p *Pool) Look(now Now) {
	p.lookAt = time.Time{}
	p.order.look()
	p.dispatch(now)
}

// dispatch grants what is in demand and wakes lanes for runnable batches. It follows each change.
func (p *Pool) dispatch(now Now) {
	for _, t := range p.parts[1:] {
		t.limit.slots.advance(now.Local)
	}

	if !p.node.ByHand && !p.node.stopped {
		for _, t := range p.parts {
			t.show()
			t.limit.show(p, now)
		}
		p.grantDemand(now)
		p.wakeLanes(now)
		p.lookBy(p.order.nextLook(p, now))
	}

	for _, t := range p.parts[1:] {
		t.limit.permits.review()
		t.limit.slots.review(now)
		p.lookForSlots(t, now)
	}
}

// LookAt returns when the pool wants the next Look, or zero.
func (p *Pool) LookAt() time.Time { return p.lookAt }

// lookBy requests a look at a time, unless one is planned earlier. It does nothing if the time is
// zero.
func (p *Pool) lookBy(at time.Time) {
	if at.IsZero() || !p.lookAt.IsZero() && !at.Before(p.lookAt) {
		return
	}
	p.lookAt = at
	p.node.act(Action{Kind: Look, Pool: p})
}

// lookForSlots requests a look at the next slot of a part that has work for it. Looks are at least a
// millisecond apart: more slots may have come by then.
func (p *Pool) lookForSlots(t *part, now Now) {
	at := t.limit.slots.comesAt()
	if !at.IsZero() && (t.runnable > 0 || len(t.held) > 0 || t.holdsClaims()) {
		p.lookBy(later(at, now.Local.Add(time.Millisecond)))
	}
}

// runnable returns how many batches lanes may start now.
func (p *Pool) runnable() (n int) {
	for _, t := range p.parts {
		n += min(t.runnable, t.mayStart())
	}
	return n
}

// short returns how many lanes without a batch would find none. It is negative if more batches are
// runnable and granted.
func (p *Pool) short() int {
	short := p.lanes - p.running
	for _, t := range p.parts {
		short -= min(t.runnable+t.granted, t.mayStart())
	}
	return short
}
