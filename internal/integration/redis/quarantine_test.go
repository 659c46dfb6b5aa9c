package redis_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// If a shard has more damaged records than one call sets aside, later calls set the others aside.
// Each record is logged.
func TestRedisAShardOfDamagedRecordsWorksOn(t *testing.T) {
	t.Parallel()
	const damaged = 2500
	client := testservers.Redis(t)
	prefix := testservers.Prefix(t, client)
	var log strings.Builder
	store := redis.New(client, redis.Options{Prefix: prefix, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	w := &worker{
		t:      t,
		client: client,
		store:  store,
		shard:  core.Shard{Queue: "orders"},
		claims: map[string]core.Claim{},
	}
	w.must(w.declare("orders"))
	shard := w.shard
	d := damageable{severable{Store: store, prefix: prefix}, client}
	for part := range damaged / 500 {
		var entries []core.Entry
		for i := range 500 {
			entries = append(entries,
				core.Entry{ID: fmt.Sprintf("bad-%d-%d", part, i), Payload: core.Payload{Data: []byte("x")}})
		}
		w.must(w.push(entries...))
		for _, e := range entries {
			if err := d.Damage(t.Context(), shard, e.ID, ports.PlaceQueued); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.must(w.push(one("good", 1)))
	w.must(w.acquire("n", 1))
	var got []core.Claim
	calls := 0
	for number := int64(1); len(got) == 0 && calls < 10; calls++ {
		reply, err := store.Turn(t.Context(), ports.TurnRequest{
			Lease: w.lease, Number: number, TTL: time.Minute, Want: 10, Bytes: 1 << 20, PerJob: 10, Node: "n",
		})
		if err == nil {
			got, number = reply.Claims, reply.Last+1
		}
	}
	if len(got) != 1 || got[0].ID != "good" {
		t.Errorf("%d turns claimed %+v, want the job that can be read", calls, got)
	}
	stats, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	if err != nil || stats[0].Quarantined != damaged {
		t.Errorf("%d records are set aside (%v), want %d", stats[0].Quarantined, err, damaged)
	}
	if n := strings.Count(log.String(), "was set aside"); n != damaged {
		t.Errorf("the log has it %d times, want %d", n, damaged)
	}
	r := ports.QuarantineRequest{Shard: shard, Limit: ports.MaxPage}
	for seen := 0; ; {
		page, err := store.Quarantined(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		seen += len(page.Records)
		if r.After = page.Next; r.After == "" {
			if seen != damaged {
				t.Errorf("the pages have %d records, want %d", seen, damaged)
			}
			break
		}
	}
}

// Payloads in a set of their own are kept with their record, apart from later pushes for the id,
// until it is discarded.
func TestRedisKeepsThePayloadsOfADamagedRecord(t *testing.T) {
	t.Parallel()
	client := testservers.Redis(t)
	prefix := testservers.Prefix(t, client)
	store := redis.New(client, redis.Options{Prefix: prefix, Logger: slog.New(slog.DiscardHandler)})
	w := &worker{
		t:      t,
		client: client,
		store:  store,
		shard:  core.Shard{Queue: "orders"},
		claims: map[string]core.Claim{},
	}
	w.must(w.declare("orders"))
	shard := w.shard
	var entries []core.Entry
	for i := range 20 {
		entries = append(entries, core.Entry{ID: "a", Payload: core.Payload{Data: fmt.Appendf(nil, "payload %d", i)}})
	}
	w.must(w.push(entries...))
	base := prefix + "{" + shard.String() + "}:"
	if err := client.HSet(t.Context(), base+"j", "a", "?").Err(); err != nil {
		t.Fatal(err)
	}
	w.must(w.push(one("a", 1)))
	found, err := store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "a", Payloads: 1000})
	if err != nil || found.Queued == nil || len(found.Queued.Payloads) != 1 {
		t.Errorf("Find returned %+v, %v; want the new payload alone", found.Queued, err)
	}
	page, err := store.Quarantined(t.Context(), ports.QuarantineRequest{Shard: shard})
	if err != nil || len(page.Records) != 1 || string(page.Records[0].Stored) != "?" {
		t.Fatalf("set aside is %+v, %v; want one record with what was stored", page.Records, err)
	}
	kept := base + "q:" + page.Records[0].Key
	if n, err := client.ZCard(t.Context(), kept).Result(); n != 20 {
		t.Errorf("%d payloads are kept (%v), want 20", n, err)
	}
	n, err := store.Discard(t.Context(), ports.DiscardRequest{Shard: shard, Keys: []string{page.Records[0].Key}})
	if left := client.Exists(t.Context(), kept, base+"q").Val(); n != 1 || err != nil || left != 0 {
		t.Errorf("Discard returned %d, %v, and %d keys are left", n, err, left)
	}
}

// A cancel that can't be read is set aside, and stops neither a turn nor an acquire. The claim is
// as if it had not been cancelled, and can be cancelled again.
func TestRedisADamagedCancelStopsNoTurn(t *testing.T) {
	t.Parallel()
	for name, damaged := range map[string]string{
		"cut":     "x",
		"another": strings.Repeat("x", 17),
		"longer":  strings.Repeat("\x00", 17) + "1",
		"empty":   "",
	} {
		client := testservers.OwnRedis(t)
		w := newWorker(t, client, false)
		for _, meet := range []func() error{
			func() error { return w.turn(ports.TurnRequest{Want: 1}) },
			func() error { return w.acquire("other", 1) },
		} {
			must(t, w.cancel("a"))
			w.record("k", "a", func(string) string { return damaged })
			if err := meet(); err != nil {
				t.Errorf("beside a cancel that is %s: %v", name, err)
			}
			for _, r := range w.aside("a") {
				if r.Place != ports.PlaceClaimed || string(r.Stored) != damaged ||
					!strings.Contains(r.Reason, "cancel") {
					t.Errorf("a cancel that is %s is set aside as %+v", name, r)
				}
				_, err := w.store.Discard(t.Context(), ports.DiscardRequest{Shard: w.shard, Keys: []string{r.Key}})
				must(t, err)
			}
			if w.lease.Owner == "test" {
				must(t, w.store.Release(t.Context(), w.lease))
			}
		}
	}
}
