package exchange

import (
	"sync"
	"time"
)

// workerPool runs functions in goroutines that it keeps for a while: growing the stack of a new
// goroutine costs as much as sending a command.
type workerPool chan func()

// idleWorker is how long a goroutine without work is kept.
const idleWorker = 100 * time.Millisecond

func (c workerPool) Do(work func()) {
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

// Flight is a call that is made once for all callers that want its result while it is under way. It
// continues even if they have given up.
type Flight[T any] struct {
	mu    sync.Mutex
	going *Landing[T]
}

// Landing is the result of a flight, once Done is closed.
type Landing[T any] struct {
	began time.Time
	Done  chan struct{}
	Value T
}

// Join begins the call, unless it is under way, and returns its result to wait for.
func (f *Flight[T]) Join(c workerPool, do func() T) *Landing[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.going != nil {
		return f.going
	}

	l := &Landing[T]{began: time.Now(), Done: make(chan struct{})}
	f.going = l
	c.Do(func() {
		l.Value = do()
		f.mu.Lock()
		f.going = nil
		f.mu.Unlock()
		close(l.Done)
	})
	return l
}
