package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// BenchmarkBesideASchedule measures pushes and turns of a shard without schedules and of one with a
// schedule whose tick is not due. The cost must be the same.
func BenchmarkBesideASchedule(b *testing.B) {
	stores := map[string]func(b *testing.B) ports.ShardStore{
		"redis": func(b *testing.B) ports.ShardStore {
			client := testservers.Redis(b)
			return redis.New(client, redis.Options{Prefix: testservers.Prefix(b, client)})
		},
		"postgres": func(b *testing.B) ports.ShardStore {
			pool := testservers.Postgres(b)
			schema := testservers.Schema(b, pool)
			must(b, postgres.Migrate(b.Context(), pool, postgres.MigrateOptions{Schema: schema}))
			return postgres.New(pool, postgres.Options{Schema: schema})
		},
	}
	for name, open := range stores {
		for schedules := range 2 {
			b.Run(fmt.Sprintf("%s/%d schedules", name, schedules), func(b *testing.B) {
				s := newBusyShard(b, open(b), 0, false)
				for range schedules {
					s.schedule(b)
				}
				b.Run("turn", s.turns)
				b.Run("look", s.looks)
				b.Run("push", s.pushes)
			})
		}
	}
}

// schedule stores a schedule of an id of the shard, whose next tick is a day from now.
func (s *busyShard) schedule(b *testing.B) {
	b.Helper()
	key := core.ScheduleKey{ID: "order-0000001", Name: "nightly"}
	schedule := core.Schedule{
		ScheduleKey: key, Revision: 1, Next: core.InstantOf(time.Now().Add(24 * time.Hour)),
		Recurrence: core.Recurrence{Spec: "every 24h0m0s 0", Data: []byte("go")},
	}
	reply, err := s.store.ChangeSchedules(b.Context(), ports.ChangeSchedulesRequest{
		Shard:      s.shard,
		Shards:     1,
		Generation: 1,
		Changes:    []ports.ScheduleChange{{ScheduleKey: key, Schedule: &schedule}},
	})
	must(b, err)
	if reply.Results[0] != ports.ScheduleChanged {
		b.Fatalf("the schedule was not stored: %v", reply.Results)
	}
}

// pushes measures pushes of one job.
func (s *busyShard) pushes(b *testing.B) {
	for b.Loop() {
		s.push(b, s.pushed, 1)
		s.pushed++
	}
}
