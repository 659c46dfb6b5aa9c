package testservers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// masterName is the sentinel's name for the master.
const masterName = "skein"

// The servers of a group with a sentinel, by their ports.
const (
	theMaster = iota
	theReplica
	theSentinel
	sentinelGroup
)

// RedisSentinel returns a client of a master that one sentinel watches. The sentinel promotes a
// replica two seconds after the master has stopped answering. All three servers are this test's
// alone.
func RedisSentinel(t testing.TB) redis.UniversalClient {
	t.Helper()
	g, err := form(redisServer(), sentinelGroup, watched)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.end)
	return closed(t, redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: masterName, SentinelAddrs: []string{g.address(theSentinel)},
	}))
}

// watched starts master, replica and sentinel. A sentinel looks at a master's
// replicas when it meets it and then seldom, so it comes last.
func watched(ctx context.Context, g *group) error {
	p := redisServer()
	master := redisCommand(p, g, theMaster, "--repl-diskless-sync-delay", "0")
	replica := redisCommand(p, g, theReplica, "--replicaof", "127.0.0.1", g.port(theMaster))
	// A sentinel requires a configuration file to which it can write.
	sentinel := []string{"sh", "-c", `: >sentinel.conf && exec "$@"`, "sh",
		p.binary, "sentinel.conf", "--sentinel", "--port", g.port(theSentinel), "--bind", g.machine.bind(),
		"--protected-mode", "no"}

	for _, command := range [][]string{master, replica, sentinel} {
		if err := g.start(command...); err != nil {
			return err
		}
	}

	for i := range sentinelGroup {
		if err := g.until(ctx, pinged(g.address(i))); err != nil {
			return err
		}
	}

	if err := g.until(ctx, func(ctx context.Context) error { return replicating(ctx, g) }); err != nil {
		return err
	}

	watcher := redis.NewSentinelClient(&redis.Options{Addr: g.address(theSentinel)})
	defer watcher.Close()
	err := errors.Join(
		watcher.Monitor(ctx, masterName, "127.0.0.1", g.port(theMaster), "1").Err(),
		watcher.Set(ctx, masterName, "down-after-milliseconds", "2000").Err(),
		watcher.Set(ctx, masterName, "failover-timeout", "10000").Err(),
	)
	if err != nil {
		return err
	}

	return g.until(ctx, func(ctx context.Context) error { return known(ctx, watcher) })
}

// replicating checks whether the replica follows the master.
func replicating(ctx context.Context, g *group) error {
	replica := redis.NewClient(&redis.Options{Addr: g.address(theReplica)})
	defer replica.Close()
	info, err := replica.Info(ctx, "replication").Result()
	if err == nil && !strings.Contains(info, "master_link_status:up") {
		err = fmt.Errorf("the replica does not follow yet:\n%s", info)
	}
	return err
}

// known checks whether the sentinel could promote the replica.
func known(ctx context.Context, watcher *redis.SentinelClient) error {
	replicas, err := watcher.Replicas(ctx, masterName).Result()
	if err != nil {
		return err
	}
	if len(replicas) != 1 || replicas[0]["flags"] != "slave" || replicas[0]["master-link-status"] != "ok" {
		return fmt.Errorf("the sentinel sees these replicas: %v", replicas)
	}
	return nil
}
