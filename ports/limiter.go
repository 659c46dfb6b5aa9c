package ports

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
)

// Limits of a [TakeRequest].
const (
	// MaxTakes is the maximum number of takes of a request.
	MaxTakes = 1000
	// MaxWant is the largest sum of Want and Use of a take.
	MaxWant = 1 << 20
	// MaxLimiterKey is the maximum size of the key of a limiter in bytes.
	MaxLimiterKey = 512
)

// Limiter limits the starts of jobs over all servers by rates (docs/rules.md 12). A grant is the
// right to start one job, and its slot is the time from which it holds. Grants are counted by
// limiters: one for each key of a queue, and one with the empty key for the whole queue. A limiter
// needs no declaration.
//
// Each method is linearizable for each limiter, also for a key that other calls remove. A store
// keeps limiters as durably as jobs: if its server crashes, it forgets no grant that it has
// replied. By each call of Take and Stop the store removes limiters of the queue that are
// core.Limiter.Gone, in steps of bounded size. A Forget of the queue removes all its limiters.
//
// If the store can't read a limiter, it grants at most what core.Rate.Take grants of a new one.
type Limiter interface {
	// Take takes grants of several limiters of a queue, as core.Rate.Take defines. It is atomic for
	// each limiter. A take with a Want and a Use of 0 takes nothing: it returns when the next slot
	// is, and whether a stop lasts.
	//
	// A take with a Use first uses slots that earlier calls have granted and that have come, as
	// core.Rate.Use defines. It takes one more grant for each slot that may not be used.
	//
	// Take is not idempotent: a repeated call takes further grants. Grants of a reply that was lost
	// are never used, so the rate is not exceeded. A store does not repeat a call of unknown outcome
	// by itself.
	//
	// Errors, with nothing taken: ErrInvalidRequest, ErrUnknownQueue.
	Take(ctx context.Context, r TakeRequest) (TakeReply, error)

	// Stop ends all grants of a limiter for a while, as core.Limiter.Stop defines: no slot lies
	// before the end of the stop, except those that were granted earlier. A stop that lasts longer
	// already is not shortened. With a For of 0 a stop that lasts ends. A repeated call counts from
	// its own time.
	//
	// A stop does not change other limiters. That of the whole queue does not stop those of its
	// keys.
	//
	// Errors, with nothing changed: ErrInvalidRequest, ErrUnknownQueue.
	Stop(ctx context.Context, r StopRequest) error

	// Limits lists limiters of a queue whose core.Limiter.End lies ahead, the one that lies furthest
	// ahead first: in descending order of (End, Key).
	//
	// Errors: ErrUnknownQueue.
	Limits(ctx context.Context, r LimitsRequest) (LimitsReply, error)
}

// TakeRequest is a request for grants.
type TakeRequest struct {
	Queue string
	// Takes are at most MaxTakes takes, each of another key.
	Takes []Take
}

// Take is a request for grants of one limiter.
type Take struct {
	// Key is the limiter's key: a [core.Text] of at most MaxLimiterKey bytes, empty for the whole
	// queue.
	Key string
	// Rate is the rate by which this take is granted. The zero Rate is no limit; then only stops
	// hold. Callers of a limiter should have the same Rate.
	Rate core.Rate
	// Want is the number of grants to take, 0 to MaxWant.
	Want int
	// Use is the number of slots that earlier calls have granted, and that are to be used now. Want
	// and Use are at most MaxWant together. Hold is how far from now their uses may lie, 0 to
	// core.MaxHold. Fractions of a microsecond are dropped.
	Use  int
	Hold time.Duration
	// Soon is how far from now a new slot may lie to count as used at once, 0 to core.MaxHold. The
	// caller holds the job until then. Fractions of a microsecond are dropped.
	Soon time.Duration
	// Ahead is how far from now the slots may lie, 0 to core.MaxAhead. Fractions of a microsecond
	// are dropped.
	Ahead time.Duration
}

// Validate returns [ErrInvalidRequest] for more than MaxTakes takes, for two takes of one key, and
// for a take with an invalid Key, Rate, Want or Ahead. It does not check the name of the queue.
func (r *TakeRequest) Validate() error {
	if n := len(r.Takes); n > MaxTakes {
		return fmt.Errorf("%w: %d takes; give at most %d a request", ErrInvalidRequest, n, MaxTakes)
	}

	keys := make(map[string]struct{}, len(r.Takes))
	for i := range r.Takes {
		t := &r.Takes[i]
		if err := t.validate(); err != nil {
			return err
		}
		if _, twice := keys[t.Key]; twice {
			return fmt.Errorf("%w: two takes of the key %q; give each key once", ErrInvalidRequest, t.Key)
		}
		keys[t.Key] = struct{}{}
	}
	return nil
}

func (t *Take) validate() error {
	if err := validateLimiterKey(t.Key); err != nil {
		return err
	}
	if err := t.Rate.Validate(); err != nil {
		return fmt.Errorf("%w: the take of %q: %w", ErrInvalidRequest, t.Key, err)
	}

	switch {
	case t.Want < 0 || t.Use < 0 || t.Want > MaxWant || t.Use > MaxWant-t.Want:
		return fmt.Errorf("%w: the take of %q wants %d grants and uses %d slots; give 0 to %d together",
			ErrInvalidRequest, t.Key, t.Want, t.Use, MaxWant)
	case t.Hold < 0 || t.Hold > core.MaxHold || t.Soon < 0 || t.Soon > core.MaxHold:
		return fmt.Errorf("%w: the take of %q holds jobs for %v, and new ones for %v; give 0 to %v",
			ErrInvalidRequest, t.Key, t.Hold, t.Soon, core.MaxHold)
	case t.Ahead < 0 || t.Ahead > core.MaxAhead:
		return fmt.Errorf("%w: the take of %q looks %v ahead; give 0 to %v",
			ErrInvalidRequest, t.Key, t.Ahead, core.MaxAhead)
	}
	return nil
}

func validateLimiterKey(key string) error {
	if len(key) > MaxLimiterKey {
		return fmt.Errorf("%w: the key of a limiter has %d bytes, at most %d are allowed; use a hash of it",
			ErrInvalidRequest, len(key), MaxLimiterKey)
	}
	return validateTexts("the key of a limiter", key)
}

// TakeReply is the result of Take.
type TakeReply struct {
	// Now is the store's clock.
	Now core.Instant
	// Grants are in the order of the takes.
	Grants []Grant
}

// Grant is what a take was granted.
type Grant struct {
	// Used is the number of slots that may be used, at most Use. Start is the first of these uses, as
	// core.Rate.Use returns it: a time up to Now means now. Use i has the time core.Rate.Slot(Start,
	// Now, i). Start is 0 if Used is.
	Used  int
	Start core.Instant
	// Granted is the number of grants, at most Want and what is missing of Use.
	Granted int
	// First is the first slot, as core.Rate.Take returns it: a time up to Now means now. Grant i of
	// those granted has the slot core.Rate.Slot(First, Now, i).
	First core.Instant
	// Stopped is the end of a stop that lasts, and 0 if none lasts.
	Stopped core.Instant
}

// StopRequest stops a limiter.
type StopRequest struct {
	Queue string
	// Key is the limiter's key, as in Take.
	Key string
	// For is how long the stop lasts from now, 0 to core.MaxStop. 0 ends a stop. Fractions of a
	// microsecond are dropped.
	For time.Duration
}

// Validate returns [ErrInvalidRequest] for an invalid key, and for a For outside 0 … core.MaxStop
// or between 0 and 1 µs. It does not check the name of the queue.
func (r *StopRequest) Validate() error {
	if r.For < 0 || r.For > core.MaxStop || r.For > 0 && r.For < time.Microsecond {
		return fmt.Errorf("%w: the stop lasts %v; give at least 1µs and at most %v, or 0 to end a stop",
			ErrInvalidRequest, r.For, core.MaxStop)
	}
	return validateLimiterKey(r.Key)
}

// LimitsRequest asks for the limiters of a queue.
type LimitsRequest struct {
	Queue string
	// Limit is the maximum number of limiters to return. A value below 1 means DefaultPage, a value
	// above MaxPage means MaxPage.
	Limit int
}

// Size returns Limit with its default and maximum applied.
func (r *LimitsRequest) Size() int {
	if r.Limit <= 0 {
		return DefaultPage
	}
	return min(r.Limit, MaxPage)
}

// LimitsReply is the result of Limits.
type LimitsReply struct {
	// Now is the store's clock.
	Now core.Instant
	// Limits are the limiters, the one that lies furthest ahead first.
	Limits []LimiterView
}

// LimiterView is a limiter of a queue.
type LimiterView struct {
	// Key is the limiter's key, empty for the whole queue.
	Key string
	core.Limiter
}
