// Package kills_test has the tests in which processes end and others continue their work: they are
// killed, crash by a job, stop, or are replaced by new versions.
package kills_test

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/skeinq/skein/internal/integration/kit"
)

// A process that a test starts to be killed is this program again, and does the work that
// workerVariable names instead of running tests.
func TestMain(m *testing.M) {
	if work := workers[os.Getenv(workerVariable)]; work != nil {
		logging.Disable()
		os.Exit(work())
	}
	kit.Main(m)
}

var must = kit.Must

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
