-- Pushes a JSON value as push_bytes pushes bytes: in its canonical form (docs/rules.md 13), so that
-- equal values of all languages merge. It refuses what that form would change, such as a number that
-- a double does not hold. It is stable, as push_bytes is.
CREATE FUNCTION {schema}.push_json(queue text, id text, payload jsonb,
  score double precision DEFAULT NULL, due timestamptz DEFAULT NULL, tags text[] DEFAULT NULL)
RETURNS void LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET jit = off AS {$}
BEGIN
  PERFORM {schema}.push_bytes(push_json.queue, push_json.id,
    convert_to({schema}.canonical_json(push_json.payload), 'UTF8'), push_json.score, push_json.due, push_json.tags);
END {$};
REVOKE ALL ON FUNCTION {schema}.push_json FROM PUBLIC;
