-- Server processes that run or ran, one row each. A row is deleted an hour after it has expired:
-- until then it is listed as gone, and a clock that steps back may bring it back. draining is the
-- node's own state, asked is an operator's request until the node expires, and ttl is how long the
-- row counts; status is what the process was doing (package storekit).
CREATE TABLE {schema}.nodes (
  owner    text COLLATE "C" PRIMARY KEY,
  name     text COLLATE "C" NOT NULL,
  host     text NOT NULL,
  pid      bigint NOT NULL,
  lanes    bigint NOT NULL,
  queues   text[] NOT NULL,
  version  text NOT NULL,
  draining boolean NOT NULL,
  asked    boolean NOT NULL,
  started  bigint NOT NULL,
  expires  bigint NOT NULL,
  ttl      bigint NOT NULL,
  status   json NOT NULL
) WITH (fillfactor = 50);
