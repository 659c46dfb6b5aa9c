package engine

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// news is what the store and its wake-ups have said about the jobs of a shard. It is a part of
// turns. Times of type core.Instant are those of the shard's server.
type news struct {
	// storeHead is the store's last known head. paused is set if the queue is paused.
	storeHead core.Head
	paused    bool
	// headNotBefore is when to believe the store again after it has reported a due job and then
	// claimed none. emptyClaims are the waits until then.
	headNotBefore core.Instant
	emptyClaims   backoff
	// ahead is how far the clock of the shard's server was ahead of node.clock.Steady at the last
	// reply.
	ahead time.Duration
	// heardAt is when the store last answered for this shard. An answer does not count if it was
	// asked for before listenedAt, when this node last began to listen for wake-ups.
	heardAt    time.Time
	listenedAt time.Time
	// wokenAt is when the last wake-up came. woken is set if it came during a turn, and unclaimed if it
	// came since the last turn that was to claim.
	wokenAt   time.Time
	woken     bool
	unclaimed bool
}

// reset forgets what belongs to a lease. The clock, the waits and the times of answers are those of
// the server.
func (n *news) reset() {
	n.storeHead, n.paused, n.headNotBefore = core.Head{}, false, 0
	n.wokenAt, n.woken, n.unclaimed = time.Time{}, false, false
}

// syncClock takes the time of a reply. received is when it came, by the clock of the node's pools.
func (n *news) syncClock(now, received core.Instant) { n.ahead = now.Sub(received) }

// steady converts a time of the shard's server to that of the node's pools. So a head is
// expected by the clock that decides whether it is due.
func (n *news) steady(at core.Instant) core.Instant { return max(0, at.Add(-n.ahead)) }

// head returns when the store has a due job, by the clock of the node's pools.
func (n *news) head() core.Head {
	return core.Head{Due: n.steady(max(n.storeHead.Due, n.headNotBefore)), OK: n.storeHead.OK}
}

// listens notes that the node has begun to listen for wake-ups. Some may have come before, so the
// poll has to ask.
func (n *news) listens(now time.Time) { n.heardAt, n.listenedAt = time.Time{}, now }

// answered notes that the store has answered a question that was asked at a time. If this node began
// to listen for wake-ups after that, one may have come before: again is true, and the poll has to ask
// again.
func (n *news) answered(asked, received time.Time) (again bool) {
	if asked.Before(n.listenedAt) {
		n.heardAt = time.Time{}
		return true
	}
	n.heardAt = received
	return false
}

// acquired takes the head that came with a new lease. A job is assumed to be due if a wake-up came
// during the call. The result is that of answered.
func (n *news) acquired(r *ports.AcquireReply, sent, now time.Time) (again bool) {
	n.storeHead, n.paused = r.Head, r.Paused
	if !n.wokenAt.Before(sent) {
		n.assumeDue(r.Now)
	}
	return n.answered(sent, now)
}

// polled takes a head that was asked for at a time, unless a turn or a wake-up has brought news
// since. asOf is the time of the reply, received is when it came, and now is the estimate of the
// server's clock at that time. changed is true if the head counts, and again is that of answered.
//
// A head that is due at asOf counts as due, even if the estimate is behind because the last reply
// came late. If a turn has reported a due job and brought no job, only another turn corrects that:
// the jobs may be those of an earlier lease that could not be handed over yet, and no head includes
// these.
func (n *news) polled(h core.Head, asOf, now core.Instant, asked, received time.Time) (changed, again bool) {
	if n.heardAt.After(asked) || !n.wokenAt.Before(asked) {
		return false, false
	}

	again = n.answered(asked, received)
	if h == n.storeHead || n.headNotBefore > 0 && !h.DueBy(n.headNotBefore) {
		return false, again
	}

	n.storeHead = h
	if h.DueBy(asOf) {
		n.storeHead.Due = min(h.Due, now)
	}
	return true, again
}

// turned takes the head of a turn's reply. It reports whether a wake-up came during the turn, which
// is still valid, so that a job is assumed to be due.
func (n *news) turned(request *ports.TurnRequest, r *ports.TurnReply) (woken bool) {
	n.storeHead = r.Head
	empty := request.Want > 0 && len(r.Claims)+len(r.Orphans) == 0
	n.delayHead(!r.Repeat && empty && r.Head.DueBy(r.Now), r.Now)

	if !n.woken || r.Paused {
		return false
	}
	n.woken = false
	n.assumeDue(r.Now)
	return true
}

// wakeUp takes a wake-up. It stays valid after the turn in flight.
func (n *news) wakeUp(inFlight bool, now time.Time) {
	n.woken, n.wokenAt, n.unclaimed = inFlight, now, true
}

// takeWakeup reports whether a wake-up came since the last turn that was to claim. The next turn is
// to claim.
func (n *news) takeWakeup() bool {
	came := n.unclaimed
	n.unclaimed = false
	return came
}

// assumeDue makes the head due: something may have changed, so a job may be due now, whatever the
// store replied before.
func (n *news) assumeDue(now core.Instant) {
	n.headNotBefore = 0
	if !n.storeHead.OK || now < n.storeHead.Due {
		n.storeHead = core.Head{Due: now, OK: true}
	}
}

// delayHead hides the store's head for a while, longer each time, if empty is true: the store
// replied that a job is due, and claimed none.
func (n *news) delayHead(empty bool, now core.Instant) {
	n.headNotBefore = 0
	if !empty {
		n.emptyClaims.reset()
		return
	}
	n.headNotBefore = now.Add(n.emptyClaims.next())
}
