package skein

import (
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
)

// Defaults of a queue (RULES 3 and 4).
const (
	DefaultShards        = 5
	DefaultBatchSize     = 1
	DefaultMaxRetries    = 25
	DefaultMaxRecoveries = 3
)

// NoRetries is the MaxRetries of a queue whose jobs run once, and the
// MaxRecoveries of one whose jobs go to the morgue when their process dies.
const NoRetries = -1

// QueueOptions are the options of a queue. 0 is the default everywhere.
type QueueOptions[T any] struct {
	// Shards is in how many partitions the queue is worked, 1 to 16384: so many
	// batches of it can run at once. It is permanent: the store refuses another
	// count. Default 5.
	Shards int
	// BatchSize is how many ids a handler is given at once, 1 to 256. Default 1.
	BatchSize int
	// MaxRetries is how often a job is retried before its first payload goes to
	// the morgue. Default 25, about 20 days with the default backoff. NoRetries
	// is one execution.
	MaxRetries int
	// MaxRecoveries is how often a job may lose the process it runs in before its
	// first payload goes to the morgue. Default 3. NoRetries is none.
	MaxRecoveries int
	// Backoff is the wait before a retry, of which the first is 0. It is asked once
	// for each failure, and must be safe for concurrent use. If it panics, the wait
	// is the default one, and the log says so. Default core.DefaultBackoff.
	Backoff func(retry int) time.Duration
	// MaxPayloads is how many payloads of an id a handler is given at once, the
	// lowest scores first, 1 to 1000. The rest follows in the next execution.
	// Default 1000.
	MaxPayloads int
	// MaxPayloadBytes is the longest payload that a push accepts. Default
	// 512 KiB.
	MaxPayloadBytes int
	// IndexIDs lets an inspector list all queued jobs by id, at a cost in memory.
	// It is permanent.
	IndexIDs bool
	// PushRule is how a push meets a queued job that has not failed. Default: the
	// queued job keeps its time. See Earliest and Debounce.
	PushRule PushRule
	// Score takes a payload's score from the payload, for pushes without a Score
	// of their own. Default: the client's time, so the order of pushing.
	Score func(payload T) float64
	// Timeout ends the context of a handler that takes longer, for one id, or for
	// the whole call of a BatchHandler, or for one payload with Each. The context's
	// cause is ErrTimeout; its Err is context.DeadlineExceeded. A handler that goes
	// on after it is not stopped, and what it returns counts, also nil. Default: none.
	Timeout time.Duration
	// Codec encodes payloads. Default JSON.
	Codec Codec[T]
	// Undecodable is what becomes of a payload that the Codec refuses. Default
	// BuryUndecodable.
	Undecodable UndecodableRule
}

// PushRule is how a push meets a queued job that has not failed; a job in backoff
// always keeps its time. The zero value lets the queued job keep its time.
type PushRule = core.PushRule

// Earliest is the PushRule by which the sooner of both times wins.
func Earliest() PushRule { return PushRule{Kind: core.Earliest} }

// Debounce is the PushRule by which each push puts the job off to its own time,
// but never by more than the limit after the first push. With pushes In(5 s) a job
// runs when its id has been quiet for 5 s. A limit of 0 is a minute.
func Debounce(limit time.Duration) PushRule {
	return PushRule{Kind: core.Debounce, Limit: limit}
}

// Queue is a named stream of jobs whose payloads are of type T. Make it with
// NewQueue, once, where both pushers and handlers see it. It is safe for
// concurrent use.
type Queue[T any] struct {
	name    string
	options QueueOptions[T]
	err     error
}

// NewQueue describes a queue. It reaches for no store, and never fails: options
// that can't be come as ErrInvalidQueue from every push and from Run.
//
// The name is 1 to 128 ASCII letters, digits and "_-.:".
func NewQueue[T any](name string, options QueueOptions[T]) *Queue[T] {
	o := options
	orDefault(&o.Shards, DefaultShards)
	orDefault(&o.BatchSize, DefaultBatchSize)
	orDefault(&o.MaxRetries, DefaultMaxRetries)
	orDefault(&o.MaxRecoveries, DefaultMaxRecoveries)
	orDefault(&o.MaxPayloads, core.MaxTurnPayloads)
	orDefault(&o.MaxPayloadBytes, core.DefaultMaxPayloadBytes)
	if o.Codec == nil {
		o.Codec = JSONCodec[T]{}
	}
	return &Queue[T]{name: name, options: o, err: o.check(name)}
}

// Name is the queue's name.
func (q *Queue[T]) Name() string {
	if q == nil {
		return ""
	}
	return q.name
}

// check finds what is wrong with the queue.
func (q *Queue[T]) check() error {
	if q == nil || q.options.Codec == nil {
		return fmt.Errorf("%w: it is empty; make it with NewQueue", ErrInvalidQueue)
	}
	return q.err
}

// check finds all mistakes at once.
func (o *QueueOptions[T]) check(name string) error {
	errs := []error{core.ValidateQueue(name, o.Shards)}
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("%w: %q: "+format, append([]any{ErrInvalidQueue, name}, args...)...))
		}
	}
	refuse(o.BatchSize < 1 || o.BatchSize > core.MaxTurnJobs,
		"BatchSize %d; 1 to %d are possible", o.BatchSize, core.MaxTurnJobs)
	refuse(o.MaxRetries < NoRetries, "MaxRetries %d; for none use NoRetries", o.MaxRetries)
	refuse(o.MaxRecoveries < NoRetries, "MaxRecoveries %d; for none use NoRetries", o.MaxRecoveries)
	refuse(o.MaxPayloads < 1 || o.MaxPayloads > core.MaxTurnPayloads,
		"MaxPayloads %d; 1 to %d are possible", o.MaxPayloads, core.MaxTurnPayloads)
	refuse(o.Timeout < 0, "Timeout %v is negative", o.Timeout)
	if err := o.PushRule.Validate(); err != nil {
		refuse(true, "PushRule: %v", err)
	}
	refuse(o.Undecodable > RetryUndecodable, "Undecodable %d; use BuryUndecodable or RetryUndecodable", o.Undecodable)
	refuse(o.MaxPayloadBytes < 0, "MaxPayloadBytes %d is negative", o.MaxPayloadBytes)
	return errors.Join(errs...)
}

// serve is the queue as the engine runs it.
func (q *Queue[T]) serve() *engine.Queue {
	o := &q.options
	served := &engine.Queue{
		Name:      q.name,
		Shards:    o.Shards,
		IndexIDs:  o.IndexIDs,
		BatchSize: o.BatchSize,
		PerJob:    o.MaxPayloads,
		Bytes:     core.DefaultTurnBytes,
		Policy:    core.RetryPolicy{MaxRetries: max(0, o.MaxRetries), MaxRecoveries: max(0, o.MaxRecoveries)},
	}
	if o.Backoff != nil {
		served.Policy.Backoff = func(retry, _ int) time.Duration { return o.Backoff(retry) }
	}
	return served
}

// orDefault replaces a zero.
func orDefault[V int | time.Duration](v *V, fallback V) {
	if *v == 0 {
		*v = fallback
	}
}
