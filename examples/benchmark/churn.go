package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
)

// churn has ten parts of five waves. A wave has as many jobs as a measurement of another work: by
// default there are ten million jobs.
const (
	churnWaves = 5
	churnParts = 10
)

// churnProbe pushes and handles jobs at the same time, on one server that runs all the while, and
// compares the last part with the first: in rate, and in what the tables take after a vacuum. With
// a snapshot, one is open from the first part's end to the last part's.
func churnProbe(snapshot bool) *probe {
	name := "churn, skein"
	if snapshot {
		name += ", snapshot"
	}

	return &probe{name: name, measure: func(ctx context.Context, l *lab) (_ []reading, err error) {
		c, err := startChurn(ctx, l)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, c.stop()) }()

		if err := c.part(ctx, "first"); err != nil {
			return nil, err
		}
		if err := c.sizes(ctx, "first"); err != nil {
			return nil, err
		}

		release := func() error { return nil }
		if snapshot {
			if release, err = openSnapshot(ctx, l.postgres); err != nil {
				return nil, err
			}
		}

		err = c.rest(ctx)
		if err := errors.Join(err, release()); err != nil {
			return nil, err
		}

		return c.readings, c.sizes(ctx, "last")
	}}
}

// churn is a run: a server and its jobs.
type churn struct {
	lab      *lab
	system   system
	stop     func() error
	tally    atomic.Pointer[tally]
	pushed   int
	readings []reading
}

func startChurn(ctx context.Context, l *lab) (*churn, error) {
	s, err := l.system(ctx, skeinName)
	if err != nil {
		return nil, err
	}
	c := &churn{lab: l, system: s}
	c.stop, err = s.serve(ctx, func(payload []byte) { c.tally.Load().take(payload) })
	return c, err
}

// rest does the parts after the first. The last one is a reading.
func (c *churn) rest(ctx context.Context) error {
	for range churnParts - 2 {
		if err := c.part(ctx, ""); err != nil {
			return err
		}
	}
	return c.part(ctx, "last")
}

// part does waves, and reads their rate if it has a name.
func (c *churn) part(ctx context.Context, name string) error {
	n := churnWaves * c.lab.jobs
	m := c.lab.startMeter(ctx)
	for range churnWaves {
		if err := c.wave(ctx); err != nil {
			return err
		}
	}

	took, cpu := m.read(ctx)
	v := rate(n, took)
	state, err := tableState(ctx, c.lab.postgres)
	fmt.Fprintf(c.lab.log, "    %d jobs: %s %s, %s\n", c.pushed, figure(v), perSecond, state)

	if name != "" {
		c.read(fmt.Sprintf("%s %d of %d", name, n, churnParts*n), perSecond, v)
		c.readings[len(c.readings)-1].cpu = cpu.per(n)
	}
	return err
}

// wave pushes jobs, and returns when they have all been handled.
func (c *churn) wave(ctx context.Context) error {
	jobs := jobsFrom(c.pushed, c.lab.jobs)
	t := newTally(jobs)
	c.tally.Store(t)
	if err := c.system.fill(ctx, jobs); err != nil {
		return err
	}
	c.pushed += len(jobs)
	return t.wait(ctx)
}

// sizes reads the sizes of the tables after a vacuum, when they hold no job any more.
func (c *churn) sizes(ctx context.Context, name string) error {
	if err := awaitEmpty(ctx, c.system); err != nil {
		return err
	}
	if err := vacuum(ctx, c.lab.postgres); err != nil {
		return err
	}
	heaps, indexes, err := tableSizes(ctx, c.lab.postgres)
	setting := fmt.Sprintf("after the %s %d, vacuumed", name, churnWaves*c.lab.jobs)
	c.read(setting, heapMB, heaps)
	c.read(setting, indexMB, indexes)
	return err
}

func (c *churn) read(setting, unit string, v float64) {
	c.readings = append(c.readings, reading{system: skeinName, setting: setting, unit: unit, value: v})
}

// tableSizes returns the sizes of Skein's tables and their indexes, in millions of bytes.
func tableSizes(ctx context.Context, pool *pgxpool.Pool) (heaps, indexes float64, err error) {
	err = pool.QueryRow(ctx,
		`SELECT coalesce(sum(pg_table_size(oid)), 0) / 1e6, coalesce(sum(pg_indexes_size(oid)), 0) / 1e6
FROM pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace($1)`,
		postgres.DefaultSchema,
	).Scan(&heaps, &indexes)
	return heaps, indexes, err
}

// tableState is what autovacuum still has to do on a table, and what it has done.
func tableState(ctx context.Context, pool *pgxpool.Pool) (string, error) {
	heaps, indexes, err := tableSizes(ctx, pool)
	if err != nil {
		return "", err
	}
	var dead, vacuums int64
	err = pool.QueryRow(ctx, `SELECT coalesce(sum(n_dead_tup), 0)::bigint, coalesce(sum(autovacuum_count), 0)::bigint
FROM pg_stat_user_tables WHERE schemaname = $1`, postgres.DefaultSchema).Scan(&dead, &vacuums)
	return fmt.Sprintf("heaps %.1f MB, indexes %.1f MB, %d dead rows, %d autovacuums",
		heaps, indexes, dead, vacuums), err
}
