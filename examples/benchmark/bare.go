package main

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein"
)

const bareName = "bare"

// bareConnections is the largest number of turns that Skein has in flight: one for each shard.
const bareConnections = skein.DefaultShards

// bareTables creates the table of the smallest thing that could be called a queue.
const bareTables = `
CREATE SCHEMA bare;
CREATE TABLE bare.jobs (id text COLLATE "C" PRIMARY KEY, payload bytea NOT NULL);
`

// bareClaim takes the first job that no other connection is taking.
const bareClaim = `DELETE FROM bare.jobs
WHERE id = (SELECT id FROM bare.jobs ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING payload`

// bareSystem claims a job and deletes it in one statement, before the job is handled. Jobs that run
// when the process dies are lost, and no job is retried.
type bareSystem struct{ pool *pgxpool.Pool }

func withBare(ctx context.Context, l *lab) (system, error) {
	err := renewed(ctx, l, func(ctx context.Context, pool *pgxpool.Pool) error {
		_, err := pool.Exec(ctx, bareTables)
		return err
	})
	return &bareSystem{l.postgres}, err
}

func (s *bareSystem) push(ctx context.Context, j job) error {
	_, err := s.pool.Exec(ctx, `INSERT INTO bare.jobs (id, payload) VALUES ($1, $2)`, j.id, j.payload)
	return err
}

func (s *bareSystem) fill(ctx context.Context, jobs []job) error {
	rows := pgx.CopyFromSlice(len(jobs), func(i int) ([]any, error) { return []any{jobs[i].id, jobs[i].payload}, nil })
	_, err := s.pool.CopyFrom(ctx, pgx.Identifier{bareSchema, "jobs"}, []string{"id", "payload"}, rows)
	return err
}

// serve takes jobs on each connection until the queue is empty.
func (s *bareSystem) serve(ctx context.Context, handle func([]byte)) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	failures := make([]error, bareConnections)
	for i := range failures {
		group.Go(func() { failures[i] = s.take(ctx, handle) })
	}
	return func() error {
		group.Wait()
		cancel()
		return errors.Join(failures...)
	}, nil
}

func (s *bareSystem) take(ctx context.Context, handle func([]byte)) error {
	for {
		var payload []byte
		err := s.pool.QueryRow(ctx, bareClaim).Scan(&payload)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		handle(payload)
	}
}

func (s *bareSystem) left(ctx context.Context) (int64, error) {
	var n int64
	err := s.pool.QueryRow(ctx, `SELECT count(*) FROM bare.jobs`).Scan(&n)
	return n, err
}
