package engine

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// turns is the part of a shard that knows of its turns: the one that is in flight or has to be
// repeated, what the next one carries, and what the store has said of its jobs. It only decides and
// remembers. The shard makes the calls, and its lock guards the turns.
//
// The state of the sequence, the outbox and much of the news belongs to one lease. The other fields
// outlast it.
type turns struct {
	cfg   *Config
	queue *Queue

	sequence
	outbox outbox
	news   news

	// claimBytes is how many bytes of payload the next turn claims: see adaptClaims.
	claimBytes int
	// wider is how often the number of jobs to claim doubles: once for each turn in a row most of whose
	// jobs had to wait for the rates of their keys.
	wider int
	// overdueAt is when the turn in flight takes too long. hasSlot is set if it has one of the node's
	// slots.
	overdueAt time.Time
	hasSlot   bool
	// unresponsive is set while the store is not trusted to answer: a turn has failed or takes too
	// long, and none has been answered since.
	unresponsive bool
}

// sequence is the turns of one lease. At most one is in flight.
type sequence struct {
	// last is the number of the last turn that was answered.
	last int64
	// request is the turn in flight or, if unknown is set, the turn to repeat.
	request ports.TurnRequest
	unknown bool
	// firstSent is when it was first sent. slow is how often in a row it was called off.
	firstSent time.Time
	slow      int
	// inFlight is set while a call is under way; sentAt is when it was sent.
	inFlight bool
	sentAt   time.Time
	// byWakeup is set if a wake-up came before the turn in flight, which is to claim.
	byWakeup bool
	// due requests a turn although nothing is finished.
	due bool
	// ended is when the last turn was answered.
	ended time.Time
}

func newTurns(cfg *Config, s *shardInfo) turns {
	t := turns{cfg: cfg, queue: s.queue, claimBytes: s.queue.Bytes}
	t.outbox.shard = &s.Shard
	t.news.emptyClaims.longest = min(longestRetry, cfg.PollInterval)
	return t
}

// unanswered returns for how long a turn has been under way or waited to be repeated, or 0 if none
// is.
func (t *turns) unanswered(now time.Time) time.Duration {
	if !t.inFlight && !t.unknown {
		return 0
	}
	return now.Sub(t.firstSent)
}

// acquired notes what the acquire of a new lease has replied. If there are no orphans to settle, the
// first turn waits until the store has a due job. The result is that of news.acquired.
//
// A shard that did not answer last time gets no grant. An acquire hands over no large claim of an
// earlier lease, and a turn for it needs no grant either: the queue may be paused, and the lanes may
// be busy.
func (t *turns) acquired(r *ports.AcquireReply, sent, now time.Time) (again bool) {
	t.due = t.unresponsive || len(r.Claims) == 0 && (r.Paused || r.Head.DueBy(r.Now))
	return t.news.acquired(r, sent, now)
}

// needed reports whether a turn is due or has something to send.
func (t *turns) needed() bool {
	return t.due || t.outbox.hasFinished() || t.outbox.needsPart()
}

// mayClaim reports whether a turn may claim, given the number of claimed jobs that have not started.
// Behind a slow link a turn that claims takes long and is repeated. Until it ends, jobs that have to
// begin first can't start, and the reply to a repeat does not show which jobs began. So while
// claimed jobs wait to start there, turns claim nothing.
func (t *turns) mayClaim(unstarted int) bool { return t.claimBytes >= t.queue.Bytes || unstarted == 0 }

// number returns the number of the next turn.
func (t *turns) number() int64 { return t.last + 1 }

// prepare makes the request of the next turn, which begins jobs and claims at most want others.
func (t *turns) prepare(lease ports.Lease, begin []core.ClaimRef, want int, now time.Time) {
	t.due, t.firstSent, t.slow = false, now, 0

	t.request = ports.TurnRequest{
		Lease:       lease,
		Number:      t.number(),
		TTL:         t.cfg.LeaseTTL,
		Settlements: t.outbox.nextSettlements(),
		Parts:       t.outbox.nextParts(t.number()),
		Begin:       begin,
		Want:        want,
		PerJob:      t.queue.PerJob,
		Bytes:       t.claimBytes,
		Node:        t.cfg.Node,
		Keep:        t.queue.Past.PerShard(t.queue.Shards),
		Marks:       t.queue.DropStale,
	}

	t.byWakeup = want > 0 && t.news.takeWakeup()
}

// sent notes that the request is being sent, and how long to count on the answer.
func (t *turns) sent(now time.Time, timeout time.Duration) {
	t.inFlight, t.sentAt, t.overdueAt = true, now, now.Add(timeout)
}

// overdue notes that the time for an answer is over, unless another turn has been sent since. free
// is true if the slot of the turn is to be given back, also if the lease was lost meanwhile and the
// call still runs. hangs is true if the shard has begun to hang.
func (t *turns) overdue(now time.Time) (free, hangs bool) {
	if now.Before(t.overdueAt) {
		return false, false
	}
	return t.returnSlot(), t.inFlight && !t.unresponsive
}

// takeSlot notes that the turn has one of the node's slots.
func (t *turns) takeSlot() { t.hasSlot = true }

// returnSlot reports whether the turn had a slot, which it no longer has.
func (t *turns) returnSlot() bool {
	had := t.hasSlot
	t.hasSlot = false
	return had
}

// distrust hides the store's jobs until a turn is answered. It returns the parts whose handlers no
// longer wait for that turn.
func (t *turns) distrust() []*awaitedPart {
	t.unresponsive = true
	return t.outbox.giveUpParts()
}

// mostSlow is how often the time of a turn that is called off doubles, so the last of its calls may
// take 16/3 of the TTL. It is bounded, since a call on a dead connection takes all of its time.
const mostSlow = 4

// hangs reports whether the turn in flight is to be called off.
func (t *turns) hangs(now time.Time) bool {
	return t.inFlight && now.Sub(t.sentAt) >= t.cfg.LeaseTTL/3<<min(t.slow, mostSlow)
}

// givenUp returns the error that ends the lease because a turn got no answer for a TTL, or nil. It is
// unknown whether that turn was carried out, so only a new lease can continue. A turn that was
// called off may have a large reply on a slow link, and a new lease would have to read the same
// payloads. So its lease stays until a call with the longest time was called off too, unless the
// shard is to be given up.
func (t *turns) givenUp(now time.Time, leaving bool) error {
	unanswered := t.unanswered(now)
	if unanswered < t.cfg.LeaseTTL || t.slow > 0 && t.slow <= mostSlow && !leaving {
		return nil
	}
	return fmt.Errorf("%w: given up, since turn %d failed or got no answer for %v, and the TTL is %v",
		ports.ErrLeaseLost, t.request.Number, unanswered.Round(time.Millisecond), t.cfg.LeaseTTL)
}

// failed keeps the turn for a repeat, which gets twice the time if the turn was called off.
func (t *turns) failed(calledOff bool) {
	if calledOff {
		t.slow++
	} else {
		t.slow = 0
	}
	t.unknown, t.inFlight = true, false
	t.request.Resent = true
}

// answered ends the turn in flight. It reports whether the poll has to ask again: see news.answered.
func (t *turns) answered(request *ports.TurnRequest, r *ports.TurnReply, sent, received time.Time) (again bool) {
	t.last, t.unknown, t.inFlight, t.ended = r.Last, false, false, received
	t.unresponsive = false
	t.news.paused = r.Paused
	t.adaptClaims(request, r, received.Sub(sent))
	return t.news.answered(sent, received)
}

// renewed notes that a renewal was answered. Jobs that have not started go back if the queue is
// paused.
func (t *turns) renewed(paused bool, unstarted int) { t.due = t.due || paused && unstarted > 0 }

// tick is called while time passes. It reports whether there is something to send. A turn is due each
// poll interval while batches run, since an operator may have cancelled one.
func (t *turns) tick(now time.Time, running bool) bool {
	if running && now.Sub(t.ended) >= t.cfg.PollInterval {
		t.due = true
	}
	t.outbox.resendDeferred()
	return t.due || t.outbox.hasFinished()
}

// wakeUp takes a wake-up. busy is set if claimed jobs wait to start or run: a turn is due then, since
// an operator may have cancelled one.
func (t *turns) wakeUp(busy bool, now time.Time) {
	t.news.wakeUp(t.inFlight, now)
	t.due = t.due || busy
}

// quiet reports whether the store has not answered lately, and no turn asks it.
func (t *turns) quiet(now time.Time, lately time.Duration) bool {
	return !t.inFlight && !t.unresponsive && now.Sub(t.news.heardAt) >= lately
}

// claim returns when the store has a due job that a turn may claim, by the clock of the node's pools.
func (t *turns) claim() core.Head {
	if t.unresponsive {
		return core.Head{}
	}
	return t.news.head()
}

// reset forgets what belongs to the lease. It returns the jobs whose ends the store will not confirm,
// and the parts whose handlers no longer wait.
func (t *turns) reset() (lost []ports.EndedJob, parts []*awaitedPart) {
	t.sequence = sequence{}
	t.news.reset()
	return t.outbox.reset()
}

// putOff notes how many of the jobs that a turn has claimed go back until their keys have slots.
func (t *turns) putOff(off, claimed int) {
	if 2*off <= claimed {
		t.wider = 0
	} else if 1<<t.wider < core.MaxTurnJobs {
		t.wider++
	}
}

// leastClaimBytes is how many bytes of payload a claim may carry even on a slow link. Most jobs are
// smaller, so one slow exchange does not split them.
const leastClaimBytes = 256 << 10

// adaptClaims bounds the bytes that the next turns claim and are handed over by what the last one
// took: half if it took more than a sixth of the TTL, or twice what came in less. reply is nil if
// there was none. A reply that could bring no payload changes nothing.
func (t *turns) adaptClaims(request *ports.TurnRequest, reply *ports.TurnReply, took time.Duration) {
	switch {
	case request.Want == 0 && reply != nil && len(reply.Orphans) == 0:
	case took > t.cfg.LeaseTTL/6:
		t.claimBytes = min(t.claimBytes, max(t.claimBytes/2, leastClaimBytes))
	case reply != nil && t.claimBytes < t.queue.Bytes:
		size := 0
		for _, claims := range [][]core.Claim{reply.Claims, reply.Orphans} {
			for i := range claims {
				for k := range claims[i].Payloads {
					size += len(claims[i].Payloads[k].Data)
				}
			}
		}

		t.claimBytes = max(t.claimBytes, min(2*size, t.queue.Bytes))
	}
}
