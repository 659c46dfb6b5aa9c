package testservers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

func redisServer() program {
	return program{
		binary:     "redis-server",
		repository: "redis",
		tag:        "7",
		signal:     "KILL",
		get: "for Redis set SKEIN_TEST_REDIS and SKEIN_TEST_REDIS_CLUSTER to the URLs of servers, " +
			"or install redis-server 7.0 or newer (apt-get install redis-server), or start Docker",
	}
}

func valkeyServer() program {
	return program{
		binary:     "valkey-server",
		repository: "valkey/valkey",
		tag:        "8",
		signal:     "KILL",
		get: "for Valkey set SKEIN_TEST_VALKEY to the URL of a server, " +
			"or install valkey-server (apt-get install valkey-server, " +
			"which Debian 12 has in bookworm-backports), or start Docker",
	}
}

// The shared servers, each started at its first use.
var (
	sharedRedis  = sync.OnceValues(func() (string, error) { return standaloneURL("SKEIN_TEST_REDIS", redisServer()) })
	sharedValkey = sync.OnceValues(func() (string, error) { return standaloneURL("SKEIN_TEST_VALKEY", valkeyServer()) })
)

// Redis returns a client of the shared Redis, which is closed when the test has
// ended. The test's keys start with a [Prefix]; prefixes are cheap, so that a
// suite which needs hundreds of backends takes one client and many of them.
func Redis(t testing.TB) redis.UniversalClient {
	t.Helper()
	return client(t, RedisURL(t))
}

// RedisURL returns the URL of the shared Redis, as [redis.ParseURL] reads it.
func RedisURL(t testing.TB) string {
	t.Helper()
	return must(t, sharedRedis)
}

// Valkey is like [Redis], with the shared Valkey. A machine that has none skips the test, unless
// the environment variable CI is true.
func Valkey(t testing.TB) redis.UniversalClient {
	t.Helper()
	url, err := sharedValkey()
	if errors.Is(err, errNowhere) {
		Missing(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return client(t, url)
}

// Missing skips a test because something is missing on this machine. In CI, where the environment
// variable CI is true, it fails the test: CI must not pass without having run it.
func Missing(t testing.TB, err error) {
	t.Helper()
	if ci, _ := strconv.ParseBool(os.Getenv("CI")); ci {
		t.Fatalf("this is CI, where nothing may be missing: %v", err)
	}
	t.Skip(err)
}

// OwnRedis returns a client of a Redis that is this test's alone and ends with it. The test may
// cut, fill, flush or stop it. The flags are redis-server's, and come after those that make it
// store nothing and evict nothing. It never comes from the environment.
func OwnRedis(t testing.TB, flags ...string) redis.UniversalClient {
	t.Helper()
	g, err := standalone(redisServer(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.end)
	return client(t, "redis://"+g.address(0))
}

// standaloneURL returns the URL in an environment variable, or otherwise the URL of a new server,
// which ends with this process.
func standaloneURL(variable string, p program) (string, error) {
	if url := fromEnvironment(variable); url != "" {
		if _, err := redis.ParseURL(url); err != nil {
			return "", fmt.Errorf("%s: %w", variable, err)
		}
		return url, nil
	}
	g, err := standalone(p)
	if err != nil {
		return "", err
	}
	return "redis://" + g.address(0), nil
}

func standalone(p program, flags ...string) (*group, error) {
	return form(p, 1, func(ctx context.Context, g *group) error {
		if err := g.start(redisCommand(p, g, 0, flags...)...); err != nil {
			return err
		}
		return g.until(ctx, pinged(g.address(0)))
	})
}

// fromEnvironment returns the value of a variable. It returns "" if SKEIN_TEST_VIA selects another
// source.
func fromEnvironment(variable string) string {
	if os.Getenv("SKEIN_TEST_VIA") != "" {
		return ""
	}
	return os.Getenv(variable)
}

// redisCommand returns the command for a server on the group's i-th port that stores nothing on
// disk and evicts nothing.
func redisCommand(p program, g *group, i int, flags ...string) []string {
	return append([]string{
		p.binary, "--port", g.port(i), "--bind", g.machine.bind(), "--protected-mode", "no",
		"--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction",
	}, flags...)
}

// pinged returns a function that checks whether a server answers.
func pinged(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		// The client would log that it can't reach the server yet, so try a connection first.
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		conn.Close()
		probe := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1})
		defer probe.Close()
		return probe.Ping(ctx).Err()
	}
}

// client opens the URL of a standalone server for as long as the test runs.
func client(t testing.TB, url string) redis.UniversalClient {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = Patience, Patience, Patience, Patience
	return closed(t, redis.NewClient(o))
}

func closed(t testing.TB, c redis.UniversalClient) redis.UniversalClient {
	t.Cleanup(func() { c.Close() })
	return c
}

func must(t testing.TB, get func() (string, error)) string {
	t.Helper()
	url, err := get()
	if err != nil {
		t.Fatal(err)
	}
	return url
}
