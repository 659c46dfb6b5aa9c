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

// announceSQL writes a node and lists all that are known. It deletes those that ran out
// an hour ago, which are 3600000000 µs.
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
  SELECT $2, $3, $4, $5, $6, $7, now, {schema}.later(now, $8::bigint) FROM clock
  ON CONFLICT (owner) DO UPDATE SET
    name = excluded.name, host = excluded.host, pid = excluded.pid, lanes = excluded.lanes, queues = excluded.queues,
    started = CASE WHEN excluded.started < n.expires THEN n.started ELSE excluded.started END,
    expires = excluded.expires
  RETURNING *
)
SELECT clock.now, n.* FROM clock, (
  SELECT * FROM mine UNION ALL SELECT * FROM {schema}.nodes WHERE owner <> $2
) n`

// nodesSQL lists the nodes that are known, beside the clock.
//
//	$1 now
const nodesSQL = `SELECT {schema}.clock($1), n.* FROM {schema}.nodes n`

// Announce implements [ports.Registry].
func (s *Store) Announce(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
	if err := r.Validate(); err != nil {
		return ports.AnnounceReply{}, err
	}
	n := r.Node
	queues := append([]string{}, n.Queues...) // an array, not NULL
	var reply ports.AnnounceReply
	err := s.query(ctx, idempotent, func(rows pgx.Rows) (err error) {
		reply.Now, reply.Nodes, err = readNodes(rows)
		return err
	}, announceSQL, s.now(), n.Owner, n.Name, n.Host, n.PID, n.Lanes, queues, r.TTL.Microseconds())
	if err != nil {
		return ports.AnnounceReply{}, err
	}
	return reply, nil
}

// Retire implements [ports.Registry].
func (s *Store) Retire(ctx context.Context, owner string) error {
	return s.query(ctx, idempotent, noRows, `DELETE FROM {schema}.nodes WHERE owner = $1`, owner)
}

// Nodes implements [ports.Registry].
func (s *Store) Nodes(ctx context.Context) ([]ports.Node, error) {
	var nodes []ports.Node
	err := s.query(ctx, idempotent, func(rows pgx.Rows) (err error) {
		_, nodes, err = readNodes(rows)
		return err
	}, nodesSQL, s.now())
	return nodes, err
}

// readNodes reads the clock and all known nodes, and returns those that run.
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
