package engine

import (
	"math"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/dispatch"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

// claims is the part of a shard that knows of its claimed jobs: those that wait to start, and the
// batches that run. It decides which jobs may start and which go back. The shard does what follows,
// and its lock guards the claims.
type claims struct {
	queue *Queue
	// patience is how long a claimed job may wait to start.
	patience time.Duration

	// held are the jobs that wait for the times when their rates let them start. buffer are those that
	// wait for a lane.
	held   held
	buffer buffer
	// starting are the batches that wait for a turn to begin them, in order. running are those that
	// run.
	starting []*startingBatch
	running  []*runningBatch
	// unstartedRefs are the newest claims whose handlers did not start, since their lease was lost
	// or the store did not answer, at most mostUnstarted. The store may have marked them as begun
	// by a turn whose answer was lost.
	unstartedRefs []core.ClaimRef
	// pace is how long jobs take.
	pace dispatch.Pace
}

// startingBatch is a batch with recovered jobs. It starts once a turn has recorded in the store
// that they begin (RULES 4). Its jobs have left the buffer.
type startingBatch struct {
	claims []core.Claim
	// since is when the batch was put together.
	since time.Time
	// lane is the lane that waits to run it. It is nil once that lane has stopped waiting; then any
	// lane may run the batch.
	lane *lane
	// chance is set if the batch is a job on its last chance.
	chance bool
	// turn is the number of the turn that carries its recovered jobs, or 0. begun is set once the turn
	// was answered.
	turn  int64
	begun bool
}

// runningBatch is a batch that runs.
type runningBatch struct {
	execution.Batch
	// chance is set if the batch is a job on its last chance. position is its place in
	// claims.running.
	chance   bool
	position int
}

// withdrawal is what the shard has to do after jobs have stopped waiting to start.
type withdrawal struct {
	// claims are the jobs that do not start and have to be settled.
	claims []core.Claim
	// chance is set if another job may have the last chance.
	chance bool
	// lanes are those that have waited for the jobs. They have to be woken.
	lanes []*lane
}

// mostUnstarted is how many claims a shard remembers whose handlers did not start. It is more than
// are lost with one lease. Each claim has its own receipt, so remembering one that has been settled
// since does no harm.
const mostUnstarted = 10_000

// isRecovered reports whether a job has lost an owner before.
func isRecovered(c core.Claim) bool { return c.Recoveries > 0 }

// unstarted returns the number of claimed jobs that have not started.
func (c *claims) unstarted() int {
	n := len(c.held) + c.buffer.jobs
	for _, b := range c.starting {
		n += len(b.claims)
	}
	return n
}

// idle reports whether no job waits to start and none runs.
func (c *claims) idle() bool { return len(c.running) == 0 && c.unstarted() == 0 }

// push takes the jobs that a turn has claimed.
func (c *claims) push(claims []core.Claim, now time.Time) { c.buffer.push(claims, now) }

// freeToRun returns how many batches of the shard may run in addition to the running ones and to those
// that lanes wait for.
func (c *claims) freeToRun() int {
	if c.queue.Parallel == 0 {
		return math.MaxInt32
	}
	free := c.queue.Parallel - len(c.running)
	for _, b := range c.starting {
		if b.lane != nil {
			free--
		}
	}
	return max(0, free)
}

// stock returns how many batches may wait for lanes, if at most prefetch jobs may. The pool knows how
// many its lanes will start soon. For a shard that only some of the pool's lanes, or of the node's,
// may work, this is how many those lanes will start if all of them work it.
func (c *claims) stock(prefetch, poolLanes, nodeLanes int) int {
	jobs := prefetch
	if most := c.queue.Parallel; most > 0 && most < poolLanes {
		jobs = min(jobs, most*c.soon())
	}
	if most := c.queue.mostLanes(); most > 0 && most < nodeLanes {
		jobs = min(jobs, most*c.soon())
	}
	return jobs / c.queue.BatchSize
}

// soon returns how many jobs a lane is likely to run before claimed jobs would go back.
func (c *claims) soon() int { return c.pace.JobsWithin(dispatch.Window(c.patience)) }

// waiting returns how many batches may start, as far as is known before they are put together, and
// the first job of the next batch, or nil. While no turn can begin jobs, a batch whose jobs need one
// may not start.
func (c *claims) waiting(mayBegin bool) (batches int, first *core.Claim) {
	if b := c.nextBegun(); b != nil {
		batches, first = 1, &b.claims[0]
	}
	if head := c.nextBuffered(mayBegin); head != nil {
		batches += c.queue.batches(c.buffer.jobs)
		if first == nil {
			first = head
		}
	}
	return batches, first
}

// nextBuffered returns the first job of the next batch of the buffer, or nil if none may start.
func (c *claims) nextBuffered(mayBegin bool) *core.Claim {
	if head := c.buffer.head(); head != nil && (mayBegin || !isRecovered(*head)) {
		return head
	}
	return nil
}

// nextBegun returns a batch that has begun and for which no lane waits, or nil.
func (c *claims) nextBegun() *startingBatch {
	for _, b := range c.starting {
		if b.begun && b.lane == nil {
			return b
		}
	}
	return nil
}

// lastChance returns the id of the job that next would take, if that job needs the node's last
// chance.
func (c *claims) lastChance(mayBegin bool) (id string, ok bool) {
	if c.nextBegun() != nil {
		return "", false
	}
	head := c.nextBuffered(mayBegin)
	if head == nil || !c.queue.Policy.LastChance(head) {
		return "", false
	}
	return head.ID, true
}

// next takes the claims that a lane may start now, or nothing if no job may start. chance is set if
// they are a job on its last chance, which the caller has obtained. If a turn has to begin the claims
// first, begins is their batch, and there are no claims.
func (c *claims) next(l *lane, mayBegin bool, now time.Time) (claims []core.Claim, chance bool, begins *startingBatch) {
	if b := c.nextBegun(); b != nil {
		c.removeStarting(b)
		return b.claims, b.chance, nil
	}

	if c.nextBuffered(mayBegin) == nil {
		return nil, false, nil
	}

	claims, chance = c.takeBatch()
	if !slices.ContainsFunc(claims, isRecovered) {
		return claims, chance, nil
	}

	// A recovered job may kill its process, so the store must know that it begins before it does.
	begins = &startingBatch{claims: claims, since: now, lane: l, chance: chance}
	c.starting = append(c.starting, begins)
	return nil, false, begins
}

// takeBatch takes a batch out of the buffer. A job on its last chance is a batch of its own.
func (c *claims) takeBatch() (claims []core.Claim, chance bool) {
	policy := &c.queue.Policy
	if policy.LastChance(c.buffer.head()) {
		return c.buffer.take(1), true
	}

	return c.buffer.take(c.buffer.leading(c.queue.BatchSize, func(one *core.Claim) bool {
		return !policy.LastChance(one)
	})), false
}

// start starts a batch.
func (c *claims) start(
	s *execution.Shard, token int64, claims []core.Claim, chance bool, now time.Time,
) *runningBatch {
	b := &runningBatch{chance: chance, position: len(c.running)}
	b.Start(s, token, claims, now)
	c.running = append(c.running, b)
	return b
}

// finish removes a batch that has run. It reports whether another job may have the last chance.
func (c *claims) finish(b *runningBatch) (chance bool) {
	last := len(c.running) - 1
	c.running[b.position] = c.running[last]
	c.running[b.position].position = b.position
	c.running[last] = nil
	c.running = c.running[:last]
	return b.endChance()
}

// observe notes how long a batch has run.
func (c *claims) observe(took time.Duration, jobs int) { c.pace.Observe(took, jobs) }

// endChance reports whether the batch had the last chance, which it no longer has: a part of the
// batch may be answered after its end.
func (b *runningBatch) endChance() bool {
	had := b.chance
	b.chance = false
	return had
}

// partEnded notes that a payload of a running job has ended. It reports whether another job may have
// the last chance: after its first payload, the job may no longer be on its last one.
func (c *claims) partEnded(b *runningBatch, part *core.PayloadSettlement) (chance bool) {
	rest := core.Claim{Job: core.Job{State: core.State{Recoveries: part.Recoveries}}}
	return b.chance && !c.queue.Policy.LastChance(&rest) && b.endChance()
}

// needsBegin reports whether the next turn has to begin jobs.
func (c *claims) needsBegin() bool {
	return slices.ContainsFunc(c.starting, func(b *startingBatch) bool { return b.turn == 0 })
}

// beginRefs lists the jobs that a turn begins: those of all batches that lanes are about to run,
// up to the limit of a turn.
func (c *claims) beginRefs(turn int64) (refs []core.ClaimRef) {
	for _, b := range c.starting {
		if b.turn != 0 || len(refs)+len(b.claims) > core.MaxTurnJobs {
			continue
		}
		b.turn = turn
		for i := range b.claims {
			if isRecovered(b.claims[i]) {
				refs = append(refs, b.claims[i].Ref())
			}
		}
	}
	return refs
}

// confirmBegin takes the reply of the turn that began jobs. A job that did not begin goes back. A
// repeated turn's reply does not show which jobs began, so they are sent again.
func (c *claims) confirmBegin(request *ports.TurnRequest, r *ports.TurnReply) (w withdrawal) {
	for _, at := range r.NotBegun {
		c.dropStarting(request.Begin[at], &w)
	}

	for _, b := range c.starting {
		if b.turn != request.Number {
			continue
		}
		if r.Repeat {
			b.turn = 0
			continue
		}
		b.begun = true
		if b.lane != nil {
			w.lanes = append(w.lanes, b.lane)
		}
	}
	return w
}

// cancel removes a claimed job that has not started. If the job runs, cancel returns its batch and its
// position there.
func (c *claims) cancel(k *ports.Cancellation) (w withdrawal, running *runningBatch, position int) {
	one, ok := c.held.remove(k.ID, k.Receipt)
	if !ok {
		one, ok = c.buffer.remove(k.ID, k.Receipt)
	}
	if ok {
		w.claims = append(w.claims, one)
		return w, nil, 0
	}
	if c.dropStarting(core.ClaimRef{ID: k.ID, Receipt: k.Receipt}, &w) {
		return w, nil, 0
	}

	for _, b := range c.running {
		for i := range b.Claims {
			if one := &b.Claims[i]; one.ID == k.ID && one.Receipt == k.Receipt.Whole() {
				return w, b, i
			}
		}
	}
	return w, nil, 0
}

// putBack removes the jobs that have waited to start for too long, or all that wait. The jobs of the
// buffer come first, then those of the batches that are starting. A held job waits for a time that is
// not far away.
func (c *claims) putBack(now time.Time, all bool) (w withdrawal) {
	if all {
		w.claims = c.held.takeAll()
	}
	for {
		since, ok := c.buffer.oldest()
		if !ok || !all && now.Sub(since) < c.patience {
			break
		}
		w.claims = append(w.claims, c.buffer.takeFromFirst(c.buffer.jobs)...)
	}

	for at := len(c.starting) - 1; at >= 0; at-- {
		if b := c.starting[at]; all || now.Sub(b.since) >= c.patience {
			w.claims = append(w.claims, b.claims...)
			c.endStarting(b, &w)
		}
	}
	return w
}

// overdue reports whether putBack has something to put back. waiting is true if any job waits to
// start.
func (c *claims) overdue(now time.Time) (overdue, waiting bool) {
	since, waiting := c.buffer.oldest()
	if len(c.starting) > 0 {
		since, waiting = c.starting[0].since, true
	}
	return waiting && now.Sub(since) >= c.patience, waiting
}

// takeBegun removes a batch for which a lane waits, so that the lane runs it. wait is true if no turn
// has begun the batch yet. ok is false if the lane no longer waits, or has to wait.
func (c *claims) takeBegun(b *startingBatch) (ok, wait bool) {
	switch {
	case b.lane == nil:
		return false, false
	case !b.begun:
		return false, true
	}
	c.removeStarting(b)
	return true, false
}

// leaveStarting ends the waits of all lanes that wait for a turn. It returns these lanes.
func (c *claims) leaveStarting() (w withdrawal) {
	for _, b := range c.starting {
		b.leave(&w)
	}
	return w
}

// loseLease forgets the jobs that have not started. The next owner gets them, and does not count them
// as begun if it is this node. Running batches stay until their handlers return.
func (c *claims) loseLease() (w withdrawal) {
	c.held, c.buffer = nil, buffer{}
	for _, b := range slices.Clone(c.starting) {
		for i := range b.claims {
			c.rememberUnstarted(b.claims[i].Ref())
		}
		c.endStarting(b, &w)
	}
	return w
}

// rememberUnstarted notes a claim whose handler does not start although the store may have marked
// it as begun.
func (c *claims) rememberUnstarted(ref core.ClaimRef) {
	c.unstartedRefs = append(c.unstartedRefs, ref)
	c.unstartedRefs = c.unstartedRefs[max(0, len(c.unstartedRefs)-mostUnstarted):]
}

// correctBegun corrects whether an orphan has begun. A job that this process never passed to a handler
// has not, whatever the store reports.
func (c *claims) correctBegun(orphan *core.Claim) {
	orphan.Begun = orphan.Begun && !slices.Contains(c.unstartedRefs, orphan.Ref())
}

// dropStarting moves one job of the batches that are starting to w. It reports whether the job was in
// one.
func (c *claims) dropStarting(ref core.ClaimRef, w *withdrawal) bool {
	for _, b := range c.starting {
		at := slices.IndexFunc(b.claims, func(one core.Claim) bool { return one.Ref() == ref })
		if at < 0 {
			continue
		}
		w.claims = append(w.claims, b.claims[at])
		b.claims = slices.Concat(b.claims[:at], b.claims[at+1:])
		if len(b.claims) == 0 {
			c.endStarting(b, w)
		}
		return true
	}
	return false
}

// endStarting forgets a batch that does not start.
func (c *claims) endStarting(b *startingBatch, w *withdrawal) {
	c.removeStarting(b)
	w.chance = w.chance || b.chance
	b.leave(w)
}

func (c *claims) removeStarting(b *startingBatch) {
	if at := slices.Index(c.starting, b); at >= 0 {
		c.starting = slices.Delete(c.starting, at, at+1)
	}
}

// leave ends the wait of the batch's lane.
func (b *startingBatch) leave(w *withdrawal) {
	if b.lane != nil {
		w.lanes = append(w.lanes, b.lane)
		b.lane = nil
	}
}
