-- The tables of a backend. {schema} is its schema, {$} a dollar quote.
--
--   queues          one row a queue: what is permanent about it
--   shards          one row a shard, locked FOR UPDATE by all that changes a shard in
--                   more than one statement: turns, acquires, operators, folds of the
--                   inbox. Lease, pause, floor and counts as of the last fold
--   turns           the turn log: one inserted row a turn, deleted by the next fold
--   tallies         changes to counts made outside turns, insert-only, folded likewise
--   jobs            queued jobs with one of their payloads, whichever came first
--   payloads        the other payloads of queued jobs that have several
--   claimed         claimed jobs, their payloads in order: the first beside the arrays of
--                   the rest. Deleting a row settles the job; whoever holds its lock may
--   inbox           what callers' transactions push, put back and bury, until the shard's
--                   next turn, acquire or look merges it; and notes of early jobs
--   dead            the morgue, and dead_payloads what it holds
--   minutes         history: what a shard counted in a minute
--
-- A shard's number is queues.id * 16384 + its index. Instants and durations are bigint
-- microseconds. Text that is compared is COLLATE "C". An absent Meta is NULL.
--
-- Locks are taken in this order: shards, claimed, jobs by id, the rest. Pushes lock
-- nothing but jobs by id, callers' transactions nothing but rows of claimed, which
-- everybody else therefore takes with SKIP LOCKED.
--
-- Tables whose rows come and go with each job are vacuumed at full speed and not shrunk:
-- while an autovacuum holds one for long, what dies in it makes the indexes grow for good.

CREATE TABLE {schema}.queues (
  -- Never given again, so that nothing that is late for a forgotten queue reaches another.
  id         int PRIMARY KEY GENERATED ALWAYS AS IDENTITY (MINVALUE 0 START 0 MAXVALUE 131071),
  name       text COLLATE "C" NOT NULL UNIQUE,
  shards     int NOT NULL,
  generation bigint NOT NULL,
  index_ids  boolean NOT NULL
);

CREATE TABLE {schema}.shards (
  id        int PRIMARY KEY,
  queue     text COLLATE "C" NOT NULL REFERENCES {schema}.queues (name),
  index     int NOT NULL,
  paused    boolean NOT NULL DEFAULT false,
  -- The lease. After a release owner, attempt and token stay known. last, ttl and
  -- expires are older than the turn log's last row under this token, if it has one.
  held      boolean NOT NULL DEFAULT false,
  owner     text COLLATE "C" NOT NULL DEFAULT '',
  attempt   bigint NOT NULL DEFAULT 0,
  token     bigint NOT NULL DEFAULT 0,
  last      bigint NOT NULL DEFAULT 0,
  ttl       bigint NOT NULL DEFAULT 0,
  expires   bigint NOT NULL DEFAULT 0,
  renewed   bigint NOT NULL DEFAULT 0,
  -- Whether claims of earlier leases may still have to be handed over, and whether a
  -- claim may run alone or be cancelled.
  orphans   boolean NOT NULL DEFAULT false,
  special   boolean NOT NULL DEFAULT false,
  plain     boolean NOT NULL GENERATED ALWAYS AS (held AND NOT paused AND NOT orphans AND NOT special) STORED,
  -- No queued job of a claimable id is due before floor, but for pushes that took long
  -- to commit; those are looked for from rescan on.
  floor     bigint NOT NULL DEFAULT 0,
  rescan    bigint NOT NULL DEFAULT 0,
  -- Counts as of the last fold. Transactions below these are folded for good.
  fresh     bigint NOT NULL DEFAULT 0,
  retries   bigint NOT NULL DEFAULT 0,
  claimed   bigint NOT NULL DEFAULT 0,
  dead      bigint NOT NULL DEFAULT 0,
  processed bigint NOT NULL DEFAULT 0,
  failed    bigint NOT NULL DEFAULT 0,
  tallied   xid8 NOT NULL DEFAULT '0',
  merged    xid8 NOT NULL DEFAULT '0',
  UNIQUE (queue, index)
) WITH (fillfactor = 20);

CREATE TABLE {schema}.turns (
  shard     int NOT NULL,
  token     bigint NOT NULL,
  number    bigint NOT NULL,
  ttl       bigint NOT NULL,
  expires   bigint NOT NULL,
  floor     bigint NOT NULL,
  rescan    bigint NOT NULL,
  fresh     int NOT NULL,
  retries   int NOT NULL,
  claimed   int NOT NULL,
  dead      int NOT NULL,
  processed int NOT NULL,
  failed    int NOT NULL,
  PRIMARY KEY (shard, token, number)
) WITH (autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

CREATE TABLE {schema}.tallies (
  shard     int NOT NULL,
  fresh     int NOT NULL,
  retries   int NOT NULL,
  claimed   int NOT NULL DEFAULT 0,
  dead      int NOT NULL,
  processed int NOT NULL,
  failed    int NOT NULL,
  tx        xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX tallies_shard ON {schema}.tallies (shard, tx);

CREATE TABLE {schema}.jobs (
  perform_at  bigint NOT NULL,
  first_push  bigint NOT NULL,
  score       double precision NOT NULL,
  shard       int NOT NULL,
  retry_count int NOT NULL,
  recoveries  int NOT NULL,
  -- Whether payloads may hold more of this job.
  more        boolean NOT NULL,
  id          text COLLATE "C" NOT NULL,
  data        bytea NOT NULL,
  meta        bytea,
  error       text NOT NULL,
  -- RetryCount before the last merge; NULL if nothing has merged into the job. It tells
  -- an upsert what it met.
  prior       int,
  PRIMARY KEY (shard, id)
) WITH (autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
CREATE INDEX jobs_time ON {schema}.jobs (shard, perform_at, id);
CREATE INDEX retries_time ON {schema}.jobs (shard, perform_at, id) WHERE retry_count >= 0;
CREATE INDEX retries_id ON {schema}.jobs (shard, id) WHERE retry_count >= 0;
CREATE INDEX retries_count ON {schema}.jobs (shard, retry_count, id) WHERE retry_count >= 0;

-- A row is written only by who holds the lock of its job's. digest is sha256(data).
CREATE TABLE {schema}.payloads (
  shard  int NOT NULL,
  id     text COLLATE "C" NOT NULL,
  digest bytea NOT NULL,
  score  double precision NOT NULL,
  data   bytea NOT NULL,
  meta   bytea,
  PRIMARY KEY (shard, id, digest)
);

CREATE TABLE {schema}.claimed (
  token        bigint NOT NULL,
  number       bigint NOT NULL,
  perform_at   bigint NOT NULL,
  first_push   bigint NOT NULL,
  since        bigint NOT NULL,
  score        double precision NOT NULL,
  shard        int NOT NULL,
  retry_count  int NOT NULL,
  recoveries   int NOT NULL,
  lane         bigint NOT NULL,
  id           text COLLATE "C" NOT NULL,
  node         text NOT NULL,
  owner        text NOT NULL,
  error        text NOT NULL,
  data         bytea NOT NULL,
  meta         bytea,
  more_scores  double precision[],
  more_data    bytea[],
  more_meta    bytea[],
  -- Set by Cancel: whether the job is dropped when it ends.
  cancel_drop  boolean,
  -- Whether a turn has marked the job as begun; NULL is no.
  begun        boolean,
  -- The lease and turn that handed the job over, number 0 for its acquire.
  given_token  bigint,
  given_number bigint,
  PRIMARY KEY (shard, id)
) WITH (fillfactor = 90, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
-- What turns must heed, seldom anything: jobs that run alone, and cancelled ones.
CREATE INDEX claimed_special ON {schema}.claimed (shard, id) WHERE recoveries > 1 OR cancel_drop IS NOT NULL;

-- kind: 'p' a push, 'r' a job put back, 'd' a dead letter, one row for each payload, in
-- the order of seq; 'e' a note that a job may be due at perform_at, before the floor.
-- No unique key: nobody waits for an inserting transaction.
CREATE TABLE {schema}.inbox (
  shard       int NOT NULL,
  tx          xid8 NOT NULL DEFAULT pg_current_xact_id(),
  seq         bigint GENERATED ALWAYS AS IDENTITY,
  kind        "char" NOT NULL,
  -- The push rule, 0 Keep, 1 Earliest, 2 Debounce, and its limit.
  rule        smallint NOT NULL DEFAULT 0,
  rule_limit  bigint NOT NULL DEFAULT 0,
  -- PerformAt; of a dead letter, its ChangedAt.
  perform_at  bigint NOT NULL,
  first_push  bigint NOT NULL DEFAULT 0,
  score       double precision NOT NULL DEFAULT 0,
  retry_count int NOT NULL DEFAULT -1,
  recoveries  int NOT NULL DEFAULT 0,
  id          text COLLATE "C" NOT NULL DEFAULT '',
  error       text NOT NULL DEFAULT '',
  data        bytea NOT NULL DEFAULT '',
  meta        bytea
);
CREATE INDEX inbox_shard ON {schema}.inbox (shard, tx, seq);
-- Which ids wait there to be merged into the queue.
CREATE INDEX inbox_id ON {schema}.inbox (shard, id) WHERE kind IN ('p', 'r');

CREATE TABLE {schema}.dead (
  shard      int NOT NULL,
  id         text COLLATE "C" NOT NULL,
  changed_at bigint NOT NULL,
  error      text NOT NULL,
  PRIMARY KEY (shard, id)
);
CREATE INDEX dead_time ON {schema}.dead (shard, changed_at, id);

CREATE TABLE {schema}.dead_payloads (
  shard  int NOT NULL,
  id     text COLLATE "C" NOT NULL,
  digest bytea NOT NULL,
  score  double precision NOT NULL,
  data   bytea NOT NULL,
  meta   bytea,
  PRIMARY KEY (shard, id, digest)
);

CREATE TABLE {schema}.minutes (
  shard     int NOT NULL,
  at        bigint NOT NULL,
  processed bigint NOT NULL,
  failed    bigint NOT NULL,
  -- Counts by bucket of core.Histogram, without zeros at the end.
  wait      bigint[] NOT NULL,
  run       bigint[] NOT NULL,
  PRIMARY KEY (shard, at)
) WITH (fillfactor = 50);
