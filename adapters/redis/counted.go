package redis

import (
	"context"
	"slices"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// shardsPerCount is of how many shards one script counts what they hold, where one server has all
// shards: to start a script takes as long as what it does for one.
const shardsPerCount = 16

// counting is a script that counts what shards hold, by some of their keys.
type counting struct {
	script *script
	keys   []int
	// read gets what the script says of each shard that can be reached, in any order.
	read func(now core.Instant, shard core.Shard, value any) error
}

// countEach has a script count what shards hold.
func (s *Store) countEach(ctx context.Context, c *script, keys []int, shards []core.Shard, lost *storekit.Lost,
	read func(now core.Instant, shard core.Shard, value any) error,
) error {
	each := shardsPerCount
	if _, cluster := s.client.(*goredis.ClusterClient); cluster {
		each = 1
	}
	count := counting{script: c, keys: keys, read: read}
	failed, err := s.countParts(ctx, &count, slices.Collect(slices.Chunk(shards, each)), lost)
	if err != nil || len(failed) == 0 {
		return err
	}
	_, err = s.countParts(ctx, &count, slices.Collect(slices.Chunk(failed, 1)), lost)
	return err
}

// countParts counts what parts of the shards hold, each in a call. It returns the shards of parts of
// several that failed: perhaps only one of them did.
func (s *Store) countParts(ctx context.Context, c *counting, parts [][]core.Shard, lost *storekit.Lost) (failed []core.Shard, err error) {
	calls := make([]call, len(parts))
	for i, part := range parts {
		calls[i] = call{script: c.script, args: []any{s.now()}}
		for _, shard := range part {
			calls[i].keys = append(calls[i].keys, s.someKeys(shard, c.keys...)...)
		}
	}
	for i, o := range s.runApartBy(ctx, scriptApart, calls) {
		switch {
		case o.err == nil:
			err = s.readPart(ctx, c, parts[i], o.value)
		case len(parts[i]) > 1 && ctx.Err() == nil && !storekit.HasKnownOutcome(o.err):
			failed = append(failed, parts[i]...)
		default:
			err = lost.Add(ctx, parts[i][0], o.err)
		}
		if err != nil {
			return nil, err
		}
	}
	return failed, nil
}

// readPart reads what the script says of some shards.
func (s *Store) readPart(ctx context.Context, c *counting, part []core.Shard, value any) error {
	r := replyOf(value)
	now := core.Instant(r.int())
	for _, shard := range part {
		one := r.next()
		if _, unknown := one.(string); unknown {
			return s.absent(ctx, shard)
		}
		if err := c.read(now, shard, one); err != nil {
			return err
		}
	}
	return r.err()
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
	err = s.countEach(ctx, groupsScript, []int{keyMeta, keyGroups}, shards, &lost, func(now core.Instant, _ core.Shard, value any) error {
		reply.Now = now
		return addGroups(&sums, value)
	})
	if err == nil {
		reply.Unreached, err = lost.Shards(len(shards))
	}
	if err != nil {
		return ports.GroupsReply{}, err
	}
	sums.Fill(&reply, r.Size())
	return reply, nil
}

// addGroups adds the groups of a shard, but for those whose counts can't be read.
func addGroups(sums *storekit.GroupSums, value any) error {
	r := replyOf(value)
	for r.more() {
		g, counts := core.Group{Name: r.text()}, decoder{rest: r.text()}
		g.Count, g.First, g.Last = int64(counts.instant()), counts.instant(), counts.instant()
		if !counts.bad && counts.rest == "" && g.Count > 0 {
			sums.Add(g)
		}
	}
	return r.err()
}
