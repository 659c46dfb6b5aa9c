package redis

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

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
	l := queueLooker{store: s}
	for i, name := range r.Queues {
		q, err := l.queue(ctx, name)
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

// addStats adds those of the shards that can be reached to a queue's state.
func (s *Store) addStats(ctx context.Context, stats *ports.QueueStats, shards []core.Shard, lost *storekit.Lost) error {
	stats.Shards = make([]ports.ShardStats, 0, len(shards))
	err := s.lookAt(ctx, shardLook{script: statsScript, commands: s.statsOf, read: func(now core.Instant, shard core.Shard, replies []any) error {
		one, err := parseShardStats(shard, replies)
		stats.Now = now
		stats.Shards = append(stats.Shards, one)
		stats.Counts = ports.SumCounts(stats.Counts, one.Counts)
		return err
	}}, shards, lost)
	slices.SortFunc(stats.Shards, func(a, b ports.ShardStats) int { return cmp.Compare(a.Shard.Index, b.Shard.Index) })
	return err
}

// statsOf returns the commands that count what a shard holds and has done, as lua/stats.lua has them too.
func (s *Store) statsOf(shard core.Shard) []call {
	return []call{
		s.read(shard, "exists", keyMeta),
		s.read(shard, "zcard", keyReady), s.read(shard, "zcard", keyParked), s.read(shard, "zcard", keyRetriesByID),
		s.read(shard, "hlen", keyClaims), s.read(shard, "hlen", keyDead), s.read(shard, "hlen", keyAside),
		s.read(shard, "zrange", keyReady, 0, 0, "withscores"), s.read(shard, "zrange", keyParked, 0, 0, "withscores"),
		s.read(shard, "hmget", keyLease, "processed", "failed", "held", "owner", "token", "expires"),
	}
}

func parseShardStats(shard core.Shard, replies []any) (ports.ShardStats, error) {
	r := reply{values: replies}
	stats := ports.ShardStats{Shard: shard}
	queued := r.int() + r.int()
	stats.Retrying = r.int()
	stats.Fresh = queued - stats.Retrying
	stats.Claimed, stats.Dead, stats.Quarantined = r.int(), r.int(), r.int()
	for range 2 {
		first, err := parsePlaces(r.next(), true)
		r.bad = r.bad || err != nil
		for _, at := range first {
			stats.Oldest = stats.Oldest.Earlier(core.Head{Due: core.Instant(at.Key), OK: true})
		}
	}
	lease := r.list()
	stats.Processed, stats.Failed = lease.number(), lease.number()
	if held := lease.number() == 1; held {
		stats.Owner, stats.Token, stats.ExpiresAt = lease.text(), lease.number(), core.Instant(lease.number())
	}
	r.bad = r.bad || lease.bad
	return stats, r.err()
}

// number reads a whole number that comes as text, or nil, which is 0.
func (r *reply) number() int64 {
	text, ok := r.optional()
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	r.bad = r.bad || err != nil
	return n
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
	q, err := s.knownQueue(ctx, name)
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
	queued, err := f.whole(ctx, r.next(), false)
	if err != nil {
		return ports.Found{}, err
	}
	if queued != nil {
		found.Queued = &queued.Job
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
	found.DeadLetter = dead.deadLetter()
	s := r.list()
	found.Standing = s.standing()
	lease := r.currentLease()
	if found.Claim != nil {
		lease.mark(found.Claim)
	}
	for _, place := range r.text() {
		found.Damaged = append(found.Damaged, places[string(place)])
	}
	slices.Sort(found.Damaged)
	if err := errors.Join(r.err(), s.err()); err != nil || len(found.Damaged) == 0 {
		return found, err
	}
	return found, f.store.torn(ctx, f.store.base(shard))
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
func (f *finder) whole(ctx context.Context, value any, dead bool) (*stored, error) {
	job, more, err := parseView(f.id, value, dead)
	for err == nil && more {
		last := &job.Payloads[len(job.Payloads)-1]
		args := []any{f.store.now(), f.id, boolArg(dead), strconv.FormatFloat(last.Score, 'g', -1, 64), last.Data}
		value, err = f.store.run(ctx, call{script: findScript, keys: f.store.firstKeys(f.shard, allKeys), args: args})
		if err != nil {
			break
		}
		r := replyOf(value)
		_ = r.text()
		var part *stored
		if part, more, err = parseView(f.id, r.next(), dead); part == nil {
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

// parseView reads {PerformAt, packed job or dead letter, whether it has more payloads}, or nil.
func parseView(id string, value any, dead bool) (found *stored, more bool, err error) {
	if value == nil {
		return nil, false, nil
	}
	r := replyOf(value)
	at := core.Instant(r.parsed())
	text := r.text()
	more = r.int() == 1
	if err := r.err(); err != nil {
		return nil, false, err
	}
	one, err := parseStored(id, text, at, dead)
	if err != nil {
		return nil, false, err
	}
	return &one, more && len(one.Payloads) > 0, nil
}
