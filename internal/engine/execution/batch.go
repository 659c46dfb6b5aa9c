package execution

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/guard"
)

// Batch is the jobs that a lane runs at once, with their outcomes. The handler's goroutines may
// give different jobs their outcomes concurrently.
type Batch struct {
	// Claims are the jobs. They are read-only.
	Claims []core.Claim
	// SendPart ends a payload of a job in the store, while the job stays claimed. It waits for the
	// store, and returns false if the next payload must not start. It is called for recovered jobs
	// only, and is nil if the batch has none.
	SendPart func(core.PayloadSettlement) bool

	shard   *Shard
	token   int64
	started time.Time

	mu       sync.Mutex
	ctx      *runContext // the context that ends; it is replaced when a cancel ends it
	current  int
	outcomes []core.Outcome
	closed   bool
	stopped  bool         // set if no other job may start
	dropped  map[int]bool // the cancelled jobs, and whether to drop them
	// transacted are the jobs that the handler settled in a transaction, and how they end if it
	// commits.
	transacted map[int]transactedJob
	// parts are the jobs with payloads that the handler has settled by themselves. presumed are
	// those whose rest it then settled as well before it returned nil.
	parts    map[int]*jobParts
	presumed map[int]bool
	// groups are the settlements of the jobs of parts, once the batch is closed.
	groups map[int]*partGroup
	// retryDelays are the delays before the retries of jobs that have failed. failedAt are the times
	// of the failures and burials. Both stay if a settlement is computed again.
	retryDelays map[int]retryDelay
	failedAt    map[int]core.Instant

	// results are what handlers have set as the results of their jobs.
	results map[int][]byte

	// panics are those of the handlers of failed jobs. decodeFailures and undecodable are the
	// payloads that the codec refused.
	panics         map[int]*guard.PanicError
	decodeFailures map[int]decodeFailure
	undecodable    map[payloadOf]bool

	runs     []jobRun     // for jobs that run one after another
	contexts []runContext // of runs, if there are several
	// attached is what the root keeps with the job that runs; see Attach.
	attached    any
	attachEnded bool
	// byPayload is set while a handler runs that settles payload by payload. payload is the
	// position of the payload that it has begun.
	byPayload bool
	payload   int

	overdueState *overdueState

	batchCtx   runContext
	oneOutcome [1]core.Outcome
	oneRun     [1]jobRun
}

// Start starts a batch, which is zero.
func (b *Batch) Start(s *Shard, token int64, claims []core.Claim, now time.Time) {
	b.Claims, b.shard, b.token, b.started, b.current = claims, s, token, now, wholeBatch
	b.batchCtx.parent, b.batchCtx.batch, b.batchCtx.job = s.Server.Handlers, b, wholeBatch
	b.ctx = &b.batchCtx
	b.outcomes = b.oneOutcome[:]
	if len(claims) > 1 {
		b.outcomes = make([]core.Outcome, len(claims))
	}
}

// Context returns the context of the batch's handler.
func (b *Batch) Context() context.Context { return &b.batchCtx }

// Started returns when the batch has started.
func (b *Batch) Started() time.Time { return b.started }

// put sets an entry of a map, which it makes if it is nil: few batches need one.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[key] = value
}

// Shard returns where the batch's jobs live.
func (b *Batch) Shard() core.Shard { return b.shard.ID }

// Pushed returns the payloads of job i as they were pushed.
func (b *Batch) Pushed(i int) []core.Payload {
	return b.shard.Queue.Merge.PushedAll(b.Claims[i].Payloads)
}

// Token returns the fencing token of the lease that the batch runs under.
func (b *Batch) Token() int64 { return b.token }

// LastError returns the text of job i's last failure, or "".
func (b *Batch) LastError(i int) string { return b.stored(b.Claims[i].Failures.Newest().Text) }

// Failures returns the last failures of job i, with their texts as LastError returns them.
func (b *Batch) Failures(i int) core.Failures {
	failures := slices.Clone(b.Claims[i].Failures)
	for at := range failures {
		failures[at].Text = b.stored(failures[at].Text)
	}
	return failures
}

// stored returns the error message that a stored text stands for, or "" for "".
func (b *Batch) stored(text string) string {
	if text == "" {
		return ""
	}
	return b.shard.Queue.Stored(text)
}

// Close ends the batch after its handler has returned. Jobs without an outcome get that of the
// handler's error. Where jobs run one after another, jobs that have not begun are put back
// untouched instead. Jobs that an operator has cancelled end as the operator chose. The outcomes
// don't change after close.
func (b *Batch) Close(err error) {
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

	// Cancelled jobs come last, since their end overrides what the handler has set.
	for i, drop := range b.dropped {
		o := core.Outcome{Kind: core.Untouched}
		if drop {
			o.Kind = core.Dropped
		}
		b.set(i, o, nil)
	}

	b.closed = true
}

// Outcomes returns the outcomes of a closed batch, one for each job. They are read-only.
func (b *Batch) Outcomes() []core.Outcome { return b.outcomes }

// Succeeded reports whether a job of the batch is done.
func (b *Batch) Succeeded() bool {
	for i := range b.outcomes {
		if b.outcomes[i].Kind == core.Done {
			return true
		}
	}
	return false
}

// Settlements appends to a slice the settlements of a closed batch, one for each job, in order. The
// transactions of handlers are assumed not to have committed.
func (b *Batch) Settlements(to []core.Settlement) []core.Settlement {
	b.assumeNotCommitted()
	b.groups = b.partGroups()
	for i := range b.Claims {
		if g := b.groups[i]; g != nil {
			to = append(to, g.versions[0].sent)
		} else {
			to = append(to, b.settlement(i, b.outcomes[i]))
		}
	}
	return to
}

// settlement returns the settlement of job i with outcome o. It does not panic.
func (b *Batch) settlement(i int, o core.Outcome) core.Settlement {
	c := &b.Claims[i]
	policy := b.shard.Queue.Policy
	if o.Kind == core.Awaiting {
		b.shard.checkAwaiting(c.ID)
	}
	if o.Kind == core.Failed || o.Kind == core.Buried || len(o.Payloads) > 0 {
		o.At, o.Node = b.timeOfFailure(i), b.shard.Server.Node
	}
	if policy.BacksOff(c, &o) {
		o.Delay, o.OwnDelay = b.retryDelay(i, policy.Retry(c, &o)), true
	}
	s := policy.Settlement(c, &o, 0)
	if b.shard.Queue.Records {
		s.Record(c, b.run(i))
	}
	if b.shard.Queue.DropStale {
		s.MarkDone(c, &o)
	}
	return s
}

// timeOfFailure returns when job i failed, by the store's clock.
func (b *Batch) timeOfFailure(i int) core.Instant {
	at, known := b.failedAt[i]
	if !known {
		clock := b.shard.Server.Clock
		at = clock.At(clock.Local())
		put(&b.failedAt, i, at)
	}
	return at
}

// checkAwaiting warns that a job awaits a push in a queue whose pushes don't run waiting jobs.
func (s *Shard) checkAwaiting(id string) {
	if !s.Queue.Earliest && s.Server.Jobs.Mishap("Await "+s.ID.Queue) {
		s.Server.Logger.Warn(
			"a handler awaits a push, but the queue's pushes don't run waiting jobs; set PushRule to skein.Earliest()",
			"queue", s.ID.Queue, "shard", s.ID.String(), "id", id,
		)
	}
}

// retryDelay returns how long job i waits before the retry with the given number. It calls the
// queue's Backoff once for each failure, even if the job is settled in a transaction and then again
// with the same outcome.
func (b *Batch) retryDelay(i, retry int) time.Duration {
	b.mu.Lock()
	known, made := b.retryDelays[i]
	b.mu.Unlock()
	if made && known.retry == retry {
		return known.delay
	}
	d := b.shard.backoff(b.Claims[i].ID, retry)
	b.mu.Lock()
	defer b.mu.Unlock()
	put(&b.retryDelays, i, retryDelay{retry, d})
	return d
}

// retryDelay is the delay before a retry.
type retryDelay struct {
	retry int
	delay time.Duration
}

// backoff calls the queue's Backoff. If that panics, the default is used.
func (s *Shard) backoff(id string, retry int) (d time.Duration) {
	jitter := s.Server.jitter()
	failed := guard.Goroutine(func() error {
		d = s.Queue.Policy.Wait(retry, jitter)
		return nil
	})
	if failed != nil && s.Server.Jobs.Mishap("Backoff "+s.ID.Queue) {
		s.Server.Logger.Error("the queue's Backoff panicked; the default backoff is used",
			"queue", s.ID.Queue, "shard", s.ID.String(), "id", id, "retry", retry, "error", failed)
	}
	if failed != nil {
		return core.DefaultBackoff(retry, jitter)
	}
	return d
}
