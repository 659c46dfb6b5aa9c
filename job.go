package skein

import (
	"time"

	"github.com/skeinq/skein/internal/engine"
)

// Job is a job as [Queue.JobHandler] and [Queue.BatchHandler] see it. The goroutines
// of one handler may use it together.
type Job[T any] struct {
	// ID is the entity.
	ID string
	// Payloads are in order of score, lowest first. Those that the codec can't decode
	// are left out and buried by themselves; with [RetryUndecodable], those after the
	// first of them are left out as well.
	Payloads []Payload[T]
	// PerformAt is when the job was due, and FirstPush when the oldest push that
	// merged into it came, by the store's clock, which may differ from this process's,
	// and in package skeintest does.
	PerformAt time.Time
	FirstPush time.Time
	// Retries is how often the job has failed before: 0 at first.
	Retries int
	// Recoveries is how often it has lost the process it ran in since it last ended.
	Recoveries int
	// LastError is the text of the last failure, empty if there was none.
	LastError string

	batch *engine.Batch
	index int
}

// Payload is one payload of a [Job]. By default it shares the outcome of its job;
// Done and Bury set one of its own, and the last call counts.
type Payload[T any] struct {
	// Value is what was pushed.
	Value T
	Score float64
	// Meta is that of the push; of merged pushes, of the one with the lowest score.
	// Read-only.
	Meta []byte

	batch           *engine.Batch
	index, position int
}

// Done marks the payload as done, also if its job fails.
func (p *Payload[T]) Done() { p.batch.MarkDone(p.index, p.position) }

// Bury sends the payload to the morgue with the reason, also if its job is done.
func (p *Payload[T]) Bury(reason error) {
	p.batch.MarkBuried(p.index, p.position, orNoReason(reason))
}

// Values returns the payloads' values, in order.
func (j *Job[T]) Values() []T {
	values := make([]T, len(j.Payloads))
	for i := range j.Payloads {
		values[i] = j.Payloads[i].Value
	}
	return values
}

// Settle sets the job's outcome, as a handler's error does: nil is done. The last
// call counts. In a BatchHandler the job keeps this outcome whatever the handler
// returns. In a JobHandler it counts if the handler returns nil: an error or a panic
// comes before it.
func (j *Job[T]) Settle(err error) { j.batch.SetOutcome(j.index, err) }

// Batch has the jobs of one call of a [Queue.BatchHandler].
type Batch[T any] struct {
	batch *engine.Batch
	jobs  []*Job[T]
}

// Jobs returns the jobs, in order of (PerformAt, id).
func (b *Batch[T]) Jobs() []*Job[T] { return b.jobs }

// job decodes the payloads of a job, and returns the codec's last error.
func (q *Queue[T]) job(b *engine.Batch, i int) (*Job[T], error) {
	claim := &b.Claims[i]
	j := &Job[T]{
		ID:         claim.ID,
		Payloads:   make([]Payload[T], 0, len(claim.Payloads)),
		PerformAt:  claim.PerformAt.Time(),
		FirstPush:  claim.FirstPush.Time(),
		Retries:    claim.RetryCount + 1,
		Recoveries: claim.Recoveries,
		LastError:  b.LastError(i),
		batch:      b,
		index:      i,
	}
	err := q.decodeAll(b, i, func(position int, value T) {
		p := &claim.Payloads[position]
		j.Payloads = append(j.Payloads, Payload[T]{
			Value: value, Score: p.Score, Meta: p.Meta, batch: b, index: i, position: position,
		})
	})
	return j, err
}
