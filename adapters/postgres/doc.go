// Package postgres is a ports.ShardStore on PostgreSQL 14 or later, through pgx.
//
//	pool, err := pgxpool.New(ctx, "postgres://localhost/app")
//	err = postgres.Migrate(ctx, pool, postgres.MigrateOptions{})
//	store := postgres.New(pool, postgres.Options{})
//
// [Migrate] makes the tables and functions, in a schema of their own. [New] makes a [Store] on a
// pool. A [Tx] pushes and settles in a transaction of the caller.
//
// A push of up to 2,000 entries is usually one statement, and a turn is one function call and one
// commit. Entries are sent as arrays. docs/operations/postgres.md describes the rights that a role
// needs, PgBouncer, and transactions of the caller.
package postgres
