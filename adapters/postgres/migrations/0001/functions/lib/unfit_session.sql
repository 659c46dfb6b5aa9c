-- Returns why a caller's session does not fit, or NULL: search_path if functions would not call the
-- server's own, not_utf8 if ids would be turned into other texts.
CREATE FUNCTION {schema}.unfit_session() RETURNS text LANGUAGE plpgsql STABLE AS {$}
BEGIN
  IF pg_catalog.array_position(pg_catalog.current_schemas(false), 'pg_catalog'::pg_catalog.name) OPERATOR(pg_catalog.>) 1 THEN
    RETURN 'search_path';
  END IF;
  RETURN CASE WHEN current_setting('client_encoding') <> 'UTF8' THEN 'not_utf8' END;
END {$};
