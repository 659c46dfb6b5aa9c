-- One row per queue: its permanent properties, its merge rule and its settings.
CREATE TABLE {schema}.queues (
  id         int PRIMARY KEY GENERATED ALWAYS AS IDENTITY (MINVALUE 0 START 0 MAXVALUE 131071),
  name       text COLLATE "C" NOT NULL UNIQUE,
  shards     int NOT NULL,
  generation bigint NOT NULL,
  index_ids  boolean NOT NULL,
  merge_rule int NOT NULL DEFAULT 0,
  same_push  boolean NOT NULL DEFAULT false,
  settings_version bigint NOT NULL DEFAULT 0,
  settings   json,
  CONSTRAINT queues_settings_version CHECK (settings_version BETWEEN 0 AND 9007199254740992)
) WITH (vacuum_truncate = off);
COMMENT ON COLUMN {schema}.queues.id IS 'Never used again, so that nothing that is late for a forgotten queue reaches another';
COMMENT ON COLUMN {schema}.queues.shards IS 'How many shards the queue has';
COMMENT ON COLUMN {schema}.queues.index_ids IS 'Whether its jobs can be listed by id';
COMMENT ON COLUMN {schema}.queues.merge_rule IS '0 union, -1 newest, n latest(n): see docs/rules.md 2';
COMMENT ON COLUMN {schema}.queues.same_push IS 'Whether its payloads are stamped with their scores, for the rule every: see docs/rules.md 2';
COMMENT ON COLUMN {schema}.queues.settings_version IS 'How often its settings were changed; a change names the version that it makes';
COMMENT ON COLUMN {schema}.queues.settings IS 'What operators have set, as storekit.EncodeSettings writes it: see docs/rules.md 11';
