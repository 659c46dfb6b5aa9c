package cluster_test

import (
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// While a Cluster's master that has the list of queues hangs, a check of the servers shows that,
// and the others, whether the store has worked before or not. A store that has worked before does
// not wait as long as its client would.
func TestRedisChecksBesideAHungMaster(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	node, err := o.cluster.MasterForKey(t.Context(), "skein:queues")
	must(t, err)
	hung := node.Options().Addr
	patient := goredis.NewClusterClient(&goredis.ClusterOptions{
		Addrs: o.cluster.Options().Addrs, ReadTimeout: time.Hour,
	})
	t.Cleanup(func() { patient.Close() })
	worked := redis.New(patient, redis.Options{})
	healthy := mastersChecked(t, worked)
	for server, rows := range healthy {
		if row := kit.Named(rows, "cluster_require_full_coverage"); row.Status != inspect.CheckOK || row.Value != "no" {
			t.Errorf("%s: %+v; want it to be well", server, row)
		}
	}
	testservers.Freeze(t, testservers.RedisNode(t, hung))
	for name, store := range map[string]*redis.Store{
		"that has worked": worked,
		"that begins":     redis.New(o.connect(), redis.Options{}),
	} {
		began := time.Now()
		rows := mastersChecked(t, store)
		t.Logf("a store %s has looked within %v", name, time.Since(began))
		if len(rows) != len(healthy) {
			t.Errorf("a store %s has rows of %d servers, before the hang of %d", name, len(rows), len(healthy))
		}
		seen := 0 // the adapter's own tests check how long a healthy one may take
		for server, all := range rows {
			switch first := all[0]; {
			case server == hung && (len(all) != 1 || first.Name != "answers" ||
				first.Status != inspect.CheckFail || first.Advice == ""):
				t.Errorf("a store %s: rows of the server that hangs: %+v", name, all)
			case server != hung && first.Status == inspect.CheckOK && len(all) == len(healthy[server]):
				seen++
			}
		}
		if seen == 0 {
			t.Errorf("a store %s has seen no server that is well: %+v", name, rows)
		}
	}
}

// mastersChecked returns the rows of a Cluster's masters, without those that are of all of them.
func mastersChecked(t *testing.T, store inspect.Store) map[string][]inspect.Check {
	t.Helper()
	masters := kit.CheckedServers(t, store)
	delete(masters, "")
	return masters
}
