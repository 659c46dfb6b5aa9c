package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
)

// postgresConnections is how many connections the systems may open: enough for ten writers or five
// lanes, and for those that listen and renew.
const postgresConnections = 20

// Each system's tables are in a schema of their own.
const (
	riverSchema = "river"
	bareSchema  = "bare"
)

// openPostgres makes a lab of a Postgres database that must have no tables: those
// of the systems are made anew before every measurement, and dropped at the end.
// Without a URL it starts a server.
func openPostgres(ctx context.Context, url string, jobs int, log io.Writer) (*lab, error) {
	stop := func() error { return nil }
	if url == "" {
		var err error
		if url, stop, err = startPostgres(ctx); err != nil {
			return nil, err
		}
	}

	pool, err := emptyPostgres(ctx, url)
	if err != nil {
		return nil, errors.Join(err, stop())
	}

	l := &lab{postgres: pool, jobs: jobs, log: log}
	l.close = func() error {
		err := l.dropTables(context.WithoutCancel(ctx))
		l.postgres.Close()
		return errors.Join(err, stop())
	}
	return l, nil
}

func emptyPostgres(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}

	config.MaxConns = postgresConnections
	// DROP logs missing tables.
	config.ConnConfig.RuntimeParams["client_min_messages"] = "warning"

	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}

	if err := refuse(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// refuse returns an error if a database has tables, or unsafe settings that would make it faster.
func refuse(ctx context.Context, pool *pgxpool.Pool) error {
	var tables int
	var unsafe string
	err := pool.QueryRow(ctx, `SELECT
  (SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')),
  (SELECT coalesce(string_agg(name, ', '), '') FROM pg_settings
    WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') AND setting <> 'on')`).Scan(&tables, &unsafe)

	switch {
	case err != nil:
	case tables > 0:
		err = fmt.Errorf("database %s has %d tables; give one that is empty, since the benchmark drops schemas",
			pool.Config().ConnConfig.Database, tables)
	case unsafe != "":
		err = fmt.Errorf("the server has %s not on; such figures would mean nothing", unsafe)
	}
	return err
}

// renewed drops all tables and has make make a system's, with a checkpoint behind it.
func renewed(ctx context.Context, l *lab, make func(context.Context, *pgxpool.Pool) error) error {
	if err := l.dropTables(ctx); err != nil {
		return err
	}
	if err := make(ctx, l.postgres); err != nil {
		return err
	}
	_, err := l.postgres.Exec(ctx, "CHECKPOINT")
	return err
}

// dropTables drops all tables, on new connections, after the old ones have ended the last system's
// calls.
func (l *lab) dropTables(ctx context.Context) error {
	l.postgres.Close()
	pool, err := pgxpool.NewWithConfig(ctx, l.postgres.Config())
	if err != nil {
		return err
	}
	l.postgres = pool
	var b pgx.Batch
	for _, schema := range []string{postgres.DefaultSchema, riverSchema, bareSchema} {
		b.Queue("DROP SCHEMA IF EXISTS " + schema + " CASCADE")
	}
	return pool.SendBatch(ctx, &b).Close()
}

// vacuum does the work of autovacuum for the whole database. It also truncates the tables for which
// autovacuum is set not to do so.
func vacuum(ctx context.Context, pool *pgxpool.Pool) error {
	_, err := pool.Exec(ctx, "VACUUM (ANALYZE, TRUNCATE)")
	return err
}
