package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// lane runs one batch at a time, of the shard that its scheduler chooses. Only its own goroutine
// uses it, except wake and current.
type lane struct {
	node      *node
	number    int
	shards    []*shard
	scheduler core.Scheduler
	wake      chan struct{}
	// current is the shard that the lane works or waits for.
	current atomic.Pointer[shard]

	// heads and settled are reused from round to round.
	heads   []core.Head
	settled []core.Settlement
	// roundStart is when the round begins: when the last batch ended, if the lane has not waited since
	// then. It is zero after a wait.
	roundStart time.Time
	// timeouts counts the shards in a row that did not answer in time.
	timeouts int
}

func newLane(node *node, number int) *lane {
	return &lane{node: node, number: number, wake: make(chan struct{}, 1)}
}

// run works until the node stops. A handler that ends its goroutine does not end the lane, which
// goes on in a new one.
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
	for !l.node.stopping() {
		l.round()
	}
	stopped = true
}

// round lets the scheduler choose once, and runs a batch of that shard or waits.
func (l *lane) round() {
	if l.roundStart.IsZero() {
		l.roundStart = l.node.clock.local()
	}
	now := l.node.clock.at(l.roundStart)
	for i, s := range l.shards {
		l.heads[i] = s.laneHead()
	}
	choice := l.scheduler.Next(now, l.heads)
	if choice.Index < 0 || choice.Index >= len(l.shards) {
		l.wait(choice, now)
		l.roundStart = time.Time{}
		return
	}
	s := l.shards[choice.Index]
	l.current.Store(s)
	b := s.take(l.roundStart)
	if b == nil && l.fetch(s) {
		b = s.take(l.node.clock.local())
	}
	l.roundStart = time.Time{}
	ok := false
	defer func() { l.scheduler.Ran(choice.Index, ok) }() // also when the handler ends the goroutine
	ok = b != nil && l.execute(s, b)
}

// fetch waits until the shard's next turn is answered. It returns false if the lease is not held,
// or if the answer takes too long: then the lane leaves the shard for now.
func (l *lane) fetch(s *shard) bool {
	if !s.requestJobs() {
		return false
	}
	timer := time.NewTimer(l.node.roundTrips.answerTimeout(l.node.cfg.PollInterval, l.timeouts))
	defer timer.Stop()
	for !s.answeredLane() {
		select {
		case <-l.wake:
		case <-timer.C:
			if s.stopWaiting() {
				l.timeouts++
				return false
			}
		}
	}
	l.timeouts = 0
	return true
}

// wait sleeps until something changes, a head is due, or for as long as the scheduler said.
func (l *lane) wait(choice core.Choice, now core.Instant) {
	if choice.Sleep {
		pause(choice.Wait, l.node.stop)
		return
	}
	until := choice.Wait
	for _, h := range l.heads {
		if d := h.Due.Sub(now); h.OK && d > 0 && (until == 0 || d < until) {
			until = d
		}
	}
	if until == 0 {
		<-l.wake
		return
	}
	timer := time.NewTimer(until)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.wake:
	}
}

// execute runs a batch and hands its outcomes to the shard. It reports whether a job succeeded.
func (l *lane) execute(s *shard, b *Batch) (ok bool) {
	observer := l.node.observer
	event := ports.BatchEvent{Shard: s.id, Lane: l.number, Claims: b.Claims}
	var ctx context.Context = &b.batchCtx
	if observer != nil {
		ctx = observer.BatchStart(ctx, event)
	}
	err := errGoexit
	defer func() { // also when the handler ends the goroutine
		l.roundStart = l.node.clock.local()
		took := l.roundStart.Sub(b.started)
		b.close(err)
		ok = b.succeeded()
		if observer != nil {
			event.Outcomes, event.Took = b.outcomes, took
			observer.BatchEnd(ctx, event)
		}
		b.assumeNotCommitted()
		l.settled = b.settlements(l.settled[:0])
		s.finish(b, l.settled, took)
	}()
	err = Guard(func() error { return s.queue.Run(ctx, b) })
	return ok // as the deferred call finds it
}
