// Package kit has what tests of several rooms share.
//
//   - kit.go: [Main], which each room's TestMain calls, and helpers of any test.
//   - stores.go: stores of each kind and their URLs; postgres.go: pools and statements.
//   - orders.go: [Orders], a queue to fill; counts.go: its counts, awaited or recounted.
//   - serve.go: a server of Skein and its log; work.go: the API, and work beside a test.
//   - slowlink.go: payloads through a slow link, a test of each store.
//   - checks.go: the results of a store's checks; spread.go: times of a benchmark.
package kit

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9/logging"
)

// Main runs the tests of a room, as its TestMain. It silences the client's log, which is full of
// the connections that tests cut.
//
// A call of a server costs as much as many calls of the memory store, so rapid, if the room uses
// it, checks a model 50 times instead of 100 unless a flag sets another number. Rapid itself
// divides the number by 5 under -short: 10 times in make test, 50 in make test-all.
func Main(m *testing.M) {
	logging.Disable()
	if checks := flag.Lookup("rapid.checks"); checks != nil {
		if err := checks.Value.Set("50"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	os.Exit(m.Run())
}

// FromVariable returns the number in an environment variable, or the default without one.
func FromVariable(t *testing.T, variable string, byDefault int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// Must ends the test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
