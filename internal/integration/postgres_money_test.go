package integration_test

import (
	"math/rand/v2"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// killsVariable says how often the process is killed, by default a few times.
const killsVariable = "SKEIN_TEST_KILLS"

// A process that moves money is killed at random moments and started again. At the
// end it checks every account's history itself.
func TestPostgresMoneyIsExactHoweverOftenItsProcessIsKilled(t *testing.T) {
	tier.Long(t, "kills processes at length")
	t.Parallel()
	kills := fromVariable(t, killsVariable, 5)
	program := filepath.Join(t.TempDir(), "moneytransfer")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", program, "./examples/moneytransfer").CombinedOutput(); err != nil {
		t.Fatalf("build moneytransfer: %v\n%s", err, out)
	}
	schema := testservers.Schema(t, testservers.Postgres(t))
	args := []string{
		"-store", withSearchPath(t, testservers.PostgresURL(t), schema), "-schema", schema,
		"-transfers", strconv.Itoa(1000 + 100*kills), "-think", "20ms",
	}
	short := append(slices.Clone(args), "-ttl", "300ms") // what is left behind is soon taken over
	for n := range kills {
		process := exec.CommandContext(t.Context(), program, short...)
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50*time.Millisecond + rand.N(750*time.Millisecond))
		if err := process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := process.Wait(); err == nil || process.ProcessState.Exited() {
			t.Fatalf("kill %d comes too late: %v; give it more to do", n+1, process.ProcessState)
		}
	}
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("moneytransfer: %v\n%s", err, out)
	}
	t.Logf("killed %d times: %s", kills, out)
}

// withSearchPath has tables without a schema's name be in that schema.
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
