-- Takes the lowest payloads out of a queued job, which the caller has locked: at most p_most, and
-- as many as fit into p_bytes, but the first in any case if p_first is set. Returns them, NULL for
-- none; their number n and size in bytes; and whether the job stays, which it does as long as it
-- has others. If p_fresh is set, a job that stays has the state core.State.Rest from then on. A job
-- without payloads, as if a person had deleted them, is deleted as well.
CREATE FUNCTION {schema}.take_payloads(p_shard int, p_id text, p_most int, p_bytes bigint, p_first boolean, p_fresh boolean,
  OUT scores double precision[], OUT data bytea[], OUT meta bytea[], OUT n int, OUT size bigint, OUT stays boolean)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  v_seen   int;
  v_places tid[];
  v_inline boolean;
  v_low    double precision;
BEGIN
  DELETE FROM {schema}.jobs j
  WHERE j.shard = p_shard AND j.id = p_id AND NOT j.has_more AND p_most > 0 AND (p_first OR octet_length(j.data) <= p_bytes)
  RETURNING ARRAY[j.score], ARRAY[j.data], ARRAY[j.meta], 1, octet_length(j.data), false INTO scores, data, meta, n, size, stays;
  IF FOUND THEN
    RETURN;
  END IF;

  SELECT count(*), count(*) FILTER (WHERE f.fits), coalesce(sum(f.size) FILTER (WHERE f.fits), 0), max(f.score) FILTER (WHERE f.fits),
    array_agg(f.place) FILTER (WHERE f.fits AND f.place IS NOT NULL), bool_or(f.fits AND f.place IS NULL),
    array_agg(f.score) FILTER (WHERE f.fits), array_agg(f.data) FILTER (WHERE f.fits), array_agg(f.meta) FILTER (WHERE f.fits)
  INTO v_seen, n, size, v_low, v_places, v_inline, scores, data, meta
  FROM (
    SELECT o.*, o.nth <= p_most AND (o.sum <= p_bytes OR p_first AND o.nth = 1) AS fits FROM (
      SELECT p.*, octet_length(p.data) AS size, sum(octet_length(p.data)) OVER w AS sum, row_number() OVER w AS nth
      FROM {schema}.payloads_of(p_shard, p_id, p_most + 1) p WINDOW w AS (ROWS UNBOUNDED PRECEDING) -- in their order
    ) o
  ) f;

  stays := v_seen > n;
  IF v_places IS NOT NULL THEN
    DELETE FROM {schema}.payloads p WHERE p.ctid = ANY (v_places);
  END IF;
  IF NOT stays THEN
    DELETE FROM {schema}.jobs j WHERE j.shard = p_shard AND j.id = p_id;
  ELSIF n > 0 THEN
    UPDATE {schema}.jobs j SET low = v_low, retry_count = CASE WHEN p_fresh THEN -1 ELSE j.retry_count END,
      recoveries = CASE WHEN p_fresh THEN least(j.recoveries, 1) ELSE j.recoveries END,
      slot = CASE WHEN NOT p_fresh THEN j.slot END,
      data = CASE WHEN NOT v_inline THEN j.data END, meta = CASE WHEN NOT v_inline THEN j.meta END
    WHERE j.shard = p_shard AND j.id = p_id;
  END IF;
END {$};
