-- Returns a row of the inbox for a payload of an id, which its transaction inserts or merges. The
-- caller sets the other fields, which have the defaults of the table.
CREATE FUNCTION {schema}.new_arrival(p_shard int, p_kind {schema}.arrival_kind, p_id text) RETURNS {schema}.inbox LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  a {schema}.inbox;
BEGIN
  a.shard := p_shard;
  a.tx := pg_current_xact_id();
  a.kind := p_kind;
  a.id := p_id;

  a.rule := 0;
  a.rule_limit := 0;
  a.perform_at := 0;
  a.first_push := 0;
  a.score := 0;
  a.retry_count := -1;
  a.recoveries := 0;
  a.tags := '';
  a.data := '';
  RETURN a;
END {$};
