package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// deadFactor is how many times as many jobs as elsewhere are handled beside the
// snapshot before the measurement: two million by default, each of which leaves
// dead rows that no vacuum may take away.
const deadFactor = 10

// snapshotProbe measures how fast jobs are handled, and again beside a snapshot
// that was opened many jobs ago.
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

// openSnapshot opens a transaction that goes on seeing the database as it is. What
// it returns ends it.
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
