package postgres

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// announceSQL writes a node, lists all running nodes, and wakes other nodes by the same commit if
// the node is new to them or its announcement has changed. It deletes nodes that expired an hour
// ago (ports.NodeKept, 3600000000 µs), and shortens those that end later than their TTL from now.
// It does so after it has locked its own row, so that two calls don't wait for each other.
//
//	$1 now, $2 owner, $3 name, $4 host, $5 pid, $6 lanes, $7 queues, $8 version, $9 draining,
//	$10 what it is doing, $11 TTL, $12 the channel, or NULL for no wake-up
const announceSQL = `
WITH clock AS MATERIALIZED (
  SELECT {schema}.clock($1) AS now
), gone AS (
  DELETE FROM {schema}.nodes WHERE owner IN (
    SELECT owner FROM {schema}.nodes
    WHERE owner <> $2 AND expires < (SELECT now FROM clock) - 3600000000
    FOR UPDATE SKIP LOCKED)
), known AS MATERIALIZED (
  SELECT * FROM {schema}.nodes WHERE owner = $2 AND expires > (SELECT now FROM clock)
), mine AS (
  INSERT INTO {schema}.nodes AS n
    (owner, name, host, pid, lanes, queues, version, draining, asked, started, expires, ttl, status)
  SELECT $2, $3, $4, $5, $6, $7, $8, $9, false, now, {schema}.later(now, $11::bigint), $11::bigint, $10::json FROM clock
  ON CONFLICT (owner) DO UPDATE SET
    name = excluded.name, host = excluded.host, pid = excluded.pid, lanes = excluded.lanes, queues = excluded.queues,
    version = excluded.version, draining = excluded.draining,
    asked = n.asked AND excluded.started < n.expires,
    started = CASE WHEN excluded.started < n.expires THEN n.started ELSE excluded.started END,
    expires = excluded.expires, ttl = excluded.ttl, status = excluded.status
  RETURNING *
), cut AS (
  UPDATE {schema}.nodes SET expires = {schema}.later((SELECT now FROM clock), ttl) WHERE owner IN (
    SELECT owner FROM {schema}.nodes
    WHERE (SELECT count(*) FROM mine) = 1 AND owner <> $2 AND expires > {schema}.later((SELECT now FROM clock), ttl)
    FOR UPDATE SKIP LOCKED)
), woken AS MATERIALIZED (
  SELECT count(pg_notify($12::text, '')) FROM mine m
  WHERE $12::text IS NOT NULL AND NOT EXISTS (
    SELECT FROM known k
    WHERE k.lanes = m.lanes AND k.queues = m.queues
      AND (k.draining OR k.asked) = (m.draining OR m.asked))
)
SELECT clock.now, n.owner, n.name, n.host, n.pid, n.lanes, n.queues, n.version, n.draining OR n.asked, n.started,
  least(n.expires, {schema}.later(clock.now, n.ttl))
FROM clock CROSS JOIN woken, (
  SELECT * FROM mine UNION ALL SELECT * FROM {schema}.nodes WHERE owner <> $2
) n
WHERE n.expires > clock.now`

// nodesSQL lists the known nodes, each with the clock. Without nodes it returns one row with only
// the clock.
//
//	$1 now
const nodesSQL = `
WITH clock AS MATERIALIZED (
  SELECT {schema}.clock($1) AS now
)
SELECT clock.now, owner, name, host, pid, lanes, queues, version, draining OR asked, started, expires, status::text
FROM clock LEFT JOIN {schema}.nodes ON expires >= clock.now - 3600000000`

// drainSQL notes whether an operator wants a node to drain, wakes nodes by the same commit if that
// has changed, and returns whether the node runs.
//
//	$1 now, $2 owner, $3 whether it is to drain, $4 the channel, or NULL for no wake-up
const drainSQL = `
WITH node AS MATERIALIZED (
  SELECT owner, asked FROM {schema}.nodes WHERE owner = $2 AND expires > {schema}.clock($1) FOR UPDATE
), changed AS (
  UPDATE {schema}.nodes n SET asked = $3 FROM node WHERE n.owner = node.owner AND node.asked <> $3 RETURNING n.owner
), woken AS MATERIALIZED (
  SELECT count(pg_notify($4::text, '')) FROM changed WHERE $4::text IS NOT NULL
)
SELECT EXISTS (SELECT FROM node) FROM woken`

// retireSQL removes a node, and wakes others by the same commit if it was known.
//
//	$1 owner, $2 the channel, or NULL for no wake-up
const retireSQL = `
WITH retired AS (DELETE FROM {schema}.nodes WHERE owner = $1 RETURNING owner)
SELECT count(pg_notify($2::text, '')) FROM retired WHERE $2::text IS NOT NULL`

// Announce implements [ports.Registry].
func (s *Store) Announce(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
	if err := r.Validate(); err != nil {
		return ports.AnnounceReply{}, err
	}

	n := &r.Node
	status, err := storekit.EncodeNodeStatus(&n.Status)
	if err != nil {
		return ports.AnnounceReply{}, err
	}
	queues := append([]string{}, n.Queues...) // an array, not NULL

	var reply ports.AnnounceReply
	err = s.query(ctx, idempotent, func(rows pgx.Rows) (err error) {
		reply.Now, reply.Nodes, err = readNodes(rows, identity)
		return err
	}, announceSQL, s.now(), n.Owner, n.Name, n.Host, n.PID, n.Lanes, queues, n.Version, n.Draining,
		status, r.TTL.Microseconds(), s.channelOrNull())
	if err != nil {
		return ports.AnnounceReply{}, err
	}
	return reply, nil
}

// Retire implements [ports.Registry].
func (s *Store) Retire(ctx context.Context, owner string) error {
	var woken int
	return s.queryOne(ctx, idempotent, []any{&woken}, retireSQL, textOrNone(owner), s.channelOrNull())
}

// DrainNode implements [ports.Registry].
func (s *Store) DrainNode(ctx context.Context, owner string, drain bool) error {
	var known bool
	err := s.queryOne(ctx, idempotent|operated, []any{&known}, drainSQL,
		s.now(), textOrNone(owner), drain, s.channelOrNull())
	if err == nil && !known {
		return storekit.UnknownNode(owner)
	}
	return err
}

// Nodes implements [ports.Registry].
func (s *Store) Nodes(ctx context.Context) (ports.NodesReply, error) {
	var reply ports.NodesReply
	err := s.query(ctx, idempotent, func(rows pgx.Rows) (err error) {
		reply.Now, reply.Nodes, err = readNodes(rows, func(n *ports.Node) []any {
			return append(identity(n), (*statusText)(&n.Status))
		})
		return err
	}, nodesSQL, s.now())
	return reply, err
}

// identity returns the scan targets for the columns of a node except its status.
func identity(n *ports.Node) []any {
	return []any{
		&n.Owner, &n.Name, &n.Host, &n.PID, &n.Lanes, &n.Queues, &n.Version, &n.Draining,
		&n.StartedAt, &n.ExpiresAt,
	}
}

// readNodes reads rows of the clock and the columns of a node, which are NULL in a row without
// one, and returns the nodes in the port's order.
func readNodes(rows pgx.Rows, columns func(*ports.Node) []any) (now core.Instant, nodes []ports.Node, err error) {
	err = eachRow(rows, func() error {
		var n ports.Node
		into := append([]any{&now}, columns(&n)...)
		if rows.RawValues()[1] == nil {
			clear(into[1:]) // only the clock
			return rows.Scan(into...)
		}
		err := rows.Scan(into...)
		nodes = append(nodes, n)
		return err
	})

	slices.SortFunc(nodes, func(a, b ports.Node) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Owner, b.Owner))
	})
	return now, nodes, err
}

// statusText scans a node's status. A status that can't be read counts as absent: the node
// announces itself anew.
type statusText ports.NodeStatus

// ScanText implements [pgtype.TextScanner].
func (s *statusText) ScanText(v pgtype.Text) error {
	status, err := storekit.DecodeNodeStatus(v.String)
	if err == nil {
		*s = statusText(status)
	}
	return nil
}
