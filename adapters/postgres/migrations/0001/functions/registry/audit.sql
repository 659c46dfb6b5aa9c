-- Stores an operator's action (ports.Auditor), and deletes the oldest if there are more than
-- 1,000. One call at a time: each new action is later than the newest.
CREATE FUNCTION {schema}.audit(p_now bigint, p_id text, p_action json) RETURNS void LANGUAGE plpgsql VOLATILE
SET lock_timeout = '500ms' AS {$}
DECLARE
  c_kept CONSTANT int := 1000; -- ports.ActionsKept
BEGIN
  LOCK TABLE {schema}.actions IN SHARE ROW EXCLUSIVE MODE;
  UPDATE {schema}.actions SET action = p_action WHERE id = p_id;
  IF FOUND THEN
    RETURN;
  END IF;
  INSERT INTO {schema}.actions (id, at, action)
  SELECT p_id, greatest({schema}.clock(p_now), max(a.at) + 1), p_action FROM {schema}.actions a;
  DELETE FROM {schema}.actions WHERE at <= (SELECT a.at FROM {schema}.actions a ORDER BY a.at DESC OFFSET c_kept LIMIT 1);
END {$};
