package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/ports"
)

// A read of some shards merges their inboxes, and leaves those of other shards to the servers of
// those.
func TestPostgresLooksMergeTheirShardsOnly(t *testing.T) {
	t.Parallel()
	one := []int{1}
	page := ports.PageRequest{Queue: "orders", Shards: one}
	id := idInShard(1, 3)
	looks := map[string]func(*viewed, *postgres.Store) error{
		"Find": func(v *viewed, s *postgres.Store) error {
			_, err := s.Find(v.t.Context(), ports.FindRequest{Queue: "orders", ID: id, Payloads: 1000})
			return err
		},
		"Jobs": func(v *viewed, s *postgres.Store) error {
			_, err := s.Jobs(v.t.Context(), ports.JobsRequest{PageRequest: page})
			return err
		},
		"Stats": func(v *viewed, s *postgres.Store) error {
			_, err := s.Stats(v.t.Context(), ports.StatsRequest{Queues: []string{"orders"}, Shards: one})
			return err
		},
		"Heads": func(v *viewed, s *postgres.Store) error {
			_, err := s.Heads(v.t.Context(), []core.Shard{{Queue: "orders", Index: 1}})
			return err
		},
		"Delete": func(v *viewed, s *postgres.Store) error {
			_, err := s.Delete(v.t.Context(),
				ports.JobStep{Shard: core.Shard{Queue: "orders", Index: 1}, IDs: []string{id}})
			return err
		},
	}
	for name, look := range looks {
		t.Run(name, func(t *testing.T) {
			v := newViewed(t, 3)
			s := v.open(postgres.Options{NoWakeups: true})
			v.must(pgx.BeginFunc(t.Context(), v.pool, func(tx pgx.Tx) error {
				_, err := s.Tx(tx).Push(t.Context(), ports.PushRequest{
					Queue:      "orders",
					Shards:     3,
					Generation: 1,
					Entries:    slices.Concat(entriesOf(idInShard(0, 3)), entriesOf(id), entriesOf(idInShard(2, 3))),
				})
				return err
			}))
			v.must(look(v, s))
			if got, want := v.column("inbox", "shard"), []int{0, 2}; !slices.Equal(got, want) {
				t.Errorf("the inboxes of shards %v hold something, want %v", got, want)
			}
		})
	}
}

// A read of whole shards merges only a bounded part of a long inbox and shows the jobs that are
// merged then. A Recount and a Purge merge all of it.
func TestPostgresLooksAtWholeShardsMergeSoMuch(t *testing.T) {
	t.Parallel()
	const step, jobs, most = 100, 2600, 2500
	page := ports.PageRequest{Queue: "orders"}
	looks := map[string]struct {
		left int
		look func(context.Context, *postgres.Store) error
	}{
		"Stats": {jobs - most, func(ctx context.Context, s *postgres.Store) error {
			stats, err := s.Stats(ctx, ports.StatsRequest{Queues: []string{"orders"}})
			if err == nil && stats[0].Fresh != most {
				err = fmt.Errorf("%d jobs are counted, want %d", stats[0].Fresh, most)
			}
			return err
		}},
		"Jobs": {jobs - most, func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Jobs(ctx, ports.JobsRequest{PageRequest: page})
			return err
		}},
		"Groups": {jobs - most, func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Groups(ctx, ports.GroupsRequest{Queue: "orders"})
			return err
		}},
		"Recount": {0, func(ctx context.Context, s *postgres.Store) error {
			_, err := kit.Recounted(ctx, s, core.Shard{Queue: "orders"})
			return err
		}},
		"Purge before a time": {0, func(ctx context.Context, s *postgres.Store) error {
			_, err := s.Purge(ctx, ports.DeadLetterStep{Shard: core.Shard{Queue: "orders"}, Before: 1})
			return err
		}},
	}
	for name, tt := range looks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newViewed(t, 1)
			s := v.open(postgres.Options{NoWakeups: true})
			kit.Exec(t, v.pool, fmt.Sprintf(`UPDATE %s.shards SET ttl = 50000`, v.schema)) // beside which a step merges 100 rows
			ids := make([]string, jobs)
			for i := range ids {
				ids[i] = fmt.Sprint(i)
			}
			v.pushApart(s, ids...)()
			v.must(tt.look(t.Context(), s))
			if left := len(v.column("inbox", "shard")); left != tt.left {
				t.Errorf("%d rows are left in the inbox after steps of %d, want %d", left, step, tt.left)
			}
		})
	}
}

// The groups of many shards are read by their key and summed up where they are: nothing goes
// through temporary files.
func TestPostgresGroupsAreSummedInMemory(t *testing.T) {
	t.Parallel()
	const shards, groups = 1000, 100
	v := newViewed(t, shards)
	kit.Exec(t, v.pool, fmt.Sprintf(`
		INSERT INTO %[1]s.dead_groups SELECT s.id, 'a group of errors ' || g, 1, g, g FROM generate_series(1, %[2]d) g, %[1]s.shards s;
		ANALYZE %[1]s.dead_groups, %[1]s.shards, %[1]s.queues`, v.schema, groups))
	s := v.openAs("groups", postgres.Options{NoWakeups: true}, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["temp_file_limit"] = "0"
	})
	reply, err := s.Groups(t.Context(), ports.GroupsRequest{Queue: "orders"})
	v.must(err)
	if reply.Total != groups || reply.Dead != shards*groups {
		t.Errorf("%d groups have %d dead letters, want %d and %d", reply.Total, reply.Dead, groups, shards*groups)
	}
}

// While no server serves a queue, Stats sums up the changes of its counts by pushes, and only a
// bounded part each time, however many shards they are spread over.
func TestPostgresStatsFoldTheCountsOfAQueue(t *testing.T) {
	t.Parallel()
	const shards, pushes, few = 100, 100, 5000
	v := newViewed(t, shards)
	s := v.open(postgres.Options{NoWakeups: true})
	for i := range pushes {
		var entries []core.Entry
		for k := range shards {
			entries = append(entries, entriesOf(fmt.Sprintf("%d-%d", i, k))...)
		}
		_, err := s.Push(t.Context(),
			ports.PushRequest{Queue: "orders", Shards: shards, Generation: 1, Entries: entries})
		v.must(err)
	}
	before := len(v.column("count_changes", "shard"))
	for range 2 {
		stats, err := s.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
		v.must(err)
		if stats[0].Fresh != shards*pushes {
			t.Errorf("%d jobs are counted, want %d", stats[0].Fresh, shards*pushes)
		}
	}
	if after := len(v.column("count_changes", "shard")); before <= few || after > few {
		t.Errorf("%d changes of counts are left of %d, want at most %d", after, before, few)
	}
}

// idInShard returns an id of a shard.
func idInShard(index, shards int) string {
	for i := 0; ; i++ {
		if id := fmt.Sprintf("id-%d", i); core.ShardOf(id, shards) == index {
			return id
		}
	}
}

// column returns a column of shards of a table, as indexes in order.
func (v *viewed) column(table, name string) []int {
	v.t.Helper()
	rows, err := v.pool.Query(v.t.Context(),
		fmt.Sprintf(`SELECT i.%s %% %d FROM %s.%s i ORDER BY 1`, name, core.MaxShards, v.schema, table))
	v.must(err)
	indexes, err := pgx.CollectRows(rows, pgx.RowTo[int])
	v.must(err)
	return indexes
}

func TestPostgresLooksReadLittleOfALongQueue(t *testing.T) {
	t.Parallel()
	const shards, jobs, most = 3, 40_000, 300
	v := newViewed(t, shards)
	all := v.open(postgres.Options{NoWakeups: true})
	ids := make([]string, jobs)
	for i := range ids {
		ids[i] = fmt.Sprint("order-", i)
	}
	v.push(all, core.When{}, ids...)
	var size int
	v.must(
		v.pool.QueryRow(t.Context(), `SELECT pg_relation_size(($1 || '.jobs')::regclass) / 8192`, v.schema).Scan(&size),
	)
	if size < most {
		t.Fatalf("the jobs fill %d blocks; more must be pushed", size)
	}
	tracer := &seen{}
	s := v.openAs("looks", postgres.Options{}, func(c *pgxpool.Config) { c.ConnConfig.Tracer = tracer })
	for order := ports.ByTime; order <= ports.RetryingByCount; order++ {
		for _, descending := range []bool{false, true} {
			r := ports.JobsRequest{SortBy: order, PageRequest: ports.PageRequest{
				Queue: "orders", Descending: descending, Limit: 20, Payloads: 1,
			}}
			for range 2 {
				page, err := s.Jobs(t.Context(), r)
				v.must(err)
				r.After = page.Next
			}
		}
	}
	_, err := s.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	v.must(err)
	_, err = s.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "order-17", Payloads: 1000})
	v.must(err)
	for _, q := range tracer.sent() {
		if n := pagesRead(t, v.pool, v.schema, q.SQL, q.Args...); n > most {
			t.Errorf("%d blocks are read by %s", n, q.SQL)
		}
	}
}
