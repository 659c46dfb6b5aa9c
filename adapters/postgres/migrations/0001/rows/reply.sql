-- One row of the reply to an acquire or a turn: a header, or a claimed job with the columns of the
-- table claimed. It is the type of these rows, and nobody reads it as a view. A migration that adds
-- a column to claimed replaces this view.
CREATE VIEW {schema}.reply AS
SELECT NULL::json AS header, c.*
FROM {schema}.claimed c;
COMMENT ON COLUMN {schema}.reply.header IS 'An object with the names of reply_header, or with further ones of turn; NULL in the row of a claim';
