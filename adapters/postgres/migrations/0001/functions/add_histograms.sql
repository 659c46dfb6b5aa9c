-- Returns the sum of two histograms, bucket by bucket; either may have more buckets.
CREATE FUNCTION {schema}.add_histograms(p_one bigint[], p_other bigint[]) RETURNS bigint[] LANGUAGE sql IMMUTABLE AS {$}
  SELECT ARRAY(SELECT coalesce(a, 0) + coalesce(b, 0) FROM unnest(p_one, p_other) WITH ORDINALITY u (a, b, bucket) ORDER BY bucket)
{$};
