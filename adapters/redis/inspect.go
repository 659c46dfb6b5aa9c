package redis

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Stats implements [ports.Inspector].
func (s *Store) Stats(ctx context.Context, names []string) ([]ports.QueueStats, error) {
	all := make([]ports.QueueStats, len(names))
	for i, name := range names {
		q, err := s.queue(ctx, name)
		if err != nil {
			return nil, err
		}
		stats := &all[i]
		*stats = ports.QueueStats{Queue: q.Queue, Shards: make([]ports.ShardStats, 0, q.Shards)}
		err = s.eachShard(ctx, q, func(shard core.Shard) call {
			return s.statsCall(shard)
		}, func(shard core.Shard, value any) error {
			now, one, known, err := parseShardStats(shard, value)
			if err == nil && !known {
				err = s.absent(ctx, shard)
			}
			stats.Now = now
			stats.Shards = append(stats.Shards, one)
			stats.Counts = ports.SumCounts(stats.Counts, one.Counts)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *Store) statsCall(shard core.Shard) call {
	return call{
		script: statsScript,
		keys:   s.someKeys(shard, keyMeta, keyReady, keyParked, keyClaims, keyRetriesByID, keyDead, keyLease),
		args:   []any{s.now()},
	}
}

func parseShardStats(shard core.Shard, value any) (now core.Instant, stats ports.ShardStats, known bool, err error) {
	r := replyOf(value)
	if r.text() != "ok" {
		return 0, ports.ShardStats{}, false, r.err()
	}
	now = core.Instant(r.int())
	counts := r.list()
	stats = ports.ShardStats{Shard: shard, Counts: counts.counts()}
	r.bad = r.bad || counts.bad
	stats.Owner, stats.Token, stats.ExpiresAt = r.text(), r.int(), core.Instant(r.int())
	return now, stats, true, r.err()
}

// counts reads what lua/lib/counts.lua returns.
func (r *reply) counts() ports.Counts {
	queued, retries := r.int(), r.int()
	return ports.Counts{
		Fresh: queued - retries, Retrying: retries, Claimed: r.int(), Dead: r.int(),
		Processed: r.int(), Failed: r.int(), Oldest: r.head(),
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
	_, cancelled := r.optional()
	if claimed {
		view, err := parseClaim(id, claim)
		if err != nil {
			return ports.Found{}, err
		}
		view.Shard, view.Cancelled = shard, cancelled
		found.Claim = &view
	}
	dead, err := f.whole(ctx, r.next(), true)
	if err != nil {
		return ports.Found{}, err
	}
	if dead != nil {
		found.DeadLetter = deadLetterOf(dead)
	}
	token := r.int()
	if found.Claim != nil {
		found.Claim.LeaseOver = found.Claim.Receipt.Token != token
	}
	s := r.list()
	found.Standing = s.standing()
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
