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

// addStats adds the statistics of the reachable shards to a queue's state.
func (s *Store) addStats(ctx context.Context, stats *ports.QueueStats, shards []core.Shard, lost *storekit.Lost) error {
	stats.Shards = make([]ports.ShardStats, 0, len(shards))
	var again []core.Shard
	err := s.lookAt(ctx, shardLook{script: statsScript, commands: s.statsOf, read: func(now core.Instant, shard core.Shard, replies []any) error {
		one, early, err := parseShardStats(shard, replies)
		stats.Now = now
		stats.Shards = append(stats.Shards, one)
		if one.Oldest.OK && one.Oldest.Due < early {
			again = append(again, shard)
		}
		return err
	}}, shards, lost)
	if err == nil && len(again) > 0 {
		err = s.lookForOldest(ctx, stats, again)
	}
	for i := range stats.Shards {
		stats.Counts = ports.SumCounts(stats.Counts, stats.Shards[i].Counts)
	}
	slices.SortFunc(stats.Shards, func(a, b ports.ShardStats) int { return cmp.Compare(a.Shard.Index, b.Shard.Index) })
	return err
}

// lookForOldest corrects the Oldest of those shards in which jobs were pushed after their
// PerformAt, as urgent ones are. It is their smallest PerformAt so far, and stays that of a shard
// that can't be reached now.
func (s *Store) lookForOldest(ctx context.Context, stats *ports.QueueStats, shards []core.Shard) error {
	places := map[core.Shard]*ports.ShardStats{}
	for i := range stats.Shards {
		places[stats.Shards[i].Shard] = &stats.Shards[i]
	}
	var lost storekit.Lost
	return s.lookByScripts(ctx, shardLook{script: oldestScript, commands: s.oldestKeys, read: func(_ core.Instant, shard core.Shard, replies []any) error {
		r := reply{values: replies}
		if oldest := r.head(); oldest.OK {
			places[shard].Oldest = oldest
		}
		return r.err()
	}}, shards, &lost)
}

// oldestKeys returns reads of the keys of oldestScript.
func (s *Store) oldestKeys(shard core.Shard) []call {
	return []call{s.read(shard, "exists", keyMeta), s.read(shard, "hlen", keyJobs), s.read(shard, "zcard", keyReady), s.read(shard, "zcard", keyParked)}
}

// statsOf returns the commands that count the entries and events of a shard, the same as in
// lua/look/stats.lua.
func (s *Store) statsOf(shard core.Shard) []call {
	return []call{
		s.read(shard, "exists", keyMeta),
		s.read(shard, "zcard", keyReady), s.read(shard, "zcard", keyParked), s.read(shard, "zcard", keyRetriesByID),
		s.read(shard, "zcount", keyRetriesByTime, int64(core.MaxInstant), "+inf"),
		s.read(shard, "hlen", keyClaims), s.read(shard, "hlen", keyDead), s.read(shard, "hlen", keyAside),
		s.read(shard, "zrange", keyReady, 0, 0, "withscores"), s.read(shard, "zrange", keyParked, 0, 0, "withscores"),
		s.read(shard, "hmget", keyLease, "processed", "failed", "superseded", "early", "held", "owner", "token", "expires"),
	}
}

// parseShardStats also returns when the last job was pushed that was due before its push.
func parseShardStats(shard core.Shard, replies []any) (stats ports.ShardStats, early core.Instant, err error) {
	r := reply{values: replies}
	stats.Shard = shard
	queued := r.int() + r.int()
	stats.Retrying = r.int()
	stats.Fresh = queued - stats.Retrying
	stats.Held = r.int()
	stats.Claimed, stats.Dead, stats.Quarantined = r.int(), r.int(), r.int()
	for range 2 {
		first, err := parsePlaces(r.next(), true)
		r.bad = r.bad || err != nil
		for _, at := range first {
			stats.Oldest = stats.Oldest.Earlier(core.Head{Due: core.Instant(at.Key), OK: true})
		}
	}
	lease := r.list()
	stats.Processed, stats.Failed, stats.Superseded, early = lease.number(), lease.number(), lease.number(), core.Instant(lease.number())
	if held := lease.number() == 1; held {
		stats.Owner, stats.Token, stats.ExpiresAt = lease.text(), lease.number(), core.Instant(lease.number())
	}
	r.bad = r.bad || lease.bad
	return stats, early, r.err()
}

// number reads an integer that comes as text. nil is 0.
func (r *reply) number() int64 {
	text, ok := r.optional()
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	r.bad = r.bad || err != nil
	return n
}

// counts reads the result of lua/lib/counts.lua.
func (r *reply) counts() ports.Counts {
	queued, retries := r.int(), r.int()
	return ports.Counts{
		Fresh: queued - retries, Retrying: retries, Claimed: r.int(), Dead: r.int(),
		Processed: r.int(), Failed: r.int(), Oldest: r.head(), Quarantined: r.int(), Superseded: r.int(), Held: r.int(),
	}
}

// Find implements [ports.Inspector].
func (s *Store) Find(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
	if err := r.Validate(); err != nil {
		return ports.Found{}, err
	}
	q, err := s.knownQueue(ctx, r.Queue)
	if err != nil {
		return ports.Found{}, err
	}
	shard := core.Shard{Queue: r.Queue, Index: core.ShardOf(r.ID, q.Shards)}
	args := []any{s.now(), r.ID, r.Most(ports.PlaceQueued), r.Most(ports.PlaceClaimed), r.Most(ports.PlaceDead), 0, 0}
	if r.After != nil {
		args[5], args[6] = strconv.FormatFloat(r.After.Score, 'g', -1, 64), r.After.Skip
	}
	value, err := s.run(ctx, call{script: findScript, keys: s.firstKeys(shard, allKeys), args: args})
	if err != nil {
		return ports.Found{}, err
	}
	found, err := parseFound(value, &r, shard)
	if err != nil || len(found.Damaged) == 0 {
		return found, err
	}
	return found, s.torn(ctx, s.base(shard))
}

// parseFound reads the reply of the find script.
func parseFound(value any, request *ports.FindRequest, shard core.Shard) (ports.Found, error) {
	r := replyOf(value)
	_ = r.text()
	found := ports.Found{Shard: shard}
	queued, err := parseView(request.ID, r.next(), false)
	if err != nil {
		return ports.Found{}, err
	}
	if queued != nil {
		found.Queued = &ports.JobView{Job: queued.Job, Count: request.Counted(queued.count)}
		found.AddNext(request, ports.PlaceQueued, queued.Payloads, queued.more)
	}
	claim, err := parseFoundClaim(request.ID, r.next())
	if err != nil {
		return ports.Found{}, err
	}
	cancel, _ := r.optional()
	if claim != nil {
		claim.Shard = shard
		claim.Cancelled, claim.Drop = cancelOf(cancel)
		found.Claim = &claim.ClaimView
		found.Claim.Count = request.Counted(found.Claim.Count)
		found.AddNext(request, ports.PlaceClaimed, claim.Payloads, claim.more)
	}
	dead, err := parseView(request.ID, r.next(), true)
	if err != nil {
		return ports.Found{}, err
	}
	if dead != nil {
		found.DeadLetter = &ports.DeadLetterView{DeadLetter: *dead.deadLetter(), Count: request.Counted(dead.count)}
		found.AddNext(request, ports.PlaceDead, dead.Payloads, dead.more)
	}
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
	return found, errors.Join(r.err(), s.err())
}

// standing reads the values that decide when a job runs.
func (r *reply) standing() ports.Standing {
	return ports.Standing{
		Now: core.Instant(r.int()), Paused: r.int() == 1, Owner: r.text(), Token: r.int(), ExpiresAt: core.Instant(r.int()),
		Claimed: int(r.int()), Ahead: int(r.int()), Alone: r.text(),
	}
}

// foundItem is a job or dead letter that was found, with some of its payloads.
type foundItem struct {
	row
	more bool
}

// parseView reads {PerformAt, packed job or dead letter, how many payloads it has, whether others
// follow}, or nil.
func parseView(id string, value any, dead bool) (*foundItem, error) {
	if value == nil {
		return nil, nil
	}
	r := replyOf(value)
	at := core.Instant(r.parsed())
	text, count, more := r.text(), r.int(), r.int() == 1
	if err := r.err(); err != nil {
		return nil, err
	}
	one, err := parseStored(id, text, at, dead)
	return &foundItem{row{one, int(count)}, more}, err
}

// foundClaim is a claim that was found, with some of its payloads.
type foundClaim struct {
	ports.ClaimView
	more bool
}

// parseFoundClaim reads {claim, how many payloads it has, whether others follow}, or nil.
func parseFoundClaim(id string, value any) (*foundClaim, error) {
	if value == nil {
		return nil, nil
	}
	r := replyOf(value)
	text, count, more := r.text(), r.int(), r.int() == 1
	if err := r.err(); err != nil {
		return nil, err
	}
	view, err := parseClaim(id, text)
	view.Count = int(count)
	return &foundClaim{view, more}, err
}
