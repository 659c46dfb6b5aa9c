package dispatch

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
)

// Permits are what this server holds of the permits of one queue. The store counts those of all
// servers. The server runs at most as many batches of the queue as it holds permits. The caller
// knows when the permits expire, and calls Drop then.
type Permits struct {
	node *Node
	// limit is that of the queue. It has the number of permits of all servers.
	limit *Limit
	// held is how many permits the server holds. share is how many it should hold at most. It is
	// math.MaxInt unless other servers want permits.
	held, share int
	// listed is set if the store may list the server.
	listed bool
	// attempt is the number of the last call. inFlight is set until that call is answered.
	attempt  int64
	inFlight bool
	// denied is set if the store granted fewer than requested. Then the server does not request more
	// before the store has sent a wake-up, or before callAt.
	denied bool
	// callAt is when to call if nothing changes, and retryAt when to call again after a failure.
	callAt, retryAt time.Time
	// unusedSince is since when the server needs fewer permits than it holds, or zero.
	unusedSince time.Time
	// byHand is 1 while the caller runs the queue's jobs by hand.
	byHand int
}

// PermitCall is a call of the store by which the server is to hold a number of permits.
type PermitCall struct {
	Attempt int64
	// Limit is how many permits the queue has. Hold is how many the server is to hold, and Want how
	// many it could use.
	Limit, Hold, Want int
}

// NewPermits returns the permits of a queue, for Limit.Change.
func (n *Node) NewPermits() *Permits { return &Permits{node: n, share: math.MaxInt} }

// total returns the number of permits of all servers, or 0 while batches need none.
func (p *Permits) total() int { return p.limit.bounds.Total }

// changed notes that the bounds of the queue have changed. What the store has answered before may no
// longer hold.
func (p *Permits) changed(l *Limit) {
	p.limit = l
	p.denied, p.callAt = false, time.Time{}
	if p.total() == 0 {
		p.share = math.MaxInt
	}
}

// Held returns how many permits the server holds.
func (p *Permits) Held() int { return p.held }

// Denied reports whether the store has granted fewer permits than requested, and no other call is
// under way.
func (p *Permits) Denied() bool { return p.denied && !p.inFlight }

// running returns how many batches run.
func (p *Permits) running() int { return p.limit.running + p.byHand }

// need returns how many permits the server could use: for running batches, and for those that its
// lanes could start. While the store has more jobs than may be claimed, their number is unknown
// and counts as more.
func (p *Permits) need(more int) int {
	need := p.running()
	if p.node.stopped || p.node.ByHand {
		return need
	}

	for _, t := range p.limit.parts {
		batches := t.runnable + t.granted
		if t.holdsClaims() {
			batches = min(batches+more, t.pool.target)
		}
		need += min(batches, t.lanesToCome())
	}

	if lanes := p.limit.bounds.Lanes; lanes > 0 {
		need = min(need, lanes)
	}
	return min(need, p.total())
}

// want returns how many permits the server reports that it could use. If the server holds a permit
// and has more jobs than permits, it reports that it could use all, so that the other servers leave
// it its share at once.
func (p *Permits) want() int {
	if p.held == 0 {
		return p.need(1)
	}
	return p.need(p.total())
}

// contended reports whether other servers want permits.
func (p *Permits) contended() bool { return p.share < math.MaxInt }

// target returns how many permits the server should hold: those of running batches, and what it
// needs of its share. While no other server waits for permits, the target doubles with each answer
// until the server needs no more.
func (p *Permits) target() int {
	if p.total() == 0 {
		return 0
	}

	need := p.want()
	if !p.contended() {
		need = p.need(max(1, p.held))
	}
	return max(p.running(), min(need, p.share))
}

// lanesToCome returns how many lanes could start batches of the part: the free lanes or, if other
// queues use all lanes, the next lane that becomes free. The scheduler can only choose a shard
// whose queue has a permit.
func (t *part) lanesToCome() int {
	lanes := t.pool.target
	return max(0, lanes-t.pool.running, min(lanes-t.running, 1))
}

// review asks for a Plan if the server should hold more or fewer permits than it does. It does
// nothing if p is nil.
func (p *Permits) review() {
	if p == nil {
		return
	}

	switch target := p.target(); {
	case target < p.held:
		if p.inFlight || !p.unusedSince.IsZero() && p.patience() > 0 {
			return
		}
	case target > p.held && !p.denied && !p.inFlight:
		p.unusedSince = time.Time{}
	default:
		p.unusedSince = time.Time{}
		return
	}

	p.node.act(Action{Kind: ReviewPermits})
}

// patience returns how long permits may be unused before the server returns them.
func (p *Permits) patience() time.Duration {
	switch {
	case p.node.stopped || p.node.ByHand || p.held > min(p.share, p.total()):
		return 0
	case p.contended():
		return LookAhead
	}
	return p.node.PollInterval
}

// Plan returns whether to call the store now, by which call, and how long to wait before the next
// Plan. callIn is how long to wait before the next call if nothing changes. The caller draws it at
// random, so that servers do not call at the same time.
func (p *Permits) Plan(now time.Time, callIn time.Duration) (c PermitCall, call bool, wait time.Duration) {
	hold, call, wait := p.plan(now)
	if call {
		c = p.request(hold, now, callIn)
	}
	return c, call, max(0, wait)
}

// plan is Plan without the call, which is to hold the returned number.
func (p *Permits) plan(now time.Time) (hold int, call bool, wait time.Duration) {
	wait = p.node.LeaseTTL / 3
	if p.inFlight {
		return 0, false, wait
	}
	if left := p.retryAt.Sub(now); left > 0 {
		return 0, false, min(wait, left)
	}

	hold, target := p.held, p.target()
	if p.listed || p.held > 0 {
		left := p.callAt.Sub(now)
		call, wait = left <= 0, min(wait, left)
	}

	switch {
	case target < p.held:
		if p.unusedSince.IsZero() {
			p.unusedSince = now
		}
		left := p.unusedSince.Add(p.patience()).Sub(now)
		if wait = min(wait, left); left <= 0 {
			return target, true, wait
		}
	case target > p.held && (call || !p.denied):
		p.unusedSince = time.Time{}
		return target, true, wait
	default:
		p.unusedSince = time.Time{}
	}

	return hold, call, wait
}

// request returns the call by which the server holds the given number of permits. If that is fewer
// than before, it counts from now on.
func (p *Permits) request(hold int, now time.Time, callIn time.Duration) PermitCall {
	want := max(hold, p.want())
	if p.total() == 0 { // the call returns all permits
		want = 0
	}
	p.callAt = now.Add(min(callIn, p.node.LeaseTTL/3))
	p.inFlight = true
	p.attempt++
	p.held = min(p.held, hold)
	return PermitCall{Attempt: p.attempt, Limit: max(1, p.total()), Hold: hold, Want: want}
}

// Return returns the call that returns all permits at the end. ok is false if there is nothing to
// return.
func (p *Permits) Return(now time.Time) (c PermitCall, ok bool) {
	if !p.listed && p.held == 0 {
		return c, false
	}
	c = p.request(0, now, 0)
	c.Want = 0
	return c, true
}

// Failed notes that the call has failed and that the next one may be made at retryAt. listed is
// false if the store does not list the server.
func (p *Permits) Failed(listed bool, retryAt time.Time) {
	p.inFlight, p.listed, p.retryAt = false, listed, retryAt
}

// Answered takes the reply to a call: how many permits the server holds, and the holders at the
// store's time. kept is false if the store granted fewer permits than the server believed that it
// held. Then running batches have to end.
func (p *Permits) Answered(c PermitCall, held int, holders []core.PermitHolder, at core.Instant, now Now) (kept bool) {
	kept = held >= p.held
	p.inFlight = false
	p.held, p.listed, p.denied = held, c.Want > 0, held < c.Hold
	p.share = p.ownShare(holders, at)
	p.limit.dispatch(now)
	return kept
}

// ownShare returns the share of this server if another one wants more permits than it holds.
func (p *Permits) ownShare(holders []core.PermitHolder, now core.Instant) int {
	own, contended := -1, false
	for i, h := range holders {
		if h.Owner == p.node.Owner {
			own = i
		} else if h.Want > h.Held {
			contended = true
		}
	}
	if own < 0 || !contended {
		return math.MaxInt
	}
	return FairPermits(p.total(), holders, now)[own]
}

// Drop notes that the server no longer holds permits. It returns the shards of the queue, whose
// handlers have to end.
func (p *Permits) Drop() (shards []*Shard) {
	p.held = 0
	for _, t := range p.limit.parts {
		for _, s := range t.pool.shards {
			if s.part == t {
				shards = append(shards, s)
			}
		}
	}
	return shards
}

// Freed notes that other servers have returned permits.
func (p *Permits) Freed() {
	if p.want() > p.held {
		p.denied, p.callAt = false, time.Time{}
		p.node.act(Action{Kind: ReviewPermits})
	}
}

// ByHand notes whether the caller runs the queue's jobs by hand.
func (p *Permits) ByHand(works bool) {
	p.byHand = 0
	if works {
		p.byHand, p.denied = 1, false
	}
}

// permitRound is how long the same servers have a permit if there are too few permits for all.
const permitRound = time.Second

// FairPermits divides the permits of a queue among the servers that want some: element i is how
// many holders[i] should hold. No server gets more than it wants. A server that wants no more than
// an equal share gets what it wants, and the others share the rest, so that no two of them differ
// by more than one. The larger shares go to servers that hold more, so that no permit changes hands
// without need. If there are fewer permits than servers that want some, these take turns, in the
// order of the list, by the second of now, the store's time: all servers compute the same from the
// same list.
//
// A negative limit and negative wants count as 0. It is pure.
func FairPermits(limit int, holders []core.PermitHolder, now core.Instant) []int {
	shares := make([]int, len(holders))
	for left := max(0, limit); left > 0; {
		open := unsatisfied(holders, shares)
		if len(open) == 0 {
			break
		}

		if left < len(open) {
			dealRest(shares, open, left, holders, now)
			break
		}

		each := left / len(open)
		for _, i := range open {
			more := min(each, holders[i].Want-shares[i])
			shares[i] += more
			left -= more
		}
	}

	return shares
}

// unsatisfied returns the positions of the holders that want more than their share.
func unsatisfied(holders []core.PermitHolder, shares []int) []int {
	var open []int
	for i, h := range holders {
		if h.Want > shares[i] {
			open = append(open, i)
		}
	}
	return open
}

// dealRest adds one permit each to the shares of some holders at the positions of open, whose
// shares are equal. left is the number of permits, which is smaller than the number of positions.
func dealRest(shares, open []int, left int, holders []core.PermitHolder, now core.Instant) {
	first := 0
	if shares[open[0]] == 0 {
		round := int64(now) / permitRound.Microseconds()
		first = int(round % int64(len(open)) * int64(left) % int64(len(open)))
	} else {
		slices.SortStableFunc(open, func(a, b int) int { return cmp.Compare(holders[b].Held, holders[a].Held) })
	}
	for k := range left {
		shares[open[(first+k)%len(open)]]++
	}
}
