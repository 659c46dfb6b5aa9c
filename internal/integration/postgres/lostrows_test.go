package postgres_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/ports"
)

// A queue that lacks the row of a shard is found. The statement in docs/operations/postgres-dba.md
// restores the row, with the shard's queued jobs and those that an earlier lease left claimed.
func TestPostgresALostRowOfAShardIsReported(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 3)
	store := v.open(postgres.Options{})
	records := func() ports.Check { return kit.Named(kit.CheckedServers(t, store)[""], "records") }
	if row := records(); row.Status != ports.CheckOK || row.Value != "all 3 shards have their rows" {
		t.Errorf("the row of a healthy queue is %+v", row)
	}

	v.push(store, core.When{}, "a", "b", "c", "d", "e", "f")
	shard := core.Shard{Queue: "orders", Index: core.ShardOf("a", 3)}
	acquire := ports.AcquireRequest{Shard: shard, Shards: 3, Generation: 1, Owner: "gone", Attempt: 1, TTL: time.Minute}
	lease, err := store.Acquire(t.Context(), acquire)
	v.must(err)
	turn, err := store.Turn(t.Context(), ports.TurnRequest{
		Lease: ports.Lease{Shard: shard, Owner: "gone", Token: lease.Token}, TTL: time.Minute, Number: 1, Want: 1,
	})
	v.must(err)
	v.must(store.Pause(t.Context(), "orders"))
	kit.Exec(t, v.pool, fmt.Sprintf("DELETE FROM %s.shards WHERE index = %d", v.schema, shard.Index))
	if row := records(); row.Status != ports.CheckFail || row.Value != "orders lacks the rows of 1 of its 3 shards" ||
		!strings.Contains(row.Advice, "docs/operations/postgres-dba.md") {
		t.Errorf("the row without a shard is %+v", row)
	}

	kit.Exec(t, v.pool, strings.ReplaceAll(lostRowsStatement(t), "skein.", v.schema+"."))
	inspector := inspect.New(store, inspect.Options{})
	_, err = inspector.Recount(t.Context(), "orders", nil)
	v.must(err)
	if row := records(); row.Status != ports.CheckOK {
		t.Errorf("with the row inserted again the row is %+v", row)
	}
	stats, err := inspector.Stats(t.Context(), "orders")
	v.must(err)
	if c := stats[0].Counts; !stats[0].Queue.Paused || c.Length() != 5 || c.Claimed != 1 {
		t.Errorf("the queue is paused: %v, with %d queued and %d claimed jobs; want 5 and 1",
			stats[0].Queue.Paused, c.Length(), c.Claimed)
	}
	acquire.Owner = "next"
	next, err := store.Acquire(t.Context(), acquire)
	v.must(err)
	if !slices.Equal(idsOf(next.Claims), idsOf(turn.Claims)) || next.Token <= lease.Token {
		t.Errorf("the next owner has token %d and recovers %v, want %v under a token after %d",
			next.Token, idsOf(next.Claims), idsOf(turn.Claims), lease.Token)
	}
}

// lostRowsStatement returns the statement of the documentation that inserts lost rows.
func lostRowsStatement(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/operations/postgres-dba.md")
	if err != nil {
		t.Fatal(err)
	}
	_, statement, found := strings.Cut(string(page), "INSERT INTO skein.shards")
	if !found {
		t.Fatal("docs/operations/postgres-dba.md has no statement that inserts shards")
	}
	statement, _, _ = strings.Cut(statement, "```")
	return "INSERT INTO skein.shards" + statement
}
