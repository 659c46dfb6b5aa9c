-- Settles claimed jobs: deletes their rows and returns what becomes of them. p_settlements is how, in
-- the order of the receipts in the other arrays; NULL means that all jobs are done whole and
-- processed. It puts back, buries or records as results at most as many payloads and bytes as one
-- step may move, but always carries out the first such settlement. Settlements behind it that don't
-- fit are not carried out. Returns done, the places that were carried out: those claimed with this receipt by a
-- row that no other session has locked; processed and failed, what counts; past and past_bytes, as of keep_past and keep_marks; and put_back and buried,
-- the payloads that go on.
CREATE FUNCTION {schema}.settle_claimed(p_shard int, p_now bigint, p_ids text[], p_tokens bigint[], p_numbers bigint[],
  p_settlements {schema}.settlement[],
  OUT done int[], OUT processed int, OUT failed int, OUT past int, OUT past_bytes bigint, OUT put_back {schema}.inbox[], OUT buried {schema}.inbox[])
LANGUAGE plpgsql VOLATILE AS {$}
DECLARE
  c_done     CONSTANT text := '0'; -- core.Done
  c_payloads CONSTANT int := 1000; -- core.MaxTurnPayloads
  c_bytes    CONSTANT bigint := 8388608; -- core.MaxStepBytes
  v_recorded {schema}.settlement[];
  v_marked   {schema}.settlement[];
BEGIN
  past := 0;
  past_bytes := 0;
  IF p_settlements IS NULL THEN
    WITH found AS MATERIALIZED (
      SELECT c.at, s.place
      FROM unnest(p_ids, p_tokens, p_numbers) WITH ORDINALITY s (id, token, number, place), LATERAL (
        SELECT c.ctid AS at FROM {schema}.claimed c
        WHERE c.shard = p_shard AND c.id = s.id AND c.token = s.token AND c.number = s.number FOR UPDATE SKIP LOCKED
      ) c
    ), gone AS (
      DELETE FROM {schema}.claimed c USING found f WHERE c.ctid = f.at RETURNING f.place
    )
    SELECT array_agg(g.place), count(*), 0 INTO done, processed, failed FROM gone g;
    RETURN;
  END IF;

  WITH found AS MATERIALIZED (
    SELECT s.settlement, s.place, c.at, c.payloads + s.results AS payloads, c.size + s.result_size AS size,
      s.moves, s.moves OR s.results > 0 AS weighs
    FROM (
      SELECT u AS settlement, row_number() OVER () AS place, btrim(u.dispositions, c_done) <> '' AS moves,
        CASE WHEN (u.past).result IS NULL THEN 0 ELSE 1 END AS results,
        coalesce(octet_length((u.past).result), 0) AS result_size
      FROM unnest(p_settlements) u
    ) s, LATERAL (
      SELECT c.ctid AS at, m.payloads, m.size
      FROM {schema}.claimed c, LATERAL (
        SELECT 1 + coalesce(cardinality(c.more_scores), 0) AS payloads, coalesce(c.size, octet_length(c.data)) AS size
        WHERE position(c_done IN (s.settlement).dispositions) = 0
        UNION ALL
        SELECT count(*), coalesce(sum(octet_length(d.data)), 0)
        FROM unnest(ARRAY[c.data] || c.more_data) WITH ORDINALITY d (data, position)
        WHERE substr((s.settlement).dispositions, least(d.position, length((s.settlement).dispositions))::int, 1) <> c_done
        HAVING s.moves AND position(c_done IN (s.settlement).dispositions) > 0
        UNION ALL
        SELECT 0, 0 WHERE NOT s.moves
      ) m
      WHERE c.shard = p_shard AND c.id = (s.settlement).id AND c.token = (s.settlement).token AND c.number = (s.settlement).number
      FOR UPDATE OF c SKIP LOCKED
    ) c
  ), summed AS (
    SELECT f.*, sum(f.payloads) FILTER (WHERE f.weighs) OVER w AS sum, sum(f.size) FILTER (WHERE f.weighs) OVER w AS bytes
    FROM found f WINDOW w AS (ORDER BY f.place)
  ), gone AS (
    DELETE FROM {schema}.claimed c USING summed f
    WHERE c.ctid = f.at AND (NOT f.weighs OR f.sum = f.payloads OR f.sum <= c_payloads AND f.bytes <= c_bytes)
    RETURNING f.place, f.settlement, f.moves, CASE WHEN f.moves THEN c END AS claim
  ), arrived AS (
    SELECT a AS arrival, g.place, row_number() OVER () AS nth
    FROM gone g, LATERAL {schema}.arrivals_of(g.claim, g.settlement, p_now) a
    WHERE g.moves
  )
  SELECT (SELECT array_agg(g.place) FROM gone g),
    (SELECT count(*) FROM gone g WHERE (g.settlement).processed),
    (SELECT count(*) FROM gone g WHERE (g.settlement).failed),
    (SELECT array_agg(g.settlement) FROM gone g WHERE NOT ((g.settlement).past IS NULL)),
    (SELECT array_agg(g.settlement) FROM gone g WHERE (g.settlement).mark IS NOT NULL OR (g.settlement).stale > 0),
    array_agg(a.arrival ORDER BY a.place, a.nth) FILTER (WHERE (a.arrival).kind <> 'buried'),
    array_agg(a.arrival ORDER BY a.place, a.nth) FILTER (WHERE (a.arrival).kind = 'buried')
  INTO done, processed, failed, v_recorded, v_marked, put_back, buried FROM arrived a;
  IF v_recorded IS NOT NULL THEN
    SELECT k.records, k.bytes INTO past, past_bytes FROM {schema}.keep_past(p_shard, p_now, v_recorded) k;
  END IF;
  IF v_marked IS NOT NULL THEN
    past := past + {schema}.keep_marks(p_shard, p_now, ARRAY(SELECT m.id FROM unnest(v_marked) m), ARRAY(SELECT m.mark FROM unnest(v_marked) m));
    PERFORM {schema}.count_stale(p_shard, (SELECT sum(m.stale) FROM unnest(v_marked) m)::int);
  END IF;
END {$};
