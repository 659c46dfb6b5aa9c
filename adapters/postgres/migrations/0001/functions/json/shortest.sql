-- Returns the shortest number that has the same double as a positive number, the nearest of several,
-- as JavaScript and Go write it. Postgres writes no number halfway to the next double, even if that is
-- shorter and is read as the same double.
CREATE FUNCTION {schema}.shortest(p_number numeric) RETURNS numeric LANGUAGE plpgsql IMMUTABLE
SET extra_float_digits = 1 AS {$}
DECLARE
  c_largest  CONSTANT numeric := '1.7976931348623157e308';
  v_double   double precision := p_number::double precision;
  v_written  numeric := trim_scale(v_double::text::numeric);
  v_places   int := scale(v_written);  -- behind the point, or less than 0
  v_shorter  numeric;
BEGIN
  IF v_places = 0 THEN
    v_places := length(rtrim(v_written::text, '0')) - length(v_written::text);
  END IF;

  v_shorter := trunc(v_written, v_places - 1);
  FOR i IN 1..2 LOOP
    IF v_shorter BETWEEN '5e-324' AND c_largest AND v_shorter::double precision = v_double THEN
      RETURN v_shorter;
    END IF;
    v_shorter := v_shorter + ('1e' || 1 - v_places)::numeric;
  END LOOP;
  RETURN v_written;
END {$};
