package engine

import (
	"errors"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/dispatch"
	"github.com/skeinq/skein/internal/engine/guard"
	"github.com/skeinq/skein/ports"
)

// lane runs one batch at a time, of the shard that its pool chooses. Only its own goroutine uses
// it, except for its state.
type lane struct {
	node   *node
	pool   *pool
	number int
	wake   chan struct{}

	// state is what the pool has chosen for the lane. node.pooling guards it.
	state dispatch.Lane
	// ran is set if a batch of the chosen shard has run. took is how long it ran, and succeeded is
	// set if one of its jobs succeeded.
	ran, succeeded bool
	took           time.Duration

	// settled is reused from batch to batch.
	settled []core.Settlement
	// now is when the last batch ended, or the lane was woken since. It is zero before that.
	now time.Time
}

func newLane(p *pool, number int) *lane {
	l := &lane{node: p.node, pool: p, number: number, wake: make(chan struct{}, 1)}
	l.state.Of = l
	return l
}

// run works until the node stops. A handler that ends its goroutine does not end the lane, which
// continues in a new one.
func (l *lane) run() {
	stopped := false
	defer func() {
		if v := recover(); v != nil { // not a handler's
			l.node.callFatal(v)
			panic(v)
		}
		if stopped {
			l.node.lanesRunning.Done()
			return
		}
		go l.run()
	}()

	for l.round() {
	}
	stopped = true
}

// round runs one batch. It returns false if the node stops.
func (l *lane) round() bool {
	s := l.pool.next(l)
	if s == nil {
		return false
	}
	l.ran, l.succeeded = false, false
	b, begins := s.take(l)
	if begins != nil {
		b = l.awaitBegin(s, begins)
	}
	if b != nil {
		l.execute(s, b)
	}
	return true
}

// awaitBegin waits until a turn has begun the recovered jobs of a batch, and returns the batch. It
// returns nil if that takes too long, or if the jobs may no longer start.
func (l *lane) awaitBegin(s *shard, begins *startingBatch) *runningBatch {
	for {
		b, wait := s.takeBegun(begins)
		if !wait {
			return b
		}
		<-l.wake
		l.now = time.Time{} // it has become old meanwhile
	}
}

// errGoexit is the failure of a handler that ended its goroutine.
var errGoexit = errors.New("the handler called runtime.Goexit, as t.FailNow does; return an error instead")

// execute runs a batch and hands its outcomes to the shard.
func (l *lane) execute(s *shard, b *runningBatch) {
	observer := l.node.observer
	event := ports.BatchEvent{Shard: s.ID, Lane: l.number, Now: l.node.clock.At(b.Started()), Claims: b.Claims}

	ctx := observer.BatchStart(b.Context(), event)
	err := errGoexit
	defer func() { // also when the handler ends the goroutine
		l.now = l.node.clock.Local()
		l.took = l.now.Sub(b.Started())
		b.Close(err)
		l.ran, l.succeeded = true, b.Succeeded()
		event.Outcomes, event.Took = b.Outcomes(), l.took
		observer.BatchEnd(ctx, event)
		l.node.slowDown(s.queue, event.Claims, event.Outcomes)
		l.settled = b.Settlements(l.settled[:0])
		s.finish(b, l.settled, l.took)
	}()
	err = guard.Call(func() error { return s.queue.Run(ctx, &b.Batch) })
}
