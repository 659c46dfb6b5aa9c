package engine

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/internal/dispatch"
	"github.com/skeinq/skein/ports"
)

// permits are what this node holds of the permits of one queue. The store counts those of all
// nodes. The node runs at most as many batches of the queue as it holds permits. node.pooling
// guards all fields but until.
type permits struct {
	node  *node
	queue string
	// total is Queue.MaxRunning.
	total int
	limit *laneLimit
	// held is how many the node holds until a time, in nanoseconds after the start of node.clock.
	// After that time the node acts as if they had expired.
	held  int
	until atomic.Int64
	// share is how many it should hold at most if contended is set, which means that other nodes want
	// some.
	share     int
	contended bool
	// listed is set if the store may list the node.
	listed bool
	// attempt is the number of the last call. inFlight is set until that call is answered.
	attempt  int64
	inFlight bool
	// denied is set if the store granted fewer than requested. Then the node does not request more
	// before the store has sent a wake-up, or before lookAt.
	denied bool
	// lookAt is when to call if nothing changes, and retryAt when to call again after a failure.
	lookAt, retryAt time.Time
	retry           backoff
	// unusedSince is since when fewer are needed than are held, or zero.
	unusedSince time.Time
	status      *loopStatus
	// byHand is 1 while RunDue works the queue. Then answered takes how each call ended.
	byHand   int
	answered chan error
}

// limitOf returns the limit of the lanes that run the queue, or nil if there is none.
func (n *node) limitOf(q *Queue) *laneLimit {
	if q.MaxRunning == 0 {
		return newLaneLimit(q.MaxLanes)
	}
	n.pooling.Lock()
	defer n.pooling.Unlock()
	p := n.permitsOf(q.Name)
	p.total, p.limit = q.MaxRunning, &laneLimit{lanes: q.MaxLanes, permits: p}
	p.setLimit()
	q.permits = p
	return p.limit
}

// permitsOf returns the permits of a queue. They stay the same if the queue is removed and added
// again.
func (n *node) permitsOf(queue string) *permits {
	for _, p := range n.permits {
		if p.queue == queue {
			return p
		}
	}
	p := &permits{
		node: n, queue: queue, share: math.MaxInt,
		status: n.newLoopStatus(holdingPermits), answered: make(chan error, 1),
	}
	n.permits = append(n.permits, p)
	return p
}

// last reports whether the held permits last at a time. A queue without a bound needs no permits.
func (p *permits) last(now time.Time) bool {
	return p == nil || now.Before(p.end())
}

func (p *permits) end() time.Time { return p.node.clock.start.Add(time.Duration(p.until.Load())) }

// setLimit sets the limit of the lanes to the number of held permits, and at most the node's share.
func (p *permits) setLimit() {
	p.limit.most = min(p.held, p.share)
	if p.limit.lanes > 0 {
		p.limit.most = min(p.limit.most, p.limit.lanes)
	}
}

// running returns how many batches run.
func (p *permits) running() int { return p.limit.running + p.byHand }

// manual reports whether RunDue works the queue.
func (p *permits) manual() bool { return len(p.limit.supplies) > 0 && p.limit.supplies[0].pool.manual }

// need returns how many permits the node could use: for running batches, and for those that its
// lanes could start. While the store has more jobs than may be claimed, their number is unknown
// and counts as more.
func (p *permits) need(more int) int {
	need := p.running()
	if p.node.stopping() || p.manual() {
		return need
	}
	for _, s := range p.limit.supplies {
		batches := s.startable + s.granted
		if s.asksHeld > 0 {
			batches = min(batches+more, int(s.pool.laneCount.Load()))
		}
		need += min(batches, s.lanesToCome())
	}
	if p.limit.lanes > 0 {
		need = min(need, p.limit.lanes)
	}
	return min(need, p.total)
}

// want returns how many permits the node reports that it could use. A node that holds one and has
// more to do reports so, and the others then leave it its share at once.
func (p *permits) want() int {
	if p.held == 0 {
		return p.need(1)
	}
	return p.need(p.total)
}

// target returns how many permits the node should hold: those of running batches, and what it
// needs of its share. While no node waits for permits, its number doubles until the store has no
// more.
func (p *permits) target() int {
	need := p.want()
	if !p.contended {
		need = p.need(max(1, p.held))
	}
	return max(p.running(), min(need, p.share))
}

// lanesToCome returns how many lanes could start batches of the supply: the free ones and, if
// other queues have all lanes, the next one, since the scheduler can only choose a shard that has
// a permit.
func (s *supply) lanesToCome() int {
	lanes := int(s.pool.laneCount.Load())
	return max(0, lanes-s.pool.busy, min(lanes-s.running, 1))
}

// review wakes the loop if the node should hold more or fewer permits than it does. It does
// nothing if p is nil.
func (p *permits) review() {
	if p == nil {
		return
	}
	switch target := p.target(); {
	case target < p.held:
		if p.inFlight || !p.unusedSince.IsZero() && p.held <= p.share && !p.node.stopping() {
			return
		}
	case target > p.held && !p.denied && !p.inFlight:
		p.unusedSince = time.Time{}
	default:
		p.unusedSince = time.Time{}
		return
	}
	signal(p.node.permitsNow)
}

// patience returns how long permits may be unused before they are given back.
func (p *permits) patience() time.Duration {
	switch {
	case p.node.stopping() || p.manual() || p.held > p.share:
		return 0
	case p.contended:
		return dispatch.LookAhead
	}
	return p.node.cfg.PollInterval
}

// plan returns how many permits the node should request to hold now, whether it should call, and
// how long to wait before the next look.
func (p *permits) plan(now time.Time) (hold int, call bool, wait time.Duration) {
	wait = p.node.cfg.LeaseTTL / 3
	if p.held > 0 {
		wait = min(wait, p.end().Sub(now))
	}
	if p.inFlight {
		return 0, false, wait
	}
	if left := p.retryAt.Sub(now); left > 0 {
		return 0, false, min(wait, left)
	}
	hold, target := p.held, p.target()
	if p.listed || p.held > 0 {
		left := p.lookAt.Sub(now)
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

// request returns the call by which the node holds the given number of permits. If that is fewer
// than before, it counts from now on.
func (p *permits) request(hold int, now time.Time) ports.PermitRequest {
	want := max(hold, p.want())
	cfg := &p.node.cfg
	p.lookAt = now.Add(min(spread(cfg.PollInterval), cfg.LeaseTTL/3))
	p.inFlight = true
	p.attempt++
	if hold < p.held {
		p.held = hold
		p.setLimit()
	}
	return ports.PermitRequest{
		Queue: p.queue, Owner: cfg.Owner, Attempt: p.attempt, Limit: p.total, Hold: hold, Want: want, TTL: cfg.LeaseTTL,
	}
}

// granted takes the reply to a call that was sent at a time. It returns false if the store granted
// fewer than the node believed to hold: then running batches have to end.
func (p *permits) granted(r *ports.PermitRequest, reply *ports.PermitReply, sent time.Time) bool {
	kept := reply.Held >= p.held
	p.held = reply.Held
	p.until.Store(int64(sent.Sub(p.node.clock.start) + reply.Remaining - r.TTL/5))
	p.listed = r.Want > 0
	p.denied = reply.Held < r.Hold
	p.contended, p.share = false, math.MaxInt
	for _, h := range reply.Holders {
		p.contended = p.contended || h.Owner != r.Owner && h.Want > h.Held
	}
	if p.contended {
		for i, share := range dispatch.FairPermits(p.total, reply.Holders, reply.Now) {
			if reply.Holders[i].Owner == r.Owner {
				p.share = share
			}
		}
	}
	p.setLimit()
	return kept
}
