package redis

import (
	"context"
	"time"
)

// crew runs calls in goroutines of its own and keeps these for a while: growing a
// new one's stack costs as much as sending a command.
type crew chan func()

// crewStays is how long one without work is kept.
const crewStays = 100 * time.Millisecond

func (c crew) do(work func()) {
	select {
	case c <- work:
	default:
		go c.serve(work)
	}
}

func (c crew) serve(work func()) {
	idle := time.NewTimer(crewStays)
	defer idle.Stop()
	for {
		work()
		idle.Reset(crewStays)
		select {
		case work = <-c:
		case <-idle.C:
			return
		}
	}
}

// await gives what do returns, or the context's error if that ends first; then
// do ends by itself and nobody looks at what it returns.
func await[T any](ctx context.Context, c crew, do func() T) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, translate(err)
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
		return none, translate(ctx.Err())
	}
}
