package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
)

// Causes of a handler's context, beside ports.ErrLeaseLost and the context's
// normal end.
var (
	// ErrShutdown is a server that stops and whose ShutdownTimeout is over.
	ErrShutdown = errors.New("server is shutting down")
	// ErrCancelled is a job that an operator has cancelled.
	ErrCancelled = errors.New("job was cancelled")
)

// Batch is the jobs that a lane runs at once, with their outcomes. The handler's
// goroutines may settle different jobs concurrently.
type Batch struct {
	// Claims are read-only.
	Claims []core.Claim

	shard   *shard
	token   int64
	started time.Time

	mu       sync.Mutex
	ctx      *runContext // the context that ends, replaced when a cancel ended it
	current  int
	outcomes []core.Outcome
	closed   bool
	stopped  bool         // no other job may start
	dropped  map[int]bool // the cancelled jobs, and whether to drop them
	// transacted are the jobs that the handler settled in a transaction, as they
	// end if it commits.
	transacted map[int]transactedJob
	// waits are the backoffs of jobs that have failed.
	retryDelays map[int]time.Duration

	// panics are those of the handlers of jobs that have failed, refusals and
	// undecodable what the codec refused.
	panics         map[int]*PanicError
	decodeFailures map[int]decodeFailure
	undecodable    map[payloadOf]bool

	runs     []jobRun     // of jobs that run one after another
	contexts []runContext // theirs, if there are several
	// byPayload says that a handler runs that settles payload by payload.
	byPayload bool

	overdueState *overdueState

	batchCtx   runContext
	oneOutcome [1]core.Outcome
	oneRun     [1]jobRun
}

// wholeBatch is the current job of a handler that takes all at once.
const wholeBatch = -1

func newBatch(s *shard, claims []core.Claim, now time.Time) *Batch {
	b := &Batch{Claims: claims, shard: s, token: s.lease.token, started: now, current: wholeBatch}
	b.batchCtx.parent, b.batchCtx.batch, b.batchCtx.job = s.node.handlerCtx, b, wholeBatch
	b.ctx = &b.batchCtx
	b.outcomes = b.oneOutcome[:]
	if len(claims) > 1 {
		b.outcomes = make([]core.Outcome, len(claims))
	}
	return b
}

// Shard is where the batch's jobs live.
func (b *Batch) Shard() core.Shard { return b.shard.id }

// Token is the fencing token of the lease that the batch runs under.
func (b *Batch) Token() int64 { return b.token }

// LastError is the text of job i's last failure.
func (b *Batch) LastError(i int) string {
	if text := b.Claims[i].Error; text != "" {
		return b.shard.queue.Stored(text)
	}
	return ""
}

// Settle gives job i the outcome that an error means, nil being done. An error
// that only says that the engine interrupted the handler puts it back untouched.
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
	b.markPayload(i, core.PayloadOutcome{Position: position, Bury: true, Error: b.shard.queue.Text(reason)})
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

// over reports whether the handler has spoken for job i: what a goroutine says that it
// has left behind does not count.
func (b *Batch) returned(i int) bool { return b.closed || b.runs != nil && b.runs[i].returned }

// set gives job i an outcome, and the panic that it comes from, if one.
func (b *Batch) set(i int, o core.Outcome, p *PanicError) {
	o.Payloads = b.outcomes[i].Payloads
	b.outcomes[i] = o
	if p != nil && b.panics == nil {
		b.panics = make(map[int]*PanicError)
	}
	if b.panics != nil {
		b.panics[i] = p
	}
}

// outcomeOf asks the error itself, whose methods may panic, as those of a nil
// pointer do: that panic is a failure then.
func (b *Batch) outcomeOf(err error) (core.Outcome, *PanicError) {
	if err == nil {
		return core.Outcome{Kind: core.Done}, nil
	}
	return b.failureOf(err)
}

func (b *Batch) failureOf(err error) (o core.Outcome, p *PanicError) {
	failed := GuardGoroutine(func() error {
		errors.As(err, &p)
		if b.interrupted(err) {
			o = core.Outcome{Kind: core.Untouched}
		} else {
			o = b.shard.queue.Outcome(err)
		}
		return nil
	})
	if failed != nil {
		o = core.Outcome{Kind: core.Failed, Error: b.shard.queue.Text(failed)}
		errors.As(failed, &p)
	}
	return o, p
}

// interrupted reports whether err is no fault of the job: its context was ended
// by the engine, and err says so.
func (b *Batch) interrupted(err error) bool {
	b.mu.Lock()
	cause := b.ctx.ended()
	b.mu.Unlock()
	return cause != nil && (errors.Is(err, context.Canceled) || errors.Is(err, cause))
}

// cancel ends the job that an operator has cancelled, once. It comes too late for
// one that has its outcome.
func (b *Batch) cancel(i int, drop bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, known := b.dropped[i]
	if kind := b.outcomes[i].Kind; !known && kind != core.Undecided && kind != core.Untouched {
		return
	}
	if b.dropped == nil {
		b.dropped = make(map[int]bool)
	}
	b.dropped[i] = drop
	if !known && (b.current == i || b.current == wholeBatch) {
		b.ctx.end(ErrCancelled)
	}
}

// interrupt ends the handler's context, and lets no other job start.
func (b *Batch) interrupt(cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	b.ctx.end(cause)
	b.batchCtx.end(cause)
}

// close ends the batch after its handler returned: jobs without an outcome get
// that of the handler's error, but those whose turn has not come, where jobs run one
// after another, go back untouched; and what an operator has cancelled ends as the
// operator chose. From then on the outcomes don't change.
func (b *Batch) close(err error) {
	o, p := b.outcomeOf(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endRun(b.now())
	b.batchCtx.end(context.Canceled)
	for i := range b.outcomes {
		switch {
		case b.outcomes[i].Kind != core.Undecided:
		case b.notBegun(i):
			b.outcomes[i].Kind = core.Untouched
		default:
			b.set(i, o, p)
		}
		if b.decodeFailures != nil {
			b.outcomes[i] = b.applyDecodeFailure(i, b.outcomes[i])
		}
	}
	for i, drop := range b.dropped {
		o := core.Outcome{Kind: core.Untouched}
		if drop {
			o.Kind = core.Dropped
		}
		b.set(i, o, nil)
	}
	b.closed = true
}

// succeeded reports whether a job of the batch is done.
func (b *Batch) succeeded() bool {
	for i := range b.outcomes {
		if b.outcomes[i].Kind == core.Done {
			return true
		}
	}
	return false
}
