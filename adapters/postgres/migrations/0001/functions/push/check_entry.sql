-- Fails unless an entry that SQL pushes is one that core.Entry.Validate accepts, with a payload of at
-- most core.DefaultMaxPayloadBytes. tags_of and instant_of check its tags and its time.
CREATE FUNCTION {schema}.check_entry(p_id text, p_data bytea, p_score double precision)
RETURNS void LANGUAGE plpgsql IMMUTABLE AS {$}
DECLARE
  c_id_bytes   CONSTANT int := 512;     -- core.MaxIDBytes
  c_data_bytes CONSTANT int := 524288;  -- core.DefaultMaxPayloadBytes
  v_fault text;
  v_hint  text;
BEGIN
  IF coalesce(p_id, '') = '' THEN
    v_fault := 'the id is empty';
    v_hint := 'Give the id of the entity that the job is about.';
  ELSIF octet_length(p_id) > c_id_bytes THEN
    v_fault := format('the id has %s bytes, at most %s are allowed', octet_length(p_id), c_id_bytes);
    v_hint := 'Use a hash of it.';
  ELSIF {schema}.has_control(p_id) THEN
    v_fault := 'the id has a control character';
    v_hint := 'Encode the id.';
  ELSIF p_data IS NULL THEN
    v_fault := 'the payload is NULL';
    v_hint := 'Give a payload; JSON''s null is ''null''::jsonb.';
  ELSIF octet_length(p_data) > c_data_bytes THEN
    v_fault := format('the payload has %s bytes, at most %s are allowed', octet_length(p_data), c_data_bytes);
    v_hint := 'Store it in a table, and push its key.';
  ELSIF NOT p_score BETWEEN '-1.7976931348623157e308' AND '1.7976931348623157e308' THEN  -- NaN is larger than all
    v_fault := format('the score is %s', p_score);
    v_hint := 'Use a finite number.';
  ELSE
    RETURN;
  END IF;
  RAISE EXCEPTION '%', v_fault USING ERRCODE = 'invalid_parameter_value', HINT = v_hint;
END {$};
