-- Returns how many dead rows the table jobs has, as the statistics of the server know it.
CREATE FUNCTION {schema}.dead_jobs() RETURNS bigint LANGUAGE sql STABLE AS {$}
  SELECT pg_stat_get_dead_tuples(t.typrelid) FROM pg_type t WHERE t.oid = pg_typeof(NULL::{schema}.jobs)::oid
{$};
