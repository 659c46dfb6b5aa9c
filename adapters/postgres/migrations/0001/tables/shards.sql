-- One row per shard: its lease, pause, floor and counts as of the last fold. Every change of a
-- shard in more than one statement locks its row FOR UPDATE: turns, acquires, operators, merges of
-- the inbox. After a release, owner, attempt and token stay known. last, ttl, expires, floor and
-- rescan are older than the newest row of turn_log under this token, if there is one; the views
-- leases and counts join both.
CREATE TABLE {schema}.shards (
  id          int PRIMARY KEY,
  queue       text COLLATE "C" NOT NULL REFERENCES {schema}.queues (name),
  index       int NOT NULL,
  paused      boolean NOT NULL DEFAULT false,
  held        boolean NOT NULL DEFAULT false,
  owner       text COLLATE "C" NOT NULL DEFAULT '',
  attempt     bigint NOT NULL DEFAULT 0,
  token       bigint NOT NULL DEFAULT 0,
  last        bigint NOT NULL DEFAULT 0,
  ttl         bigint NOT NULL DEFAULT 0,
  expires     bigint NOT NULL DEFAULT 0,
  renewed     bigint NOT NULL DEFAULT 0,
  orphans     boolean NOT NULL DEFAULT false,
  exceptional boolean NOT NULL DEFAULT false,
  parked      boolean NOT NULL DEFAULT false,
  usual       boolean NOT NULL GENERATED ALWAYS AS (held AND NOT paused AND NOT orphans AND NOT exceptional) STORED,
  floor       bigint NOT NULL DEFAULT 0,
  rescan      bigint NOT NULL DEFAULT 0,
  fresh       bigint NOT NULL DEFAULT 0,
  retrying    bigint NOT NULL DEFAULT 0,
  claimed     bigint NOT NULL DEFAULT 0,
  dead        bigint NOT NULL DEFAULT 0,
  processed   bigint NOT NULL DEFAULT 0,
  failed      bigint NOT NULL DEFAULT 0,
  superseded  bigint NOT NULL DEFAULT 0,
  stale       bigint NOT NULL DEFAULT 0,
  repeated    bigint NOT NULL DEFAULT 0,
  past        bigint NOT NULL DEFAULT 0,
  past_bytes  bigint NOT NULL DEFAULT 0,
  past_age    bigint NOT NULL DEFAULT 0,
  merge_rule  int NOT NULL DEFAULT 0,
  counts_from xid8 NOT NULL DEFAULT '0',
  counts_open xid8[],
  inbox_from  xid8 NOT NULL DEFAULT '0',
  inbox_seq   bigint NOT NULL DEFAULT 0,
  inbox_open  xid8[],
  UNIQUE (queue, index)
) WITH (fillfactor = 20);
COMMENT ON COLUMN {schema}.shards.id IS 'first_shard(queues.id) + index';
COMMENT ON COLUMN {schema}.shards.held IS 'Whether somebody has the lease, which may have run out; false after a release';
COMMENT ON COLUMN {schema}.shards.attempt IS 'The owner''s number of its acquire';
COMMENT ON COLUMN {schema}.shards.token IS 'The fencing token of the lease; it only grows';
COMMENT ON COLUMN {schema}.shards.last IS 'The number of the last turn';
COMMENT ON COLUMN {schema}.shards.renewed IS 'When the row was last folded for the lease';
COMMENT ON COLUMN {schema}.shards.orphans IS 'Whether claims of earlier leases may still have to be handed over';
COMMENT ON COLUMN {schema}.shards.exceptional IS 'Whether a claimed job may have to run alone or be cancelled';
COMMENT ON COLUMN {schema}.shards.parked IS 'Whether a job may be parked: see jobs.parked';
COMMENT ON COLUMN {schema}.shards.usual IS 'Whether turn_fast may serve the shard';
COMMENT ON COLUMN {schema}.shards.floor IS 'No claimable job is due before it, but for those of pushes that took long to commit';
COMMENT ON COLUMN {schema}.shards.rescan IS 'When to look for such jobs again, below the floor';
COMMENT ON COLUMN {schema}.shards.superseded IS 'How many payloads the merge rule has dropped';
COMMENT ON COLUMN {schema}.shards.stale IS 'How many stale payloads were dropped';
COMMENT ON COLUMN {schema}.shards.repeated IS 'How many entries were dropped as repeats';
COMMENT ON COLUMN {schema}.shards.past IS 'How many records of ids it has, marks included';
COMMENT ON COLUMN {schema}.shards.past_bytes IS 'The bytes of their results';
COMMENT ON COLUMN {schema}.shards.past_age IS 'For how long the last turn that has kept records keeps them, in microseconds';
COMMENT ON COLUMN {schema}.shards.merge_rule IS 'That of the queue';
COMMENT ON COLUMN {schema}.shards.counts_from IS 'count_changes of older transactions are folded, but for those of counts_open';
COMMENT ON COLUMN {schema}.shards.inbox_from IS 'Rows of the inbox of older transactions are merged, but for those of inbox_open, and those of this one before inbox_seq';
COMMENT ON COLUMN {schema}.shards.inbox_open IS 'Transactions before inbox_from that have been open for long; NULL for none';
COMMENT ON COLUMN {schema}.shards.counts_open IS 'As inbox_open, for counts_from';
