-- The morgue: one row per dead letter. Its payloads are in dead_letter_payloads.
CREATE TABLE {schema}.dead_letters (
  shard      int NOT NULL,
  id         text COLLATE "C" NOT NULL,
  changed_at bigint NOT NULL,
  error      text NOT NULL,
  PRIMARY KEY (shard, id)
);
CREATE INDEX dead_letters_time ON {schema}.dead_letters (shard, changed_at, id);
