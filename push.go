package skein

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/guard"
	"github.com/skeinq/skein/ports"
)

// PushOption is an option of one push: [Score], [Meta], [Tags], [At], [In], [Urgent], [OnceIn] or
// [Tell].
type PushOption interface {
	set(e *optioned)
	ScheduleOption
}

// optioned is an entry and the values that its options set.
type optioned struct {
	RawEntry
	tell *Met
	// tags are those of all options Tags.
	tags []string
	// scored is set by Score.
	scored bool
	// urgent is set by Urgent, and timed by At and In.
	urgent, timed bool
	// once is set by OnceIn.
	once bool
}

type pushOption func(*optioned)

func (o pushOption) set(e *optioned) { o(e) }

func (o pushOption) schedule(s *scheduled) { o(&s.optioned) }

// Score sets the payload's place among those of its job: the lowest score is handled first. A
// payload that is pushed after a server has claimed the job runs in a later call, whatever its
// score. Default: the client's time in seconds, so payloads are in order of pushing. Integers are
// exact up to 2^53.
func Score(score float64) PushOption {
	return pushOption(func(e *optioned) { e.Score, e.scored = score, true })
}

// Meta stores at most 256 bytes with the payload, such as a trace context. Meta is not part of the
// payload's identity. When equal payloads merge, the payload that stays keeps its Meta: by
// default the one with the smaller score (see QueueOptions.Merge).
func Meta(meta []byte) PushOption {
	return pushOption(func(e *optioned) { e.Meta = meta })
}

// Tags adds tags to the job: texts that operators find jobs by, such as "import-7" or "vip".
// Package inspect, the dashboard, the HTTP API and the command list jobs and dead letters by tag,
// and act on those that have a tag. Tags belong to the job, not to the payload, and do not change
// when or how it runs. They are gone once the job is done. A dead letter has the tags of its job,
// and a revived job gets them again.
//
// A job has at most 8 tags. When pushes for an id merge, the job has the tags of all of them; of
// more than 8 those stay that are first in the order of their bytes. A push with an empty tag, one
// of more than 64 bytes, that is not UTF-8 or has a control character, or with more than 8 tags, is
// refused with [ErrInvalidTag].
//
// On Postgres a push with tags merges its entries one by one, as in a queue with a merge rule. On
// Redis a turn that claims a job with tags takes two to three times as long for all that it claims.
func Tags(tags ...string) PushOption {
	return pushOption(func(e *optioned) { e.tags = append(e.tags, tags...) })
}

// At sets when a new job may run. If the push merges into a queued job, the payload waits for that
// job's time instead. The zero time means now. A time before 1970, or after 5 June 2255 (2^53 µs),
// is refused with [ErrInvalidTime].
func At(t time.Time) PushOption {
	return pushOption(func(e *optioned) {
		e.When, e.timed = core.When{}, !t.IsZero()
		if e.timed {
			e.When = core.At(instantOf(t))
		}
	})
}

// instantOf returns the time in microseconds, even if no job may have that time. If UnixMicro would
// overflow, instantOf returns the largest or the smallest number.
func instantOf(t time.Time) core.Instant {
	switch seconds := t.Unix(); {
	case seconds > math.MaxInt64/1_000_000-1:
		return math.MaxInt64
	case seconds < math.MinInt64/1_000_000+1:
		return math.MinInt64
	}
	return core.Instant(t.UnixMicro())
}

// In is [At] with the time that is d from now by the store's clock. With a negative d the job is
// due at once, ahead of the jobs that are due now. If the time would be after 5 June 2255 (2^53
// µs), the push is refused with [ErrInvalidTime].
func In(d time.Duration) PushOption {
	return pushOption(func(e *optioned) { e.When, e.timed = core.In(d), true })
}

// Urgent makes the job overtake the jobs of its shard that became due up to d earlier. d is from 1
// ms to 24 hours. A job never waits for urgent jobs that are pushed more than d after it became
// due, so urgent jobs starve no other job. Among shards, the [Lag] scheduler prefers an urgent job
// in the same way.
//
// Urgent pushes the job as if it had been pushed d ago, by the rule [Earliest], whatever the
// queue's PushRule is. So the job of an id is as urgent as its most urgent push, and a queued job
// that waits for a later time, such as that of an earlier [At] or of [Snooze], becomes due. A job
// that has failed keeps the time of its retry, and a held job stays held. If the id's job is
// running, the urgent payload waits until that job ends. If that job fails or is snoozed, its new
// time counts for both. In a queue with [Debounce] the next push that is not urgent postpones the
// job again.
//
// Another d is refused with [ErrInvalidTime], and Urgent together with At or In with
// [ErrInvalidOptions].
func Urgent(d time.Duration) PushOption {
	return pushOption(func(e *optioned) { e.When, e.urgent = core.Urgent(d), true })
}

// OnceIn drops the push if an equal payload was pushed for the id before and its OnceIn has not
// passed yet. It drops deliveries that come twice, such as webhooks, also if the first one is done
// by then, has failed, was deleted, or was superseded by another payload. [Tell] counts them as
// Repeated. A push that is dropped changes nothing, and does not prolong the time.
//
// Payloads are equal if their encoded bytes are; scores, Meta and tags make no difference. d is
// from 1 second to 3,650 days; another one is refused with [ErrInvalidTime]. It counts from the
// push that was accepted, by the store's clock. A push without OnceIn is always accepted, and is
// not remembered.
//
// The store decides in the step that stores the payload, so two pushes at the same time can't both
// be accepted. If a push returns an error of unknown outcome, push again with OnceIn: if the first
// push was stored, the second one is dropped. So a handler that pushes by [Queue.Then] and runs
// again does not push its payload twice. A push in a transaction is decided when it is merged after
// the commit, as if it came at its own time, and can't be told.
//
// For each push that it accepts, the store remembers a hash until the time has passed, with or
// without [Keep]: about 125 bytes on Redis and on Postgres. A push of one payload takes a quarter
// to a half longer. One of a thousand takes twice as long on Redis, and several times as long on
// Postgres, where its entries are merged one by one. An import from another queue or store brings
// nothing of that along.
//
// OnceIn can't be an option of a [Queue.Schedule], whose spec decides when it pushes.
func OnceIn(d time.Duration) PushOption {
	return pushOption(func(e *optioned) { e.OnceIn, e.once = d, true })
}

// Met counts what the entries of a push met in the queue; see [Tell].
type Met struct {
	// New is the number of entries that made a job, because their id had no queued job. One may be
	// running.
	New int
	// Merged is the number of entries that added their payload to a queued job. It may have
	// superseded another payload there.
	Merged int
	// Duplicate is the number of entries whose job already had an equal payload. Its score may have
	// changed.
	Duplicate int
	// Superseded is the number of entries that were dropped, because the queued job has payloads
	// with higher scores and the queue's [MergeRule] keeps only those.
	Superseded int
	// Stale is the number of entries that were dropped, because a payload of their id with at least
	// their score was done, and the queue has [DropStale]. A payload that becomes stale later is
	// dropped too, and not counted here.
	Stale int
	// Repeated is the number of entries that were dropped, because an equal payload was accepted for
	// their id and its [OnceIn] has not passed.
	Repeated int
	// Later is the number of entries with a result that the store does not know yet. The push is
	// part of a transaction ([Client.Via]), and its payloads meet the jobs that are queued after
	// the commit.
	Later int
}

// Tell stores in met what the entries of a push met, once the store has replied. If the push
// returns nil, each entry is counted once. After an error only entries that are known to be stored
// are counted, and perhaps not all of these. If middleware of the client adds, removes or repeats
// entries, those that the store received are counted.
//
// Tell is an option of [Queue.Push] and of [Queue.PushMany]. As an option of one of several entries
// it is refused with [ErrInvalidOptions], and so it is by [Queue.Then], which pushes later.
func Tell(met *Met) PushManyOption {
	return tell{pushOption(func(e *optioned) { e.tell = met }), met}
}

// PushManyOption is an option of a push, which a whole [Queue.PushMany] takes too: [Tell].
type PushManyOption interface {
	PushOption
	ofAll() *Met
}

type tell struct {
	pushOption
	met *Met
}

func (t tell) ofAll() *Met { return t.met }

// add counts the reply to a push of n entries. m may be nil.
func (m *Met) add(r ports.PushReply, n int, err error) {
	if m == nil {
		return
	}
	m.New += r.New
	m.Merged += r.Merged
	m.Duplicate += r.Duplicate
	m.Superseded += r.Superseded
	m.Stale += r.Stale
	m.Repeated += r.Repeated
	if err == nil {
		m.Later += n - r.New - r.Merged - r.Duplicate - r.Superseded - r.Stale - r.Repeated
	}
}

// Entry is one payload for [Queue.PushMany].
type Entry[T any] struct {
	// ID is the id to push the payload for: 1 to 512 bytes of UTF-8 without control characters.
	ID string
	// Payload is the value to push. The queue's Codec encodes it.
	Payload T
	// Options are the options of this entry.
	Options []PushOption
}

// Push stores a payload for an id, in a new job or merged into the queued one. Equal payloads of a
// job are stored once, and by [Every] those that also have equal scores. If the id's job is
// running, the payload waits for the next execution. A push needs no running server.
//
// An error that doesn't match one of this package's errors means that the outcome is unknown.
// Pushing again is safe, but a payload that was handled between the two pushes runs again. By
// [Every] give the payload a [Score] of its own and repeat it: with a default score each push
// counts.
func (q *Queue[T]) Push(ctx context.Context, c *Client, id string, payload T, options ...PushOption) error {
	return q.PushMany(ctx, c, []Entry[T]{{ID: id, Payload: payload, Options: options}})
}

// PushMany stores entries in order, in one call of the store. It is atomic for each 500 entries of
// a shard, or for fewer if they or the jobs that they join exceed 8 MiB. If an entry is invalid,
// nothing is stored. If only some of these parts were stored, or the outcome is unknown, the error
// is a *[PushError]. The option [Tell] counts what the entries met.
func (q *Queue[T]) PushMany(ctx context.Context, c *Client, entries []Entry[T], options ...PushManyOption) error {
	if err := errors.Join(q.check(), c.check()); err != nil {
		return err
	}

	var met *Met
	for i, option := range options {
		if option == nil {
			return fmt.Errorf("%w: option %d of the push is nil", ErrInvalidOptions, i+1)
		}
		met = option.ofAll()
	}
	if met != nil {
		*met = Met{}
	}

	if len(entries) == 0 {
		return nil
	}

	encoded := make([]RawEntry, len(entries))
	c.defaultScores(encoded)
	var e optioned // one for all entries, since options make it escape
	for i := range entries {
		e = optioned{RawEntry: encoded[i]}
		err := q.encode(&e, &entries[i])
		if err == nil && e.tell != nil && len(entries) > 1 {
			err = fmt.Errorf(
				"%w: Tell counts a whole push; give it to PushMany instead of one of the entries",
				ErrInvalidOptions,
			)
		}
		if err != nil {
			return fmt.Errorf("push %d of %d to queue %q: %w", i+1, len(entries), q.name, err)
		}
		encoded[i] = e.RawEntry
	}
	if e.tell != nil {
		met = e.tell
		*met = Met{}
	}

	return c.push(ctx, q.target(), encoded, met)
}

// target returns the queue with the options that a push carries.
func (q *Queue[T]) target() target {
	o := &q.options
	return target{
		name:      q.name,
		shards:    o.Shards,
		indexIDs:  o.IndexIDs,
		merge:     o.Merge,
		rule:      o.PushRule.rule,
		dropStale: o.Stale == DropStale,
	}
}

// encode fills in an entry, whose default score is set.
func (q *Queue[T]) encode(to *optioned, from *Entry[T]) error {
	var data []byte
	err := guard.Call(func() (err error) {
		data, err = q.options.Codec.Encode(from.Payload)
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: encode: %w", ErrInvalidPayload, err)
	}

	if len(data) > q.options.MaxPayloadBytes {
		return fmt.Errorf(
			"%w: it has %d bytes, at most %d are allowed; push a reference to the data, or raise MaxPayloadBytes",
			ErrInvalidPayload, len(data), q.options.MaxPayloadBytes,
		)
	}

	to.ID = from.ID
	to.Data = data
	if q.options.Score != nil {
		err := guard.Call(func() error {
			to.Score = q.options.Score(from.Payload)
			return nil
		})
		if err != nil {
			return fmt.Errorf("%w: QueueOptions.Score: %w", ErrInvalidScore, err)
		}
	}
	if quiet := q.options.PushRule.quiet; quiet > 0 {
		to.When = core.In(quiet)
	}

	for i, option := range from.Options {
		if option == nil {
			return fmt.Errorf("%w: option %d of the push is nil", ErrInvalidOptions, i+1)
		}
		option.set(to)
	}
	if to.urgent && to.timed {
		return fmt.Errorf("%w: Urgent together with At or In; give one of them", ErrInvalidOptions)
	}
	if to.once && to.OnceIn == 0 {
		return fmt.Errorf("%w: OnceIn of 0; give %v to %v, or leave it out", ErrInvalidTime, core.MinOnce, core.MaxOnce)
	}
	if len(to.tags) > 0 {
		if to.Tags, err = core.NewTags(to.tags...); err != nil {
			return err
		}
	}

	to.Score = core.NormalScore(to.Score)
	checked := to.RawEntry
	if d := to.When.Delay(); d > 0 && !to.When.Urgent() {
		checked.When = core.At(instantOf(time.Now().Add(d)))
	}
	return checked.Validate()
}
