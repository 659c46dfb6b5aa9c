// Package postgres_test has the tests of the store on Postgres.
//
// Fixtures:
//
//   - workbench_test.go: newWorkbench, one shard whose turns the test makes by hand. Its gate in
//     hot_test.go stops a session inside a function.
//   - viewed_test.go: newViewed, a queue for calls that need no lease; seen, the statements that a
//     store sends.
//   - guards_test.go: newGuarded, a shard with a holder whose turns other sessions' locks meet.
//   - testservers.Postgres is the server that tests share. A test that disturbs its server takes
//     testservers.OwnPostgres.
//
// Tests:
//
//   - The suite: conformance_test.go, and tx_test.go in callers' transactions.
//   - Turns beside others: guards_test.go, hot_test.go, beside_test.go, parked_test.go,
//     slowpush_test.go.
//   - Transactions that stay open, and what they leave: opentx_test.go, inbox_test.go,
//     named_test.go.
//   - Pushes from SQL: sqlpush_test.go, and sqltrigger_test.go with the page of the guide.
//   - Schedules beside turns and pushes: calendar_test.go. Rates: limiter_test.go.
//   - Operators and readers: queues_test.go, counts_test.go, reads_test.go, damage_test.go.
//   - What calls read and move: bounds_test.go, plans_test.go, large_test.go, vacuum_test.go,
//     slow_test.go, bench_test.go.
//   - The schema: schema_test.go, objects_test.go.
//   - Settings and rights: settings_test.go, dbasettings_test.go with story_test.go,
//     timeouts_test.go, unusable_test.go, looker_test.go, pgbouncer_test.go.
//   - Connections and servers: wakeups_test.go, listen_test.go, lostreply_test.go,
//     slowlink_test.go, standby_test.go, full_test.go.
package postgres_test

import (
	"testing"

	"github.com/skeinq/skein/internal/integration/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

var must = kit.Must
