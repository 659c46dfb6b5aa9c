package postgres_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// If Options.Listen names all servers and requires one that writes, its connection listens at the
// new primary after a failover.
func TestPostgresListenFollowsAFailover(t *testing.T) {
	tier.Long(t, "waits for a failover")
	t.Parallel()
	const shards = 1000 // a push wakes a shard that has nothing due
	pair := testservers.PostgresWithStandby(t)
	must(t, postgres.Migrate(t.Context(), pair.Primary, postgres.MigrateOptions{}))
	listen, err := pgx.ParseConfig(pair.URL())
	must(t, err)
	store := postgres.New(kit.PoolOf(t, pair.URL()), postgres.Options{Listen: listen})
	producer := postgres.New(kit.PoolOf(t, pair.URL()), postgres.Options{})
	_, err = store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: shards})
	must(t, err)
	woken, err := store.Wakeups(t.Context(), core.Shards("orders", shards))
	must(t, err)
	pushed := 0
	wakes := func(when string) {
		t.Helper()
		id := ""
		for err := errors.New("not pushed yet"); err != nil; { // a connection that the failover has cut is met by a push
			id = fmt.Sprint("id-", pushed)
			pushed++
			_, err = producer.Push(t.Context(),
				ports.PushRequest{Queue: "orders", Shards: shards, Generation: 1, Entries: entriesOf(id)})
		}
		for after := time.After(testservers.Patience); ; {
			select {
			case shard := <-woken:
				if shard.Index == core.ShardOf(id, shards) {
					return
				}
			case <-after:
				t.Fatalf("%s: no wake-up of the shard of %s", when, id)
			}
		}
	}
	wakes("before")
	pair.KillPrimary()
	pair.Promote(t)
	for range shards { // each is looked at once the store listens again
		select {
		case <-woken:
		case <-time.After(testservers.Patience):
			t.Fatal("it does not listen again")
		}
	}
	wakes("after the failover")
}
