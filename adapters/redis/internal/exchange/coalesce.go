package exchange

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// coalescer sends small pushes together: pushes that come while others are under way go with the
// next exchange. So many goroutines that push one entry each don't cost a read and a write of the
// network for each. A push that comes alone is sent at once. A coalescer serves one server; its
// zero value is ready.
type coalescer struct {
	mu      sync.Mutex
	waiting []*waitingCall
	senders int
}

// waitingCall is a call that waits for its outcome, until its context ends.
type waitingCall struct {
	ctx  context.Context
	call Call
	done chan Outcome // buffered for one outcome
}

const (
	// coalesceSenders is the maximum number of exchanges under way: while the server works on one,
	// others are prepared or read.
	coalesceSenders = 4
	// coalesceCalls is the largest number of calls in one exchange, so that no call waits for long.
	coalesceCalls = 64
	// coalesceEntries bounds the entries of a push that is sent with others, and largePush its bytes.
	// So a push that takes long, or that breaks its connection, fails alone, and one exchange has at
	// most 1 MiB.
	coalesceEntries = 16
	// coalesceTimeout is how long an exchange may take, with a client that respects contexts. It is
	// the sender's own, since no caller's deadline may end an exchange that others wait for.
	coalesceTimeout = 10 * time.Second
)

// Coalesces reports whether a push is small enough to go with others. On a Cluster no push does,
// since a server that does not answer would delay the pushes to the others.
func (s *Link) Coalesces(c *Call) bool {
	_, single := s.client.(*goredis.Client)
	return single && c.Entries <= coalesceEntries && c.Size < largePush
}

// RunCoalesced runs a small call, with others that come at the same time.
func (s *Link) RunCoalesced(ctx context.Context, c Call) Outcome {
	if err := ctx.Err(); err != nil {
		return Outcome{Err: Translate(ctx, err)}
	}

	began, g := time.Now(), &waitingCall{ctx: ctx, call: c, done: make(chan Outcome, 1)}
	if s.pushes.add(g) {
		sending := context.WithoutCancel(ctx)
		s.Workers.Do(func() { s.sendWaiting(sending) })
	}

	select {
	case o := <-g.done:
		if o.Err != nil {
			o.Value, o.Err = s.afterFault(ctx, c, o.Err)
		}
		return o
	case <-ctx.Done():
		s.connections.gaveUp(ctx, began)
		return Outcome{Err: Translate(ctx, ctx.Err())}
	}
}

// add queues a call, and reports whether it needs another sender.
func (p *coalescer) add(g *waitingCall) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, g)
	if p.senders == coalesceSenders {
		return false
	}
	p.senders++
	return true
}

// take returns the calls to send next. If there are no calls, its caller stops being a sender.
func (p *coalescer) take() []*waitingCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(len(p.waiting), coalesceCalls)
	if n == 0 {
		p.senders--
		return nil
	}
	taken := p.waiting[:n:n]
	p.waiting = p.waiting[n:]
	return taken
}

// sendWaiting sends the waiting calls until there are none left. It drops calls whose callers have
// given up.
func (s *Link) sendWaiting(ctx context.Context) {
	for taken := s.pushes.take(); taken != nil; taken = s.pushes.take() {
		taken = slices.DeleteFunc(taken, func(g *waitingCall) bool { return g.ctx.Err() != nil })
		if len(taken) == 0 {
			continue
		}

		calls, open := make([]Call, len(taken)), make([]int, len(taken))
		for i, g := range taken {
			calls[i], open[i] = g.call, i
		}

		outcomes := make([]Outcome, len(taken))
		sending, cancel := context.WithTimeout(ctx, coalesceTimeout)
		s.send(sending, calls, open, outcomes, false)
		cancel()

		for i, g := range taken {
			g.done <- outcomes[i]
		}
		runtime.Gosched() // callers whose pushes are done may push again, and share the next exchange
	}
}
