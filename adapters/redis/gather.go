package redis

import (
	"context"
	"runtime"
	"slices"
	"sync"

	goredis "github.com/redis/go-redis/v9"
)

// gatherer sends small pushes together: those that come while others are under way
// go with the next exchange, so that many goroutines that push one entry each
// don't cost a read and a write of the network for each. Alone, a push goes at
// once. It serves one server; its zero value is ready.
type gatherer struct {
	mu      sync.Mutex
	waiting []*gathered
	senders int
}

// gathered is a call that waits for its outcome, until its context ends.
type gathered struct {
	ctx  context.Context
	call call
	done chan outcome // has room for it
}

const (
	// gatherSenders is how many exchanges may be under way: while the server works
	// on one, others are prepared or read.
	gatherSenders = 4
	// gatherCalls is how many calls go in one, so that none waits for long.
	gatherCalls = 64
	// gatherEntries is how many entries a push may have to be gathered.
	gatherEntries = 16
)

// gathers reports whether pushes may go together: on a Cluster one server that
// does not answer would hold up those for the others.
func (s *Store) gathers() bool {
	_, single := s.client.(*goredis.Client)
	return single
}

// runGathered runs a small call, with others that come at the same time.
func (s *Store) runGathered(ctx context.Context, c call) outcome {
	if err := s.ready(ctx); err != nil {
		return outcome{err: err}
	}
	if err := ctx.Err(); err != nil {
		return outcome{err: translate(err)}
	}
	g := &gathered{ctx: ctx, call: c, done: make(chan outcome, 1)}
	if s.pushes.add(g) {
		sending := context.WithoutCancel(ctx)
		s.crew.do(func() { s.sendGathered(sending) })
	}
	select {
	case o := <-g.done:
		if refused(o.err) || goredis.HasErrorPrefix(o.err, "NOSCRIPT") {
			return s.runAll(ctx, []call{c})[0]
		}
		o.err = translate(c.script.locate(o.err))
		return o
	case <-ctx.Done():
		return outcome{err: translate(ctx.Err())}
	}
}

// add queues a call, and reports whether it needs another sender.
func (p *gatherer) add(g *gathered) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, g)
	if p.senders == gatherSenders {
		return false
	}
	p.senders++
	return true
}

// take gives the calls to send next; without any its caller is no sender any more.
func (p *gatherer) take() []*gathered {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(len(p.waiting), gatherCalls)
	if n == 0 {
		p.senders--
		return nil
	}
	taken := p.waiting[:n:n]
	p.waiting = p.waiting[n:]
	return taken
}

// sendGathered sends what waits until nothing does. Whose caller has given up is
// not sent any more.
func (s *Store) sendGathered(ctx context.Context) {
	for taken := s.pushes.take(); taken != nil; taken = s.pushes.take() {
		taken = slices.DeleteFunc(taken, func(g *gathered) bool { return g.ctx.Err() != nil })
		if len(taken) == 0 {
			continue
		}
		calls, open := make([]call, len(taken)), make([]int, len(taken))
		for i, g := range taken {
			calls[i], open[i] = g.call, i
		}
		outcomes := make([]outcome, len(taken))
		s.send(ctx, calls, open, outcomes, false)
		for i, g := range taken {
			g.done <- outcomes[i]
		}
		runtime.Gosched() // whose pushes are done may push again, and go along
	}
}
