-- The last 1,000 actions of operators (ports.Auditor). at is when an action began, after all that
-- began before; action is a text of package storekit.
CREATE TABLE {schema}.actions (
  id     text COLLATE "C" PRIMARY KEY,
  at     bigint NOT NULL UNIQUE,
  action json NOT NULL
);
