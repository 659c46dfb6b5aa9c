package redis_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// A look at many shards of one server sends no script. It has the same result if the user may not
// send transactions, and in either version of the protocol. A shard that can't be read hides no
// other.
func TestRedisLooksByTransactionsAndByScripts(t *testing.T) {
	t.Parallel()
	admin := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, admin, true)
	ctx := t.Context()
	rights := documentedRights(t)
	version2 := *admin.Options()
	version2.Protocol = 2
	two := goredis.NewClient(&version2)
	t.Cleanup(func() { two.Close() })
	clients := map[string]goredis.UniversalClient{
		"a user who may":  admin,
		"one who may not": asUser(t, admin, strings.ReplaceAll(rights, "+multi +exec", "")),
		"RESP2":           two,
	}
	look := func(client goredis.UniversalClient) (stats []ports.QueueStats, groups ports.GroupsReply) {
		t.Helper()
		store := openFrozen(client)
		stats, err := store.Stats(ctx, ports.StatsRequest{Queues: []string{"orders"}})
		must(t, err)
		groups, err = store.Groups(ctx, ports.GroupsRequest{Queue: "orders"})
		must(t, err)
		return stats, groups
	}
	stats, groups := look(admin)
	if c := stats[0].Counts; c.Fresh == 0 || c.Retrying == 0 || c.Claimed == 0 || c.Dead == 0 || !c.Oldest.OK ||
		stats[0].Shards[0].Token == 0 || len(groups.Groups) < 2 {
		t.Fatalf("there is too little to see: %+v, %+v", stats, groups)
	}
	for name, client := range clients {
		gotStats, gotGroups := look(client)
		if diff := cmp.Diff(stats, gotStats); diff != "" {
			t.Errorf("Stats of %s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(groups, gotGroups); diff != "" {
			t.Errorf("Groups of %s (-want +got):\n%s", name, diff)
		}
	}
	refusedOnce(t, admin, clients["one who may not"])
	must(t, admin.ConfigResetStat(ctx).Err())
	_, err := w.store.Stats(ctx, ports.StatsRequest{Queues: []string{"orders"}})
	must(t, err)
	_, err = w.store.Groups(ctx, ports.GroupsRequest{Queue: "orders"})
	must(t, err)
	info, err := admin.Info(ctx, "commandstats").Result()
	must(t, err)
	if strings.Contains(info, "cmdstat_eval") {
		t.Errorf("a look has sent scripts:\n%s", info)
	}
	hides(t, w, admin)
}

// refusedOnce checks that a store sends only one transaction for a user without the right: each
// costs the client a connection.
func refusedOnce(t *testing.T, admin, client goredis.UniversalClient) {
	t.Helper()
	must(t, admin.ConfigResetStat(t.Context()).Err())
	store := openFrozen(client)
	for range 3 {
		_, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
		must(t, err)
	}
	info, err := admin.Info(t.Context(), "commandstats").Result()
	must(t, err)
	_, stats, _ := strings.Cut(info, "cmdstat_multi:")
	stats, _, _ = strings.Cut(stats, "\r")
	if !strings.Contains(stats, "rejected_calls=1,") {
		t.Errorf("three looks sent the transactions %q, want one that was rejected", stats)
	}
}

// hides breaks one shard of two, and checks that looks show the other.
func hides(t *testing.T, w *worker, admin *goredis.Client) {
	t.Helper()
	ctx := t.Context()
	_, err := w.store.Declare(ctx, ports.DeclareRequest{Queue: "two", Shards: 2})
	must(t, err)
	must(t, admin.Set(ctx, "skein:{two/0}:x", "no hash", 0).Err())
	must(t, admin.Set(ctx, "skein:{two/0}:xg", "no hash", 0).Err())
	want := []core.Shard{{Queue: "two"}}
	stats, err := w.store.Stats(ctx, ports.StatsRequest{Queues: []string{"two"}})
	must(t, err)
	if diff := cmp.Diff(want, stats[0].Unreached); diff != "" || len(stats[0].Shards) != 1 {
		t.Errorf("Stats has %d shards, and lacks (-want +got):\n%s", len(stats[0].Shards), diff)
	}
	groups, err := w.store.Groups(ctx, ports.GroupsRequest{Queue: "two"})
	must(t, err)
	if diff := cmp.Diff(want, groups.Unreached); diff != "" {
		t.Errorf("Groups lacks (-want +got):\n%s", diff)
	}
}
