package redis

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Stats implements [ports.Inspector].
func (s *Store) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	all := make([]ports.QueueStats, len(r.Queues))
	var failure error
	reached := len(r.Queues) == 0
	for i, name := range r.Queues {
		q, err := s.knownQueue(ctx, name)
		if err != nil {
			return nil, err
		}
		shards, err := storekit.ShardsOf(q.Queue, r.Shards)
		if err != nil {
			return nil, err
		}
		all[i].Queue = q.Queue
		var lost storekit.Lost
		if err := s.addStats(ctx, &all[i], shards, &lost); err != nil {
			return nil, err
		}
		var none error
		if all[i].Unreached, none = lost.Shards(len(shards)); none != nil {
			all[i].Unreached, failure = shards, cmp.Or(failure, none)
		} else {
			reached = true
		}
	}
	if !reached {
		return nil, failure
	}
	return all, nil
}

// shardsPerStats is of how many shards one script counts what they hold, where one server has all
// shards: to start a script takes as long as what it does for one.
const shardsPerStats = 16

// addStats adds those of the shards that can be reached to a queue's state.
func (s *Store) addStats(ctx context.Context, stats *ports.QueueStats, shards []core.Shard, lost *storekit.Lost) error {
	each := shardsPerStats
	if _, cluster := s.client.(*goredis.ClusterClient); cluster {
		each = 1
	}
	stats.Shards = make([]ports.ShardStats, 0, len(shards))
	failed, err := s.addGroups(ctx, stats, slices.Collect(slices.Chunk(shards, each)), lost)
	if err != nil || len(failed) == 0 {
		return err
	}
	_, err = s.addGroups(ctx, stats, slices.Collect(slices.Chunk(failed, 1)), lost)
	slices.SortFunc(stats.Shards, func(a, b ports.ShardStats) int { return cmp.Compare(a.Shard.Index, b.Shard.Index) })
	return err
}

// addGroups adds groups of shards to the state of their queue. It returns the shards of groups of
// several that failed: perhaps only one of them did.
func (s *Store) addGroups(ctx context.Context, stats *ports.QueueStats, groups [][]core.Shard, lost *storekit.Lost) (failed []core.Shard, err error) {
	calls := make([]call, len(groups))
	for i, group := range groups {
		calls[i] = call{script: statsScript, args: []any{s.now()}}
		for _, shard := range group {
			calls[i].keys = append(calls[i].keys, s.someKeys(shard, keyMeta, keyReady, keyParked, keyClaims, keyRetriesByID, keyDead, keyLease, keyAside)...)
		}
	}
	for i, o := range s.runApartBy(ctx, scriptApart, calls) {
		switch {
		case o.err == nil:
			err = s.addGroup(ctx, stats, groups[i], o.value)
		case len(groups[i]) > 1 && ctx.Err() == nil && !storekit.HasKnownOutcome(o.err):
			failed = append(failed, groups[i]...)
		default:
			err = lost.Add(ctx, groups[i][0], o.err)
		}
		if err != nil {
			return nil, err
		}
	}
	return failed, nil
}

// addGroup adds what the stats script says of some shards to the state of their queue.
func (s *Store) addGroup(ctx context.Context, stats *ports.QueueStats, group []core.Shard, value any) error {
	r := replyOf(value)
	stats.Now = core.Instant(r.int())
	for _, shard := range group {
		one, known, err := parseShardStats(shard, r.next())
		if err == nil && !known {
			err = s.absent(ctx, shard)
		}
		if err != nil {
			return err
		}
		stats.Shards = append(stats.Shards, one)
		stats.Counts = ports.SumCounts(stats.Counts, one.Counts)
	}
	return r.err()
}

func parseShardStats(shard core.Shard, value any) (stats ports.ShardStats, known bool, err error) {
	if _, unknown := value.(string); unknown {
		return ports.ShardStats{}, false, nil
	}
	r := replyOf(value)
	counts := r.list()
	stats = ports.ShardStats{Shard: shard, Counts: counts.counts()}
	r.bad = r.bad || counts.bad
	stats.Owner, stats.Token, stats.ExpiresAt = r.text(), r.int(), core.Instant(r.int())
	return stats, true, r.err()
}

// counts reads what lua/lib/counts.lua returns.
func (r *reply) counts() ports.Counts {
	queued, retries := r.int(), r.int()
	return ports.Counts{
		Fresh: queued - retries, Retrying: retries, Claimed: r.int(), Dead: r.int(),
		Processed: r.int(), Failed: r.int(), Oldest: r.head(), Quarantined: r.int(),
	}
}

// Find implements [ports.Inspector]. Of an id with very many payloads it reads some at a time, so
// that those which move meanwhile may be missing, or be found twice.
func (s *Store) Find(ctx context.Context, name, id string) (ports.Found, error) {
	if err := core.ValidateID(id); err != nil {
		return ports.Found{}, err
	}
	q, err := s.queue(ctx, name)
	if err != nil {
		return ports.Found{}, err
	}
	shard := core.Shard{Queue: name, Index: core.ShardOf(id, q.Shards)}
	value, err := s.run(ctx, call{script: findScript, keys: s.firstKeys(shard, allKeys), args: []any{s.now(), id}})
	if err != nil {
		return ports.Found{}, err
	}
	f := finder{store: s, shard: shard, id: id}
	return f.found(ctx, value)
}

// finder looks one id up.
type finder struct {
	store *Store
	shard core.Shard
	id    string
}

// found reads the reply of the find script, and finds the payloads that it left out.
func (f *finder) found(ctx context.Context, value any) (ports.Found, error) {
	shard, id := f.shard, f.id
	r := replyOf(value)
	_ = r.text()
	found := ports.Found{Shard: shard}
	var err error
	if found.Queued, err = f.whole(ctx, r.next(), false); err != nil {
		return ports.Found{}, err
	}
	claim, claimed := r.optional()
	cancel, _ := r.optional()
	if claimed {
		view, err := parseClaim(id, claim)
		if err != nil {
			return ports.Found{}, err
		}
		view.Shard = shard
		view.Cancelled, view.Drop = cancelOf(cancel)
		found.Claim = &view
	}
	dead, err := f.whole(ctx, r.next(), true)
	if err != nil {
		return ports.Found{}, err
	}
	if dead != nil {
		found.DeadLetter = deadLetterOf(dead)
	}
	s := r.list()
	found.Standing = s.standing()
	lease := r.currentLease()
	if found.Claim != nil {
		lease.mark(found.Claim)
	}
	return found, errors.Join(r.err(), s.err())
}

// standing reads what decides when a job runs.
func (r *reply) standing() ports.Standing {
	return ports.Standing{
		Now: core.Instant(r.int()), Paused: r.int() == 1, Owner: r.text(), Token: r.int(), ExpiresAt: core.Instant(r.int()),
		Claimed: int(r.int()), Ahead: int(r.int()), Alone: r.text(),
	}
}

// whole reads a job or dead letter that the find script found, or nil, and finds the rest of
// its payloads.
func (f *finder) whole(ctx context.Context, value any, dead bool) (*core.Job, error) {
	job, more, err := parseView(f.id, value)
	for err == nil && more {
		last := &job.Payloads[len(job.Payloads)-1]
		args := []any{f.store.now(), f.id, boolArg(dead), strconv.FormatFloat(last.Score, 'g', -1, 64), last.Data}
		value, err = f.store.run(ctx, call{script: findScript, keys: f.store.firstKeys(f.shard, allKeys), args: args})
		if err != nil {
			break
		}
		r := replyOf(value)
		_ = r.text()
		var part *core.Job
		if part, more, err = parseView(f.id, r.next()); part == nil {
			break
		}
		next := slices.IndexFunc(part.Payloads, func(p core.Payload) bool { return p.Compare(*last) > 0 })
		if next < 0 {
			break
		}
		job.Payloads = append(job.Payloads, part.Payloads[next:]...)
	}
	return job, err
}

// parseView reads {PerformAt, packed job, whether it has more payloads}, or nil.
func parseView(id string, value any) (job *core.Job, more bool, err error) {
	if value == nil {
		return nil, false, nil
	}
	r := replyOf(value)
	at := core.Instant(r.parsed())
	s := decoder{rest: r.text()}
	more = r.int() == 1
	if err := r.err(); err != nil {
		return nil, false, err
	}
	found, err := s.job(id, at)
	if err != nil {
		return nil, false, err
	}
	return &found, more && len(found.Payloads) > 0, nil
}

// deadLetterOf returns a dead letter, which is stored as a job whose PerformAt is when it
// changed.
func deadLetterOf(job *core.Job) *core.DeadLetter {
	return &core.DeadLetter{ID: job.ID, Payloads: job.Payloads, ChangedAt: job.PerformAt, Error: job.Error}
}
