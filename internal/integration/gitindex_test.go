package integration_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/internal/gitfixture"
	"github.com/skeinq/skein/internal/testservers"
)

// TestGitindexWhileConnectionsAreCut replays a history through handlers that fail,
// on servers that cut every connection fifty times a second. The program itself
// says whether each change was applied once, in its order.
func TestGitindexWhileConnectionsAreCut(t *testing.T) {
	dir := t.TempDir()
	program, repo := filepath.Join(dir, "gitindex"), filepath.Join(dir, "repo")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-race", "-o", program, "../../examples/gitindex").CombinedOutput(); err != nil {
		t.Fatalf("build gitindex: %v\n%s", err, out)
	}
	if err := gitfixture.Write(t.Context(), repo, gitfixture.Options{Commits: 1000}); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(testing.TB, ...string) redis.UniversalClient{
		"standalone": testservers.OwnRedis, "Cluster": testservers.OwnRedisCluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := open(t)
			testservers.Chaos(t, client, 20*time.Millisecond)
			replay := exec.CommandContext(t.Context(), program, "-repo", repo, "-store", storeURL(client), "-fail", "0.05")
			out, err := replay.CombinedOutput()
			if err != nil {
				t.Fatalf("gitindex: %v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}

// storeURL is how a command is told to use the client's servers.
func storeURL(client redis.UniversalClient) string {
	if c, ok := client.(*redis.ClusterClient); ok {
		addresses := c.Options().Addrs
		return "redis+cluster://" + addresses[0] + "?addr=" + strings.Join(addresses[1:], "&addr=")
	}
	return "redis://" + client.(*redis.Client).Options().Addr
}
