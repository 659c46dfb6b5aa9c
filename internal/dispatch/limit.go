package dispatch

import (
	"math"
	"slices"
	"time"
)

// Bounds are how many batches of a queue may run at once. 0 is no bound.
type Bounds struct {
	// Total is the bound over all servers. The server needs a permit for each batch.
	Total int
	// Lanes is the bound of this server.
	Lanes int
	// Interval is the time between two starts over all servers, by the queue's rate. The server needs
	// a slot for each batch.
	Interval time.Duration
}

// Limit bounds how many lanes of the server run batches of one queue at once. Its bounds may change
// at any time.
type Limit struct {
	bounds Bounds
	// permits are those of the queue. They are nil until it has a bound over all servers.
	permits *Permits
	// slots are those of the queue's rate.
	slots Slots
	// pools are those that have shards of the queue.
	pools []*Pool
	// running counts the lanes that run a batch or are about to. claimed counts the batches that are
	// runnable but for the limit, or granted.
	running, claimed int
	// held are the shards that get no grant because the limit is reached, in the order in which they
	// were chosen. showing is set while show shows some of them.
	held    []*Shard
	showing bool
	// parts are the parts of all pools that share the limit. queue are the parts with waiting lanes
	// that the limit keeps from running a batch, in order of arrival. reserved counts the lanes that
	// were woken because it is their part's turn, and have not called Next yet.
	parts, queue []*part
	reserved     int
}

// part is the shards of a pool under one limit.
type part struct {
	pool  *Pool
	limit *Limit // nil if there is none
	// runnable and granted count batches. running counts the lanes of the pool that run one or are
	// about to, if there is a limit.
	runnable, granted, running int
	// held are the shards that are hidden from the scheduler because the limit is reached, in the
	// order in which they were chosen.
	held []*Shard
	// place is the part's place in the queue of the limit.
	place place
}

// place is where a part stands in the queue of a limit.
type place uint8

const (
	placeNone     place = iota
	placeQueued         // it is in Limit.queue
	placeReserved       // a lane was woken for its turn, and may start before others
)

// NewLimit returns the limit of a queue without bounds.
func (n *Node) NewLimit() *Limit {
	l := &Limit{}
	l.slots = Slots{node: n, limit: l, size: 1}
	return l
}

// Slots returns the slots of the queue's rate.
func (l *Limit) Slots() *Slots { return &l.slots }

// bounded reports whether there is any bound.
func (l *Limit) bounded() bool { return l.bounds != Bounds{} }

// rated reports whether the queue has a rate.
func (l *Limit) rated() bool { return l.bounds.Interval > 0 }

// dispatch dispatches all pools with shards under the limit.
func (l *Limit) dispatch(now Now) {
	for _, t := range l.parts {
		t.pool.dispatch(now)
	}
}

// Change changes the bounds. Batches that run beyond them end by themselves, and no other starts
// until then. permits are those of the queue, the same in each call; they may be nil while there is
// no bound over all servers.
func (l *Limit) Change(b Bounds, permits *Permits, now Now) {
	was := l.bounds
	l.bounds, l.permits = b, permits
	if permits != nil {
		permits.changed(l)
	}
	if b.Interval != was.Interval {
		l.slots.reset()
	}

	if l.bounded() != (was != Bounds{}) {
		for _, p := range l.pools {
			p.regroup(l)
		}
	}

	l.reserve(now)
	for _, p := range l.pools {
		p.dispatch(now)
	}
	permits.review()
}

// regroup moves the shards of a queue that has got its first bound to a part of their own, and those
// of a queue that has lost its last bound back to the first part. That ends what the limit has noted
// of them.
func (p *Pool) regroup(l *Limit) {
	for _, s := range p.shards {
		if s.limit == l {
			s.join(p.partFor(l))
		}
	}
	if !l.bounded() {
		p.parts = slices.DeleteFunc(p.parts, func(t *part) bool { return t.limit == l })
		l.parts, l.queue, l.held, l.reserved = nil, nil, nil, 0
	}
}

// boundless is the limit of a queue that only its rate bounds. Numbers of batches may be added to it.
const boundless = math.MaxInt / 2

// most returns how many lanes may run now. For a queue with a bound over all servers these are the
// permits that the server holds, up to its share.
func (l *Limit) most() int {
	most := boundless
	if l.bounds.Total > 0 {
		most = min(l.permits.held, l.permits.share, l.bounds.Total)
	}
	if l.bounds.Lanes > 0 {
		most = min(most, l.bounds.Lanes)
	}
	return most
}

// partFor returns the part of the pool for the shards of a queue.
func (p *Pool) partFor(limit *Limit) *part {
	if !limit.bounded() {
		return p.parts[0]
	}
	for _, t := range p.parts {
		if t.limit == limit {
			return t
		}
	}
	t := &part{pool: p, limit: limit}
	p.parts = append(p.parts, t)
	limit.parts = append(limit.parts, t)
	return t
}

// join makes the shard one of a part. No limit hides it any longer.
func (s *Shard) join(t *part) {
	was := s.part
	was.change(-s.runnable, -s.granted)
	was.ran(-s.running)

	s.part = t
	s.hidden &^= heldRun | heldClaim
	t.change(s.runnable, s.granted)
	t.ran(s.running)
	t.pool.recount(s)
}

// change adds to the runnable and the granted batches.
func (t *part) change(runnable, granted int) {
	t.runnable += runnable
	t.granted += granted
	if t.limit != nil {
		t.limit.claimed += runnable + granted
	}
}

// use takes slots of the queue's rate, if it has one, or gives them back.
func (t *part) use(slots int) {
	if t.limit != nil && t.limit.rated() {
		t.limit.slots.use(slots)
	}
}

// ran adds to the lanes that run a batch or are about to, if there is a limit.
func (t *part) ran(lanes int) {
	if t.limit != nil {
		t.running += lanes
		t.limit.running += lanes
	}
}

// claimable returns how many more batches may be claimed, if the given number of batches may be
// claimed beyond the limit.
func (l *Limit) claimable(beyond int) int {
	if l == nil {
		return math.MaxInt
	}
	most := l.most()
	if most == 0 { // no batch will start soon
		beyond = 0
	}
	may := most - l.running + beyond - l.claimed
	if l.rated() {
		may = min(may, l.slots.held()-l.claimed)
	}
	return may
}

// hold hides the jobs that a shard has in the store, until more may be claimed.
func (l *Limit) hold(s *Shard) {
	if s.hidden&heldClaim == 0 {
		s.hidden |= heldClaim
		l.held = append(l.held, s)
	}
}

// show shows hidden shards, in the order in which they were hidden, until others have been granted what
// may be claimed under the limit. It dispatches their pools, except p, which the caller dispatches.
func (l *Limit) show(p *Pool, now Now) {
	if l == nil || l.showing { // each pool that is dispatched below calls show, too
		return
	}
	l.showing = true
	defer func() { l.showing = false }()

	own := 0 // shards of p, which have no grant yet
	for n := len(l.held); n > 0 && l.claimable(0) > own; n-- {
		s := l.held[0]
		l.held = l.held[1:]
		s.hidden &^= heldClaim
		s.part.pool.recount(s)
		if s.part.pool == p {
			own++
		} else {
			s.part.pool.dispatch(now)
		}
	}
}

// wait notes that the limit keeps waiting lanes of a pool from a batch.
func (l *Limit) wait(t *part) {
	if len(l.parts) > 1 && t.place == placeNone {
		t.place = placeQueued
		l.queue = append(l.queue, t)
	}
}

// reserve gives the free places under the limit to the queued parts. It wakes one lane of each
// part.
func (l *Limit) reserve(now Now) {
	for l.running+l.reserved < l.most() && len(l.queue) > 0 {
		t := l.queue[0]
		l.queue = l.queue[1:]
		t.place = placeNone
		if t.runnable == 0 || len(t.pool.waiting) == 0 {
			continue
		}

		t.place = placeReserved
		l.reserved++
		t.pool.dispatch(now)
		if t.pool.woken == 0 {
			t.endReservation()
		}
	}
}

// endReservation ends the reservation that the part has, if any.
func (t *part) endReservation() {
	if t.place == placeReserved {
		t.place = placeNone
		t.limit.reserved--
	}
}

// mayStart returns how many more batches of the part may run.
func (t *part) mayStart() int {
	if t.limit == nil {
		return math.MaxInt
	}
	n := t.limit.most() - t.limit.running - t.limit.reserved
	if t.place == placeReserved {
		n++
	}
	if t.limit.rated() {
		n = min(n, t.limit.slots.ready)
	}
	return max(0, n)
}

// start reports whether one more lane may run a batch of the shard. If not, the shard is hidden
// until one may.
func (t *part) start(s *Shard) bool {
	switch {
	case t.limit == nil:
	case t.mayStart() > 0:
		t.endReservation() // it is used
		t.ran(1)
		t.use(1)
	default:
		if s.hidden&heldRun == 0 {
			s.hidden |= heldRun
			t.held = append(t.held, s)
		}
		return false
	}
	return true
}

// show shows as many of the hidden shards as may start.
func (t *part) show() {
	for n := t.mayStart(); n > 0 && len(t.held) > 0; n-- {
		s := t.held[0]
		t.held = t.held[1:]
		s.hidden &^= heldRun
		t.pool.recount(s)
	}
}

// holdsClaims reports whether the limit hides a shard of the part that has jobs in the store.
func (t *part) holdsClaims() bool {
	for _, s := range t.limit.held {
		if s.part == t && s.view.Claim.OK {
			return true
		}
	}
	return false
}
