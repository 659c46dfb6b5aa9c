package kills_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/internal/gitfixture"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// TestGitindexWhileConnectionsAreCut replays a history through handlers that fail, on servers that
// cut every connection twenty times a second, or on Postgres one of them ten times a second. The
// program itself reports whether each change was applied once, in its order.
func TestGitindexWhileConnectionsAreCut(t *testing.T) {
	tier.Long(t, "cuts connections at length")
	program, repo := gitindex(t, 1000)
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
			runGitindex(t, program, "-repo", repo, "-store", open(t), "-fail", "0.05")
		})
	}
}

// repositoryVariable names a repository that four processes replay, each of which is killed
// every five seconds; without it two replay a small one.
const repositoryVariable = "SKEIN_TEST_REPOSITORY"

// TestGitindexWhileItsNodesAreKilled replays a history in processes that are killed and started
// again.
func TestGitindexWhileItsNodesAreKilled(t *testing.T) {
	tier.Long(t, "kills processes at length")
	program, repo := gitindex(t, 500)
	args := []string{"-repo", repo, "-nodes", "2", "-kill", "4s", "-lanes", "4", "-slow", "0.5", "-fail", "0.02", "-panic", "0.01"}
	if repo = os.Getenv(repositoryVariable); repo != "" {
		args = []string{"-repo", repo, "-nodes", "4", "-slow", "0.5", "-fail", "0.05"}
	}
	stores := kit.StoreURLs(t)
	cluster := testservers.RedisCluster(t)
	stores["Cluster"] = func(t *testing.T) string { return kit.RedisURL(cluster) + "&prefix=" + testservers.Prefix(t, cluster) }
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := runGitindex(t, program, append(slices.Clone(args), "-store", open(t))...)
			if !strings.Contains(out, "killed and started again ") || strings.Contains(out, " again 0 times") {
				t.Error("no process was killed")
			}
		})
	}
}

// gitindex returns the program, with the race detector, and a repository with the given number of
// commits to replay.
func gitindex(t *testing.T, commits int) (program, repo string) {
	t.Helper()
	dir := t.TempDir()
	program, repo = filepath.Join(dir, "gitindex"), filepath.Join(dir, "repo")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../../..", "-race", "-o", program, "./examples/gitindex").CombinedOutput(); err != nil {
		t.Fatalf("build gitindex: %v\n%s", err, out)
	}
	if err := gitfixture.Write(t.Context(), repo, gitfixture.Options{Commits: commits}); err != nil {
		t.Fatal(err)
	}
	return program, repo
}

// runGitindex ends the test unless the program exits with 0, and returns its output.
func runGitindex(t *testing.T, program string, args ...string) (out string) {
	t.Helper()
	run := exec.CommandContext(t.Context(), program, args...)
	var stderr strings.Builder
	run.Stderr = &stderr
	printed, err := run.Output()
	if err != nil {
		t.Fatalf("gitindex: %v\n%s%s", err, &stderr, printed)
	}
	t.Logf("%s", printed)
	return string(printed)
}

func cutRedis(t *testing.T, client redis.UniversalClient) (store string) {
	testservers.Chaos(t, client, 50*time.Millisecond)
	return kit.RedisURL(client)
}
