-- The origin of a payload: a push, a job put back by a settlement, a dead letter that is revived
-- or one that is buried. Other rows of the inbox carry no payload: 'early' notes that a job may be
-- due at its perform_at, before the floor, and 'freed' that the claim of its id has ended.
CREATE TYPE {schema}.arrival_kind AS ENUM ('push', 'put_back', 'revived', 'buried', 'early', 'freed');
