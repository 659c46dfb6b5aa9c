package redis

import (
	"context"
	"sync"
	"time"
)

// workerPool runs functions in goroutines that it keeps for a while: growing the stack of a new
// goroutine costs as much as sending a command.
type workerPool chan func()

// idleWorker is how long a goroutine without work is kept.
const idleWorker = 100 * time.Millisecond

func (c workerPool) do(work func()) {
	select {
	case c <- work:
	default:
		go c.serve(work)
	}
}

func (c workerPool) serve(work func()) {
	idle := time.NewTimer(idleWorker)
	defer idle.Stop()
	for {
		work()
		idle.Reset(idleWorker)
		select {
		case work = <-c:
		case <-idle.C:
			return
		}
	}
}

// await returns the result of do, or the context's error if the context ends first. Then do
// continues in its goroutine and its result is dropped.
func await[T any](ctx context.Context, c workerPool, do func() T) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, translate(ctx, err)
	}
	if ctx.Done() == nil {
		return do(), nil
	}
	done := make(chan T, 1)
	c.do(func() { done <- do() })
	select {
	case v := <-done:
		return v, nil
	case <-ctx.Done():
		return zero, translate(ctx, ctx.Err())
	}
}

// flight is a call that is made once for all callers that want it meanwhile. It continues even if
// they have given up.
type flight[T any] struct {
	mu    sync.Mutex
	going *landing[T]
}

// landing is the result of a flight, once done is closed.
type landing[T any] struct {
	began time.Time
	done  chan struct{}
	value T
}

// join begins the call, unless it is under way.
func (f *flight[T]) join(c workerPool, do func() T) *landing[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.going != nil {
		return f.going
	}
	l := &landing[T]{began: time.Now(), done: make(chan struct{})}
	f.going = l
	c.do(func() {
		l.value = do()
		f.mu.Lock()
		f.going = nil
		f.mu.Unlock()
		close(l.done)
	})
	return l
}
