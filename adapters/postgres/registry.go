package postgres

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// announceSQL writes a node and lists all that run. What it deletes nobody lists.
//
//	$1 now, $2 owner, $3 name, $4 host, $5 pid, $6 lanes, $7 queues, $8 TTL
const announceSQL = `
WITH clock AS MATERIALIZED (
  SELECT {schema}.clock($1) AS now
), gone AS (
  DELETE FROM {schema}.nodes WHERE owner IN (
    SELECT owner FROM {schema}.nodes
    WHERE owner <> $2 AND expires < (SELECT now FROM clock) - 3600000000
    FOR UPDATE SKIP LOCKED)
), mine AS (
  INSERT INTO {schema}.nodes AS n (owner, name, host, pid, lanes, queues, started, expires)
  SELECT $2, $3, $4, $5, $6, $7, now, least(now + $8::bigint, 9007199254740992) FROM clock
  ON CONFLICT (owner) DO UPDATE SET
    name = excluded.name, host = excluded.host, pid = excluded.pid, lanes = excluded.lanes, queues = excluded.queues,
    started = CASE WHEN excluded.started < n.expires THEN n.started ELSE excluded.started END,
    expires = excluded.expires
  RETURNING *
)
SELECT clock.now, n.* FROM clock, (
  SELECT * FROM mine UNION ALL SELECT * FROM {schema}.nodes WHERE owner <> $2
) n`

// nodesSQL lists the nodes that are known. $1 now.
const nodesSQL = `SELECT {schema}.clock($1), n.* FROM {schema}.nodes n`

// Announce implements ports.Registry.
func (s *Store) Announce(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
	if err := r.Validate(); err != nil {
		return ports.AnnounceReply{}, err
	}
	n := r.Node
	queues := append([]string{}, n.Queues...) // an array, not NULL
	var reply ports.AnnounceReply
	err := s.query(ctx, always, func(rows pgx.Rows) (err error) {
		reply.Now, reply.Nodes, err = readNodes(rows)
		return err
	}, announceSQL, s.now(), n.Owner, n.Name, n.Host, n.PID, n.Lanes, queues, r.TTL.Microseconds())
	if err != nil {
		return ports.AnnounceReply{}, err
	}
	return reply, nil
}

// Retire implements ports.Registry.
func (s *Store) Retire(ctx context.Context, owner string) error {
	return s.query(ctx, always, noRows, `DELETE FROM {schema}.nodes WHERE owner = $1`, owner)
}

// Nodes implements ports.Registry.
func (s *Store) Nodes(ctx context.Context) ([]ports.Node, error) {
	var nodes []ports.Node
	err := s.query(ctx, always, func(rows pgx.Rows) (err error) {
		_, nodes, err = readNodes(rows)
		return err
	}, nodesSQL, s.now())
	return nodes, err
}

// readNodes reads the clock and all known nodes, and keeps those that run.
func readNodes(rows pgx.Rows) (now core.Instant, nodes []ports.Node, err error) {
	err = eachRow(rows, func() error {
		var n ports.Node
		err := rows.Scan(&now, &n.Owner, &n.Name, &n.Host, &n.PID, &n.Lanes, &n.Queues, &n.StartedAt, &n.ExpiresAt)
		if now < n.ExpiresAt {
			nodes = append(nodes, n)
		}
		return err
	})
	slices.SortFunc(nodes, func(a, b ports.Node) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Owner, b.Owner))
	})
	return now, nodes, err
}

// noRows is for statements that give none.
func noRows(pgx.Rows) error { return nil }

// queuesSQL lists queues, or the one that $1 names. A pause is of all shards at
// once, so that the first tells.
const queuesSQL = `
SELECT q.name, q.shards, q.generation, q.index_ids, s.paused
FROM {schema}.queues q JOIN {schema}.shards s ON s.id = q.id * 16384
WHERE $1::text IS NULL OR q.name = $1
ORDER BY q.name`

// Queues implements ports.Registry.
func (s *Store) Queues(ctx context.Context) ([]ports.Queue, error) {
	return s.queues(ctx, nil)
}

func (s *Store) queues(ctx context.Context, name *string) ([]ports.Queue, error) {
	var queues []ports.Queue
	err := s.query(ctx, always, func(rows pgx.Rows) error {
		queues = nil
		return eachRow(rows, func() error {
			var q ports.Queue
			err := rows.Scan(&q.Name, &q.Shards, &q.Generation, &q.IndexIDs, &q.Paused)
			queues = append(queues, q)
			return err
		})
	}, queuesSQL, name)
	return queues, err
}

// queue is the record of a queue.
func (s *Store) queue(ctx context.Context, name string) (ports.Queue, error) {
	queues, err := s.queues(ctx, &name)
	if err == nil && len(queues) == 0 {
		err = unknownQueue.err(core.Shard{Queue: name})
	}
	if err != nil {
		return ports.Queue{}, err
	}
	return queues[0], nil
}

// checkShards refuses shards that do not exist.
func (s *Store) checkShards(ctx context.Context, shards []core.Shard) error {
	known := make(map[string]int)
	for _, shard := range shards {
		if _, ok := known[shard.Queue]; !ok {
			q, err := s.queue(ctx, shard.Queue)
			if err != nil {
				return err
			}
			known[q.Name] = q.Shards
		}
		if shard.Index < 0 || shard.Index >= known[shard.Queue] {
			return noSuchShard.err(shard)
		}
	}
	return nil
}

// pauseSQL pauses or resumes all shards of a queue, locking them in their order.
// $1 the queue, $2 whether it is paused.
const pauseSQL = `
WITH locked AS MATERIALIZED (
  SELECT s.id FROM {schema}.shards s WHERE s.queue = $1 ORDER BY s.id FOR UPDATE
), changed AS (
  UPDATE {schema}.shards s SET paused = $2 WHERE s.id = ANY (ARRAY(SELECT id FROM locked)) AND s.paused <> $2
)
SELECT count(*) FROM locked`

// Pause implements ports.Operator.
func (s *Store) Pause(ctx context.Context, queue string) error {
	_, err := s.setPaused(ctx, queue, true)
	return err
}

// Resume implements ports.Operator.
func (s *Store) Resume(ctx context.Context, queue string) error {
	shards, err := s.setPaused(ctx, queue, false)
	if err != nil {
		return err
	}
	for _, shard := range core.Shards(queue, shards) {
		s.wake(shard, regardless)
	}
	return nil
}

// setPaused returns how many shards the queue has.
func (s *Store) setPaused(ctx context.Context, queue string, paused bool) (shards int, err error) {
	err = s.query(ctx, always, func(rows pgx.Rows) error {
		return readOne(rows, &shards)
	}, pauseSQL, queue, paused)
	if err == nil && shards == 0 {
		err = unknownQueue.err(core.Shard{Queue: queue})
	}
	if err != nil {
		return 0, err
	}
	return shards, nil
}
