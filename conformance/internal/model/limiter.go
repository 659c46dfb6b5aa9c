package model

import (
	"cmp"
	"context"
	"maps"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Take implements ports.Limiter.
func (m *Store) Take(ctx context.Context, r ports.TakeRequest) (ports.TakeReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return ports.TakeReply{}, err
	}
	q, err := m.queue(ctx, r.Queue)
	if err != nil {
		return ports.TakeReply{}, err
	}

	reply := ports.TakeReply{Now: m.Now()}
	for _, t := range r.Takes {
		after, used, start := t.Rate.Use(q.limiters[t.Key], reply.Now, t.Use, t.Hold)
		next, granted, first := t.Rate.Take(after, reply.Now, t.Want+t.Use-used, t.Ahead, t.Soon)
		reply.Grants = append(reply.Grants, ports.Grant{
			Used:    used,
			Start:   start,
			Granted: granted,
			First:   first,
			Stopped: next.StoppedAt(reply.Now),
		})
		q.setLimiter(t.Key, next)
	}
	q.removeGone(reply.Now)
	return reply, nil
}

// Stop implements ports.Limiter.
func (m *Store) Stop(ctx context.Context, r ports.StopRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return err
	}
	q, err := m.queue(ctx, r.Queue)
	if err != nil {
		return err
	}

	now := m.Now()
	q.setLimiter(r.Key, q.limiters[r.Key].Stop(now, r.For))
	q.removeGone(now)
	return nil
}

func (q *queue) setLimiter(key string, l core.Limiter) {
	if q.limiters == nil {
		q.limiters = map[string]core.Limiter{}
	}
	q.limiters[key] = l
}

func (q *queue) removeGone(now core.Instant) {
	maps.DeleteFunc(q.limiters, func(_ string, l core.Limiter) bool { return l.Gone(now) })
}

// Limits implements ports.Limiter.
func (m *Store) Limits(ctx context.Context, r ports.LimitsRequest) (ports.LimitsReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	q, err := m.queue(ctx, r.Queue)
	if err != nil {
		return ports.LimitsReply{}, err
	}

	ahead := map[string]ports.LimiterView{}
	now := m.Now()
	for key, l := range q.limiters {
		if l.End() > now {
			ahead[key] = ports.LimiterView{Key: key, Limiter: l}
		}
	}
	list := sorted(ahead, func(a, b ports.LimiterView) int {
		return cmp.Or(cmp.Compare(b.End(), a.End()), strings.Compare(b.Key, a.Key))
	})
	return ports.LimitsReply{Now: now, Limits: list[:min(len(list), r.Size())]}, nil
}
