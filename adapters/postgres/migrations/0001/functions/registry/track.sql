-- Adds an id to the tracked ids of a queue, or removes it. status is ok, unknown_queue, or full
-- for a list of 1,000 others; changed is whether the list has changed.
CREATE FUNCTION {schema}.track(p_queue text, p_id text, p_untrack boolean, p_now bigint, OUT status text, OUT changed boolean)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET lock_timeout = '500ms' AS {$}
DECLARE
  c_most CONSTANT int := 1000; -- ports.MaxTracked
  v_queue int;
BEGIN
  changed := false;
  SELECT q.id INTO v_queue FROM {schema}.queues q WHERE q.name = p_queue COLLATE "C" FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    status := 'unknown_queue';
    RETURN;
  END IF;
  status := 'ok';
  IF p_untrack THEN
    DELETE FROM {schema}.tracked t WHERE t.queue = v_queue AND t.id = p_id COLLATE "C";
    changed := FOUND;
  ELSIF EXISTS (SELECT FROM {schema}.tracked t WHERE t.queue = v_queue AND t.id = p_id COLLATE "C") THEN
    RETURN;
  ELSIF (SELECT count(*) FROM {schema}.tracked t WHERE t.queue = v_queue) >= c_most THEN
    status := 'full';
  ELSE
    INSERT INTO {schema}.tracked (queue, id, since) VALUES (v_queue, p_id, {schema}.clock(p_now));
    changed := true;
  END IF;
END {$};
