package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// deadFactor is the factor by which the jobs handled before the measurement exceed the usual
// number: two million by default. Each leaves dead rows that no vacuum may remove while the
// snapshot is open.
const deadFactor = 10

// snapshotProbe measures how fast jobs are handled, and again with an open snapshot that is many
// jobs old.
func snapshotProbe() *probe {
	return &probe{name: "snapshot, skein", measure: func(ctx context.Context, l *lab) (_ []reading, err error) {
		s, err := l.system(ctx, skeinName)
		if err != nil {
			return nil, err
		}

		without, err := handle(ctx, l, s, newJobs(l.jobs), reading{system: skeinName, setting: "none open"})
		if err != nil {
			return nil, err
		}

		release, err := openSnapshot(ctx, l.postgres)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, release()) }()

		row := reading{system: skeinName, setting: fmt.Sprintf("one open for %d jobs", deadFactor*l.jobs)}
		for n := 1; n <= deadFactor; n++ {
			if _, err := handle(ctx, l, s, jobsFrom(n*l.jobs, l.jobs), row); err != nil {
				return nil, err
			}
		}

		beside, err := handle(ctx, l, s, jobsFrom((deadFactor+1)*l.jobs, l.jobs), row)
		return append(without, beside...), err
	}}
}

// openSnapshot opens a transaction that keeps seeing the database as it is. The returned function
// ends it.
func openSnapshot(ctx context.Context, pool *pgxpool.Pool) (release func() error, err error) {
	tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return nil, err
	}
	release = func() error { return tx.Rollback(context.WithoutCancel(ctx)) }
	var tables int
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM pg_class`).Scan(&tables); err != nil {
		return nil, errors.Join(err, release())
	}
	return release, nil
}
