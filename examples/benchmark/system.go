package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// system is a queue under test, on the database of the lab.
type system interface {
	// push stores one job.
	push(ctx context.Context, j job) error
	// fill stores jobs in the fastest way that the system has.
	fill(ctx context.Context, jobs []job) error
	// serve starts a server that passes each payload to handle. The returned function stops it, and
	// waits.
	serve(ctx context.Context, handle func(payload []byte)) (stop func() error, err error)
	// left returns the number of jobs in the store: queued, claimed or put aside.
	left(ctx context.Context) (int64, error)
}

// auditor is a system whose store can be checked after its jobs were handled. The check takes too
// long to be part of the measurement.
type auditor interface {
	audit(ctx context.Context, handled int) error
}

// batcher is a system that stores many jobs in one call.
type batcher interface {
	system
	// pushMany stores jobs, pushedMany in a call, from the given number of goroutines.
	pushMany(ctx context.Context, jobs []job, goroutines int) error
}

// pushedMany is how many jobs a batcher stores in a call.
const pushedMany = 500

// How often a store is asked whether it is empty, and how long it may take to become so after the
// last handler has begun.
const (
	drainedEvery  = time.Millisecond
	drainedWithin = 3 * time.Minute
)

// awaitEmpty returns when the store has no job any more.
func awaitEmpty(ctx context.Context, s system) error {
	for began := time.Now(); ; time.Sleep(drainedEvery) {
		left, err := s.left(ctx)
		if err != nil || left == 0 {
			return err
		}
		if time.Since(began) > drainedWithin {
			return fmt.Errorf("the store still has %d jobs %v after the last was handled", left, drainedWithin)
		}
	}
}

// expect checks how many jobs the store has.
func expect(ctx context.Context, s system, want int) error {
	left, err := s.left(ctx)
	if err == nil && left != int64(want) {
		err = fmt.Errorf("the store has %d jobs instead of %d", left, want)
	}
	return err
}

// drained has the times from the server's start and from the first job's start until no job was
// left in the store, and the processor time since the server's start.
type drained struct {
	fromStart, fromFirst time.Duration
	cpu                  cpuTime
}

// drain handles jobs that are stored.
func (l *lab) drain(ctx context.Context, s system, jobs []job) (d drained, err error) {
	t := newTally(jobs)
	m := l.startMeter(ctx)
	stop, err := s.serve(ctx, t.take)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, stop()) }()

	select {
	case <-t.first:
	case <-ctx.Done():
		return d, context.Cause(ctx)
	}

	first := time.Now()
	if err := t.wait(ctx); err != nil {
		return d, err
	}
	if err := awaitEmpty(ctx, s); err != nil {
		return d, err
	}

	d.fromFirst = time.Since(first)
	d.fromStart, d.cpu = m.read(ctx)
	if a, ok := s.(auditor); ok {
		err = a.audit(ctx, len(jobs))
	}
	return d, err
}

// concurrently calls do for every part at once, and returns the first error.
func concurrently[T any](ctx context.Context, parts []T, do func(context.Context, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for _, part := range parts {
		group.Go(func() {
			if err := do(ctx, part); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// each calls do for every job, from several goroutines, until one fails.
func each(ctx context.Context, goroutines int, jobs []job, do func(context.Context, job) error) error {
	return eachChunk(ctx, goroutines, 1, jobs, func(ctx context.Context, one []job) error { return do(ctx, one[0]) })
}

// eachChunk calls do for every chunk of jobs of a size, from several goroutines,
// until one fails.
func eachChunk(ctx context.Context, goroutines, size int, jobs []job, do func(context.Context, []job) error) error {
	part := (len(jobs) + goroutines - 1) / goroutines
	return concurrently(ctx, slices.Collect(slices.Chunk(jobs, part)), func(ctx context.Context, part []job) error {
		for chunk := range slices.Chunk(part, size) {
			if err := do(ctx, chunk); err != nil {
				return err
			}
		}
		return nil
	})
}

// rate returns the jobs per second.
func rate(jobs int, d time.Duration) float64 { return float64(jobs) / d.Seconds() }
