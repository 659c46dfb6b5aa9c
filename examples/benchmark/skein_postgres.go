package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/ports"
)

// skeinOnPostgres is Skein on its Postgres store.
type skeinOnPostgres struct {
	*skeinSystem
	pool  *pgxpool.Pool
	turns *turnCounter
}

func newSkeinOnPostgres(l *lab, setting skeinSetting) *skeinOnPostgres {
	turns := &turnCounter{Store: postgres.New(l.postgres, postgres.Options{})}
	return &skeinOnPostgres{skeinSystem: newSkein(l, turns, setting), pool: l.postgres, turns: turns}
}

// withSkeinApart returns Skein that pushes through another store than the server's.
func withSkeinApart(ctx context.Context, l *lab) (system, error) {
	if err := renewed(ctx, l, skeinTables); err != nil {
		return nil, err
	}
	s := newSkeinOnPostgres(l, skeinSetting{})
	s.client = skein.NewClient(postgres.New(l.postgres, postgres.Options{}), skein.ClientOptions{})
	return s, nil
}

// skeinTables makes Skein's tables.
func skeinTables(ctx context.Context, pool *pgxpool.Pool) error {
	return postgres.Migrate(ctx, pool, postgres.MigrateOptions{})
}

// jobTables are those that hold something of jobs.
var jobTables = []string{"jobs", "payloads", "claimed", "inbox", "dead_letters", "dead_letter_payloads"}

// audit checks that no table holds anything of a job.
func (s *skeinOnPostgres) audit(ctx context.Context, _ int) error {
	for _, table := range jobTables {
		var rows int
		if err := s.pool.QueryRow(
			ctx,
			"SELECT count(*) FROM "+postgres.DefaultSchema+"."+table,
		).Scan(&rows); err != nil {
			return err
		}
		if rows > 0 {
			return fmt.Errorf("the table %s has %d rows left", table, rows)
		}
	}
	return nil
}

// perTurn returns how many jobs a turn that claimed some has claimed on average, since the last
// call.
func (s *skeinOnPostgres) perTurn() float64 {
	return float64(s.turns.claimed.Swap(0)) / float64(max(1, s.turns.count.Swap(0)))
}

// turnCounter is a store that counts its turns which claim something.
type turnCounter struct {
	*postgres.Store
	count, claimed atomic.Int64
}

// Turn implements ports.Consumer.
func (c *turnCounter) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	reply, err := c.Store.Turn(ctx, r)
	if n := len(reply.Claims); n > 0 {
		c.count.Add(1)
		c.claimed.Add(int64(n))
	}
	return reply, err
}
