package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// limiters are the limiters of a queue. The zero value has none.
type limiters struct {
	mu    sync.Mutex
	byKey map[string]core.Limiter
}

// Take implements [ports.Limiter].
func (s *Store) Take(ctx context.Context, r ports.TakeRequest) (ports.TakeReply, error) {
	if err := r.Validate(); err != nil {
		return ports.TakeReply{}, err
	}

	reply := ports.TakeReply{Grants: make([]ports.Grant, len(r.Takes))}
	err := s.limit(ctx, r.Queue, func(l *limiters, now core.Instant) {
		reply.Now = now
		for i := range r.Takes {
			t := &r.Takes[i]
			after, used, start := t.Rate.Use(l.byKey[t.Key], now, t.Use, t.Hold)
			next, granted, first := t.Rate.Take(after, now, t.Want+t.Use-used, t.Ahead, t.Soon)
			reply.Grants[i] = ports.Grant{
				Used: used, Start: start, Granted: granted, First: first, Stopped: next.StoppedAt(now),
			}
			l.set(t.Key, next)
		}
		l.prune(now, prunedAtOnce+len(r.Takes))
	})
	if err != nil {
		return ports.TakeReply{}, err
	}
	return reply, nil
}

// Stop implements [ports.Limiter].
func (s *Store) Stop(ctx context.Context, r ports.StopRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.limit(ctx, r.Queue, func(l *limiters, now core.Instant) {
		l.set(r.Key, l.byKey[r.Key].Stop(now, r.For))
		l.prune(now, prunedAtOnce)
	})
}

// Limits implements [ports.Limiter].
func (s *Store) Limits(ctx context.Context, r ports.LimitsRequest) (ports.LimitsReply, error) {
	var reply ports.LimitsReply
	err := s.limit(ctx, r.Queue, func(l *limiters, now core.Instant) {
		reply.Now = now
		for key, limiter := range l.byKey {
			if limiter.End() > now {
				reply.Limits = append(reply.Limits, ports.LimiterView{Key: key, Limiter: limiter})
			}
		}
	})
	if err != nil {
		return ports.LimitsReply{}, err
	}

	slices.SortFunc(reply.Limits, func(a, b ports.LimiterView) int {
		return cmp.Or(cmp.Compare(b.End(), a.End()), strings.Compare(b.Key, a.Key))
	})
	reply.Limits = slices.Clip(reply.Limits[:min(len(reply.Limits), r.Size())])
	return reply, nil
}

// limit calls do on the limiters of a queue, under their lock.
func (s *Store) limit(ctx context.Context, queue string, do func(*limiters, core.Instant)) error {
	q, err := s.b.queue(ctx, queue)
	if err != nil {
		return err
	}

	q.forgetMu.RLock()
	defer q.forgetMu.RUnlock()
	if q.forgotten {
		return storekit.UnknownQueue(queue)
	}

	q.limiters.mu.Lock()
	defer q.limiters.mu.Unlock()
	do(&q.limiters, s.b.now())
	return nil
}

// set stores the state of a limiter. It needs the lock.
func (l *limiters) set(key string, next core.Limiter) {
	if next == (core.Limiter{}) {
		return
	}
	if l.byKey == nil {
		l.byKey = make(map[string]core.Limiter)
	}
	l.byKey[key] = next
}

// prunedAtOnce is the number of limiters that a call looks at, beside one for each of its takes, to
// remove those that are gone.
const prunedAtOnce = 100

// prune removes limiters that are gone, among some that it looks at. It needs the lock.
func (l *limiters) prune(now core.Instant, most int) {
	looked := 0
	for key, limiter := range l.byKey {
		if looked++; looked > most {
			return
		}
		if limiter.Gone(now) {
			delete(l.byKey, key)
		}
	}
}
