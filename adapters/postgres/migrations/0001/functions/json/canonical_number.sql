-- Returns a number as JavaScript writes the double that is nearest to it. It fails unless both are
-- the same number, since programs that read doubles would read another one.
CREATE FUNCTION {schema}.canonical_number(p_number numeric) RETURNS text LANGUAGE plpgsql IMMUTABLE
SET extra_float_digits = 1 AS {$}
DECLARE
  c_exact    CONSTANT int := 15;  -- A number with no more digits is the shortest text of its double.
  c_smallest CONSTANT numeric := '5e-324';
  c_largest  CONSTANT numeric := '1.7976931348623157e308';
  v_size     numeric := abs(trim_scale(p_number));
  v_plain    text := v_size::text;
  v_digits   text := trim(BOTH '0' FROM replace(v_plain, '.', ''));
  v_sign     text := CASE WHEN p_number < 0 THEN '-' ELSE '' END;
  v_exponent int;
BEGIN
  IF v_size = 0 THEN
    RETURN '0';
  END IF;
  IF v_size NOT BETWEEN c_smallest AND c_largest
    OR (length(v_digits) > c_exact OR v_size < 1e-300) AND {schema}.shortest(v_size) <> v_size THEN
    RAISE EXCEPTION 'the number % is not exact as a double',
        CASE WHEN length(p_number::text) > 64 THEN left(p_number::text, 64) || '…' ELSE p_number::text END
      USING ERRCODE = 'invalid_parameter_value', HINT = 'Write it as a string, such as "12345678901234567890".';
  END IF;

  IF v_size >= 1e-6 AND v_size < 1e21 THEN
    RETURN v_sign || v_plain;
  END IF;
  v_exponent := CASE WHEN v_size >= 1 THEN length(split_part(v_plain, '.', 1)) - 1
    ELSE -1 - length(substring(v_plain FROM '^0\.(0*)')) END;
  RETURN v_sign || left(v_digits, 1) || CASE WHEN length(v_digits) > 1 THEN '.' ELSE '' END || substr(v_digits, 2)
    || 'e' || CASE WHEN v_exponent > 0 THEN '+' ELSE '' END || v_exponent;
END {$};
