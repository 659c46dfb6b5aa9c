// Package postgres is a ports.ShardStore on PostgreSQL 14 or later, through pgx.
//
// A push is one statement, a turn one function call and one commit. Entries
// travel as arrays. [Migrate] makes the tables and functions, in a schema of their
// own; docs/postgres.md says which rights a role needs, how it works behind
// PgBouncer, and how to push and settle inside one's own transactions ([Tx]).
package postgres
