package redis

import (
	"context"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// limiterKeys name the limiters of a queue and their ends, in the slot of its permits.
func (s *Store) limiterKeys(queue string) []any {
	base := s.base(ports.PermitsOf(queue))
	return []any{base + "limiters", base + "ends"}
}

// limit runs a script on the limiters of a queue, and returns its reply after "ok". A queue without
// limiters has no key for them, so the queue's record is read first.
func (s *Store) limit(ctx context.Context, queue string, c exchange.Call, args ...any) (record.Reply, error) {
	if queue == "" { // its keys would have no slot in common
		return record.Reply{}, storekit.UnknownQueue(queue)
	}

	c.Keys = s.limiterKeys(queue)
	for declared := false; ; declared = true {
		c.Args = append([]any{s.now(), boolArg(declared)}, args...)
		value, err := s.run(ctx, c)
		if err != nil {
			return record.Reply{}, err
		}

		reply := record.ReplyOf(value)
		switch reply.Text() {
		case "ok":
			return reply, nil
		case "unknown":
			if _, err := s.knownQueue(ctx, queue); err != nil {
				return record.Reply{}, err
			}
			continue
		}
		return record.Reply{}, record.ErrReply
	}
}

// Take implements [ports.Limiter].
func (s *Store) Take(ctx context.Context, r ports.TakeRequest) (ports.TakeReply, error) {
	if err := r.Validate(); err != nil {
		return ports.TakeReply{}, err
	}

	args := make([]any, 0, 8*len(r.Takes))
	for i := range r.Takes {
		t := &r.Takes[i]
		args = append(args, t.Key, t.Rate.Interval().Microseconds(), t.Rate.Tolerance().Microseconds(),
			t.Use, t.Hold.Microseconds(), t.Want, t.Ahead.Microseconds(), t.Soon.Microseconds())
	}

	reply, err := s.limit(ctx, r.Queue, exchange.Call{Script: takeScript, NoRetry: true, Durable: true}, args...)
	if err != nil {
		return ports.TakeReply{}, err
	}

	taken := ports.TakeReply{Now: core.Instant(reply.Int()), Grants: make([]ports.Grant, len(r.Takes))}
	for i := range taken.Grants {
		taken.Grants[i] = ports.Grant{
			Used:    int(reply.Int()),
			Start:   core.Instant(reply.Int()),
			Granted: int(reply.Int()),
			First:   core.Instant(reply.Int()),
			Stopped: core.Instant(reply.Int()),
		}
	}
	if err := reply.Err(); err != nil {
		return ports.TakeReply{}, err
	}
	return taken, nil
}

// Stop implements [ports.Limiter].
func (s *Store) Stop(ctx context.Context, r ports.StopRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	_, err := s.limit(ctx, r.Queue, exchange.Call{Script: stopScript, Durable: true}, r.Key, r.For.Microseconds())
	return err
}

// Limits implements [ports.Limiter].
func (s *Store) Limits(ctx context.Context, r ports.LimitsRequest) (ports.LimitsReply, error) {
	reply, err := s.limit(ctx, r.Queue, exchange.Call{Script: limitsScript}, r.Size())
	if err != nil {
		return ports.LimitsReply{}, err
	}

	all := ports.LimitsReply{Now: core.Instant(reply.Int())}
	for reply.More() {
		all.Limits = append(all.Limits, ports.LimiterView{Key: reply.Text(), Limiter: core.Limiter{
			Next:    core.Instant(reply.Int()),
			Started: core.Instant(reply.Int()),
			Last:    core.Instant(reply.Int()),
			Stopped: core.Instant(reply.Int()),
			Changed: core.Instant(reply.Int()),
		}})
	}
	if err := reply.Err(); err != nil {
		return ports.LimitsReply{}, err
	}
	return all, nil
}
