package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// ErrNotCommitted is the failure of a job whose handler settled it in a transaction and returned
// nil, but has not committed.
var ErrNotCommitted = errors.New(
	"the handler returned without having committed the transaction in which it settled the job",
)

var (
	errNoHandler = errors.New("settle in a transaction: the context is not a handler's; pass the handler's context")
	errAttached  = errors.New(
		"settle in a transaction: the handler has called Then, which pushes after the job's end; " +
			"push in the transaction instead, with client.Via",
	)
	errTooLate = errors.New("settle in a transaction: the handler has returned; settle and commit before it does")
)

// SettleIn settles in the settler's transaction what the handler of ctx works: the payload or the
// job that it has begun, or the whole batch. The engine can't know whether that commits. So the
// next turn settles these jobs as if it had not; if it has, they are not claimed any more, and the
// store skips those settlements.
func SettleIn(ctx context.Context, settler ports.Settler) error {
	c, err := settling(ctx, nil)
	if err != nil {
		return err
	}
	b := c.batch
	if job, position, ok := b.begunPayload(c.job); ok {
		return b.settlePayload(ctx, settler, job, position)
	}
	return b.settleJobs(ctx, settler, c.job, noPayload)
}

// settling returns the context of the handler that settles in a transaction, of a batch unless that
// is nil.
func settling(ctx context.Context, of *Batch) (*runContext, error) {
	c, ok := ctx.Value(batchKey{}).(*runContext)
	switch {
	case !ok, of != nil && c.batch != of:
		return nil, errNoHandler
	case ctx.Err() != nil:
		return nil, fmt.Errorf("settle in a transaction: %w", context.Cause(ctx))
	}
	c.batch.shard.Server.CheckPool()
	return c, nil
}

// onePayload is the last open payload of a job, which settles the job, or noPayload.
type onePayload struct{ job, position int }

var noPayload = onePayload{wholeBatch, wholeBatch}

// begunPayload returns the payload that the handler has begun, if it takes payloads one after
// another.
func (b *Batch) begunPayload(job int) (i, position int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ok = b.byPayload && !b.closed && (job == wholeBatch || job == b.current)
	return b.current, b.payload, ok
}

// settleJobs settles the jobs that noteTransaction notes.
func (b *Batch) settleJobs(ctx context.Context, settler ports.Settler, job int, only onePayload) error {
	settlements, again, err := b.noteTransaction(job, only)
	if err != nil {
		return err
	}

	err = settler.Settle(ctx, b.shard.ID, settlements)
	if errors.Is(err, ports.ErrLeaseLost) && only != noPayload && b.dropBuriedPart(only.job, 0) {
		if settlements, again, err = b.noteTransaction(job, only); err == nil {
			err = settler.Settle(ctx, b.shard.ID, settlements)
		}
	}

	switch {
	case err == nil:
		b.noteSettled(settlements)
		return nil
	case again && errors.Is(err, ports.ErrLeaseLost):
		return errSettledAgain(err)
	case len(settlements) == 1 && settlements[0].Receipt.Part() > 0 && errors.Is(err, ports.ErrLeaseLost):
		return errBehindPart(err)
	}
	return fmt.Errorf("settle in a transaction: %w", err)
}

// transactedJob is how a job ends if its transaction commits.
type transactedJob struct {
	outcome    core.Outcome
	settlement core.Settlement
	// position is the payload that the handler settled as the last open one, or wholeBatch if it
	// settled the job. settled is set if the store has accepted it.
	position int
	settled  bool
}

// noteSettled notes that the store has accepted settlements, and so all parts before them.
func (b *Batch) noteSettled(settlements []core.Settlement) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.Claims {
		t, ok := b.transacted[i]
		if !ok || !slices.ContainsFunc(settlements, func(s core.Settlement) bool { return s.ID == b.Claims[i].ID }) {
			continue
		}
		t.settled = true
		b.transacted[i] = t
		if p := b.parts[i]; p != nil {
			p.proven = len(p.done)
		}
	}
}

// noteTransaction notes how jobs end if the transaction commits, and returns their settlements. A
// job without an outcome is done. again is true if the handler has settled one of them before.
func (b *Batch) noteTransaction(job int, only onePayload) (settlements []core.Settlement, again bool, err error) {
	first, outcomes, err := b.transactionOutcomes(job, only)
	if err != nil {
		return nil, false, err
	}

	settlements = make([]core.Settlement, len(outcomes))
	for i := range outcomes {
		settlements[i] = b.settlement(first+i, outcomes[i])
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, false, errTooLate
	case b.attached != nil:
		return nil, false, errAttached
	}

	for i := range outcomes {
		_, before := b.transacted[first+i]
		again = again || before
		put(&b.transacted, first+i, transactedJob{
			outcome:    outcomes[i],
			settlement: settlements[i],
			position:   only.position,
		})
		if p := b.parts[first+i]; p != nil {
			settlements[i] = withoutPayloads(settlements[i], p.done)
		}
	}

	return settlements, again, nil
}

// transactionOutcomes returns the outcomes of the job that has begun, or of the whole batch. If
// only is a payload, it is the outcome of its job, in which that payload is done. It refuses the
// context of a job that does not run.
func (b *Batch) transactionOutcomes(job int, only onePayload) (first int, outcomes []core.Outcome, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()

	switch {
	case b.ended(job),
		only != noPayload && b.current != wholeBatch && b.current != only.job:
		return 0, nil, errTooLate
	case b.attached != nil:
		return 0, nil, errAttached
	}

	end := b.current + 1
	switch first = b.current; {
	case only != noPayload:
		first, end = only.job, only.job+1
	case first == wholeBatch:
		first, end = 0, len(b.Claims)
	}

	for i := first; i < end; i++ {
		o := b.outcomes[i]
		o.Payloads = slices.Clone(o.Payloads)
		if o.Kind == core.Undecided {
			o.Kind = core.Done
		}
		if only != noPayload {
			o = core.Outcome{Kind: core.Done, Payloads: withDone(o.Payloads, []int{only.position})}
		}

		o = b.applyDecodeFailure(i, o)
		if p := b.parts[i]; p != nil {
			o.Payloads = withDone(o.Payloads, p.done)
		}
		outcomes = append(outcomes, o)
	}

	return first, outcomes, nil
}

// assumeNotCommitted changes the outcomes of a closed batch to those of jobs whose transaction has
// not committed: no job is done, and no payload that belonged to the transaction. The observer's
// earlier events stay.
func (b *Batch) assumeNotCommitted() {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.transacted == nil {
		return
	}

	b.outcomes = slices.Clone(b.outcomes)
	if b.parts != nil {
		b.presumed = make(map[int]bool)
	}

	for i, t := range b.transacted {
		o := &b.outcomes[i]
		if o.Kind == core.Done {
			if b.parts[i] != nil && t.settled {
				b.presumed[i] = true
			}
			marks := o.Payloads
			*o = b.shard.Queue.failure(ErrNotCommitted)
			o.Payloads = marks
		}
		o.Payloads = slices.DeleteFunc(slices.Clone(o.Payloads), func(p core.PayloadOutcome) bool {
			return !p.Bury && (t.position == wholeBatch || p.Position == t.position)
		})
	}
}
