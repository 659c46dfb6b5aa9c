package execution

import (
	"context"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// jobRun is the execution of one job of a batch whose jobs run one after another. It is zero
// before the job has begun.
type jobRun struct {
	began time.Time
	took  time.Duration
	// returned is set once the job's handler has returned.
	returned bool
}

// Begin begins job i and returns its context, for handlers that run one job after another. The
// handler passes the context that it was called with. The job's context ends when job i is
// cancelled or the next job begins; cancelling another job does not end it.
//
// ok is false if job i must not start, since it or the batch is cancelled or the node stops. It
// goes back untouched then.
func (b *Batch) Begin(ctx context.Context, i int) (job context.Context, ok bool) {
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.closed {
		return nil, false
	}

	b.endRun(now)
	b.current = i
	if b.halted(i) {
		b.outcomes[i].Kind = core.Untouched
		return nil, false
	}

	b.beginRun(i, now)
	b.attachEnded = false
	if len(b.Claims) == 1 {
		return ctx, true
	}

	if b.contexts == nil {
		b.contexts = make([]runContext, len(b.Claims))
	}
	b.ctx = &b.contexts[i]
	b.ctx.parent, b.ctx.batch, b.ctx.job = context.WithoutCancel(ctx), b, i
	return b.ctx, true
}

// halted reports whether the rest of job i may not start: it is cancelled, the batch is
// interrupted, or the node drains.
func (b *Batch) halted(i int) bool {
	_, cancelled := b.dropped[i]
	return cancelled || b.stopped || b.shard.Server.Stop.Err() != nil
}

// Return gives job i the outcome of its handler's return: that of err, which replaces what
// SetOutcome set, or done if err is nil and nothing was set.
func (b *Batch) Return(i int, err error) {
	o, p := b.outcomeOf(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.returned(i) {
		return
	}
	if err != nil || b.outcomes[i].Kind == core.Undecided {
		b.set(i, o, p)
	}
	if b.runs != nil {
		b.runs[i].returned = true
	}
}

// BeginPayload precedes the payload at each position, for a handler that takes the payloads of job
// i one after another. It returns false if no other payload may start, for the reasons of Begin:
// those of the job that have no outcome of their own go back untouched. If the job is recovered,
// the store receives the end of the payload before, so that this one is blamed for a crash.
func (b *Batch) BeginPayload(i, position int) bool {
	if b.Claims[i].Recoveries > 0 && position > 0 && !b.endBefore(i, position) {
		return false
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	if b.halted(i) {
		b.set(i, core.Outcome{Kind: core.Untouched}, nil)
		return false
	}
	b.byPayload, b.payload = true, position
	if p := b.parts[i]; p != nil {
		p.last = position
	}
	return true
}

// EndPayload follows the handler of a payload.
func (b *Batch) EndPayload() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.byPayload = false
}

// End ends what Begin began: from now on the handler works the whole batch.
func (b *Batch) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endRun(b.now())
	b.current, b.ctx = wholeBatch, &b.batchCtx
}

// now returns when a job begins or ends. A job that is alone in its batch begins and ends with the
// batch, and the clock is not read.
func (b *Batch) now() time.Time {
	if len(b.Claims) == 1 {
		return b.started
	}
	return b.shard.Server.Clock.Local()
}

func (b *Batch) beginRun(i int, now time.Time) {
	if b.runs == nil {
		b.runs = b.oneRun[:]
		if len(b.Claims) > 1 {
			b.runs = make([]jobRun, len(b.Claims))
		}
	}
	b.runs[i].began = now
}

// endRun ends the execution of the job that has begun last.
func (b *Batch) endRun(now time.Time) {
	if b.closed || b.runs == nil || b.current == wholeBatch {
		return
	}
	if r := &b.runs[b.current]; !r.began.IsZero() && r.took == 0 {
		r.took = now.Sub(r.began)
	}
	if len(b.Claims) > 1 { // else it ends with the batch
		b.ctx.end(context.Canceled)
	}
}

// notBegun reports whether jobs run one after another and job i has not begun.
func (b *Batch) notBegun(i int) bool { return b.runs != nil && b.runs[i].began.IsZero() }

// Execution returns when job i began in a closed batch that took the given time, and how long it
// ran. ok is false if the job has not begun.
func (b *Batch) Execution(i int, took time.Duration) (began time.Time, ran time.Duration, ok bool) {
	if len(b.runs) > 1 {
		return b.runs[i].began, b.runs[i].took, !b.notBegun(i)
	}
	return b.started, took, !b.notBegun(i)
}

// run returns what the record of job i states of its run, which may not have ended.
func (b *Batch) run(i int) core.Run {
	b.mu.Lock()
	defer b.mu.Unlock()
	clock, began, took := b.shard.Server.Clock, b.started, time.Duration(0)
	if len(b.runs) > 1 {
		began, took = b.runs[i].began, b.runs[i].took
	}
	if took == 0 {
		took = clock.Local().Sub(began)
	}
	return core.Run{Started: clock.At(began), Took: took, Node: b.shard.Server.Node, Result: b.results[i]}
}

// EndsLater reports whether the end of job i in a closed batch depends on its handler's
// transactions, so that only the store's answer shows it.
func (b *Batch) EndsLater(i int) bool {
	_, transacted := b.transacted[i]
	return transacted || b.groups[i] != nil
}

// AppendRunning appends the jobs of the batch that are in its handler: all of them, or, where they
// run one after another, the one that has begun and not ended.
func (b *Batch) AppendRunning(to []ports.RunningJob) []ports.RunningJob {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.Claims {
		began := b.started
		if b.runs != nil {
			r := &b.runs[i]
			if r.began.IsZero() || r.took != 0 || r.returned {
				continue
			}
			began = r.began
		}

		c := &b.Claims[i]
		to = append(to, ports.RunningJob{
			Shard:   b.shard.ID,
			ID:      c.ID,
			Receipt: c.Receipt,
			Began:   b.shard.Server.Clock.At(began),
		})
	}
	return to
}
