package execution

import (
	"context"
	"errors"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/guard"
)

// SetOutcome gives job i the outcome of err, or done if err is nil. An error that only reports
// that the engine has ended the handler's context puts the job back untouched.
func (b *Batch) SetOutcome(i int, err error) {
	o, p := b.outcomeOf(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.returned(i) {
		b.set(i, o, p)
	}
}

// MarkDone marks one payload of job i as done by itself.
func (b *Batch) MarkDone(i, position int) {
	b.markPayload(i, core.PayloadOutcome{Position: position})
}

// MarkBuried sends one payload of job i to the morgue by itself.
func (b *Batch) MarkBuried(i, position int, reason error) {
	text, group := b.shard.Queue.Text(reason)
	b.markPayload(i, core.PayloadOutcome{Position: position, Bury: true, Error: text, Group: group})
}

func (b *Batch) markPayload(i int, m core.PayloadOutcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.returned(i) {
		return
	}
	marks := b.outcomes[i].Payloads
	at, found := findMark(marks, m.Position)
	if found {
		marks[at] = m
		return
	}
	b.outcomes[i].Payloads = slices.Insert(marks, at, m)
}

// findMark returns where the mark on a payload is, or belongs.
func findMark(marks []core.PayloadOutcome, position int) (at int, found bool) {
	return slices.BinarySearchFunc(marks, position, func(o core.PayloadOutcome, p int) int { return o.Position - p })
}

// returned reports whether job i's handler has returned. Outcomes set afterwards by a goroutine
// that it left behind do not count.
func (b *Batch) returned(i int) bool { return b.closed || b.runs != nil && b.runs[i].returned }

// ended reports whether a handler's context is of the past: that of a job that no longer runs, or
// that of a batch or a job whose handler has returned. job is the job of the context, or
// wholeBatch. The Batch is locked.
func (b *Batch) ended(job int) bool {
	return b.closed || job != wholeBatch && job != b.current || b.current != wholeBatch && b.returned(b.current)
}

// set gives job i an outcome, and the panic that it comes from, or nil.
func (b *Batch) set(i int, o core.Outcome, p *guard.PanicError) {
	o.Payloads = b.outcomes[i].Payloads
	b.outcomes[i] = o
	if p != nil || b.panics != nil {
		put(&b.panics, i, p)
	}
}

// outcomeOf returns the outcome that err means, and the panic that it comes from, or nil.
func (b *Batch) outcomeOf(err error) (core.Outcome, *guard.PanicError) {
	if err == nil {
		return core.Outcome{Kind: core.Done}, nil
	}
	return b.failureOf(err)
}

// failureOf calls methods of the error, which may panic, as those of a nil pointer do. Then that
// panic is the failure.
func (b *Batch) failureOf(err error) (o core.Outcome, p *guard.PanicError) {
	failed := guard.Goroutine(func() error {
		errors.As(err, &p)
		if b.interrupted(err) {
			o = core.Outcome{Kind: core.Untouched}
		} else {
			o = b.shard.Queue.Outcome(err)
		}
		return nil
	})

	if failed != nil {
		o = b.shard.Queue.failure(failed)
		errors.As(failed, &p)
	}
	return o, p
}

// failure returns the outcome of a job that has failed with an error.
func (q *Queue) failure(err error) core.Outcome {
	text, group := q.Text(err)
	return core.Outcome{Kind: core.Failed, Error: text, Group: group}
}

// interrupted reports whether err is not the job's fault: the engine has ended its context, and
// err wraps that cause.
func (b *Batch) interrupted(err error) bool {
	b.mu.Lock()
	cause := b.ctx.ended()
	b.mu.Unlock()
	return cause != nil && (errors.Is(err, context.Canceled) || errors.Is(err, cause))
}

// payloadOf names a payload of a batch by its job and its position.
type payloadOf struct{ job, position int }

// decodeFailure is a payload that its codec refuses and that is to be retried. It and the payloads
// behind it wait, so that their order stays.
type decodeFailure struct {
	position int
	outcome  core.Outcome
	// failed is set if the job has failed because of it.
	failed bool
}

// BuryUndecodable sends a payload of job i to the morgue, since its codec refuses it.
func (b *Batch) BuryUndecodable(i, position int, reason error) {
	b.mu.Lock()
	if !b.returned(i) {
		put(&b.undecodable, payloadOf{i, position}, true)
	}
	b.mu.Unlock()
	b.MarkBuried(i, position, reason)
}

// FailUndecodable notes that a payload of job i can't be decoded and that the job is to be
// retried for it. If alone, the job fails by the reason. Else the handler gets the payloads
// before it, and the job fails if those are done or buried.
func (b *Batch) FailUndecodable(i, position int, reason error, alone bool) {
	r := decodeFailure{position: position, outcome: b.shard.Queue.failure(reason), failed: alone}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.returned(i) {
		put(&b.decodeFailures, i, r)
	}
}

// applyDecodeFailure returns the outcome of job i, given o for the payloads before one that its
// codec refused. The Batch is locked.
func (b *Batch) applyDecodeFailure(i int, o core.Outcome) core.Outcome {
	r, ok := b.decodeFailures[i]
	if !ok || o.Kind != core.Done && o.Kind != core.Buried {
		return o
	}

	r.failed = true
	b.decodeFailures[i] = r

	marks := slices.Clone(o.Payloads)
	for position := range r.position {
		at, marked := findMark(marks, position)
		if !marked {
			m := core.PayloadOutcome{Position: position, Bury: o.Kind == core.Buried, Error: o.Error, Group: o.Group}
			marks = slices.Insert(marks, at, m)
		}
	}

	o = r.outcome
	o.Payloads = marks
	return o
}
