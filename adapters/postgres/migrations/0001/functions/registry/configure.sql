-- Replaces the settings of a queue (ports.Operator.Configure). status is ok, unknown_queue, or
-- conflict if the stored version is not the one before p_version; a repeat of the same content is
-- ok. version and settings are then the stored ones.
CREATE FUNCTION {schema}.configure(p_queue text, p_version bigint, p_settings text,
  OUT status text, OUT version bigint, OUT settings text)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET lock_timeout = '500ms' AS {$}
BEGIN
  SELECT q.settings_version, q.settings::text INTO version, settings FROM {schema}.queues q
  WHERE q.name = p_queue COLLATE "C" FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    status := 'unknown_queue';
  ELSIF version = p_version - 1 THEN
    UPDATE {schema}.queues q SET settings_version = p_version, settings = p_settings::json
    WHERE q.name = p_queue COLLATE "C";
    status := 'ok';
  ELSIF version = p_version AND settings = p_settings COLLATE "C" THEN
    status := 'ok';
  ELSE
    status := 'conflict';
  END IF;
END {$};
