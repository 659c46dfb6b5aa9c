-- Returns a reply of places of the request, of the kind 's', 'f', 'p' or 'n'.
CREATE FUNCTION {schema}.reply_places(p_kind "char", p_places int[]) RETURNS {schema}.reply LANGUAGE sql IMMUTABLE AS {$}
  SELECT ROW(p_kind, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, -- all before places
    p_places, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::{schema}.reply
{$};
