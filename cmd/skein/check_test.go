package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// endings is how doctor and check end, and check's standard error.
type endings struct {
	doctor, check int
	says          []string
}

// endsAs runs doctor and check on a store.
func endsAs(t *testing.T, what, url string, want endings) {
	t.Helper()
	if code, said := run(t, url, "doctor"); code != want.doctor {
		t.Errorf("%s: doctor ends with %d, want %d: %s", what, code, want.doctor, said)
	}
	code, said := run(t, url, "check --timeout 1m")
	if code != want.check || (said == "") != (code == 0) {
		t.Errorf("%s: check ends with %d, want %d: %s", what, code, want.check, said)
	}
	for _, text := range want.says {
		if !strings.Contains(said, text) {
			t.Errorf("%s: check does not say %q: %s", what, text, said)
		}
	}
}

// durable are the flags of a Redis with which doctor finds nothing. The log of slow commands is
// off: a busy machine makes any command slow. The protected settings let a test take the server's
// directory away.
var durable = []string{
	"--appendonly", "yes", "--maxmemory", "100mb",
	"--slowlog-log-slower-than", "-1", "--enable-protected-configs", "yes",
}

// Both name the reason why a Redis refuses pushes. Only doctor ends for a mere warning.
func TestDoctorAndCheckOfRedis(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t, durable...).(*goredis.Client)
	at := "redis://" + client.Options().Addr
	set := func(name, value string) { t.Helper(); must(t, client.ConfigSet(t.Context(), name, value).Err()) }

	endsAs(t, "a server as it should be", at, endings{0, 0, nil})
	set("maxmemory", "0")
	endsAs(t, "no maxmemory", at, endings{6, 0, nil})
	set("maxmemory", "1")
	endsAs(t, "full", at, endings{6, 6, []string{
		"\nwrites " + client.Options().Addr + ": OOM ",
		"remove dead letters (skein morgue rm), or raise maxmemory",
	}})

	set("maxmemory", "100mb")
	set("min-replicas-to-write", "1")
	endsAs(t, "no replicas", at, endings{6, 6, []string{"NOREPLICAS", "min-replicas-to-write"}})

	set("min-replicas-to-write", "0")
	set("maxmemory-policy", "allkeys-lru")
	endsAs(t, "keys are evicted", at, endings{1, 6, []string{"set it to noeviction"}})

	set("maxmemory-policy", "noeviction")
	must(t, client.Do(t.Context(), "ACL", "SETUSER", "weak", "on", ">secret", "~*", "&*", "+@all", "-hset").Err())
	endsAs(t, "a right is missing", "redis://weak:secret@"+client.Options().Addr,
		endings{1, 6, []string{"may not run hset"}})
	endsAs(t, "a wrong password", "redis://weak:wrong@"+client.Options().Addr, endings{1, 6, []string{"WRONGPASS"}})

	must(t, client.HSet(t.Context(), "skein:queues", "/format", "9 9").Err())
	endsAs(t, "a newer format", at, endings{1, 6, []string{"format"}})
	must(t, client.HDel(t.Context(), "skein:queues", "/format").Err())
	endsAs(t, "as it should be again", at, endings{0, 0, nil})

	for _, shards := range []string{"2", "1"} { // alone a queue whose only shard is lost can't be looked at
		if code, said := run(t, at, "job push orders-"+shards+" 1 --payload x --shards "+shards); code != 0 {
			t.Fatal(said)
		}

		key := "skein:{orders-" + shards + "/0}:m"
		record := client.Get(t.Context(), key).Val()
		must(t, client.Del(t.Context(), key).Err())
		endsAs(t, "a shard has lost its record", at,
			endings{6, 6, []string{"\nrecords: the record of orders-" + shards + "/0 is lost"}})
		must(t, client.Set(t.Context(), key, record, 0).Err())
		endsAs(t, "the shard has its record", at, endings{0, 0, nil})

		for what, text := range map[string]string{"can't be read": "garbage", "has 7 shards": "0 0 7 1 1"} {
			must(t, client.Set(t.Context(), key, text, 0).Err())
			endsAs(t, "a shard has another record", at, endings{6, 6, []string{
				"\nrecords: the record of orders-" + shards + "/0 " + what,
				"skein repair recount",
			}})
		}

		must(t, client.Del(t.Context(), key).Err())
		must(t, client.HSet(t.Context(), key, "a", "b").Err())
		endsAs(t, "the record of a shard is a hash", at,
			endings{6, 6, []string{"\nrecords: the record of orders-" + shards + "/0 can't be read: WRONGTYPE"}})
		must(t, client.Del(t.Context(), key).Err())
		must(t, client.Set(t.Context(), key, record, 0).Err())

		queue := client.HGet(t.Context(), "skein:queues", "orders-"+shards).Val()
		must(t, client.HSet(t.Context(), "skein:queues", "orders-"+shards, "garbage").Err())
		endsAs(t, "a queue has another record", at,
			endings{6, 6, []string{"\nrecords: the record of the queue orders-" + shards + " can't be read"}})
		must(t, client.HSet(t.Context(), "skein:queues", "orders-"+shards, queue).Err())
		endsAs(t, "all records are as they were", at, endings{0, 0, nil})

		wrongKeys(t, client, at, "orders-"+shards+"/0")
	}

	set("save", "3600 1")
	set("dir", "/proc") // where nobody may write
	must(t, client.BgSave(t.Context()).Err())
	for deadline := time.Now().Add(testservers.Patience); ; time.Sleep(10 * time.Millisecond) {
		info, err := client.Info(t.Context(), "persistence").Result()
		must(t, err)
		if strings.Contains(info, "rdb_last_bgsave_status:err") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a snapshot into /proc did not fail: %s", info)
		}
	}

	endsAs(t, "no snapshot can be written", at, endings{6, 6, []string{"MISCONF", "free space on the disk"}})
}

// wrongKeys has a shard whose keys another program has written. Pushes need only some of the keys.
func wrongKeys(t *testing.T, client *goredis.Client, at, shard string) {
	for key, code := range map[string]int{"c": 6, "w": 6, "rt": 6, "xt": 0} {
		key = "skein:{" + shard + "}:" + key
		must(t, client.Set(t.Context(), key, "x", 0).Err())
		var says []string
		if code != 0 {
			says = []string{"\nrecords: the key " + key + " of " + shard + " is not a ", "skein repair recount"}
		}
		endsAs(t, key+" is a string", at, endings{6, code, says})
		must(t, client.Del(t.Context(), key).Err())
	}
	endsAs(t, "the keys are as they were", at, endings{0, 0, nil})
}

// One master that refuses is enough.
func TestDoctorAndCheckOfACluster(t *testing.T) {
	t.Parallel()
	cluster := testservers.OwnRedisCluster(
		t,
		append(slices.Clone(durable), "--cluster-require-full-coverage", "no")...,
	).(*goredis.ClusterClient)
	at, full := clusterURL(cluster), cluster.Options().Addrs[1]
	endsAs(t, "a Cluster as it should be", at, endings{0, 0, nil})

	master := goredis.NewClient(&goredis.Options{Addr: full})
	defer master.Close()
	must(t, master.ConfigSet(t.Context(), "maxmemory", "1").Err())
	endsAs(t, "one master is full", at, endings{6, 6, []string{"writes " + full + ": OOM "}})

	must(t, master.ConfigSet(t.Context(), "maxmemory", "100mb").Err())
	must(t, master.ClusterDelSlots(t.Context(), slotOf(t, master, full)).Err())
	endsAs(t, "a slot is served by nobody", at, endings{6, 6, []string{"cluster " + full + ": "}})
}

// slotOf returns a slot that the server itself serves. If it deletes one of another server, that
// server's next message makes it known again.
func slotOf(t *testing.T, server *goredis.Client, address string) int {
	t.Helper()
	shards, err := server.ClusterShards(t.Context()).Result()
	must(t, err)
	for _, shard := range shards {
		for _, node := range shard.Nodes {
			if len(shard.Slots) > 0 && net.JoinHostPort(node.IP, strconv.FormatInt(node.Port, 10)) == address {
				return int(shard.Slots[0].Start)
			}
		}
	}
	t.Fatalf("%s serves no slot: %+v", address, shards)
	return 0
}

// If no server answers for any key, since a slot has no server, the Cluster is not unreachable: its
// servers name the reason.
func TestDoctorAndCheckOfAClusterThatIsDown(t *testing.T) {
	tier.Long(t, "calls on keys are repeated for seconds")
	t.Parallel()
	cluster := testservers.OwnRedisCluster(
		t,
		append(slices.Clone(durable), "--cluster-require-full-coverage", "yes")...,
	).(*goredis.ClusterClient)
	for _, addr := range cluster.Options().Addrs {
		master := goredis.NewClient(&goredis.Options{Addr: addr})
		defer master.Close()
		must(t, master.ClusterDelSlots(t.Context(), 0).Err())
	}
	endsAs(t, "the Cluster is down", clusterURL(cluster), endings{6, 6, []string{"slots served; see CLUSTER NODES"}})
}

func TestDoctorAndCheckOfPostgres(t *testing.T) {
	t.Parallel()
	pool := testservers.OwnPostgres(t)
	at := pool.Config().ConnString()
	endsAs(t, "no schema", at, endings{1, 6, []string{"skein migrate up"}})

	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}))
	endsAs(t, "a server as it should be", at, endings{0, 0, nil})
	endsAs(t, "it only reads", with(at, "default_transaction_read_only", "on"),
		endings{6, 6, []string{"\nwrites: ", "target_session_attrs=read-write"}})
	endsAs(t, "it does not wait for the disk", with(at, "synchronous_commit", "off"), endings{6, 0, nil})

	_, err := pool.Exec(t.Context(), "CREATE ROLE weak LOGIN")
	must(t, err)
	weak, err := url.Parse(at)
	must(t, err)
	weak.User = url.User("weak")
	endsAs(t, "a role without rights", weak.String(), endings{1, 6, []string{"grant"}})
}

// Where nobody listens, both end with 5.
func TestDoctorAndCheckOfStoresThatAreAway(t *testing.T) {
	tier.Long(t, "calls are repeated for seconds")
	t.Parallel()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, gone.Close())

	for _, scheme := range []string{"redis", "redis-cluster", "postgres"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			at := scheme + "://" + gone.Addr().String()
			endsAs(t, "nobody listens", at, endings{5, 5, nil})
			if code, said := run(t, at, "check"); code != exitAway {
				t.Errorf("check without --timeout ends with %d: %s", code, said)
			}
		})
	}
}

// A store that has refused nothing, but has not reported that it can be used, counts neither as
// refusing pushes nor as taking them.
func TestTheVerdictOfCheck(t *testing.T) {
	silent, refused := errors.New("i/o timeout"), fmt.Errorf("%w: too old", ports.ErrUnusable)
	answers, away := inspect.Check{Name: "answers", Value: "yes"},
		inspect.Check{Name: "answers", Status: inspect.CheckFail, Refuses: true}
	full := inspect.Check{Name: "writes", Status: inspect.CheckFail, Refuses: true}

	for name, tt := range map[string]struct {
		unusable error
		checks   []inspect.Check
		leases   inspect.Check
		found    bool
	}{
		"as it should be":               {nil, []inspect.Check{answers}, inspect.Check{}, false},
		"a shard has no owner":          {nil, []inspect.Check{answers}, inspect.Check{Status: inspect.CheckWarn}, false},
		"a server is full":              {nil, []inspect.Check{answers, full}, inspect.Check{}, true},
		"it can't be used":              {refused, nil, inspect.Check{}, true},
		"it is slow to say that it can": {silent, []inspect.Check{answers}, inspect.Check{}, false},
		"it is away":                    {silent, []inspect.Check{away}, inspect.Check{}, false},
	} {
		s := storeState{unusable: tt.unusable, checks: tt.checks, leases: tt.leases}
		if err := s.verdict(); errors.Is(err, errFound) != tt.found ||
			(err == nil) == (tt.found || tt.unusable != nil) ||
			tt.unusable != nil && !errors.Is(err, tt.unusable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// awayStore is a store with shards that can't be reached.
type awayStore struct {
	ports.ShardStore
	away []core.Shard
}

func (s awayStore) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	stats, err := s.ShardStore.Stats(ctx, r)
	for at := range stats {
		stats[at].Unreached = s.away
	}
	return stats, err
}

// Of many shards that don't answer a few are named.
func TestCheckNamesShardsThatDoNotAnswer(t *testing.T) {
	store := memory.New(memory.Options{})
	declaredIn(t, store, "orders")
	for away, want := range map[int]string{1: "orders/0", 5: "orders/4", 7: "orders/4, and 2 more"} {
		got := lookAtLeases(t.Context(), inspect.New(awayStore{store, core.Shards("orders", away)}, inspect.Options{}))
		if !got.Refuses || got.Status != inspect.CheckFail ||
			!strings.HasSuffix(got.Value, want) || !strings.Contains(got.Advice, "repair the server") {
			t.Errorf("%d shards: %+v, want %s", away, got, want)
		}
	}
}

// Only shards of queues that a server serves want an owner.
func TestCheckCountsLeases(t *testing.T) {
	line := func(name string, servers, shards, unowned int) statLine {
		return statLine{
			QueueStats: inspect.QueueStats{Queue: inspect.Queue{Name: name, Shards: shards}},
			servers:    servers,
			unowned:    unowned,
		}
	}

	for _, tt := range []struct {
		lines    []statLine
		unlisted []string
		status   ports.CheckStatus
		value    string
	}{
		{nil, nil, ports.CheckOK, "no server runs"},
		{[]statLine{line("a", 0, 5, 5)}, nil, ports.CheckOK, "no server runs"},
		{[]statLine{line("a", 1, 5, 0), line("b", 2, 7, 0), line("c", 0, 5, 5)}, nil, ports.CheckOK, "12 of 12 shards have an owner"},
		{[]statLine{line("b", 1, 5, 2), line("a", 1, 5, 1)}, nil, ports.CheckWarn, "7 of 10 shards have an owner; without: a, b"},
		{nil, []string{"d", "e"}, ports.CheckWarn, "servers run; queues that they serve but the store does not list: d, e"},
		{[]statLine{line("a", 1, 5, 1)}, []string{"d"}, ports.CheckWarn,
			"4 of 5 shards have an owner; queues that they serve but the store does not list: d; without: a"},
	} {
		got := leasesRow(tt.lines, tt.unlisted)
		if got.Status != tt.status || got.Value != tt.value ||
			got.Refuses || (got.Advice == "") != (got.Status == ports.CheckOK) {
			t.Errorf("%v: %+v; want %v, %q", tt.lines, got, tt.status, tt.value)
		}
	}
}

// A server whose queue is not in the list of queues is named, and not taken for none.
func TestCheckNamesServedQueuesThatAreNotListed(t *testing.T) {
	store := memory.New(memory.Options{})
	declaredIn(t, store, "listed")
	_, err := store.Announce(t.Context(), ports.AnnounceRequest{
		Node: ports.Node{Owner: "w", Name: "w", Lanes: 1, Queues: []string{"listed", "lost"}}, TTL: time.Hour,
	})
	must(t, err)
	got := lookAtLeases(t.Context(), inspect.New(store, inspect.Options{}))
	if got.Status != inspect.CheckWarn || !strings.Contains(got.Value, "does not list: lost") {
		t.Errorf("the row is %+v, want a warning of the queue lost", got)
	}
}

// A check waits no longer than its limit for a server that accepts connections and is silent.
func TestCheckOfASilentServer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close()
	if code, said := run(t, "redis://"+silent.Addr().String(), "check"); code != exitAway ||
		!strings.Contains(said, "no answer within 2s") {
		t.Errorf("it ends with %d: %s", code, said)
	}
}
