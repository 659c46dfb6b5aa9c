package integration_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/internal/gitfixture"
	"github.com/skeinq/skein/internal/integration/testservers"
)

// TestGitindexWhileConnectionsAreCut replays a history through handlers that fail,
// on servers that cut every connection fifty times a second, or on Postgres one of
// them ten times a second. The program itself says whether each change was applied once,
// in its order.
func TestGitindexWhileConnectionsAreCut(t *testing.T) {
	dir := t.TempDir()
	program, repo := filepath.Join(dir, "gitindex"), filepath.Join(dir, "repo")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-race", "-o", program, "./examples/gitindex").CombinedOutput(); err != nil {
		t.Fatalf("build gitindex: %v\n%s", err, out)
	}
	if err := gitfixture.Write(t.Context(), repo, gitfixture.Options{Commits: 1000}); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(*testing.T) (store string){
		"standalone": func(t *testing.T) string { return cutRedis(t, testservers.OwnRedis(t)) },
		"Cluster":    func(t *testing.T) string { return cutRedis(t, testservers.OwnRedisCluster(t)) },
		"Postgres": func(t *testing.T) string {
			pool := testservers.OwnPostgres(t, "fsync=off")
			if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}); err != nil {
				t.Fatal(err)
			}
			testservers.ChaosPostgres(t, pool, 100*time.Millisecond)
			return pool.Config().ConnString()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replay := exec.CommandContext(t.Context(), program, "-repo", repo, "-store", open(t), "-fail", "0.05")
			out, err := replay.CombinedOutput()
			if err != nil {
				t.Fatalf("gitindex: %v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}

func cutRedis(t *testing.T, client redis.UniversalClient) (store string) {
	testservers.Chaos(t, client, 20*time.Millisecond)
	return storeURL(client)
}

// storeURL is how a command is told to use the client's servers.
func storeURL(client redis.UniversalClient) string {
	if c, ok := client.(*redis.ClusterClient); ok {
		addresses := c.Options().Addrs
		return "redis+cluster://" + addresses[0] + "?addr=" + strings.Join(addresses[1:], "&addr=")
	}
	return "redis://" + client.(*redis.Client).Options().Addr
}
