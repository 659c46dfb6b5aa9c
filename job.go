package skein

import (
	"time"

	"github.com/skeinq/skein/internal/engine"
)

// Job is a job as JobHandler and BatchHandler see it. The goroutines of one
// handler may use it together.
type Job[T any] struct {
	// ID is the entity.
	ID string
	// Payloads are in order of score, lowest first, without those that the codec
	// refused, which are buried by themselves, or with RetryUndecodable only those
	// before the first of them.
	Payloads []Payload[T]
	// PerformAt is when the job was due, and FirstPush when the oldest push that
	// merged into it came, by the store's clock.
	PerformAt time.Time
	FirstPush time.Time
	// Retries is how often the job has failed before: 0 at first.
	Retries int
	// Recoveries is how often it has lost the process it ran in since.
	Recoveries int
	// LastError is the text of the last failure, empty if there was none.
	LastError string

	batch *engine.Batch
	index int
}

// Payload is one payload of a Job. By default it shares the outcome of its job;
// Done and Bury give it its own, and the last call counts.
type Payload[T any] struct {
	// Value is what was pushed.
	Value T
	Score float64
	// Meta is what Meta gave the copy that stayed. Read-only.
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

// Values are the payloads' values, in order.
func (j *Job[T]) Values() []T {
	values := make([]T, len(j.Payloads))
	for i := range j.Payloads {
		values[i] = j.Payloads[i].Value
	}
	return values
}

// Settle gives the job its outcome, as a handler's error does: nil is done. The
// last call counts. In a BatchHandler a job that is settled keeps its outcome
// whatever the handler returns. In a JobHandler it counts if the handler returns
// nil: an error or a panic comes before it.
func (j *Job[T]) Settle(err error) { j.batch.SetOutcome(j.index, err) }

// Batch is the jobs of one call of a BatchHandler.
type Batch[T any] struct {
	batch *engine.Batch
	jobs  []*Job[T]
}

// Jobs are the jobs, in order of (PerformAt, id).
func (b *Batch[T]) Jobs() []*Job[T] { return b.jobs }

// job decodes one, and returns the last refusal of the codec.
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
