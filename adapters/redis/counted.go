package redis

import (
	"context"
	"errors"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// shardsPerLook is the maximum number of shards that one transaction reads, so that it takes the
// server less than a millisecond.
const shardsPerLook = 64

// shardLook reads the same values of several shards, for each shard at one instant.
type shardLook struct {
	// commands read a shard, each by its first key. The first one replies 0 if the shard does not
	// exist.
	commands func(core.Shard) []exchange.Call
	// script runs the same commands. Its reply is the store's time, and then the reply of each
	// command.
	script *exchange.Script
	// read gets the replies of the other commands, for each shard that can be reached.
	read func(now core.Instant, shard core.Shard, replies []any) error
	// newlyLost are the shards that this look is the first to find without a record.
	newlyLost *[]core.Shard
}

// lookAt reads each of the shards. A single server gets transactions of plain commands, which cost
// it half as much as a script that makes the same calls. A Cluster gets scripts, and so does a
// server that replies to a transaction with an error: scripts are repeated while the server refuses
// them, and a shard that can't be read does not hide the others. If a transaction gets no reply, no
// scripts follow, because that would wait for a hanging server twice.
func (s *Store) lookAt(ctx context.Context, l shardLook, shards []core.Shard, lost *storekit.Lost) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	l.newlyLost = new([]core.Shard)
	defer func() { s.logLost(*l.newlyLost) }()

	for len(shards) > 0 && !s.link.OnCluster() && !s.noTransactions.Load() {
		part := shards[:min(len(shards), shardsPerLook)]
		calls := s.lookCalls(l, part)
		t, err := exchange.Await(ctx, s.link, func() transacted { return s.transact(ctx, calls) })
		if err != nil {
			return err
		}

		if t.err != nil && exchange.Broken(t.err) {
			return addLost(ctx, lost, shards, exchange.Translate(ctx, t.err))
		}
		if t.err != nil {
			break
		}

		if err := s.readPart(ctx, l, part, t.replies, lost); err != nil {
			return err
		}
		shards = shards[len(part):]
	}
	return s.lookByScripts(ctx, l, shards, lost)
}

// addLost adds shards that can't be reached for the same reason.
func addLost(ctx context.Context, lost *storekit.Lost, shards []core.Shard, reason error) error {
	for _, shard := range shards {
		if err := lost.Add(ctx, shard, reason); err != nil {
			return err
		}
	}
	return nil
}

// lookCalls returns the commands that read the store's time and then each of the shards.
func (s *Store) lookCalls(l shardLook, shards []core.Shard) []exchange.Call {
	calls := append(make([]exchange.Call, 0, 1+16*len(shards)), exchange.Call{Command: "time"})
	for _, shard := range shards {
		calls = append(calls, l.commands(shard)...)
	}
	return calls
}

// transacted is the commands' replies in a transaction, or the first error.
type transacted struct {
	replies []any
	err     error
}

// transact runs plain commands that read as one transaction. If the user lacks the right to run
// transactions, it remembers this.
func (s *Store) transact(ctx context.Context, calls []exchange.Call) (t transacted) {
	t.replies, t.err = s.link.Transact(ctx, calls)
	// The client drops the connection then: it has not read the server's replies to the commands.
	if goredis.HasErrorPrefix(t.err, "NOPERM") {
		s.noTransactions.Store(true)
	}
	return t
}

// readPart reads the replies to the commands of lookCalls.
func (s *Store) readPart(
	ctx context.Context,
	l shardLook,
	part []core.Shard,
	replies []any,
	lost *storekit.Lost,
) error {
	now, err := s.parseInstant(replies[0])
	if err != nil {
		return err
	}

	each := (len(replies) - 1) / len(part)
	for i, shard := range part {
		if err := s.readShard(ctx, l, now, shard, replies[1+i*each:][:each], lost); err != nil {
			return err
		}
	}
	return nil
}

// readShard reads the commands' replies for a shard. A shard that has lost its record does not hide
// the others.
func (s *Store) readShard(
	ctx context.Context,
	l shardLook,
	now core.Instant,
	shard core.Shard,
	replies []any,
	lost *storekit.Lost,
) error {
	if len(replies) == 0 || replies[0] == int64(0) {
		err := s.absent(ctx, shard)
		if errors.Is(err, ErrLostRecord) {
			if s.seen.isNewDamage(shard.String(), err.Error()) {
				*l.newlyLost = append(*l.newlyLost, shard)
			}
			return lost.Add(ctx, shard, err)
		}
		return err
	}

	s.seen.mended(shard)
	return l.read(now, shard, replies[1:])
}

// parseInstant returns the store's time, given the reply of TIME.
func (s *Store) parseInstant(reply any) (core.Instant, error) {
	if s.clock != nil {
		return core.InstantOf(s.clock()), nil
	}
	r := record.ReplyOf(reply)
	now := r.Parsed()*1e6 + r.Parsed()
	return core.Instant(now), r.Err()
}

// lookByScripts reads each of the shards by a script.
func (s *Store) lookByScripts(ctx context.Context, l shardLook, shards []core.Shard, lost *storekit.Lost) error {
	calls := make([]exchange.Call, len(shards))
	for i, shard := range shards {
		calls[i] = exchange.Call{Script: l.script, Args: []any{s.now()}}
		for _, c := range l.commands(shard) {
			calls[i].Keys = append(calls[i].Keys, c.Keys[0])
		}
	}

	for i, o := range s.runApartBy(ctx, scriptApart, calls) {
		err := o.Err
		if err == nil {
			r := record.ReplyOf(o.Value)
			err = s.readShard(ctx, l, core.Instant(r.Int()), shards[i], r.Rest(), lost)
		} else {
			err = lost.Add(ctx, shards[i], err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read returns the plain command that reads a key of a shard.
func (s *Store) read(shard core.Shard, command string, key int, args ...any) exchange.Call {
	return exchange.Call{Command: command, Keys: s.keys(shard)[key : key+1 : key+1], Args: args}
}

// Groups implements [ports.Inspector].
func (s *Store) Groups(ctx context.Context, r ports.GroupsRequest) (ports.GroupsReply, error) {
	_, shards, err := s.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.GroupsReply{}, err
	}

	var (
		reply ports.GroupsReply
		sums  storekit.GroupSums
		lost  storekit.Lost
	)

	err = s.lookAt(ctx, shardLook{
		script: groupsScript,
		commands: func(shard core.Shard) []exchange.Call {
			return []exchange.Call{s.read(shard, "exists", keyMeta), s.read(shard, "hgetall", keyGroups)}
		},
		read: func(now core.Instant, _ core.Shard, replies []any) error {
			reply.Now = now
			return addGroups(&sums, replies)
		},
	}, shards, &lost)
	if err == nil {
		reply.Unreached, err = lost.Shards(len(shards))
	}
	if err != nil {
		return ports.GroupsReply{}, err
	}

	sums.Fill(&reply, r.Size())
	return reply, nil
}

// addGroups adds the groups of a shard, except those whose counts can't be read.
func addGroups(sums *storekit.GroupSums, replies []any) error {
	r := record.ReplyOf(replies)
	groups := r.Pairs()
	for groups.More() {
		if g, ok := record.ParseGroup(groups.Text(), groups.Text()); ok {
			sums.Add(g)
		}
	}
	r.Join(&groups)
	return r.Err()
}
