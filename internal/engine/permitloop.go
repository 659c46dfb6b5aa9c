package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

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
	p.dropEnded(p.node.clock.local())
	p.node.pooling.Lock()
	defer p.node.pooling.Unlock()
	now := p.node.clock.local()
	hold, call, wait := p.plan(now)
	if call {
		r := p.request(hold, now)
		p.node.start(calls, func() { p.call(r) })
	}
	return wait
}

// call makes one call. If that fails, the loop makes another one.
func (p *permits) call(r ports.PermitRequest) {
	ctx, cancel := p.node.callContext()
	defer cancel()
	sent := p.node.clock.local()
	reply, err := p.node.store.Permit(ctx, r)
	kept := p.answer(&r, &reply, sent, err)
	if err != nil {
		p.status.failed(err)
	} else {
		p.status.ok()
	}
	if !kept {
		p.drop(fmt.Errorf("%w: the store no longer had the permits of %q", ports.ErrLeaseLost, p.queue))
	}
	p.tell(err)
	signal(p.node.permitsNow)
}

// tell leaves the result of a call for obtain. Two calls may end at once, since the next can begin
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
func (p *permits) answer(r *ports.PermitRequest, reply *ports.PermitReply, sent time.Time, err error) (kept bool) {
	p.node.pooling.Lock()
	defer p.node.pooling.Unlock()
	now := p.node.clock.local()
	p.inFlight = false
	if err != nil {
		p.retryAt = now.Add(p.retry.next())
		p.listed = !errors.Is(err, ports.ErrUnknownQueue) // else the store may list it
		return true
	}
	p.retry.reset()
	kept = p.granted(r, reply, sent)
	for _, s := range p.limit.supplies {
		s.pool.dispatch(now)
	}
	return kept
}

// dropEnded drops the permits if they have expired.
func (p *permits) dropEnded(now time.Time) {
	if p == nil || p.last(now) {
		return
	}
	p.node.pooling.Lock()
	held := p.held
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
	p.held = 0
	p.until.Store(0)
	p.setLimit()
	var shards []*shard
	for _, s := range p.limit.supplies {
		for _, m := range s.pool.members {
			if m.supply == s {
				shards = append(shards, m.shard)
			}
		}
	}
	p.node.pooling.Unlock()
	cancelled := 0
	for _, s := range shards {
		cancelled += s.interrupt(ports.ErrLeaseLost)
	}
	level := slog.LevelWarn
	if cancelled == 0 {
		level = slog.LevelDebug
	}
	p.node.log.Log(context.Background(), level, "permits lost", "queue", p.queue, "cancelled", cancelled, "error", cause)
}

// onWakeup takes a wake-up: other nodes have returned permits.
func (p *permits) onWakeup() {
	p.node.pooling.Lock()
	defer p.node.pooling.Unlock()
	if p.want() > p.held {
		p.denied, p.lookAt = false, time.Time{}
		signal(p.node.permitsNow)
	}
}

// giveBack returns all permits at the end. If that fails, they expire by themselves.
func (p *permits) giveBack() {
	p.node.pooling.Lock()
	now := p.node.clock.local()
	if !p.listed && p.held == 0 {
		p.node.pooling.Unlock()
		return
	}
	r := p.request(0, now)
	p.node.pooling.Unlock()
	r.Want = 0
	ctx, cancel := p.node.lastContext()
	defer cancel()
	if _, err := p.node.store.Permit(ctx, r); err != nil {
		p.node.log.Debug("permits are not given back", "queue", p.queue, "error", err)
	}
}

// obtain gets the one permit that RunDue needs to work a queue. ok is false if other nodes hold
// all permits.
func (p *permits) obtain(ctx context.Context) (ok bool, err error) {
	if p == nil {
		return true, nil
	}
	p.node.pooling.Lock()
	p.byHand, p.denied = 1, false
	p.node.pooling.Unlock()
	for {
		p.node.pooling.Lock()
		held, over := p.held > 0 && p.last(p.node.clock.local()), p.denied && !p.inFlight
		if !held && over {
			p.byHand = 0
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
	p.byHand = 0
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
