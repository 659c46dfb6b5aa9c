package memory

import (
	"slices"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// claim is a claimed job. Its Payloads are never changed, so replies share them.
type claim struct {
	core.Claim
	by *claimer
	// cancelled is set by Cancel. drop is the Drop of its last call.
	cancelled, drop bool
	// handed is true once the job was handed over to a later lease than that which claimed it.
	handed bool

	prev, next *claim
}

// claimer is the common fields of one turn's claims.
type claimer struct {
	owner string
	node  string
	since core.Instant
}

// claimList is the claimed jobs of a shard in the order in which they were claimed. Settled claims
// are kept in free and used again, so there are never more of them than jobs were claimed at once.
type claimList struct {
	first, last *claim
	size        int
	// alone is the number of claims that had to be claimed alone. cancelled is the number of claims
	// that an operator has cancelled.
	alone, cancelled int

	free *claim
}

// admits reports whether a job may be claimed beside the claimed ones. A job that must be claimed
// alone is admitted only if no job is claimed, and then no job is admitted beside it (docs/rules.md
// 4).
func (l *claimList) admits(e *entity) bool {
	return l.alone == 0 && (!e.Alone() || l.size == 0)
}

// add appends a claim and returns its entry in the list.
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

// remove removes a claim from the list; the claim must not be used afterwards.
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

// endPayload ends one payload of a claim as done. It returns false if the claim has no such
// payload, or no other one.
func (l *claimList) endPayload(c *claim, p *core.PayloadSettlement) bool {
	left, ok := p.Apply(c.Claim)
	if !ok {
		return false
	}

	if c.Alone() && !left.Alone() {
		l.alone--
	}
	c.Claim = left
	return true
}

// cancel marks a claim as cancelled and reports whether that changed it.
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

// matching lists the claims whose receipts match, in the order in which they were claimed.
func (l *claimList) matching(match func(core.Receipt) bool) []core.Claim {
	var matching []core.Claim
	for c := l.first; c != nil; c = c.next {
		if match(c.Receipt) {
			matching = append(matching, c.Claim)
		}
	}
	return matching
}

// cancellations lists the cancelled claims in order of id.
func (l *claimList) cancellations() []ports.Cancellation {
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

func sortByID[V any](list []V, id func(V) string) {
	slices.SortFunc(list, func(a, b V) int { return strings.Compare(id(a), id(b)) })
}
