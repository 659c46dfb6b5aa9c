package skein

import (
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/ports"
)

// Defaults of a queue (docs/rules.md 3 and 4).
const (
	DefaultShards        = 5
	DefaultBatchSize     = 1
	DefaultMaxRetries    = 25
	DefaultMaxRecoveries = 3

	// NoRetries is -1. As MaxRetries it means that jobs run once. As MaxRecoveries it means that
	// Exhausted applies when the process of a job dies for the first time.
	NoRetries = -1
)

// DefaultBackoff returns the default wait before a retry; the first retry is number 0. The wait is
// 15 s to 44 s at first, and about 20 days in all for 25 retries. A queue's own Backoff may build
// on it. DefaultBackoff draws its own jitter, in tests too. Package skeintest uses no jitter for a
// queue without a Backoff.
func DefaultBackoff(retry int) time.Duration {
	return core.DefaultBackoff(retry, mathrand.IntN(core.BackoffJitter))
}

// QueueOptions are the options of a queue. The zero value of each field means its default. Pushers
// and servers must agree on Shards, IndexIDs, Merge and Codec. Pushers use Score, PushRule and
// MaxPayloadBytes. Servers use the other options. A server also reads PushRule, to warn about
// [Await] in a queue whose pushes don't run waiting jobs.
type QueueOptions[T any] struct {
	// What pushers and servers must agree on.

	// Shards is the number of the queue's partitions, 1 to 16384. At most that many servers can
	// work on the queue at once. The number is permanent: the store refuses another one. Default 5.
	Shards int
	// IndexIDs lets package inspect list all queued jobs by id. The index costs memory. The option
	// is permanent. Default false.
	IndexIDs bool
	// Merge decides what stays when payloads of an id meet: [Union], [Newest], [Latest] or [Every].
	// The store refuses another rule with [ErrQueueMismatch], until Inspector.SetMerge of package
	// inspect changes the queue's. Invalid rules are [ErrInvalidQueue]. Default: Union (docs/rules.md
	// 2).
	Merge MergeRule
	// Codec encodes and decodes payloads. Default [JSONCodec].
	Codec Codec[T]

	// What pushers use.

	// Score returns the score of a payload, for pushes without the option [Score]. Default: the
	// client's time, so payloads are in order of pushing.
	Score func(payload T) float64
	// PushRule decides the time of a queued job when a push merges into it. It applies only to jobs
	// that have not failed. Default: the queued job's time is kept. See [Earliest] and [Debounce];
	// Debounce also decides when a push without [At], [In] and [Urgent] is due.
	PushRule PushRule
	// MaxPayloadBytes is the maximum size of an encoded payload. A longer one is refused with
	// [ErrInvalidPayload]. Default 512 KiB.
	MaxPayloadBytes int

	// What servers use.

	// BatchSize is the maximum number of jobs in one batch, 1 to 256. Default 1.
	BatchSize int
	// Parallel is the maximum number of batches that a server runs at once of one shard of the
	// queue, on different ids. Default 0: as many as there are lanes, if the [Splitter] lets lanes
	// share shards. With 1, the batches of a shard run one after another, as in Lowkiq, so handlers
	// may share state between the ids of a shard.
	Parallel int
	// MaxLanes is the maximum number of lanes of a server that run batches of this queue at once.
	// It leaves lanes to other queues when jobs are slow, and limits the load on a downstream
	// service. Default 0: all lanes.
	MaxLanes int
	// MaxRunning is the maximum number of batches of this queue that all servers together run at
	// once, up to 1,048,576. It is for a downstream service with a concurrency limit.
	//
	// The store counts permits, and a server runs no more batches than it holds permits. Servers
	// with work share the permits evenly. An unused permit goes to another server within a
	// PollInterval. The permits of a server that died are free after its LeaseTTL. If the store
	// does not answer for four fifths of the LeaseTTL, the queue's handlers are cancelled with
	// [ErrLeaseLost].
	//
	// All servers should have the same MaxRunning. While they differ, as during a deployment, no
	// server gets a permit beyond its own number, and no permit in use is taken away. Default 0: no
	// limit.
	MaxRunning int
	// Rate is the maximum rate at which batches of this queue start over all servers: at most Count in
	// Per, evenly spread, and Burst more at once. With the default BatchSize a batch is one job. It is
	// for a downstream service that limits its calls; a handler that meets that limit returns
	// [SlowDown].
	//
	// The store counts the starts, so the Rate holds whatever servers do, also while they crash: then
	// some starts are lost. On an idle queue a job waits for one more exchange with the store. A
	// batch needs its permit of MaxRunning first. If the store does not answer, nothing starts. All
	// servers should have the same Rate. Default: no limit.
	Rate Rate
	// RateBy returns the key of a job's rate, such as its tenant or the host that it calls, and the
	// maximum rate at which jobs of that key start over all servers. It gets the job's id and its
	// first payload. Jobs over their rate do not block others: a job gets a slot of its key, and is
	// put back until then. Until it runs, it keeps that time, whatever is pushed for its id. [Rate]
	// holds too, if both are set. With an empty key a job has no other limit.
	//
	// RateBy is called for each job that a server claims, and must be safe for concurrent use. All
	// servers should return the same rate for a key. If RateBy panics or returns a Rate that is not
	// valid, that is logged, and the job waits for a minute. A claim costs one more exchange with
	// the store. docs/guide/fairness.md has an example. Default nil: no rates by key.
	RateBy func(id string, first T) (key string, rate Rate)
	// MorgueAge is how long a dead letter is kept after its last change, and MorgueCount is how many
	// dead letters of the queue are kept. The servers of the queue remove others, the oldest first, so
	// what awaits their revival continues. Each shard keeps an equal part of MorgueCount, rounded up.
	// Nothing is removed in the first ten minutes of a server. MorgueAge is at least a minute, and at
	// most ten years. Default 0: dead letters are kept until somebody removes them.
	MorgueAge   time.Duration
	MorgueCount int64
	// Keep is how long, and at most how many, records are kept of jobs that are done: of each id the
	// last one, with when, for how long and by which server it ran, and with the result of
	// [SetResult]. Package inspect lists them. Bytes bounds the results. Each shard keeps an equal
	// part of Count and Bytes, rounded up. A record costs a server's turn about 3 µs on Redis.
	// Default: no records are kept.
	Keep Keep
	// Stale is what becomes of a payload that is stale: whose score is at or below the highest score
	// of its id that was done. [DropStale] drops it, and counts it, before a handler sees it. It is for
	// payloads that are versions of an id's state: a repeated or late push of an older version does not
	// run again. It needs the merge rule [Latest] or [Newest], a Score, and Keep, since the records
	// have the scores that were done. Beyond Keep nothing is stale. Pushers and servers should agree: a
	// pusher that does not drop stale payloads leaves that to the server. Default [TakeStale].
	Stale Stale
	// MaxPayloads is the maximum number of payloads of one job that a handler is called with, 1 to
	// 1000. The lowest scores come first, and the rest follows in the next execution. Default 1000.
	MaxPayloads int
	// MaxRetries is the number of retries of a job before Exhausted applies to it. 2 means three
	// executions, and [NoRetries] means one. Default 25, about 20 days with the default backoff.
	MaxRetries int
	// MaxRecoveries is the number of times that a job may lose its process before Exhausted applies
	// to it. [NoRetries] allows none. Default 3.
	MaxRecoveries int
	// Exhausted is the treatment of a job that has used up its MaxRetries or its MaxRecoveries:
	// [BuryFirst] or [Hold]. All servers should have the same; a server applies its own. Default
	// BuryFirst.
	Exhausted Exhaustion
	// Backoff returns the wait before a retry; the first retry is number 0. It is called once per
	// failure and must be safe for concurrent use. If it panics, the panic is logged and the
	// default wait is used. Default [DefaultBackoff].
	Backoff func(retry int) time.Duration
	// Timeout ends the context of a handler that takes longer. It applies to each payload with
	// Each, to the whole call of a BatchHandler, and otherwise to each job. The context's cause is
	// then [ErrTimeout], and its Err is [context.DeadlineExceeded]. A handler that continues after
	// that is not stopped, and its result counts, even if it is nil. The push that [Queue.Then]
	// makes after a handler has the same time again. Default 0: no timeout.
	Timeout time.Duration
	// Undecodable is the treatment of a payload that the Codec can't decode. Default
	// [BuryUndecodable].
	Undecodable UndecodableRule
}

// Rate limits starts: at most Count in Per, and Burst more at once (docs/rules.md 12). The zero value
// is no limit.
type Rate = core.Rate

// Stale is what becomes of stale payloads (docs/rules.md 16): [TakeStale] or [DropStale].
type Stale = core.Stale

const (
	// TakeStale handles stale payloads like any others.
	TakeStale = core.TakeStale
	// DropStale drops them.
	DropStale = core.DropStale
)

// Keep bounds the records of done jobs that a queue keeps: an Age of at least a minute, and for
// Count and Bytes 0 for no limit (docs/rules.md 14). The zero value keeps none.
type Keep = core.KeepPast

// Exhaustion is the treatment of a job that has used up its retries or its recoveries
// (docs/rules.md 3). The zero value is [BuryFirst].
type Exhaustion = core.Exhaustion

const (
	// BuryFirst sends the job's first payload to the morgue and continues with its others.
	BuryFirst = core.BuryFirst
	// Hold keeps the job queued and held, with its error, so that none of its payloads is skipped.
	// A held job never runs by itself. Payloads that are pushed for its id wait behind it. An
	// operator releases it, with all its retries anew, or buries or deletes its first payload, and
	// the job continues with the others; see the methods Release, BuryFirst and DeleteFirst of
	// inspect.Inspector. [Bury] and [BuryUndecodable] still bury. ServerOptions.OnBuried is not
	// called for a hold.
	Hold = core.Hold
)

// MergeRule decides what stays when payloads of an id meet: at a push, when a job is put back or
// recovered, at a revive, and in the morgue. What stays does not depend on their order. The zero
// value is [Union]. The method Last(n) of [Newest] and [Every] keeps only the n payloads with the
// highest scores: see core.MergeRule.
type MergeRule = core.MergeRule

// Union returns the [MergeRule] that keeps all payloads. Equal bytes are one payload, with the
// smaller of their scores. It is the default.
func Union() MergeRule { return MergeRule{} }

// Newest returns the [MergeRule] that keeps all payloads. Equal bytes are one payload, with the
// larger of their scores. Pushes of a, b and a again run as b, a: the last push is handled last. It
// suits payloads that each set a part of a state. It drops no payload for a different one: to keep
// only the newest state use [Latest].
func Newest() MergeRule { return MergeRule{Stays: core.Highest} }

// Latest returns the [MergeRule] that keeps the n payloads with the highest scores, 1 to 1000.
// Lower ones are superseded: they are dropped and counted. It suits payloads that each hold a whole
// state. Give such a queue a Score, such as a version: default scores are the client's clock, so of
// two clients with different clocks an older payload may stay.
func Latest(n int) MergeRule { return Newest().Last(n) }

// Every returns the [MergeRule] by which each push counts: payloads with equal bytes and different
// scores are different payloads. Pushes of a, b and a again run as a, b, a. It suits payloads that
// are counted, such as "+5". Payloads with equal bytes and equal scores are one, so a push whose
// outcome was unknown can be repeated with its score. Default scores of one client always differ,
// but two clients that push equal bytes in the same microsecond push one payload: where both must
// count, put something that differs into the payload, such as the id of an event.
// Every().Last(n) keeps only the n payloads with the highest scores, 1 to 1000, as [Latest] does.
func Every() MergeRule { return MergeRule{Same: core.SamePush} }

// PushRule decides the time of a queued job when a push merges into it (docs/rules.md 2). Make it
// with [Earliest] or [Debounce]. The zero value keeps the queued job's time. A job in backoff
// always keeps its time.
type PushRule struct {
	rule core.PushRule
	// quiet is the delay of a push without a time of its own.
	quiet time.Duration
}

// Earliest returns the [PushRule] that uses the earlier of the two times.
func Earliest() PushRule { return PushRule{rule: core.PushRule{Kind: core.Earliest}} }

// Debounce returns the [PushRule] that runs a job when nothing was pushed for its id for the time
// quiet, and at the latest limit after the first push. A push without [At], [In] and [Urgent] is
// due after quiet. A push with At or In delays the job to its own time instead. A push whose
// payload is a duplicate or superseded counts too. With quiet 0, all pushes need a time of their
// own. A limit of 0 means one minute. The queue is invalid if quiet or limit is negative, or if
// quiet exceeds the limit.
func Debounce(quiet, limit time.Duration) PushRule {
	return PushRule{rule: core.PushRule{Kind: core.Debounce, Limit: limit}, quiet: quiet}
}

// check returns the error of a rule that can't be used, or nil.
func (r PushRule) check() error {
	switch err := r.rule.Validate(); {
	case err != nil:
		return err
	case r.quiet < 0:
		return fmt.Errorf("%w: Debounce: quiet %v is negative", core.ErrInvalidRule, r.quiet)
	case r.quiet > 0 && r.quiet > r.rule.MaxDelay():
		return fmt.Errorf(
			"%w: Debounce: quiet %v exceeds the limit %v, so no push would delay a job; give a longer limit",
			core.ErrInvalidRule, r.quiet, r.rule.MaxDelay(),
		)
	}
	return nil
}

// Queue is a named stream of jobs whose payloads are of type T. Make it once with [NewQueue], as a
// value that pushers and handlers share. It is safe for concurrent use.
type Queue[T any] struct {
	name    string
	options QueueOptions[T]
	err     error
}

// NewQueue returns a queue. It contacts no store and never fails. If the name or an option is
// invalid, every push and Run return [ErrInvalidQueue].
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

// Codec returns the codec of the queue's payloads, for programs that read stored payloads, such as
// tests with skeintest.AssertDecodes.
func (q *Queue[T]) Codec() Codec[T] {
	if q == nil {
		return nil
	}
	return q.options.Codec
}

// check returns an error that states what is wrong with the queue, or nil.
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
		"BatchSize %d; give 1 to %d", o.BatchSize, core.MaxTurnJobs)
	refuse(o.Parallel < 0, "Parallel %d is negative; 0 means no limit", o.Parallel)
	refuse(o.MaxLanes < 0, "MaxLanes %d is negative; 0 means no limit", o.MaxLanes)
	refuse(o.MaxRunning < 0 || o.MaxRunning > ports.MaxPermits,
		"MaxRunning %d; give 1 to %d, or 0 for no limit", o.MaxRunning, ports.MaxPermits)
	_, err := core.ParseSetting(core.SettingMorgueAge, o.MorgueAge.String())
	refuse(err != nil, "MorgueAge: %v", err)
	_, err = core.ParseSetting(core.SettingMorgueCount, strconv.FormatInt(o.MorgueCount, 10))
	refuse(err != nil, "MorgueCount: %v", err)
	if err := o.Rate.Validate(); err != nil {
		refuse(true, "Rate: %v", err)
	}
	if err := o.Keep.Validate(); err != nil {
		refuse(true, "Keep: %v", err)
	}
	if err := o.Stale.Validate(o.Merge, o.Keep); err != nil {
		refuse(true, "Stale: %v", err)
	}
	refuse(o.Stale == DropStale && o.Score == nil,
		"Stale: DropStale needs a Score, such as a version; by default the score is the client's time")
	refuse(o.MaxRetries < NoRetries, "MaxRetries %d; use NoRetries for no retries", o.MaxRetries)
	refuse(o.MaxRecoveries < NoRetries, "MaxRecoveries %d; use NoRetries for no recoveries", o.MaxRecoveries)
	refuse(o.MaxPayloads < 1 || o.MaxPayloads > core.MaxTurnPayloads,
		"MaxPayloads %d; give 1 to %d", o.MaxPayloads, core.MaxTurnPayloads)
	refuse(o.Timeout < 0, "Timeout %v is negative", o.Timeout)

	if err := o.PushRule.check(); err != nil {
		refuse(true, "PushRule: %v", err)
	}
	if err := o.Merge.Validate(); err != nil {
		refuse(true, "Merge: %v", err)
	}

	refuse(o.Exhausted > Hold, "Exhausted %d; use BuryFirst or Hold", o.Exhausted)
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
		Rate:       o.Rate,
		Keep:       core.Retention{Age: o.MorgueAge, Count: o.MorgueCount},
		Past:       o.Keep,
		PerJob:     o.MaxPayloads,
		Bytes:      core.DefaultTurnBytes,
		Queue: execution.Queue{
			Policy: core.RetryPolicy{
				MaxRetries:    max(0, o.MaxRetries),
				MaxRecoveries: max(0, o.MaxRecoveries),
				Exhausted:     o.Exhausted,
			},
			Records:   o.Keep.Any(),
			DropStale: o.Stale == DropStale,
			Merge:     o.Merge,
			Earliest:  o.PushRule.rule.Kind == core.Earliest,
		},
	}

	if o.RateBy != nil {
		served.KeyOf = q.keyOf
	}
	if o.Backoff != nil {
		served.Policy.Backoff = func(retry, _ int) time.Duration { return o.Backoff(retry) }
	}

	return served
}

// keyOf returns the key and the rate of a job. One whose first payload can't be decoded has none: it
// only fails, or its payload is buried.
func (q *Queue[T]) keyOf(c *core.Claim) (key string, rate Rate) {
	first, err := q.decode(c.Payloads[0])
	if err != nil {
		return "", Rate{}
	}
	return q.options.RateBy(c.ID, first)
}

// orDefault sets *v to fallback if it is zero.
func orDefault[V int | time.Duration](v *V, fallback V) {
	if *v == 0 {
		*v = fallback
	}
}
