package skein

import (
	"context"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

// Job is a job as the functions of [Queue.JobHandler] and [Queue.BatchHandler] see it. The
// goroutines of one handler may use it concurrently.
type Job[T any] struct {
	// ID is the id that the payloads were pushed for.
	ID string
	// Payloads are in order of score, lowest first. A payload that the codec can't decode is left
	// out and buried. With [RetryUndecodable], the payloads after the first such payload are left
	// out as well.
	Payloads []Payload[T]
	// PerformAt is the time at which the job was due. FirstPush is the time of the oldest push that
	// merged into it. Both are by the store's clock, which may differ from this process's clock, as
	// it does in package skeintest.
	PerformAt time.Time
	FirstPush time.Time
	// Retries is the number of failures of the job so far: 0 at first, and again after its first
	// payload was done or buried.
	Retries int
	// Recoveries is the number of times that the job lost its process since it last ended.
	Recoveries int
	// LastError is the text of the last failure. It is empty if the job has not failed. [Job.Failures]
	// returns those before it too.
	LastError string
	// Tags are the tags of the pushes that merged into the job, in the order of their bytes; see
	// [Tags]. nil means no tags.
	Tags []string

	batch *execution.Batch
	index int
}

// Failure is a failure of a [Job].
type Failure struct {
	// At is the time of the failure, by the store's clock as the server estimated it. It is zero if it
	// is unknown.
	At time.Time
	// On is the name of the server that ran the job. It is empty if no server ran it.
	On string
	// Text is the text of the error. That of a failure before the last one may be truncated or empty,
	// since the texts of a job's failures have at most 4 KiB together.
	Text string
}

// Payload is one payload of a [Job]. By default it shares the outcome of its job. Done and Bury set
// an outcome of its own; the last call counts.
type Payload[T any] struct {
	// Value is the pushed value, decoded.
	Value T
	// Score is the payload's place among those of its job, lowest first.
	Score float64
	// Meta is the [Meta] of the push. If equal payloads merged, it is the Meta of the payload that
	// stayed. Read-only.
	Meta []byte

	batch           *execution.Batch
	index, position int
}

// Done marks the payload as done, even if its job fails.
func (p *Payload[T]) Done() { p.batch.MarkDone(p.index, p.position) }

// Bury sends the payload to the morgue with the reason, even if its job is done.
func (p *Payload[T]) Bury(reason error) {
	p.batch.MarkBuried(p.index, p.position, orNoReason(reason))
}

// SettleIn settles the payload alone as done, in a transaction on the store that the job came from:
// see [SettleIn], whose rules and errors apply. The job keeps its other payloads, and they end by
// the handler's outcome. If each other payload is settled or has an outcome of its own, the job
// ends in the transaction. Commit each transaction before you settle the next payload.
func (p *Payload[T]) SettleIn(ctx context.Context, settler ports.Settler) error {
	if isNil(settler) {
		return errNoSettler()
	}
	return execution.SettlePayloadIn(ctx, settler, p.batch, p.index, p.position)
}

// Values returns the values of the payloads, in order.
func (j *Job[T]) Values() []T {
	values := make([]T, len(j.Payloads))
	for i := range j.Payloads {
		values[i] = j.Payloads[i].Value
	}
	return values
}

// Failures returns the last failures of the job, at most five, the newest first. The text of the
// newest is LastError.
//
// They belong to the job, not to its first payload: they stay when its retries begin again, such as
// after a release or after its first payload was done. To act on failures of these retries only, use
// the first Retries of them. Long texts are cut, so equal errors may have different texts.
func (j *Job[T]) Failures() []Failure {
	var list []Failure
	for _, f := range j.batch.Failures(j.index) {
		list = append(list, failureOf(f))
	}
	return list
}

// failureOf returns a stored failure as users see it.
func failureOf(f core.Failure) Failure {
	own := Failure{On: f.Node, Text: f.Text}
	if f.At > 0 {
		own.At = f.At.Time()
	}
	return own
}

// Settle sets the job's outcome, as the error of a handler does: nil is done. The last call counts.
// In a BatchHandler the job keeps this outcome whatever the handler returns. In a JobHandler the
// outcome counts only if the handler returns nil; an error or a panic of the handler takes
// precedence.
func (j *Job[T]) Settle(err error) { j.batch.SetOutcome(j.index, err) }

// Batch is the jobs of one call of a function of [Queue.BatchHandler].
type Batch[T any] struct {
	batch *execution.Batch
	jobs  []*Job[T]
}

// Jobs returns the jobs, in order of (PerformAt, id).
func (b *Batch[T]) Jobs() []*Job[T] { return b.jobs }

// job decodes the payloads of a job, and returns the codec's last error.
func (q *Queue[T]) job(b *execution.Batch, i int) (*Job[T], error) {
	claim := &b.Claims[i]
	j := &Job[T]{
		ID:         claim.ID,
		Payloads:   make([]Payload[T], 0, len(claim.Payloads)),
		PerformAt:  claim.PerformAt.Time(),
		FirstPush:  claim.FirstPush.Time(),
		Retries:    claim.RetryCount + 1,
		Recoveries: claim.Recoveries,
		LastError:  b.LastError(i),
		Tags:       claim.Tags.List(),
		batch:      b,
		index:      i,
	}

	err := q.decodeAll(b, i, func(position int, value T) {
		p := &claim.Payloads[position]
		j.Payloads = append(j.Payloads, Payload[T]{
			Value:    value,
			Score:    p.Score,
			Meta:     p.Meta,
			batch:    b,
			index:    i,
			position: position,
		})
	})

	return j, err
}
