package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/ports"
)

// RunDue works what is due, one batch after another in the caller's goroutine, until no shard has
// a due job, or ctx ends. It returns how many jobs ran. Unlike Run it gives up at the first error
// of the store; what is settled stays so, and the next owner recovers the rest.
func (e *Engine) RunDue(ctx context.Context) (jobs int, err error) {
	e.makeContexts(ctx)
	defer e.cancelCalls()
	defer e.hooks.Close()

	e.hooks.MaxWorkers, e.cfg.Lanes, e.dispatcher.ByHand = 1, 1, true
	if err := e.makePools(); err != nil {
		return 0, err
	}

	for _, s := range e.shards() {
		s.assigned = true
	}
	for _, q := range e.cfg.Queues {
		if err := e.declare(q); err != nil {
			return 0, e.nameServers(err)
		}
	}

	if err := e.readRecords(e.cfg.Queues); err != nil {
		return 0, fmt.Errorf("read the settings of queues: %w", err)
	}
	if err := e.callStarted(ctx); err != nil {
		return 0, err
	}

	defer context.AfterFunc(ctx, func() { time.AfterFunc(e.cfg.ShutdownTimeout, e.interruptAll) })()
	endLoops := e.startLoops(e.maintainLeases, e.maintainPermits, e.watch)
	defer func() {
		endLoops()
		e.hooks.Wait()
		e.jobLog.FlushAll()
	}()

	jobs, err = e.rounds(ctx)
	close(e.stop)
	for _, s := range e.shards() {
		s.settleUp()
	}

	last, cancel := e.lastContext()
	defer cancel()
	e.sendLastTallies(last)
	return jobs, err
}

// rounds acquires the shards, and works them one after another until no shard has a due schedule or
// job.
func (e *Engine) rounds(ctx context.Context) (jobs int, err error) {
	for _, s := range e.shards() {
		s.nextAttempt()
		sent := time.Now()
		reply, err := s.tryAcquire(e.longAcquire())
		if err != nil {
			return 0, fmt.Errorf("acquire shard %v: %w", s.ID, err)
		}
		s.acquired(reply, sent)
	}

	firer := e.newFirer()
	for {
		before := jobs
		for _, s := range e.shards() {
			if err := s.fireDue(firer); err != nil {
				return jobs, err
			}
			n, err := s.runDue(ctx)
			jobs += n
			if err != nil || ctx.Err() != nil {
				return jobs, err
			}
		}

		if jobs == before {
			return jobs, nil
		}
	}
}

// runDue works one shard until it has no due job, until other nodes have all permits of its queue, or
// until the queue's rate allows no start.
func (s *shard) runDue(ctx context.Context) (jobs int, err error) {
	defer s.queue.permits.Load().release()
	for ctx.Err() == nil {
		if ok, err := s.queue.permits.Load().obtain(ctx); err != nil || !ok {
			return jobs, err
		}
		if ok, err := s.obtainSlot(); err != nil || !ok {
			return jobs, err
		}

		s.grantByHand()
		if err := s.turnOnce(); err != nil {
			return jobs, err
		}

		b, begins := s.take(nil)
		if begins != nil {
			if err := s.turnOnce(); err != nil {
				return jobs, err
			}
			b, _ = s.take(nil)
		}

		switch {
		case b != nil:
		case begins != nil, s.hasFinished(): // its jobs may no longer start, or were recovered; others may wait
			continue
		default:
			return jobs, nil
		}

		s.queue.rates.spare = false
		s.pool.lanes[0].execute(s, b)
		for i := range b.Claims {
			if _, _, ran := b.Execution(i, 0); ran {
				jobs++
			}
		}
	}
	return jobs, nil
}

// hasWork reports whether the shard has a job that may start now, as far as is known.
func (s *shard) hasWork() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claims.unstarted() > 0 || s.turns.claim().DueBy(s.now())
}

// hasFinished reports whether the shard has settlements to send under its lease.
func (s *shard) hasFinished() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.held && s.turns.outbox.hasFinished()
}

// grantByHand lets the next turn claim a batch, and those that will start soon, unless some
// already wait.
func (s *shard) grantByHand() {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting, _ := s.claims.waiting(!s.turns.unresponsive)
	soon := min(s.claims.soon()/s.queue.BatchSize, s.stock())
	s.pool.grantByHand(s, max(1, soon)-waiting)
}

// turnOnce makes the turn that is due, if any.
func (s *shard) turnOnce() error {
	switch s.nextStep(time.Now()) {
	case stepLost:
		return fmt.Errorf("shard %v: %w", s.ID, ports.ErrLeaseLost)
	case stepTurn:
		if err := s.sendTurn(); err != nil {
			return fmt.Errorf("turn of shard %v: %w", s.ID, err)
		}
	}
	return nil
}

// settleUp settles finished jobs and releases the shard. The next owner recovers jobs whose
// settlements the store refuses now.
func (s *shard) settleUp() {
	for {
		switch s.nextStep(time.Now()) {
		case stepDrained:
			s.release()
			return
		case stepTurn:
			if s.sendTurn() == nil {
				continue
			}
		}
		return
	}
}
