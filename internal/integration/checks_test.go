package integration_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
)

func TestRedisChecksSeeWhatIsWrong(t *testing.T) {
	t.Parallel()
	// The log of slow commands is off at first: a busy machine makes any command slow.
	client := testservers.OwnRedis(t, "--appendonly", "yes", "--maxmemory", "100mb", "--slowlog-log-slower-than",
		"-1").(*goredis.Client)
	store := redis.New(client, redis.Options{})
	fine := map[string]string{
		"answers":          "ok",
		"version":          "ok",
		"writes":           "ok",
		"maxmemory_policy": "ok",
		"memory":           "ok",
		"append_only":      "ok",
		"snapshots":        "ok",
		"replicas":         "ok",
		"slow_commands":    "ok",
		"evicted_keys":     "ok",
		"clients":          "ok",
		"records":          "ok",
		"clocks":           "ok",
	}
	if diff := cmp.Diff(fine, kit.Checked(t, store)); diff != "" {
		t.Errorf("a server as it should be (-want +got):\n%s", diff)
	}
	do := func(command ...any) {
		t.Helper()
		if err := client.Do(t.Context(), command...).Err(); err != nil && !errors.Is(err, goredis.Nil) {
			t.Fatal(err)
		}
	}
	do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	do("CONFIG", "SET", "appendonly", "no")
	do("CONFIG", "SET", "slowlog-log-slower-than", "10000")
	do("EVAL",
		"local t = redis.call('TIME') repeat local n = redis.call('TIME') until (n[1] - t[1]) * 1000000 + n[2] - t[2] > 20000",
		0)
	for n := range 110 {
		do("SET", fmt.Sprint("large", n), strings.Repeat("x", 1<<20))
	}
	want := map[string]string{
		"answers":          "ok",
		"version":          "ok",
		"writes":           "ok",
		"maxmemory_policy": "fail",
		"memory":           "fail",
		"append_only":      "warn",
		"snapshots":        "ok",
		"replicas":         "ok",
		"slow_commands":    "warn",
		"evicted_keys":     "fail",
		"clients":          "ok",
		"records":          "ok",
		"clocks":           "ok",
	}
	if diff := cmp.Diff(want, kit.Checked(t, store)); diff != "" {
		t.Errorf("a server with faults (-want +got):\n%s", diff)
	}
}

// Values that the user may not read are unknown, and hide no others.
func TestRedisChecksWithFewRights(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	if err := client.Do(
		t.Context(), "ACL", "SETUSER", "few", "on", "nopass", "~*", "&*", "+@all", "-config", "-slowlog",
	).Err(); err != nil {
		t.Fatal(err)
	}
	o := *client.Options()
	o.Username, o.Password = "few", "any"
	few := goredis.NewClient(&o)
	defer few.Close()
	got := kit.Checked(t, redis.New(few, redis.Options{}))
	if got["maxmemory_policy"] != "unknown" || got["slow_commands"] != "unknown" || got["memory"] != "warn" {
		t.Errorf("got %v; want two that are unknown, and a warning that there is no maxmemory", got)
	}
}

// A Cluster has rows for each master.
func TestRedisChecksOfACluster(t *testing.T) {
	t.Parallel()
	store := redis.New(testservers.RedisCluster(t), redis.Options{})
	rows, err := inspect.New(store, inspect.Options{}).Checks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	servers := make(map[string]int)
	for _, r := range rows {
		if r.Name == "cluster" {
			servers[r.Server]++
			if r.Status != inspect.CheckOK {
				t.Errorf("a healthy Cluster: %+v", r)
			}
		}
	}
	if len(servers) < 3 {
		t.Errorf("rows for %v, want one for each master", servers)
	}
}

func TestPostgresChecksSeeWhatIsWrong(t *testing.T) {
	t.Parallel()
	pool := testservers.OwnPostgres(t)
	if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	fine := map[string]string{
		"answers":            "ok",
		"version":            "ok",
		"schema_version":     "ok",
		"writes":             "ok",
		"durability":         "ok",
		"connections":        "ok",
		"oldest_transaction": "ok",
		"replication_slots":  "ok",
		"dead_rows":          "ok",
		"autovacuum":         "ok",
		"indexes":            "ok",
		"inbox":              "ok",
		"records":            "ok",
		"clocks":             "ok",
	}
	if version := kit.Named(kit.CheckedServers(t, postgres.New(
		pool, postgres.Options{},
	))[""], "version").Value; !regexp.MustCompile(`^postgres .*, up for 0h\d+m$`).MatchString(version) {
		t.Errorf("a server that has just begun: %q", version)
	}
	got := kit.Checked(t, postgres.New(pool, postgres.Options{}))
	fine["durability"] = got["durability"] // the tests' server may not sync
	if diff := cmp.Diff(fine, got); diff != "" {
		t.Errorf("a server as it should be (-want +got):\n%s", diff)
	}
	for _, setting := range []string{"autovacuum", "track_counts"} {
		autovacuumIs(t, pool, "ALTER SYSTEM SET "+setting+" = off", "warn")
		autovacuumIs(t, pool, "ALTER SYSTEM RESET "+setting, "ok")
	}
	kit.Exec(t, pool,
		`CREATE ROLE watcher LOGIN; GRANT USAGE ON SCHEMA skein TO watcher; GRANT SELECT ON ALL TABLES IN SCHEMA skein TO watcher;
		INSERT INTO skein.inbox (shard, kind, perform_at) SELECT -1, 'early', n FROM generate_series(1, 10001) n`)
	watcher := kit.PoolLike(t, pool, func(c *pgxpool.Config) {
		c.ConnConfig.User = "watcher"
		c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
		c.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	})
	got = kit.Checked(t, postgres.New(watcher, postgres.Options{}))
	for _, name := range []string{"writes", "inbox"} {
		if got[name] != "warn" {
			t.Errorf("%s: %s, want warn", name, got[name])
		}
	}
	if got["durability"] != "warn" && got["durability"] != "fail" {
		t.Errorf("durability: %s, want a warning at least", got["durability"])
	}

	kit.Exec(t, pool, "ALTER SYSTEM SET default_transaction_read_only = on")
	kit.Exec(t, pool, "SELECT pg_reload_conf()")
	readOnly := postgres.New(kit.PoolLike(t, pool, func(*pgxpool.Config) {}), postgres.Options{})
	for deadline := time.Now().Add(testservers.Patience); kit.Checked(t, readOnly)["writes"] != "fail"; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("writes of a server that became read only: %s, want fail", kit.Checked(t, readOnly)["writes"])
		}
	}
}

// autovacuumIs changes a setting of a server, and waits until the check of autovacuum has a status.
func autovacuumIs(t *testing.T, pool *pgxpool.Pool, change, want string) {
	t.Helper()
	kit.Exec(t, pool, change)
	kit.Exec(t, pool, "SELECT pg_reload_conf()")
	for deadline := time.Now().Add(testservers.Patience); ; time.Sleep(10 * time.Millisecond) {
		got := kit.Checked(t, postgres.New(pool, postgres.Options{}))["autovacuum"]
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s the check is %q, want %s", change, got, want)
		}
	}
}

// A server that is down, or answers nothing, is one row. The checks end by themselves, without a
// deadline of the caller's.
func TestPostgresChecksOfAServerThatIsAway(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = silent.Close() }) // after the parallel subtests
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, gone.Close())
	for name, l := range map[string]net.Listener{"nobody listens": gone, "it accepts and is silent": silent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := kit.PoolLike(t, testservers.Postgres(t), func(c *pgxpool.Config) {
				c.ConnConfig.Host, c.ConnConfig.Port, c.ConnConfig.Fallbacks =
					"127.0.0.1", uint16(l.Addr().(*net.TCPAddr).Port), nil
			})
			got := kit.Checked(t, postgres.New(pool, postgres.Options{NoWakeups: true}))
			if diff := cmp.Diff(map[string]string{"answers": "fail"}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A role that may not see others' sessions does not get the result that all is well with them.
func TestPostgresChecksSayWhatTheRoleMayNotSee(t *testing.T) {
	t.Parallel()
	pool := testservers.OwnPostgres(t, "fsync=off")
	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}))
	kit.Exec(t, pool,
		`CREATE ROLE watcher LOGIN; GRANT USAGE ON SCHEMA skein TO watcher; GRANT SELECT ON ALL TABLES IN SCHEMA skein TO watcher`)
	watcher := kit.PoolLike(t, pool, func(c *pgxpool.Config) { c.ConnConfig.User, c.MaxConns = "watcher", 1 })
	must(t, watcher.Ping(t.Context()))
	look := func(pool *pgxpool.Pool) map[string]inspect.Check {
		rows, err := inspect.New(
			postgres.New(pool, postgres.Options{NoWakeups: true}), inspect.Options{},
		).Checks(t.Context())
		must(t, err)
		named := make(map[string]inspect.Check)
		for _, r := range rows {
			named[r.Name] = r
		}
		return named
	}
	must(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `CREATE TABLE held (x int)`); err != nil {
			return err
		}
		row := look(watcher)["oldest_transaction"]
		if row.Status != inspect.CheckUnknown || !strings.Contains(row.Advice, "pg_monitor") {
			t.Errorf("a role that may not see how old transactions are is told %+v", row)
		}
		look(pool) // has made its connections
		if owner, watcher := look(pool)["connections"].Value, look(watcher)["connections"].Value; watcher != owner {
			t.Errorf("the watcher sees %s connections, the owner %s", watcher, owner)
		}
		kit.Exec(t, pool, `GRANT pg_monitor TO watcher`)
		if row := look(watcher)["oldest_transaction"]; row.Status != inspect.CheckOK || row.Value == "none" {
			t.Errorf("with pg_monitor: %+v", row)
		}
		return nil
	}))
}

// A store without a server has no checks. A call whose context has ended returns an error.
func TestChecksWithoutAServer(t *testing.T) {
	t.Parallel()
	if got := kit.Checked(t, memory.New(memory.Options{})); len(got) > 0 {
		t.Errorf("memory has checks: %v", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if rows, err := inspect.New(
		redis.New(testservers.Redis(t), redis.Options{}), inspect.Options{},
	).Checks(ended); err == nil {
		t.Errorf("a call that was given up gave %v", rows)
	}
}
