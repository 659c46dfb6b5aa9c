-- Returns a time in microseconds, or NULL for NULL. It fails for times at which no job can run.
CREATE FUNCTION {schema}.instant_of(p_at timestamptz) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS {$}
DECLARE
  c_last CONSTANT numeric := 9007199254740992;  -- core.MaxInstant
  v_at numeric := extract(epoch FROM p_at) * 1000000;
BEGIN
  IF NOT v_at BETWEEN 0 AND c_last THEN
    RAISE EXCEPTION 'no job can run at %', p_at
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Give a time from 1970 to the year 2255.';
  END IF;
  RETURN v_at;
END {$};
