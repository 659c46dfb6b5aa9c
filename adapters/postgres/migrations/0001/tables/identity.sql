-- The id of the store (ports.Identity), one row. A copy of the schema has the same id.
CREATE TABLE {schema}.identity (
  one_row boolean PRIMARY KEY DEFAULT true CHECK (one_row),
  id      text COLLATE "C" NOT NULL
);
INSERT INTO {schema}.identity (id) VALUES (gen_random_uuid());
