-- What brings a payload: a push, a job put back by a settlement, a dead letter that is revived
-- or one that is buried. An 'early' row of the inbox brings none: it notes that a job may be due
-- at its perform_at, before the floor.
CREATE TYPE {schema}.arrival_kind AS ENUM ('push', 'put_back', 'revived', 'buried', 'early');
