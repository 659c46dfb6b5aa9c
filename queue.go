package skein

import (
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// Defaults of a queue (docs/rules.md 3 and 4).
const (
	DefaultShards        = 5
	DefaultBatchSize     = 1
	DefaultMaxRetries    = 25
	DefaultMaxRecoveries = 3

	// NoRetries is the MaxRetries of a queue whose jobs run once, and the
	// MaxRecoveries of one whose jobs go to the morgue when their process dies.
	NoRetries = -1
)

// DefaultBackoff returns the default wait before a retry, of which the first is 0:
// 15 s to 44 s at first, about 20 days in all for 25 retries. A queue's own Backoff may
// build on it. It draws its jitter itself, also in tests, where the waits of a queue
// without a Backoff have none.
func DefaultBackoff(retry int) time.Duration {
	return core.DefaultBackoff(retry, mathrand.IntN(core.BackoffJitter))
}

// QueueOptions are the options of a queue. The zero value of each is its default.
// Pushers and servers must agree on Shards, IndexIDs and Codec. Score, PushRule and
// MaxPayloadBytes are for those who push, and the rest is for servers.
type QueueOptions[T any] struct {
	// What pushers and servers must agree on.

	// Shards is how many partitions the queue has, 1 to 16384: so many servers can
	// work it at once. It is permanent: the store refuses another count. Default 5.
	Shards int
	// IndexIDs lets package inspect list all queued jobs by id, at a cost in memory.
	// It is permanent.
	IndexIDs bool
	// Codec encodes payloads. Default [JSONCodec].
	Codec Codec[T]

	// What pushers use.

	// Score returns a payload's score, for pushes without a [Score] of their own.
	// Default: the client's time, so payloads are in order of pushing.
	Score func(payload T) float64
	// PushRule is what becomes of the time of a queued job that has not failed when
	// a push merges into it. Default: it stays. See [Earliest] and [Debounce].
	PushRule PushRule
	// MaxPayloadBytes is the longest encoded payload that a push accepts. Default
	// 512 KiB.
	MaxPayloadBytes int

	// What servers use.

	// BatchSize is how many ids are worked in one batch, 1 to 256. Default 1.
	BatchSize int
	// Parallel is how many batches of one shard of the queue run at once on a server, on
	// different ids. Default 0: as many as there are lanes, where the [Splitter] lets
	// lanes share shards. With 1 the batches of a shard run one after another, as in
	// Lowkiq, which those who share state between the ids of a shard may rely on.
	Parallel int
	// MaxLanes is how many lanes of a server run batches of this queue at once, so that
	// slow jobs leave lanes to other queues, or spare what they call. Default 0: all
	// lanes.
	MaxLanes int
	// MaxRunning is how many batches of this queue run at once on all servers together, at
	// most 1,048,576, for what bears so many calls and no more. The store counts permits: a server runs no more
	// batches than it holds permits, servers with work share them evenly, and what one does
	// not use another has within a PollInterval; those of a server that died are free
	// after its LeaseTTL. If the store does not answer for four fifths of that, the
	// handlers of the queue are cancelled with [ErrLeaseLost]. Servers should agree on the
	// number; while they differ, as during a deployment, nobody gets a permit beyond its own
	// number, and none that is in use is taken away. Default 0: no bound.
	MaxRunning int
	// MaxPayloads is how many payloads of an id a handler is called with at once,
	// the lowest scores first, 1 to 1000. The rest follows in the next execution.
	// Default 1000.
	MaxPayloads int
	// MaxRetries is how often a job is retried before its first payload goes to
	// the morgue. Default 25, about 20 days with the default backoff. [NoRetries]
	// means one execution.
	MaxRetries int
	// MaxRecoveries is how often a job may lose the process it runs in before its
	// first payload goes to the morgue. Default 3. [NoRetries] allows none.
	MaxRecoveries int
	// Backoff returns the wait before a retry, of which the first is 0. It is called
	// once for each failure, and must be safe for concurrent use. If it panics, the
	// wait is the default one, and the log says so. Default [DefaultBackoff].
	Backoff func(retry int) time.Duration
	// Timeout ends the context of a handler that takes longer: for one id, or for
	// the whole call of a BatchHandler, or for one payload with Each. The context's
	// cause is [ErrTimeout]; its Err is [context.DeadlineExceeded]. A handler that
	// goes on after it is not stopped, and what it returns counts, also nil. Default:
	// none.
	Timeout time.Duration
	// Undecodable is what becomes of a payload that the Codec can't decode. Default
	// [BuryUndecodable].
	Undecodable UndecodableRule
}

// PushRule is what becomes of the time of a queued job when a push merges into it.
// The zero value lets it stay. A job in backoff always keeps its time.
type PushRule = core.PushRule

// Earliest returns the [PushRule] by which the sooner of both times counts.
func Earliest() PushRule { return PushRule{Kind: core.Earliest} }

// Debounce returns the [PushRule] by which each push puts the job off to its own
// time, but never by more than the limit after the first push. With pushes In(5 s) a job
// runs when nothing was pushed for its id for 5 s. A limit of 0 is a minute.
func Debounce(limit time.Duration) PushRule {
	return PushRule{Kind: core.Debounce, Limit: limit}
}

// Queue is a named stream of jobs whose payloads are of type T. Make it with
// [NewQueue], once, as a value that pushers and handlers share. It is safe for
// concurrent use.
type Queue[T any] struct {
	name    string
	options QueueOptions[T]
	err     error
}

// NewQueue describes a queue. It contacts no store, and never fails: every push and
// Run return [ErrInvalidQueue] for an invalid name or invalid options.
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

// Name returns the queue's name.
func (q *Queue[T]) Name() string {
	if q == nil {
		return ""
	}
	return q.name
}

// check returns what is wrong with the queue, or nil.
func (q *Queue[T]) check() error {
	if q == nil || q.options.Codec == nil {
		return fmt.Errorf("%w: it is empty; make it with NewQueue", ErrInvalidQueue)
	}
	return q.err
}

// check returns all mistakes in one error.
func (o *QueueOptions[T]) check(name string) error {
	errs := []error{core.ValidateQueue(name, o.Shards)}
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("%w: %q: "+format, append([]any{ErrInvalidQueue, name}, args...)...))
		}
	}
	refuse(o.BatchSize < 1 || o.BatchSize > core.MaxTurnJobs,
		"BatchSize %d; 1 to %d are possible", o.BatchSize, core.MaxTurnJobs)
	refuse(o.Parallel < 0, "Parallel %d is negative; 0 is no bound", o.Parallel)
	refuse(o.MaxLanes < 0, "MaxLanes %d is negative; 0 is no bound", o.MaxLanes)
	refuse(o.MaxRunning < 0 || o.MaxRunning > ports.MaxPermits,
		"MaxRunning %d; 1 to %d are possible, 0 is no bound", o.MaxRunning, ports.MaxPermits)
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

// serve returns the queue as the engine runs it.
func (q *Queue[T]) serve() *engine.Queue {
	o := &q.options
	served := &engine.Queue{
		Name:       q.name,
		Shards:     o.Shards,
		IndexIDs:   o.IndexIDs,
		BatchSize:  o.BatchSize,
		Parallel:   o.Parallel,
		MaxLanes:   o.MaxLanes,
		MaxRunning: o.MaxRunning,
		PerJob:     o.MaxPayloads,
		Bytes:      core.DefaultTurnBytes,
		Policy:     core.RetryPolicy{MaxRetries: max(0, o.MaxRetries), MaxRecoveries: max(0, o.MaxRecoveries)},
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
