package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/dispatch"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// permits are what this node holds of the permits of one queue. The state decides how many it is to
// hold; node.pooling guards it.
type permits struct {
	node  *node
	queue string
	state *dispatch.Permits
	// needed is set while the queue has a bound over all nodes.
	needed atomic.Bool
	// until is when the held permits end, in nanoseconds after the start of node.clock. After that
	// time the node acts as if they had expired.
	until  atomic.Int64
	retry  backoff
	status *report.Loop
	// answered takes how each call ended, for obtain.
	answered chan error
}

// followCode gives a queue that the node begins to serve the bounds of the program.
func (n *node) followCode(q *Queue) {
	q.limit = n.dispatcher.NewLimit()
	q.rates.status = n.outages.Loop("rate", core.Shard{})
	n.keepDeadLetters(q, core.Settings{})
	n.bound(q, core.Settings{})
}

// bound gives a queue bounds of its batches, at any time: what operators have set, else the program's.
// It reports whether the queue has permits for the first time.
func (n *node) bound(q *Queue, s core.Settings) (first bool) {
	b, rate := q.boundsBy(s)
	n.pooling.Lock()
	defer n.unlockPools()
	p := q.permits.Load()
	if first = p == nil && b.Total > 0; first {
		p = n.permitsFor(q.Name)
		q.permits.Store(p)
	}

	var state *dispatch.Permits
	if p != nil {
		p.needed.Store(b.Total > 0)
		state = p.state
	}
	q.inForce.Store(&b)
	q.inForceRate.Store(&rate)
	q.limit.Change(b, state, n.now())
	return first
}

// permitsFor returns the permits of a queue. They stay the same if the queue is removed and added
// again.
func (n *node) permitsFor(queue string) *permits {
	for _, p := range n.permits {
		if p.queue == queue {
			return p
		}
	}

	p := &permits{
		node:     n,
		queue:    queue,
		state:    n.dispatcher.NewPermits(),
		status:   n.outages.Loop("permits", core.Shard{}),
		answered: make(chan error, 1),
	}
	n.permits = append(n.permits, p)
	return p
}

// last reports whether the held permits last at a time. A queue without a bound needs no permits.
func (p *permits) last(now time.Time) bool {
	return p == nil || !p.needed.Load() || now.Before(p.end())
}

func (p *permits) end() time.Time { return p.node.clock.Start.Add(time.Duration(p.until.Load())) }

// maintainPermits requests the permits that queues need, renews them and returns unused ones,
// until stop is closed. Then it returns all.
func (n *node) maintainPermits(stop <-chan struct{}) {
	var calls sync.WaitGroup
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()

	for ok := true; ok; ok = await(timer.C, n.permitsNow, stop) {
		wait := time.Hour
		for _, p := range n.allPermits() {
			wait = min(wait, p.maintain(&calls))
		}
		timer.Reset(max(wait, time.Millisecond))
	}

	calls.Wait()
	for _, p := range n.allPermits() {
		n.start(&calls, p.giveBack)
	}
	calls.Wait()
}

// allPermits returns those of all queues that need permits.
func (n *node) allPermits() []*permits {
	n.pooling.Lock()
	defer n.pooling.Unlock()
	return n.permits[:len(n.permits):len(n.permits)]
}

// maintain does what is due for the permits of one queue, and returns how long to wait until the
// next call.
func (p *permits) maintain(calls *sync.WaitGroup) time.Duration {
	p.dropEnded(p.node.clock.Local())
	p.node.pooling.Lock()
	defer p.node.unlockPools()
	now := p.node.clock.Local()
	held := p.state.Held()
	c, call, wait := p.state.Plan(now, spread(p.node.cfg.PollInterval))
	if held > 0 {
		wait = min(wait, p.end().Sub(now))
	}
	if call {
		p.node.start(calls, func() { p.call(c) })
	}
	return wait
}

// request returns the request of a call.
func (p *permits) request(c dispatch.PermitCall) ports.PermitRequest {
	cfg := &p.node.cfg
	return ports.PermitRequest{
		Queue:   p.queue,
		Owner:   cfg.Owner,
		Attempt: c.Attempt,
		Limit:   c.Limit,
		Hold:    c.Hold,
		Want:    c.Want,
		TTL:     cfg.LeaseTTL,
	}
}

// call makes one call. If that fails, the loop makes another one.
func (p *permits) call(c dispatch.PermitCall) {
	ctx, cancel := p.node.callContext()
	defer cancel()
	sent := p.node.clock.Local()
	reply, err := p.node.store.Permit(ctx, p.request(c))
	kept := p.answer(c, &reply, sent, err)
	p.status.Called(err)
	if !kept {
		p.drop(fmt.Errorf("%w: the store no longer had the permits of %q", ports.ErrLeaseLost, p.queue))
	}
	p.tell(err)
	signal(p.node.permitsNow)
}

// tell passes the result of a call to obtain. Two calls may end at once, since the next can begin
// while one is logged, and only obtain receives. So a call makes room and sends under one lock, or
// it might wait for ever.
func (p *permits) tell(err error) {
	p.node.pooling.Lock()
	defer p.node.pooling.Unlock()
	select {
	case <-p.answered: // nobody has received the last result
	default:
	}
	p.answered <- err
}

// answer takes the end of a call. It returns false if the store granted fewer permits than the
// node believed to hold.
func (p *permits) answer(c dispatch.PermitCall, reply *ports.PermitReply, sent time.Time, err error) (kept bool) {
	p.node.pooling.Lock()
	defer p.node.unlockPools()
	now := p.node.now()
	if err != nil { // the store may list the node, unless it does not know the queue
		p.state.Failed(!errors.Is(err, ports.ErrUnknownQueue), now.Local.Add(p.retry.next()))
		return true
	}
	p.retry.reset()
	p.until.Store(int64(sent.Sub(p.node.clock.Start) + reply.Remaining - p.node.cfg.LeaseTTL/5))
	return p.state.Answered(c, reply.Held, reply.Holders, reply.Now, now)
}

// dropEnded drops the permits if they have expired.
func (p *permits) dropEnded(now time.Time) {
	if p == nil || p.last(now) {
		return
	}
	p.node.pooling.Lock()
	held := p.state.Held()
	p.node.pooling.Unlock()
	if held > 0 {
		p.drop(fmt.Errorf("%w: the store did not answer for most of the TTL of %v of the permits of %q",
			ports.ErrLeaseLost, p.node.cfg.LeaseTTL, p.queue))
	}
}

// drop ends the permits on this side. The running handlers of the queue are cancelled, and no
// handler starts before the node has permits again.
func (p *permits) drop(cause error) {
	p.node.pooling.Lock()
	p.until.Store(0)
	lost := p.state.Drop()
	p.node.pooling.Unlock()

	cancelled := 0
	for _, m := range lost {
		cancelled += m.Of.(*shard).interrupt(ports.ErrLeaseLost)
	}

	level := slog.LevelWarn
	if cancelled == 0 {
		level = slog.LevelDebug
	}
	p.node.log.Log(context.Background(), level, "permits lost",
		"queue", p.queue, "cancelled", cancelled, "error", cause)
}

// onWakeup takes a wake-up: other nodes have returned permits.
func (p *permits) onWakeup() {
	p.node.pooling.Lock()
	defer p.node.unlockPools()
	p.state.Freed()
}

// giveBack returns all permits at the end. If that fails, they expire by themselves.
func (p *permits) giveBack() {
	p.node.pooling.Lock()
	c, ok := p.state.Return(p.node.clock.Local())
	p.node.pooling.Unlock()
	if !ok {
		return
	}
	ctx, cancel := p.node.lastContext()
	defer cancel()
	if _, err := p.node.store.Permit(ctx, p.request(c)); err != nil {
		p.node.log.Debug("permits are not given back", "queue", p.queue, "error", err)
	}
}

// obtain requests the one permit that RunDue needs to work a queue. ok is false if other nodes hold
// all permits.
func (p *permits) obtain(ctx context.Context) (ok bool, err error) {
	if p == nil || !p.needed.Load() {
		return true, nil
	}

	p.node.pooling.Lock()
	p.state.ByHand(true)
	p.node.pooling.Unlock()

	for {
		p.node.pooling.Lock()
		held, over := p.state.Held() > 0 && p.last(p.node.clock.Local()), p.state.Denied()
		if !held && over {
			p.state.ByHand(false)
		}
		p.node.pooling.Unlock()

		if held || over {
			return held, nil
		}

		signal(p.node.permitsNow)
		select {
		case err := <-p.answered:
			if err != nil {
				return false, fmt.Errorf("permits of queue %q: %w", p.queue, err)
			}
		case <-ctx.Done():
			return false, nil
		}
	}
}

// release ends what obtain has begun.
func (p *permits) release() {
	if p == nil {
		return
	}
	p.node.pooling.Lock()
	p.state.ByHand(false)
	p.node.pooling.Unlock()
	signal(p.node.permitsNow)
}

// spread returns a duration of half to all of d, so that nodes do not call in step.
func spread(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// permitsFreed passes on a wake-up that may concern the permits of a queue.
func (n *node) permitsFreed(id core.Shard) {
	for _, p := range n.allPermits() {
		if id == ports.PermitsOf(p.queue) {
			p.onWakeup()
		}
	}
}
