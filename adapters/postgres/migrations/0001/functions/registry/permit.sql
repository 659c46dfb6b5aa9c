-- Makes an owner hold permits of a queue, and deletes owners whose time is over
-- (ports.Permitter.Permit). status is ok, unknown_queue or stale_attempt; freed is whether it
-- holds fewer than before while another owner wants more than it holds. owners lists all owners,
-- in order, and holds and wants their permits.
CREATE FUNCTION {schema}.permit(p_queue text, p_owner text, p_attempt bigint, p_limit bigint, p_hold bigint, p_want bigint,
  p_ttl bigint, p_now bigint,
  OUT status text, OUT now bigint, OUT remaining bigint, OUT held bigint, OUT freed boolean,
  OUT owners text[], OUT holds bigint[], OUT wants bigint[])
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_bitmapscan = off AS {$}
DECLARE
  v_queue  int;
  v_mine   record;
  v_others record;
BEGIN
  PERFORM {schema}.limit_lock_waits(p_ttl);
  SELECT q.id INTO v_queue FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C" FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    status := 'unknown_queue';
    RETURN;
  END IF;

  now := {schema}.clock(p_now);
  SELECT p.attempt, p.held INTO v_mine FROM {schema}.permits p
  WHERE p.queue = v_queue AND p.owner = p_owner AND p.expires > permit.now;
  IF p_attempt < v_mine.attempt THEN
    status := 'stale_attempt';
    RETURN;
  END IF;

  DELETE FROM {schema}.permits p WHERE p.queue = v_queue AND p.expires <= permit.now;
  UPDATE {schema}.permits p SET expires = {schema}.later(permit.now, p.ttl) -- the clock stepped back
  WHERE p.queue = v_queue AND p.expires > {schema}.later(permit.now, p.ttl);
  SELECT coalesce(sum(p.held), 0)::bigint AS taken, coalesce(bool_or(p.wanted > p.held), false) AS wanting INTO v_others
  FROM {schema}.permits p WHERE p.queue = v_queue AND p.owner <> p_owner;

  held := least(p_hold, greatest(coalesce(v_mine.held, 0), p_limit - v_others.taken));
  freed := held < coalesce(v_mine.held, 0) AND v_others.wanting;
  remaining := {schema}.later(now, p_ttl) - now;

  IF p_want = 0 THEN
    DELETE FROM {schema}.permits p WHERE p.queue = v_queue AND p.owner = p_owner;
  ELSE
    INSERT INTO {schema}.permits AS p (queue, owner, attempt, held, wanted, ttl, expires)
    VALUES (v_queue, p_owner, p_attempt, permit.held, p_want, p_ttl, permit.now + permit.remaining)
    ON CONFLICT (queue, owner) DO UPDATE SET attempt = excluded.attempt, held = excluded.held, wanted = excluded.wanted,
      ttl = excluded.ttl, expires = excluded.expires;
  END IF;

  SELECT array_agg(p.owner ORDER BY p.owner), array_agg(p.held ORDER BY p.owner), array_agg(p.wanted ORDER BY p.owner)
  INTO owners, holds, wants FROM {schema}.permits p WHERE p.queue = v_queue;
  status := 'ok';
END {$};
