// Package kills_test has the tests in which processes end and others continue their work: they are
// killed, crash by a job, stop, or are replaced by new versions.
package kills_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"

	"github.com/skeinq/skein/internal/integration/kit"
)

// A process that a test starts to be killed is this program again, and does the work that
// workerVariable names instead of running tests.
func TestMain(m *testing.M) {
	work := workers[os.Getenv(workerVariable)]
	if work == nil {
		kit.Main(m)
		return
	}
	logging.Disable()
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

var must = kit.Must

// workerVariable names the work of a process that a test has started, and storeVariable the URL of
// its store.
const (
	workerVariable = "SKEIN_TEST_WORKER"
	storeVariable  = "SKEIN_TEST_WORKER_STORE"
)

// workers are the works of such processes.
var workers = map[string]func() error{
	"bulk":            bulkWorker,
	"called":          calledWorker,
	"chain":           chainWorker,
	"gated":           gatedWorker,
	"gateway":         gatewayWorker,
	"fan":             fanWorker,
	"poison":          poisonWorker,
	"poison-crowd":    poisonCrowdWorker,
	"poison-each":     poisonEachWorker,
	"booking":         bookingWorker,
	"hung":            hungWorker,
	"victim":          victimWorker,
	"versions-latest": versionWorker,
	"versions-newest": versionWorker,
	"successor":       successorWorker,
	"flow":            flowWorker,
	"flow-short":      shortFlowWorker,
	"ticking":         tickingWorker,
	"keyed":           keyedWorker,
	"rated":           ratedWorker,
	"set":             setWorker,
	"awaited":         awaitedWorker,
}
