package kills_test

import (
	"math/rand/v2"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// killsVariable names how often the process is killed, by default a few times.
const killsVariable = "SKEIN_TEST_KILLS"

// A process that moves money is killed after a random number of entries in the accounts' histories,
// and started again. At the end it checks every account's history itself.
func TestPostgresMoneyIsExactHoweverOftenItsProcessIsKilled(t *testing.T) {
	t.Parallel()
	kills := kit.FromVariable(t, killsVariable, tier.Count(2, 5))
	transfers := tier.Count(300, 1000) + 100*kills
	program := filepath.Join(t.TempDir(), "moneytransfer")
	if out, err := exec.CommandContext(
		t.Context(), "go", "build", "-C", "../../..", "-o", program, "./examples/moneytransfer",
	).CombinedOutput(); err != nil {
		t.Fatalf("build moneytransfer: %v\n%s", err, out)
	}
	pool := testservers.Postgres(t)
	schema := testservers.Schema(t, pool)
	args := []string{
		"-store", withSearchPath(t, testservers.PostgresURL(t), schema), "-schema", schema,
		"-transfers", strconv.Itoa(transfers), "-think", "20ms",
	}
	short := append(slices.Clone(args), "-ttl", "3s") // claims left behind are soon taken over
	killed, entries := 0, 0
	for killed < kills {
		process := exec.CommandContext(t.Context(), program, short...)
		must(t, process.Start())
		entries = awaitEntries(t, pool, schema, entries+rand.N(transfers/kills))
		_ = process.Process.Kill()
		err := process.Wait()
		if err == nil { // all is done on a machine that was busy with something else
			break
		}
		if process.ProcessState.Exited() {
			t.Fatal(err)
		}
		killed++
	}
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("moneytransfer: %v\n%s", err, out)
	}
	if killed == 0 {
		t.Error("no process was killed")
	}
	t.Logf("killed %d times: %s", killed, out)
}

// awaitEntries waits until the accounts' histories have the given number of entries, and returns
// how many they have.
func awaitEntries(t *testing.T, pool *pgxpool.Pool, schema string, want int) (have int) {
	t.Helper()
	for end := time.Now().Add(testservers.Patience); ; time.Sleep(5 * time.Millisecond) {
		// There is no table before the first process has made it.
		if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+schema+".history").Scan(&have); err == nil &&
			have >= want {
			return have
		}
		if time.Now().After(end) {
			t.Fatalf("the histories have %d entries after %v, want %d", have, testservers.Patience, want)
		}
	}
}

// withSearchPath returns the URL of a server with a search_path: names of tables without a schema
// then belong to this one.
func withSearchPath(t *testing.T, server, schema string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("search_path", schema)
	u.RawQuery = query.Encode()
	return u.String()
}
