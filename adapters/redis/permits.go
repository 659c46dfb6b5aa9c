package redis

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// permitsKey names the permits of a queue, in a slot of their own.
func (s *Store) permitsKey(queue string) string { return s.base(ports.PermitsOf(queue)) + "permits" }

// Permit implements [ports.Permitter]. A queue without permits has no key for them, so the queue's
// record is read first.
func (s *Store) Permit(ctx context.Context, r ports.PermitRequest) (ports.PermitReply, error) {
	if err := r.Validate(); err != nil {
		return ports.PermitReply{}, err
	}

	for declared := false; ; declared = true {
		value, err := s.run(ctx, exchange.Call{
			Script: permitScript,
			Keys:   []any{s.permitsKey(r.Queue)},
			Args: []any{s.now(), r.Owner, r.Attempt, r.Limit, r.Hold, r.Want, r.TTL.Microseconds(),
				s.channel(ports.PermitsOf(r.Queue)), boolArg(declared)},
			Durable: true,
		})
		if err != nil {
			return ports.PermitReply{}, err
		}

		reply := record.ReplyOf(value)
		switch reply.Text() {
		case "ok":
			return permitted(&reply)
		case "stale":
			return ports.PermitReply{}, storekit.StalePermit(&r)
		case "unknown":
			if _, err := s.knownQueue(ctx, r.Queue); err != nil {
				return ports.PermitReply{}, err
			}
			continue
		}
		return ports.PermitReply{}, record.ErrReply
	}
}

// forgetPermits removes all permits and limiters of a queue.
func (s *Store) forgetPermits(ctx context.Context, queue string) error {
	keys := []string{s.permitsKey(queue)}
	for _, key := range s.limiterKeys(queue) {
		keys = append(keys, key.(string))
	}
	err, ended := exchange.Await(ctx, s.link, func() error {
		return exchange.Translate(ctx, s.client.Unlink(ctx, keys...).Err())
	})
	return cmp.Or(err, ended)
}

// permitted reads the reply after "ok".
func permitted(r *record.Reply) (ports.PermitReply, error) {
	p := ports.PermitReply{Now: core.Instant(r.Int()), Remaining: micros(r.Int()), Held: int(r.Int())}

	list := r.List()
	for list.More() {
		p.Holders = append(p.Holders, core.PermitHolder{
			Owner: list.Text(),
			Held:  int(list.Int()),
			Want:  int(list.Int()),
		})
	}
	slices.SortFunc(p.Holders, func(a, b core.PermitHolder) int { return strings.Compare(a.Owner, b.Owner) })

	r.Join(&list)
	if err := r.Err(); err != nil {
		return ports.PermitReply{}, err
	}
	return p, nil
}
