package redis

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
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
	err := s.lookAt(ctx, shardLook{
		script:   statsScript,
		commands: s.statsCalls,
		read: func(now core.Instant, shard core.Shard, replies []any) error {
			one, early, err := parseShardStats(shard, replies)
			stats.Now = now
			stats.Shards = append(stats.Shards, one)
			if one.Oldest.OK && one.Oldest.Due < early {
				again = append(again, shard)
			}
			return err
		},
	}, shards, lost)

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
// PerformAt, as urgent ones are. So far their Oldest is the smallest PerformAt, and it stays so for
// a shard that can't be reached now.
func (s *Store) lookForOldest(ctx context.Context, stats *ports.QueueStats, shards []core.Shard) error {
	places := map[core.Shard]*ports.ShardStats{}
	for i := range stats.Shards {
		places[stats.Shards[i].Shard] = &stats.Shards[i]
	}

	var lost storekit.Lost
	return s.lookByScripts(ctx, shardLook{
		script:   oldestScript,
		commands: s.oldestKeys,
		read: func(_ core.Instant, shard core.Shard, replies []any) error {
			r := record.ReplyOf(replies)
			if oldest := r.Head(); oldest.OK {
				places[shard].Oldest = oldest
			}
			return r.Err()
		},
	}, shards, &lost)
}

// oldestKeys returns reads of the keys of oldestScript.
func (s *Store) oldestKeys(shard core.Shard) []exchange.Call {
	return []exchange.Call{
		s.read(shard, "exists", keyMeta),
		s.read(shard, "hlen", keyJobs),
		s.read(shard, "zcard", keyReady),
		s.read(shard, "zcard", keyParked),
	}
}

// statsCalls returns the commands that count the entries and events of a shard, the same as in
// lua/look/stats.lua.
func (s *Store) statsCalls(shard core.Shard) []exchange.Call {
	return []exchange.Call{
		s.read(shard, "exists", keyMeta),
		s.read(shard, "zcard", keyReady), s.read(shard, "zcard", keyParked), s.read(shard, "zcard", keyRetriesByID),
		s.read(shard, "zcount", keyRetriesByTime, int64(core.MaxInstant), "+inf"),
		s.read(shard, "hlen", keyClaims), s.read(shard, "hlen", keyDead), s.read(shard, "hlen", keyAside),
		s.read(shard, "zrange", keyReady, 0, 0, "withscores"), s.read(shard, "zrange", keyParked, 0, 0, "withscores"),
		s.read(shard, "hmget", keyLease,
			"processed", "failed", "superseded", "stale", "repeated", "early", "held", "owner", "token", "expires"),
	}
}

// parseShardStats reads the replies of statsCalls. early is the time of the last push of a job that
// was due before that push.
func parseShardStats(shard core.Shard, replies []any) (stats ports.ShardStats, early core.Instant, err error) {
	r := record.ReplyOf(replies)
	stats.Shard = shard
	queued := r.Int() + r.Int()
	stats.Retrying = r.Int()
	stats.Fresh = queued - stats.Retrying
	stats.Held = r.Int()
	stats.Claimed, stats.Dead, stats.Quarantined = r.Int(), r.Int(), r.Int()

	for range 2 {
		set := r.List()
		for _, at := range set.Members(true) {
			stats.Oldest = stats.Oldest.Earlier(core.Head{Due: core.Instant(at.Key), OK: true})
		}
		r.Join(&set)
	}

	lease := r.List()
	stats.Processed, stats.Failed = lease.Number(), lease.Number()
	stats.Superseded, stats.Stale, stats.Repeated = lease.Number(), lease.Number(), lease.Number()
	early = core.Instant(lease.Number())
	if held := lease.Number() == 1; held {
		stats.Owner, stats.Token, stats.ExpiresAt = lease.Text(), lease.Number(), core.Instant(lease.Number())
	}
	r.Join(&lease)
	return stats, early, r.Err()
}

// parseCounts reads the result of lua/lib/counts.lua.
func parseCounts(r *record.Reply) ports.Counts {
	queued, retries := r.Int(), r.Int()
	return ports.Counts{
		Fresh:       queued - retries,
		Retrying:    retries,
		Claimed:     r.Int(),
		Dead:        r.Int(),
		Processed:   r.Int(),
		Failed:      r.Int(),
		Oldest:      r.Head(),
		Quarantined: r.Int(),
		Superseded:  r.Int(),
		Held:        r.Int(),
		Stale:       r.Int(),
		Repeated:    r.Int(),
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

	value, err := s.run(ctx, exchange.Call{Script: findScript, Keys: s.firstKeys(shard, jobKeys), Args: args})
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
	r := record.ReplyOf(value)
	_ = r.Text()
	found := ports.Found{Shard: shard}

	queued, err := parseView(request.ID, r.Next(), jobKind)
	if err != nil {
		return ports.Found{}, err
	}
	if queued != nil {
		found.Queued = &ports.JobView{Job: queued.entry, Count: request.Counted(queued.count)}
		found.AddNext(request, ports.PlaceQueued, queued.entry.Payloads, queued.more)
	}

	claim, err := parseFoundClaim(request.ID, r.Next())
	if err != nil {
		return ports.Found{}, err
	}
	cancel, _ := r.Optional()
	if claim != nil {
		claim.Shard = shard
		claim.Cancelled, claim.Drop = parseCancel(cancel)
		found.Claim = &claim.ClaimView
		found.Claim.Count = request.Counted(found.Claim.Count)
		found.AddNext(request, ports.PlaceClaimed, claim.Payloads, claim.more)
	}

	dead, err := parseView(request.ID, r.Next(), deadKind)
	if err != nil {
		return ports.Found{}, err
	}
	if dead != nil {
		found.DeadLetter = &ports.DeadLetterView{DeadLetter: dead.entry, Count: request.Counted(dead.count)}
		found.AddNext(request, ports.PlaceDead, dead.entry.Payloads, dead.more)
	}

	s := r.List()
	found.Standing = parseStanding(&s)
	lease := parseLease(&r)
	if found.Claim != nil {
		lease.mark(found.Claim)
	}

	for _, place := range r.Text() {
		found.Damaged = append(found.Damaged, record.Places[string(place)])
	}
	slices.Sort(found.Damaged)
	found.Past, found.Mark = parseFoundPast(&r, request.ID)
	return found, errors.Join(r.Err(), s.Err())
}

// parseStanding reads the values that decide when a job runs.
func parseStanding(r *record.Reply) ports.Standing {
	return ports.Standing{
		Now:       core.Instant(r.Int()),
		Paused:    r.Int() == 1,
		Owner:     r.Text(),
		Token:     r.Int(),
		ExpiresAt: core.Instant(r.Int()),
		Claimed:   int(r.Int()),
		Ahead:     int(r.Int()),
		Alone:     r.Text(),
	}
}

// foundItem is a job or dead letter that was found, with some of its payloads.
type foundItem[T any] struct {
	row[T]
	more bool
}

// parseView reads {PerformAt or ChangedAt, packed job or dead letter, how many payloads it has,
// whether others follow}, or nil.
func parseView[T any](id string, value any, k kind[T]) (*foundItem[T], error) {
	if value == nil {
		return nil, nil
	}
	r := record.ReplyOf(value)
	at := core.Instant(r.Parsed())
	text, count, more := r.Text(), r.Int(), r.Int() == 1
	if err := r.Err(); err != nil {
		return nil, err
	}
	entry, err := k.parse(id, text, at)
	return &foundItem[T]{row[T]{entry, int(count)}, more}, err
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
	r := record.ReplyOf(value)
	text, count, more := r.Text(), r.Int(), r.Int() == 1
	if err := r.Err(); err != nil {
		return nil, err
	}
	view, err := record.ParseClaim(id, text)
	view.Count = int(count)
	return &foundClaim{view, more}, err
}
