package memory

import (
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// claim is a claimed job. Its Payloads are never changed, so replies share them.
type claim struct {
	core.Claim
	by *claimer
	// cancelled and drop are what an operator has asked for.
	cancelled, drop bool

	prev, next *claim
}

// claimer is what the claims of one turn have in common.
type claimer struct {
	owner string
	node  string
	lane  int
	since core.Instant
}

// claimList is the claimed jobs of a shard in the order they were claimed. It
// reuses the memory of settled ones, of which there were never more than have
// been claimed at once.
type claimList struct {
	first, last *claim
	size        int
	// alone and cancelled are how many of them must be claimed alone, and how many
	// an operator has cancelled.
	alone, cancelled int

	free *claim
}

// admits reports whether the first ready job may be claimed, were it due: one
// that must be alone only when nothing else is claimed, and nothing beside it
// (RULES 4).
func (l *claimList) admits(e *entity) bool {
	return l.alone == 0 && (!e.Alone() || l.size == 0)
}

// add appends a claim and returns it for the list's keeping.
func (l *claimList) add(c core.Claim, by *claimer) *claim {
	kept := l.free
	if kept == nil {
		kept = new(claim)
	} else {
		l.free = kept.next
	}
	*kept = claim{Claim: c, by: by, prev: l.last}
	if l.last == nil {
		l.first = kept
	} else {
		l.last.next = kept
	}
	l.last = kept
	l.size++
	if c.Alone() {
		l.alone++
	}
	return kept
}

// remove takes a claim out; it must not be used after.
func (l *claimList) remove(c *claim) {
	if c.prev == nil {
		l.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next == nil {
		l.last = c.prev
	} else {
		c.next.prev = c.prev
	}
	l.size--
	if c.Alone() {
		l.alone--
	}
	if c.cancelled {
		l.cancelled--
	}
	*c = claim{next: l.free}
	l.free = c
}

// cancel marks a claim and reports whether that is news.
func (l *claimList) cancel(c *claim, drop bool) bool {
	if c.cancelled && c.drop == drop {
		return false
	}
	if !c.cancelled {
		l.cancelled++
	}
	c.cancelled, c.drop = true, drop
	return true
}

// pick lists the claims whose marks match, in the order they were claimed.
func (l *claimList) pick(match func(core.Receipt) bool) []core.Claim {
	var picked []core.Claim
	for c := l.first; c != nil; c = c.next {
		if match(c.Receipt) {
			picked = append(picked, c.Claim)
		}
	}
	return picked
}

// cancels are the cancelled claims in order of id.
func (l *claimList) cancels() []ports.Cancellation {
	if l.cancelled == 0 {
		return nil
	}
	list := make([]ports.Cancellation, 0, l.cancelled)
	for c := l.first; c != nil; c = c.next {
		if c.cancelled {
			list = append(list, ports.Cancellation{ID: c.ID, Receipt: c.Receipt, Drop: c.drop})
		}
	}
	sortByID(list, func(c ports.Cancellation) string { return c.ID })
	return list
}
