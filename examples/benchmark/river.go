package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const riverName = "river"

// riverFilled is how many jobs a call stores when River is filled, as in River's own bench command.
const riverFilled = 5_000

// silent is a log that drops everything.
var silent = slog.New(slog.DiscardHandler)

// riverSetting is the configuration of River. A duration of 0 means River's default.
type riverSetting struct {
	workers             int
	cooldown, fetchPoll time.Duration
}

var (
	// riverDefaults has the number of workers of River's documentation: that
	// setting has no default.
	riverDefaults = riverSetting{workers: 100}
	// riverBench is the configuration of River's own bench command.
	riverBench = riverSetting{workers: 2_000, cooldown: 2 * time.Millisecond, fetchPoll: 20 * time.Millisecond}
)

func (s riverSetting) String() string {
	if s.cooldown == 0 {
		return fmt.Sprintf("%d workers, defaults", s.workers)
	}
	return fmt.Sprintf("%d workers, fetches %v apart", s.workers, s.cooldown)
}

// riverArgs are a job's arguments, which River keeps as JSON. River numbers jobs itself, so the id
// of the benchmark is one of the arguments.
type riverArgs struct {
	ID      string `json:"id"`
	Payload string `json:"payload"`
}

// Kind implements river.JobArgs.
func (riverArgs) Kind() string { return "bench" }

func argsOf(j job) riverArgs { return riverArgs{ID: j.id, Payload: string(j.payload)} }

// riverSystem is River at default options, except for its setting.
type riverSystem struct {
	pool    *pgxpool.Pool
	client  *river.Client[pgx.Tx] // inserts only
	setting riverSetting
}

// withRiver returns River with a setting.
func withRiver(setting riverSetting) opener {
	return func(ctx context.Context, l *lab) (system, error) {
		if err := renewed(ctx, l, riverTables); err != nil {
			return nil, err
		}
		client, err := river.NewClient(riverpgxv5.New(l.postgres), &river.Config{Schema: riverSchema, Logger: silent})
		return &riverSystem{pool: l.postgres, client: client, setting: setting}, err
	}
}

// riverTables makes River's tables.
func riverTables(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, "CREATE SCHEMA "+riverSchema); err != nil {
		return err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: riverSchema, Logger: silent})
	if err != nil {
		return err
	}
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	return err
}

func (s *riverSystem) push(ctx context.Context, j job) error {
	_, err := s.client.Insert(ctx, argsOf(j), nil)
	return err
}

func (s *riverSystem) fill(ctx context.Context, jobs []job) error {
	return eachChunk(ctx, 1, riverFilled, jobs, s.insertMany)
}

func (s *riverSystem) pushMany(ctx context.Context, jobs []job, goroutines int) error {
	return eachChunk(ctx, goroutines, pushedMany, jobs, s.insertMany)
}

// insertMany stores jobs by COPY, which is River's fastest way.
func (s *riverSystem) insertMany(ctx context.Context, jobs []job) error {
	params := make([]river.InsertManyParams, len(jobs))
	for i, j := range jobs {
		params[i].Args = argsOf(j)
	}
	_, err := s.client.InsertManyFast(ctx, params)
	return err
}

func (s *riverSystem) serve(ctx context.Context, handle func([]byte)) (func() error, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, j *river.Job[riverArgs]) error {
		handle([]byte(j.Args.Payload))
		return nil
	}))

	client, err := river.NewClient(riverpgxv5.New(s.pool), &river.Config{
		Schema:            riverSchema,
		Logger:            silent,
		Workers:           workers,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: s.setting.workers}},
		FetchCooldown:     s.setting.cooldown,
		FetchPollInterval: s.setting.fetchPoll,
	})
	if err != nil {
		return nil, err
	}

	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	return func() error { return client.Stop(context.WithoutCancel(ctx)) }, nil
}

// left counts the jobs in all states except completed. The query names the states, so that Postgres
// can use River's index.
func (s *riverSystem) left(ctx context.Context) (int64, error) {
	var n int64
	err := s.pool.QueryRow(ctx, `SELECT count(*) FROM river.river_job
WHERE state IN ('available', 'running', 'retryable', 'scheduled', 'pending', 'cancelled', 'discarded')`).Scan(&n)
	return n, err
}

// audit checks that River has kept each job as completed.
func (s *riverSystem) audit(ctx context.Context, handled int) error {
	var n int
	err := s.pool.QueryRow(ctx, `SELECT count(*) FROM river.river_job WHERE state = 'completed'`).Scan(&n)
	if err == nil && n != handled {
		err = fmt.Errorf("%d jobs are completed instead of %d", n, handled)
	}
	return err
}
