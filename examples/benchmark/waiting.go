package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// waiting is a handler that waits, like a handler that calls another service, and notes when each
// job starts.
type waiting struct {
	*tally
	base   time.Time
	wait   func(number int) time.Duration
	starts []atomic.Int64 // nanoseconds from base on; 0 if the job has not started
	ended  atomic.Int64   // how many handlers have returned
	last   atomic.Int64   // when the last did
}

// newWaiting handles jobs whose numbers are 0 to highest.
func newWaiting(jobs []job, highest int, wait func(number int) time.Duration) *waiting {
	return &waiting{tally: newTally(jobs), base: time.Now(), wait: wait, starts: make([]atomic.Int64, highest+1)}
}

// handle notes when a payload has come, takes it, and waits: take may report that all have come.
func (w *waiting) handle(payload []byte) {
	start := max(1, time.Since(w.base)) // 0 is no start
	n, err := number(payload)
	known := err == nil && n >= 0 && n < len(w.starts)
	if known {
		w.starts[n].Store(int64(start))
	}
	w.take(payload)
	if !known {
		return // which take has noted
	}
	time.Sleep(w.wait(n))
	w.ended.Add(1)
	raise(&w.last, int64(time.Since(w.base)))
}

// raise sets v to n unless v is larger.
func raise(v *atomic.Int64, n int64) {
	for {
		old := v.Load()
		if old >= n || v.CompareAndSwap(old, n) {
			return
		}
	}
}

// startOf returns when a job started, counted from base; false if it has not.
func (w *waiting) startOf(number int) (time.Duration, bool) {
	at := w.starts[number].Load()
	return time.Duration(at), at != 0
}

// startsWithin returns the first start and the last, counted from base.
func (w *waiting) startsWithin() (first, last time.Duration) {
	for i := range w.starts {
		at, ok := w.startOf(i)
		if !ok {
			continue
		}
		if first == 0 {
			first = at
		}
		first, last = min(first, at), max(last, at)
	}
	return first, last
}

// span returns the time from the first start to the last end.
func (w *waiting) span() time.Duration {
	first, _ := w.startsWithin()
	return time.Duration(w.last.Load()) - first
}

// failure returns an error if the received jobs are wrong.
func (w *waiting) failure() error {
	select {
	case err := <-w.done:
		return err
	default:
		return nil
	}
}

// stopped stops the server, and checks that each job was handled once or is still
// in the store.
func (w *waiting) stopped(ctx context.Context, s system, stop func() error, jobs int) error {
	if err := errors.Join(stop(), w.failure()); err != nil {
		return err
	}
	err := expect(ctx, s, jobs-int(w.ended.Load()))
	if err != nil {
		err = fmt.Errorf("%d of %d jobs were handled, so that the store must have the others: %w",
			w.ended.Load(), jobs, err)
	}
	return err
}
