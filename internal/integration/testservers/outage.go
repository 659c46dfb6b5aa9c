package testservers

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// RedisNode returns a client of the one server at an address, whatever Cluster it is in.
func RedisNode(t testing.TB, address string) *redis.Client {
	t.Helper()
	return closed(t, redis.NewClient(&redis.Options{Addr: address})).(*redis.Client)
}

// Kill ends a server at once, as a crash would, so that nothing listens on its port.
func Kill(t testing.TB, server *redis.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	_ = server.ShutdownNoSave(ctx).Err() // it does not answer
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", server.Options().Addr)
		if err != nil {
			return
		}
		conn.Close()
	}
}

// ClusterReplica starts a replica of the master at an address, which is in a Cluster, and
// returns a client of it. It is ready to take the master's place.
func ClusterReplica(t testing.TB, master string, flags ...string) *redis.Client {
	t.Helper()
	g, err := form(redisServer(), 2, func(ctx context.Context, g *group) error {
		own := append(
			[]string{"--cluster-enabled", "yes", "--cluster-port", g.port(1), "--repl-diskless-sync-delay", "0"},
			flags...,
		)
		if err := g.start(redisCommand(redisServer(), g, 0, own...)...); err != nil {
			return err
		}
		if err := g.until(ctx, pinged(g.address(0))); err != nil {
			return err
		}
		return g.until(ctx, func(ctx context.Context) error { return follows(ctx, g.address(0), master) })
	})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(g.end)
	return RedisNode(t, g.address(0))
}

// follows makes a node the replica of a master, and returns an error until it is one that the
// whole Cluster knows.
func follows(ctx context.Context, node, master string) error {
	first := redis.NewClient(&redis.Options{Addr: master})
	defer first.Close()
	replica := redis.NewClient(&redis.Options{Addr: node})
	defer replica.Close()

	id, bus, err := clusterIdentity(ctx, first)
	if err != nil {
		return err
	}
	info, err := replica.Info(ctx, "replication").Result()
	if err != nil {
		return err
	}

	if !strings.Contains(info, "role:slave") {
		host, port, _ := net.SplitHostPort(master)
		if err := replica.Do(ctx, "CLUSTER", "MEET", host, port, bus).Err(); err != nil {
			return err
		}
		if err := replica.ClusterReplicate(ctx, id).Err(); err != nil {
			return err
		}
	}

	if !strings.Contains(info, "master_link_status:up") {
		return fmt.Errorf("the replica does not follow yet:\n%s", info)
	}

	for _, server := range []*redis.Client{first, replica} {
		info, err := server.ClusterInfo(ctx).Result()
		if known := fmt.Sprintf("cluster_known_nodes:%d\r\n", masters+1); err != nil || !strings.Contains(info, known) {
			return fmt.Errorf("the Cluster does not know all of its nodes: %w\n%s", err, info)
		}
	}

	return nil
}

// clusterIdentity returns a node's own id, and the port on which others talk to it.
func clusterIdentity(ctx context.Context, node *redis.Client) (id, bus string, err error) {
	nodes, err := node.ClusterNodes(ctx).Result()
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(nodes) {
		fields := strings.Fields(line)
		if len(fields) > 2 && strings.Contains(fields[2], "myself") {
			_, bus, _ = strings.Cut(fields[1], "@")
			bus, _, _ = strings.Cut(bus, ",")
			return fields[0], bus, nil
		}
	}
	return "", "", fmt.Errorf("a node does not list itself:\n%s", nodes)
}
