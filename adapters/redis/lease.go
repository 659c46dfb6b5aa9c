package redis

import (
	"cmp"
	"context"
	"time"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// micros returns a number of microseconds as a duration.
func micros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// Acquire implements [ports.Consumer].
func (s *Store) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	if err := r.Validate(); err != nil {
		return ports.AcquireReply{}, err
	}

	asked := storekit.Layout{Shards: r.Shards, Generation: r.Generation}
	value, err := s.run(ctx, exchange.Call{
		Script:  acquireScript,
		Keys:    s.someKeys(r.Shard, keyMeta, keyJobs, keyReady, keyClaims, keyLease, keyCancels),
		Args:    []any{s.now(), layoutText(asked), r.Owner, r.Attempt, r.TTL.Microseconds()},
		Durable: true,
	})
	if err != nil {
		return ports.AcquireReply{}, err
	}

	reply := record.ReplyOf(value)
	switch reply.Text() {
	case "ok":
		return acquired(&reply)
	case "unknown":
		return ports.AcquireReply{}, s.noShard(ctx, r.Shard, asked)
	case "mismatch":
		return ports.AcquireReply{}, mismatched(&reply, r.Shard.Queue, asked)
	case "stale":
		return ports.AcquireReply{}, storekit.StaleAttempt(&r)
	case "held":
		return ports.AcquireReply{}, &ports.HeldError{
			Shard:     r.Shard,
			Owner:     reply.Text(),
			Remaining: micros(reply.Int()),
		}
	}
	return ports.AcquireReply{}, record.ErrReply
}

func acquired(r *record.Reply) (ports.AcquireReply, error) {
	a := ports.AcquireReply{Token: r.Int(), Now: core.Instant(r.Int()), Remaining: micros(r.Int())}
	a.Paused, a.Head = r.Int() == 1, r.Head()

	claims, cancels := r.List(), r.List()
	var err error
	if a.Claims, err = record.ParseClaims(&claims); err != nil {
		return ports.AcquireReply{}, err
	}
	if a.Cancellations, err = record.ParseCancels(&cancels); err != nil {
		return ports.AcquireReply{}, err
	}
	return a, r.Err()
}

// Renew implements [ports.Consumer]. While the shard's slot migrates, the Head is now.
func (s *Store) Renew(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
	if err := r.Validate(); err != nil {
		return ports.RenewReply{}, err
	}

	value, err := s.run(ctx, exchange.Call{
		Script: renewScript,
		Keys:   s.someKeys(r.Lease.Shard, keyLease),
		Args:   []any{s.now(), r.Lease.Owner, r.Lease.Token, r.TTL.Microseconds()},
	})
	if err != nil {
		return ports.RenewReply{}, err
	}

	reply := record.ReplyOf(value)
	switch reply.Text() {
	case "ok":
		renewed := ports.RenewReply{
			Now:       core.Instant(reply.Int()),
			Remaining: micros(reply.Int()),
			Paused:    reply.Int() == 1,
			Head:      reply.Head(),
		}
		return renewed, reply.Err()
	case "lost":
		return ports.RenewReply{}, s.lost(ctx, r.Lease)
	}
	return ports.RenewReply{}, record.ErrReply
}

// Release implements [ports.Consumer]. The client does not repeat it after an error of unknown
// outcome, because the repeated call would return [ports.ErrLeaseLost].
func (s *Store) Release(ctx context.Context, l ports.Lease) error {
	value, err := s.run(ctx, exchange.Call{
		Script:  releaseScript,
		Keys:    s.someKeys(l.Shard, keyLease),
		Args:    []any{l.Owner, l.Token, s.channel(l.Shard)},
		NoRetry: true,
	})
	if err != nil {
		return err
	}

	reply := record.ReplyOf(value)
	switch reply.Text() {
	case "ok":
		return nil
	case "lost":
		return s.lost(ctx, l)
	}
	return record.ErrReply
}

// lost returns ErrLeaseLost, or the reason why the shard does not exist.
func (s *Store) lost(ctx context.Context, l ports.Lease) error {
	q, err := s.queue(ctx, l.Shard.Queue)
	if err != nil {
		return err
	}
	if l.Shard.Index < 0 || l.Shard.Index >= q.Shards {
		return storekit.NoSuchShard(l.Shard)
	}
	return storekit.LeaseLost(l)
}

// Heads implements [ports.Consumer]. Its Now is that of the last shard that was reached.
func (s *Store) Heads(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
	if len(shards) == 0 {
		nodes, err := s.Nodes(ctx)
		return ports.HeadsReply{Now: nodes.Now}, err
	}

	calls := make([]exchange.Call, len(shards))
	for i, shard := range shards {
		calls[i] = exchange.Call{
			Script: headsScript,
			Keys:   s.someKeys(shard, keyMeta, keyJobs, keyReady, keyClaims, keyLease),
			Args:   []any{s.now()},
		}
	}

	reply := ports.HeadsReply{Heads: make([]core.Head, len(shards))}
	var failure error
	for i, o := range s.runApart(ctx, calls) {
		now, head, err := parseHead(&o)
		if err == nil && noRecord(&o) {
			err = s.absent(ctx, shards[i])
		}

		switch {
		case err == nil:
			reply.Now, reply.Heads[i] = now, head
		case storekit.HasKnownOutcome(err):
			return ports.HeadsReply{}, err
		default:
			reply.Unreached, failure = append(reply.Unreached, shards[i]), cmp.Or(failure, err)
		}
	}

	if len(reply.Unreached) == len(shards) {
		return ports.HeadsReply{}, failure
	}
	return reply, nil
}

// noRecord reports whether a script found no record of its shard.
func noRecord(o *exchange.Outcome) bool {
	r := record.ReplyOf(o.Value)
	return r.Text() == "unknown"
}

func parseHead(o *exchange.Outcome) (core.Instant, core.Head, error) {
	if o.Err != nil || noRecord(o) {
		return 0, core.Head{}, o.Err
	}
	r := record.ReplyOf(o.Value)
	_ = r.Text()
	now := core.Instant(r.Int())
	head := r.Head()
	return now, head, r.Err()
}
