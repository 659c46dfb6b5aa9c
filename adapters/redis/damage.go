package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
)

// ErrTorn reports a shard with contradictory keys. It is wrapped by an error of unknown outcome.
//
// The cause is a failover during the migration of the shard's slot: two masters of a Cluster then
// have keys of the shard, and a call misses a key that another key refers to. The queue's other
// shards continue to work. docs/operations/redis.md describes the repair. If a key was lost and no
// other master has it, the store sets the record aside instead.
var ErrTorn = exchange.ErrTorn

// ErrLostRecord reports a declared shard whose record is gone or can't be read. Nothing was
// written. Its jobs are still there, and the queue's other shards continue to work. A recount of
// the queue, as by `skein repair recount`, writes a new record. It is wrapped by an error of
// unknown outcome, so that servers try again until then.
var ErrLostRecord = errors.New(
	"its record is lost or can't be read, so nothing works there; run skein repair recount with the queue's name")

// mostSetAside is the maximum number of records that one call sets aside. A shard with more of them
// needs several calls.
const mostSetAside = 1000

// exchangeReadable sends calls. If a script can't read a record, it has written nothing. Then
// exchangeReadable sets the record aside and runs the script again. If another server of a Cluster
// may have the record, the error is [ErrTorn].
func (s *Store) exchangeReadable(ctx context.Context, calls []exchange.Call) []exchange.Outcome {
	outcomes := s.link.Run(ctx, calls)
	for i := range outcomes {
		for range mostSetAside {
			damaged, ok := errors.AsType[*exchange.DamagedError](outcomes[i].Err)
			if !ok || ctx.Err() != nil {
				break
			}

			meta := calls[i].Keys[0].(string)
			if damaged.Missing {
				if err := s.torn(ctx, meta); err != nil {
					outcomes[i].Err = fmt.Errorf("%w: %w", err, damaged)
					break
				}
			}

			if err := s.setAside(ctx, meta, damaged); err != nil {
				outcomes[i].Err = fmt.Errorf("%w; setting it aside failed: %w", damaged, err)
				break
			}

			outcomes[i] = s.link.Run(ctx, calls[i:i+1])[0]
		}
	}
	return outcomes
}

// shardOf returns the name of the shard whose keys begin with base: the text in braces.
func shardOf(base string) string {
	_, name, _ := strings.Cut(base, "{")
	name, _, _ = strings.Cut(name, "}")
	return name
}

// setAllAside sets records aside in the shard whose first key is given.
func (s *Store) setAllAside(ctx context.Context, meta string, all []*exchange.DamagedError) error {
	set, err := exchange.Await(ctx, s.link, func() error {
		if err := s.torn(ctx, meta); err != nil {
			return err
		}
		for _, damaged := range all {
			if err := s.setAside(ctx, meta, damaged); err != nil {
				return err
			}
		}
		return nil
	})
	return cmp.Or(set, err)
}

// setAside sets a record aside in the shard whose first key is given.
func (s *Store) setAside(ctx context.Context, meta string, damaged *exchange.DamagedError) error {
	base, keys := shardBase(meta), make([]any, allKeys)
	for i, suffix := range keySuffixes {
		keys[i] = base + suffix
	}

	calls := []exchange.Call{{
		Script: setAsideScript,
		Keys:   keys[:jobKeys],
		Args:   []any{s.now(), damaged.Place, damaged.ID},
	}}
	if damaged.Place == record.PlaceSchedule {
		calls = []exchange.Call{{
			Script: setAsideScheduleScript,
			Keys:   []any{keys[keyMeta], keys[keyAside], keys[keySchedules], keys[keyTicks], keys[keyScheduleNames]},
			Args:   []any{s.now(), damaged.ID, damaged.Stored, damaged.Text},
		}}
	}

	if err := s.readyFor(ctx, calls...); err != nil {
		return err // records of a newer program are not damaged
	}
	o := s.link.Run(ctx, calls)[0]
	if o.Err != nil {
		return o.Err
	}

	r := record.ReplyOf(o.Value)
	if !r.More() {
		return nil
	}

	what, why, place := r.Text(), r.Text(), record.Places[damaged.Place].String()
	for r.More() {
		if id, shard := r.Text(), shardOf(base); what == "unlisted" {
			s.logger.Warn(
				"a record was missing from the lists of its shard; it was listed again, with the present time",
				"shard", shard, "place", place, "id", id, "error", why)
		} else {
			s.logger.Error("a record that can't be read was set aside; "+
				"skein repair ls shows it, and skein repair discard removes it",
				"shard", shard, "place", place, "id", id, "error", why)
		}
	}
	return r.Err()
}

// shardBase returns the beginning of all keys of the shard that has the given key.
func shardBase(key string) string { return key[:strings.LastIndexByte(key, ':')+1] }

// torn returns [ErrTorn] if more than one master of a Cluster has keys in the slot of a key: a
// failover in the middle of its migration has left them so. It also returns [ErrTorn] if the
// masters can't be asked. Without a Cluster it returns nil.
func (s *Store) torn(ctx context.Context, key string) error {
	owner, others, err := s.mastersWith(ctx, key)
	if err == nil && owner+others > 1 {
		return fmt.Errorf("redis: %w: %d masters have keys of %s", ErrTorn, owner+others, shardOf(key))
	}
	return err
}

// mastersWith returns how many masters of a Cluster have keys in the slot of a key: its owner, and
// others. It returns [ErrTorn] if the masters can't be asked, and 0 without a Cluster.
func (s *Store) mastersWith(ctx context.Context, key string) (owner, others int, err error) {
	cluster, ok := s.client.(*goredis.ClusterClient)
	if !ok {
		return 0, 0, nil
	}

	slot, err := cluster.ClusterKeySlot(ctx, key).Result()
	var own *goredis.Client
	if err == nil {
		own, err = cluster.MasterForKey(ctx, key)
	}

	var atOwner, elsewhere atomic.Int64
	if err == nil {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, master *goredis.Client) error {
			n, err := master.ClusterCountKeysInSlot(ctx, int(slot)).Result()
			switch {
			case n > 0 && master.Options().Addr == own.Options().Addr:
				atOwner.Add(1)
			case n > 0:
				elsewhere.Add(1)
			}
			return err
		})
	}

	if err != nil {
		err = fmt.Errorf("redis: %w: the check whether another master has keys of %s failed: %v",
			ErrTorn, shardOf(key), err)
	}
	return int(atOwner.Load()), int(elsewhere.Load()), err
}
