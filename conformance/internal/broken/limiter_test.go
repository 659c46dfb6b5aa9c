package broken

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func brokenLimiters() []brokenStore {
	return []brokenStore{
		{"grants one start more", "rates/grants as the worked cases", wrapped(takesByOther(grantsOneMore))},
		{"grants one start more to racers", "racing/grants stay within the rate", wrapped(takesByOther(grantsOneMore))},
		{"ignores the burst", "rates/grants by rates at their bounds", wrapped(takesByOther(withoutBurst))},
		{"grants no slot ahead", "rates/grants as the worked cases", wrapped(takesByOther(withoutAhead))},
		{"takes a grant for a Want of 0", "rates/takes nothing for a Want of 0", wrapped(takesByOther(wantsOne))},
		{
			"uses slots faster than the rate",
			"rates/uses late slots no faster than the rate",
			wrapped(usesAll(func(ports.Grant) bool { return true })),
		},
		{
			"drops slots that could not be used",
			"rates/uses late slots no faster than the rate",
			wrapped(dropsUnused),
		},
		{
			"uses slots in a stop",
			"rates/uses no slot in a stop",
			wrapped(usesAll(func(g ports.Grant) bool { return g.Stopped > 0 })),
		},
		{"forgets uses", "rates/counts the uses of all handles", wrapped(forgetsUses)},
		{"forgets uses of racers", "racing/grants stay within the rate", wrapped(forgetsUses)},
		{"forgets its grants with a handle", "rates/counts the grants of all handles", countsByHandle},
		{"forgets its stops with a handle", "rates/stops all handles", countsByHandle},
		{"stops nobody", "rates/stops all handles", wrapped(stopsNobody)},
		{"stops all limiters of a queue", "rates/stops all handles", wrapped(stopsQueue)},
		{"shortens a stop", "rates/keeps a stop that lasts longer", wrapped(shortensStops)},
		{"ends no stop", "rates/ends a stop by a stop of no length", wrapped(endsNoStop)},
		{"has one limiter for all keys", "rates/keeps limiters apart by key and queue", wrapped(takesByOther(oneKey))},
		{"returns grants in another order", "rates/takes grants of many limiters at once", wrapped(reversesGrants)},
		{
			"stalls when the clock steps back",
			"rates/holds after the clock has stepped back",
			wrapped(stallsOnStepBack),
		},
		{"lists limiters backwards", "rates/lists the limiters that lie ahead", wrapped(listsBackwards)},
		{"keeps the limiters of a forgotten queue", "rates/is removed with its queue", wrapped(stopsForever)},
		{
			"takes what comes before a bad take",
			"rates/takes nothing by an invalid request",
			wrapped(takesBeforeBad),
		},
	}
}

// takesByOther is a store that changes each take before it is carried out.
func takesByOther(change func(*ports.Take)) func(s full) full {
	return func(s full) full {
		return replace(s, "Take", func(ctx context.Context, r ports.TakeRequest) (ports.TakeReply, error) {
			if err := r.Validate(); err != nil {
				return ports.TakeReply{}, err
			}

			var reply ports.TakeReply
			for _, t := range r.Takes { // changed keys may be equal
				change(&t)
				one, err := s.Take(ctx, ports.TakeRequest{Queue: r.Queue, Takes: []ports.Take{t}})
				if err != nil {
					return ports.TakeReply{}, err
				}
				reply.Now, reply.Grants = one.Now, append(reply.Grants, one.Grants...)
			}
			return reply, nil
		})
	}
}

func grantsOneMore(t *ports.Take) {
	if t.Rate.Count > 0 {
		t.Rate.Burst++
	}
}

func withoutBurst(t *ports.Take) { t.Rate.Burst = 0 }
func withoutAhead(t *ports.Take) { t.Ahead = 0 }
func wantsOne(t *ports.Take)     { t.Want = max(t.Want, 1) }
func oneKey(t *ports.Take)       { t.Key = "" }

// usesAll is a store that uses all slots of limiters whose state is as asked for.
func usesAll(of func(ports.Grant) bool) func(s full) full {
	return eachTake(func(take func(ports.Take) ports.Grant, t ports.Take) ports.Grant {
		if !of(take(ports.Take{Key: t.Key, Rate: t.Rate})) {
			return take(t)
		}
		uses := t.Use
		t.Use = 0
		g := take(t)
		g.Used = uses
		return g
	})
}

// dropsUnused replies no grants for slots that may not be used.
func dropsUnused(s full) full {
	return eachTake(func(take func(ports.Take) ports.Grant, t ports.Take) ports.Grant {
		g := take(t)
		g.Granted = min(g.Granted, t.Want)
		return g
	})(s)
}

// forgetsUses counts the uses of each call by a limiter of its own.
func forgetsUses(s full) full {
	var calls atomic.Int64
	return eachTake(func(take func(ports.Take) ports.Grant, t ports.Take) ports.Grant {
		used := take(ports.Take{Key: fmt.Sprint("used ", calls.Add(1)), Rate: t.Rate, Use: t.Use}).Used
		t.Want, t.Use = t.Want+t.Use-used, 0
		g := take(t)
		g.Used = used
		return g
	})(s)
}

// eachTake is a store with another way to carry out a take.
func eachTake(as func(take func(ports.Take) ports.Grant, t ports.Take) ports.Grant) func(s full) full {
	return func(s full) full {
		return replace(s, "Take", func(ctx context.Context, r ports.TakeRequest) (ports.TakeReply, error) {
			reply, err := s.Take(ctx, ports.TakeRequest{Queue: r.Queue})
			if invalid := r.Validate(); err != nil || invalid != nil {
				return ports.TakeReply{}, cmp.Or(invalid, err)
			}

			take := func(t ports.Take) ports.Grant {
				one, oneErr := s.Take(ctx, ports.TakeRequest{Queue: r.Queue, Takes: []ports.Take{t}})
				if oneErr != nil {
					err = oneErr
					return ports.Grant{}
				}
				return one.Grants[0]
			}
			for _, t := range r.Takes {
				reply.Grants = append(reply.Grants, as(take, t))
			}
			return reply, err
		})
	}
}

// countsByHandle is a backend each of whose handles has limiters of its own.
func countsByHandle(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
	store := withTransactions(clock)
	return func() ports.ShardStore {
		own := withTransactions(clock)
		declared := func(ctx context.Context, queue string) {
			_, _ = own.Declare(ctx, ports.DeclareRequest{Queue: queue, Shards: 1})
		}
		h := replace(full(store), "Take", func(ctx context.Context, r ports.TakeRequest) (ports.TakeReply, error) {
			declared(ctx, r.Queue)
			return own.Take(ctx, r)
		})
		return replaceErr(h, "Stop", func(ctx context.Context, r ports.StopRequest) error {
			declared(ctx, r.Queue)
			return own.Stop(ctx, r)
		})
	}
}

func stopsNobody(s full) full {
	return replaceErr(s, "Stop", func(_ context.Context, r ports.StopRequest) error { return r.Validate() })
}

func stopsQueue(s full) full {
	return replaceErr(takesByOther(oneKey)(s), "Stop", func(ctx context.Context, r ports.StopRequest) error {
		r.Key = ""
		return s.Stop(ctx, r)
	})
}

func shortensStops(s full) full {
	return replaceErr(s, "Stop", func(ctx context.Context, r ports.StopRequest) error {
		_ = s.Stop(ctx, ports.StopRequest{Queue: r.Queue, Key: r.Key})
		return s.Stop(ctx, r)
	})
}

func endsNoStop(s full) full {
	return replaceErr(s, "Stop", func(ctx context.Context, r ports.StopRequest) error {
		if r.For == 0 {
			return r.Validate()
		}
		return s.Stop(ctx, r)
	})
}

func reversesGrants(s full) full {
	return replace(s, "Take", func(ctx context.Context, r ports.TakeRequest) (ports.TakeReply, error) {
		reply, err := s.Take(ctx, r)
		slices.Reverse(reply.Grants)
		return reply, err
	})
}

// stallsOnStepBack grants nothing before the latest time that it has seen.
func stallsOnStepBack(s full) full {
	var mu sync.Mutex
	var latest core.Instant
	return replace(s, "Take", func(ctx context.Context, r ports.TakeRequest) (ports.TakeReply, error) {
		mu.Lock()
		defer mu.Unlock()
		probe := ports.TakeRequest{Queue: r.Queue}
		reply, err := s.Take(ctx, probe)
		if err == nil && reply.Now < latest {
			return ports.TakeReply{Now: reply.Now, Grants: make([]ports.Grant, len(r.Takes))}, nil
		}
		latest = max(latest, reply.Now)
		return s.Take(ctx, r)
	})
}

func listsBackwards(s full) full {
	return replace(s, "Limits", func(ctx context.Context, r ports.LimitsRequest) (ports.LimitsReply, error) {
		reply, err := s.Limits(ctx, r)
		slices.Reverse(reply.Limits)
		return reply, err
	})
}

// stopsForever stops the limiters of a forgotten queue again when the queue is declared.
func stopsForever(s full) full {
	kept := map[string][]ports.LimiterView{}
	h := replaceErr(s, "Forget", func(ctx context.Context, queue string) error {
		reply, _ := s.Limits(ctx, ports.LimitsRequest{Queue: queue})
		kept[queue] = reply.Limits
		return s.Forget(ctx, queue)
	})
	return replace(h, "Declare", func(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
		reply, err := s.Declare(ctx, r)
		for _, l := range kept[r.Queue] {
			_ = s.Stop(ctx, ports.StopRequest{Queue: r.Queue, Key: l.Key, For: time.Minute})
		}
		return reply, err
	})
}

func takesBeforeBad(s full) full {
	return replace(s, "Take", func(ctx context.Context, r ports.TakeRequest) (ports.TakeReply, error) {
		err := r.Validate()
		if err == nil {
			return s.Take(ctx, r)
		}
		_, _ = s.Take(ctx, ports.TakeRequest{Queue: r.Queue, Takes: r.Takes[:1]})
		return ports.TakeReply{}, err
	})
}
