package kills_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// TestGitindexWhileConnectionsAreCut replays this repository's history through handlers that fail,
// on servers that cut every connection twenty times a second, or on Postgres one of them ten times
// a second. The program itself reports whether each change was applied once, in its order.
func TestGitindexWhileConnectionsAreCut(t *testing.T) {
	tier.Long(t, "cuts connections at length")
	program := gitindex(t)
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
			runGitindex(t, program, "-repo", "../../..", "-store", open(t), "-fail", "0.05")
		})
	}
}

// gitindex returns the program, with the race detector.
func gitindex(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "gitindex")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../../..", "-race",
		"-o", program, "./examples/gitindex")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build gitindex: %v\n%s", err, out)
	}
	return program
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
