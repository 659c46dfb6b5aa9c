// Package integration tests Skein on real servers.
package integration_test

import (
	"flag"
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"
)

// TestMain silences the client's log, which is full of the connections that these tests cut. A
// process that a test starts to be killed is this program again, and does the work that
// workerVariable names instead of running tests.
//
// A call of a server costs as much as many calls of the memory store, so rapid checks a model 50
// times instead of 100 unless a flag sets another number. Rapid itself divides the number by 5
// under -short: 10 times in make test, 50 in make test-all.
func TestMain(m *testing.M) {
	logging.Disable()
	if work := workers[os.Getenv(workerVariable)]; work != nil {
		os.Exit(work())
	}
	if err := flag.Set("rapid.checks", "50"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// workerVariable names the work of a process that a test has started, and storeVariable the URL of
// its store.
const (
	workerVariable = "SKEIN_TEST_WORKER"
	storeVariable  = "SKEIN_TEST_WORKER_STORE"
)

// workers are the works of such processes; each returns the exit code.
var workers = map[string]func() int{
	"bulk":         bulkWorker,
	"chain":        chainWorker,
	"fan":          fanWorker,
	"poison":       poisonWorker,
	"poison-crowd": poisonCrowdWorker,
	"booking":      bookingWorker,
	"victim":       victimWorker,
	"successor":    successorWorker,
	"flow":         flowWorker,
	"flow-short":   shortFlowWorker,
}
