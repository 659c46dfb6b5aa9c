package redis

import (
	"context"
	"errors"
	"time"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports/storekit"
)

// run runs one script. It returns when the context ends, whatever the server does. If a record
// can't be read, the script has written nothing; then the record is set aside, and the script runs
// again.
func (s *Store) run(ctx context.Context, c exchange.Call) (any, error) {
	if err := s.readyFor(ctx, c); err != nil {
		return nil, err
	}
	value, err := s.link.Do(ctx, c)
	if _, damaged := errors.AsType[*exchange.DamagedError](err); damaged {
		o := s.runAll(ctx, []exchange.Call{c})[0]
		return o.Value, o.Err
	}
	return value, err
}

// runAll runs scripts in one exchange with each server they concern, in any order. It returns when
// the context ends, whatever the server does.
func (s *Store) runAll(ctx context.Context, calls []exchange.Call) []exchange.Outcome {
	if err := s.readyFor(ctx, calls...); err != nil {
		return exchange.Failed(len(calls), err)
	}
	if len(calls) == 0 {
		return nil
	}
	outcomes, err := exchange.Await(ctx, s.link, func() []exchange.Outcome { return s.exchangeReadable(ctx, calls) })
	if err != nil {
		return exchange.Failed(len(calls), err)
	}
	return outcomes
}

// runApart runs scripts in any order, separately for each server. If a server does not answer in
// time although another does, only its own calls fail, and no other call waits for it. The same
// holds for a call that its server keeps refusing.
func (s *Store) runApart(ctx context.Context, calls []exchange.Call) []exchange.Outcome {
	return s.runApartBy(ctx, exchange.Apart{Most: shardsPerExchange, Patience: exchange.LongestPatience}, calls)
}

// runApartBy is runApart with exchanges of another size and another patience.
func (s *Store) runApartBy(ctx context.Context, by exchange.Apart, calls []exchange.Call) []exchange.Outcome {
	if len(calls) == 0 {
		return nil
	}
	if err := s.readyFor(ctx, calls...); err != nil {
		return exchange.Failed(len(calls), err)
	}
	return s.link.RunApart(ctx, by, calls)
}

// eachReached makes a call of each of the shards, and reads its reply by read. A shard is lost if
// it can't be reached, if it has no record, or if read returns an error. If that ends the whole
// call, its error is returned, as by [storekit.Lost.Add].
func (s *Store) eachReached(
	ctx context.Context,
	by exchange.Apart,
	shards []core.Shard,
	calls []exchange.Call,
	lost *storekit.Lost,
	read func(i int, o *exchange.Outcome) error,
) error {
	for i, o := range s.runApartBy(ctx, by, calls) {
		err := o.Err
		if err == nil && noRecord(&o) {
			err = s.absent(ctx, shards[i])
		}
		if err == nil {
			err = read(i, &o)
		}
		if err == nil {
			continue
		}
		if err := lost.Add(ctx, shards[i], err); err != nil {
			return err
		}
	}
	return nil
}

// Limits for read-only calls: plain commands, which let a server answer others in between, and
// scripts. Inspection gives up on a slow server sooner than job processing does.
var (
	plainApart  = exchange.Apart{Most: 1000, Patience: lookPatience}
	scriptApart = exchange.Apart{Most: shardsPerExchange, Patience: lookPatience}
)

const lookPatience = 400 * time.Millisecond
