package execution

import (
	"context"
	"errors"
	"slices"

	"github.com/skeinq/skein/core"
)

var (
	errNotAJob = errors.New("the context is not that of a handler; pass the one that the handler was given")
	errBatch   = errors.New(
		"the context is that of a whole batch, as a BatchHandler and middleware have it, and its jobs may " +
			"end differently; call PushMany at the handler's end and return its error, or use a JobHandler",
	)
	errReturned = errors.New("the handler has returned; call Then before it does")
	errSettled  = errors.New("the handler has settled its job in a transaction; push in that transaction instead, " +
		"through client.Via with the transaction")
)

// Attach changes the value that the root keeps with a job. ctx is the context of the handler that
// works the job. The value is nil at first, and all goroutines of the handler share it. Attach
// refuses the context of a whole batch, and that of a job whose handler has returned, or that was
// settled in a transaction. A payload that a handler takes by itself counts as such a job.
func Attach(ctx context.Context, change func(kept any) (any, error)) error {
	c, ok := ctx.Value(batchKey{}).(*runContext)
	if !ok {
		return errNotAJob
	}

	b := c.batch
	b.mu.Lock()
	defer b.mu.Unlock()

	i := b.current
	switch {
	case b.attachEnded, b.ended(c.job):
		return errReturned
	case i == wholeBatch:
		return errBatch
	}
	if _, transacted := b.transacted[i]; transacted || b.parts[i] != nil && (!b.byPayload || b.isPart(i, b.payload)) {
		return errSettled
	}

	kept, err := change(b.attached)
	if err == nil {
		b.attached = kept
	}
	return err
}

// Detach returns what Attach has kept with the job that runs, and forgets it.
func (b *Batch) Detach() (kept any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept, b.attached = b.attached, nil
	return kept
}

// EndAttach is Detach at the end of the job that runs. Attach refuses the job from now on.
func (b *Batch) EndAttach() (kept any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept, b.attached, b.attachEnded = b.attached, nil, true
	return kept
}

// UnmarkDone takes back the marks of job i's payloads that are done.
func (b *Batch) UnmarkDone(i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outcomes[i].Payloads = slices.DeleteFunc(b.outcomes[i].Payloads, func(p core.PayloadOutcome) bool {
		return !p.Bury
	})
}

// Settles reports whether the job that runs, job i, is done if its handler returns err, or has a
// payload that is marked as done. Its handler is not called again for that.
func (b *Batch) Settles(i int, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, mark := range b.outcomes[i].Payloads {
		if !mark.Bury {
			return true
		}
	}
	kind := b.outcomes[i].Kind
	return err == nil && (kind == core.Undecided || kind == core.Done)
}

// Metas returns the Metas of the payloads of the job that a handler works, in order, without the
// payloads that its codec refused. It returns nil if ctx is not the context of a handler of one
// job, or if that job has ended.
func Metas(ctx context.Context) [][]byte {
	b, job, unlock := working(ctx)
	defer unlock()
	if job == wholeBatch {
		return nil
	}

	payloads := b.Claims[job].Payloads
	if b.byPayload {
		payloads = payloads[b.payload : b.payload+1]
	} else if r, refused := b.decodeFailures[job]; refused {
		payloads = payloads[:r.position]
	}

	metas := make([][]byte, 0, len(payloads))
	for position := range payloads {
		if b.byPayload || !b.undecodable[payloadOf{job, position}] {
			metas = append(metas, payloads[position].Meta)
		}
	}

	return metas
}

// working returns the locked batch and the job that a handler works, whose context is ctx. The job
// is wholeBatch if there is no such job: for another context, for the context of a handler of a
// whole batch, and for that of a job that has ended.
func working(ctx context.Context) (b *Batch, job int, unlock func()) {
	c, ok := ctx.Value(batchKey{}).(*runContext)
	if !ok {
		return nil, wholeBatch, func() {}
	}
	b = c.batch
	b.mu.Lock()
	if b.ended(c.job) || b.current == wholeBatch {
		return b, wholeBatch, b.mu.Unlock
	}
	return b, b.current, b.mu.Unlock
}
