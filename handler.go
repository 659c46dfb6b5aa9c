package skein

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
)

// Handler is a queue together with the function that works it: what NewServer
// takes. Queue.Handler makes one.
type Handler struct {
	queue *engine.Queue
	err   error
}

// Handler works each job of the queue by calling f with its id and its payloads
// in order of score, lowest first. The ids of a batch run one after another.
//
// The job is done if f returns nil. An error or a panic fails it alone: it is
// retried with backoff, and after MaxRetries its first payload goes to the
// morgue. Payloads pushed meanwhile for the id wait until f has returned. After a
// crash f may be called again with the same payloads, so it should be able to
// repeat its effects.
//
// The context ends when f must stop: its lease was lost, the server's
// ShutdownTimeout is over, or an operator has cancelled the job; context.Cause
// says which. f keeps its shard until it returns, so it should heed the context.
// Fence gives the token for writes that must not come late.
func (q *Queue[T]) Handler(f func(ctx context.Context, id string, payloads []T) error) Handler {
	served := q.serve()
	served.Run = func(_ context.Context, b *engine.Batch) error {
		for i := range b.Claims {
			if ctx, ok := b.Begin(i); ok {
				b.Settle(i, q.handle(ctx, b, i, f))
			}
		}
		return nil
	}
	return Handler{queue: served, err: q.err}
}

// handle runs f on one job of a batch. What the codec refuses is buried by
// itself.
func (q *Queue[T]) handle(
	ctx context.Context, b *engine.Batch, i int, f func(context.Context, string, []T) error,
) error {
	claim := &b.Claims[i]
	payloads := make([]T, 0, len(claim.Payloads))
	var refused error
	for position, p := range claim.Payloads {
		payload, err := q.decode(p.Data)
		if err != nil {
			refused = fmt.Errorf("decode payload: %w", err)
			b.MarkBuried(i, position, refused)
			continue
		}
		payloads = append(payloads, payload)
	}
	if len(payloads) == 0 {
		return refused
	}
	return engine.Guard(func() error { return f(ctx, claim.ID, payloads) })
}

// decode treats a panic of the codec as a refusal.
func (q *Queue[T]) decode(data []byte) (payload T, err error) {
	err = engine.Guard(func() error {
		var err error
		payload, err = q.options.Codec.Decode(data)
		return err
	})
	return payload, err
}

// outcomeOf is what a handler's error means.
func outcomeOf(err error) core.Outcome {
	return core.Outcome{Kind: core.Failed, Error: errorText(err)}
}

// errorText is the text to keep of an error, also of one whose Error panics.
func errorText(err error) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("%T, whose Error method panics: %v", err, v)
		}
		text = core.ErrorText(text)
	}()
	return err.Error()
}

// Fence is the fencing token of the lease that a handler runs under: a number
// that rises each time a shard changes hands. A resource that remembers the
// highest token it has seen can refuse a write that carries a lower one. It is
// not ok for a context that is no handler's.
func Fence(ctx context.Context) (token int64, ok bool) { return engine.Fence(ctx) }
