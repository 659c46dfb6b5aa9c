-- Takes the lowest payloads out of a dead letter, from those with the bytes p_named, or from all
-- for NULL: at most p_most, and as many as fit into p_bytes, but the first in any case if p_first
-- is set. Returns them, NULL for none; their number n and size in bytes; whether that was all;
-- whether the dead letter is deleted, which it is with its last payload or if it has none; and its
-- former group then. The caller holds the shard's lock.
CREATE FUNCTION {schema}.take_dead(p_shard int, p_id text, p_named bytea[], p_most int, p_bytes bigint, p_first boolean,
  OUT scores double precision[], OUT data bytea[], OUT meta bytea[], OUT n int, OUT size bigint, OUT finished boolean, OUT gone boolean, OUT grp text)
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  v_places tid[];
BEGIN
  SELECT count(*) = count(*) FILTER (WHERE f.fits), count(*) FILTER (WHERE f.fits), coalesce(sum(f.size) FILTER (WHERE f.fits), 0),
    array_agg(f.place) FILTER (WHERE f.fits),
    array_agg(f.score) FILTER (WHERE f.fits), array_agg(f.data) FILTER (WHERE f.fits), array_agg(f.meta) FILTER (WHERE f.fits)
  INTO finished, n, size, v_places, scores, data, meta
  FROM (
    SELECT o.*, o.nth <= p_most AND (o.sum <= p_bytes OR p_first AND o.nth = 1) AS fits FROM (
      SELECT p.*, octet_length(p.data) AS size, sum(octet_length(p.data)) OVER w AS sum, row_number() OVER w AS nth
      FROM (
        SELECT d.* FROM {schema}.dead_payloads_of(p_shard, p_id, p_most + 1) d WHERE p_named IS NULL
        UNION ALL
        SELECT * FROM (
          SELECT x.score, x.data, x.meta, x.ctid FROM {schema}.dead_letter_payloads x
          WHERE p_named IS NOT NULL AND x.shard = p_shard AND x.id = p_id AND x.digest = ANY (ARRAY(SELECT sha256(u) FROM unnest(p_named) u))
          ORDER BY x.score, x.data
        ) x
      ) p WINDOW w AS (ROWS UNBOUNDED PRECEDING) -- in their order
    ) o
  ) f;

  DELETE FROM {schema}.dead_letter_payloads p WHERE p.ctid = ANY (v_places);
  gone := false;
  IF finished THEN
    DELETE FROM {schema}.dead_letters d WHERE d.shard = p_shard AND d.id = p_id
      AND NOT EXISTS (SELECT FROM {schema}.dead_letter_payloads p WHERE p.shard = p_shard AND p.id = p_id)
    RETURNING d.grp INTO grp;
    gone := FOUND;
  END IF;
END {$};
