package cluster_test

import (
	"context"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// With Redis's default of cluster-require-full-coverage, one hanging master stops all shards of a
// Cluster once the others have noticed: a push is repeated, and then an error names the reason.
// When the master answers again, everything continues, and nothing is lost.
func TestRedisFullCoverageStopsAllShardsForAWhile(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutageWith(t, "--cluster-require-full-coverage", "yes", "--cluster-node-timeout", "2000")
	for server, rows := range mastersChecked(t, redis.New(o.connect(), redis.Options{})) {
		if row := kit.Named(rows, "cluster_require_full_coverage"); row.Status != inspect.CheckWarn ||
			row.Value != "yes" || !strings.Contains(row.Advice, "CLUSTERDOWN") {
			t.Errorf("%s: %+v; want a warning", server, row)
		}
	}
	o.serve()
	failing, lost, healthy := o.divide()
	o.handles("before", append(healthy, lost...), testservers.Patience)
	store := redis.New(o.connect(), redis.Options{})
	for i := range outageShards { // due long after the test
		o.mustPush(store, core.Entry{ID: idOfShard(i), When: core.At(core.InstantOf(time.Now().Add(24 * time.Hour)))})
	}
	thaw := testservers.Freeze(t, failing)
	for _, shard := range healthy {
		o.untilDown(o.master(shard))
	}
	began := time.Now()
	_, err := o.push(healthy[0], testservers.Patience)
	if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "CLUSTERDOWN") || took < 4*time.Second {
		t.Errorf("a push to a shard whose master is well gave %v after %v; "+
			"want an error with CLUSTERDOWN, once it was repeated for 5s",
			err, took)
	}
	thaw()
	for began := time.Now(); ; { // accepted as soon as the Cluster sees it as healthy again
		if _, err := o.push(lost[0], testservers.Patience); err == nil {
			break
		} else if time.Since(began) > testservers.Patience {
			t.Fatal(err)
		}
	}
	o.handles("when it answers again", append(healthy, lost...), testservers.Patience)
	stats, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"outages"}})
	must(t, err)
	if n := stats[0].Fresh; n < outageShards || len(stats[0].Shards) != outageShards {
		t.Errorf("%d jobs in %d shards wait, want the %d of before", n, len(stats[0].Shards), outageShards)
	}
	for i := range outageShards {
		if found, err := store.Find(t.Context(), ports.FindRequest{
			Queue: "outages", ID: idOfShard(i), Payloads: 1000,
		}); err != nil || found.Queued == nil {
			t.Errorf("the job %s is lost: %v", idOfShard(i), err)
		}
	}
}

// mustPush pushes one entry.
func (o *outage) mustPush(store *redis.Store, e core.Entry) {
	o.Helper()
	_, err := store.Push(o.Context(),
		ports.PushRequest{Queue: "outages", Shards: outageShards, Generation: 1, Entries: []core.Entry{e}})
	must(o, err)
}

// untilDown waits until a server reports that the Cluster is down.
func (o *outage) untilDown(server *goredis.Client) {
	o.Helper()
	ctx, cancel := context.WithTimeout(o.Context(), testservers.Patience)
	defer cancel()
	for {
		text, err := server.ClusterInfo(ctx).Result()
		must(o, err)
		if strings.Contains(text, "cluster_state:fail") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
