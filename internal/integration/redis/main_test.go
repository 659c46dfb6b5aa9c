// Package redis_test has the tests of the store on Redis, Valkey, Sentinel and Cluster. Those in
// which a server of a Cluster fails are in the room cluster.
//
// Fixtures:
//
//   - calls_test.go: newWorker, one shard whose lease the test holds; calllist_test.go lists a call
//     of every script, for rules that hold for each.
//   - faults_test.go: shards that are cut off, and records that are damaged, for the suite.
//   - slotserver_test.go: one master of a Cluster, called as after a redirection.
//   - testservers has the servers that tests share, and servers of a test's own to disturb.
//
// Tests:
//
//   - The suite: conformance_test.go, cut_test.go, move_test.go, rights_test.go, merge_test.go.
//   - What calls read, move and cost: bounds_test.go, boundsclaims_test.go, boundsread_test.go,
//     pageload_test.go, pages_test.go, slow_test.go, bench_test.go.
//   - Pushes and how calls travel: gather_test.go, large_test.go, once_test.go, refused_test.go,
//     look_test.go, slowlink_test.go, scripterror_test.go, wakeups_test.go.
//   - Slots that move: halfmoved_test.go, torn_test.go.
//   - Damage: damagedforms_test.go, quarantine_test.go, registrydamage_test.go, lost_test.go,
//     lostshard_test.go, recount_test.go.
//   - Queues and the registry: forget_test.go, race_test.go, housekeeping_test.go, limiter_test.go.
//   - The server's state and settings: full_test.go, policy_test.go, unusable_test.go,
//     checkrecords_test.go, format_test.go.
package redis_test

import (
	"testing"

	"github.com/skeinq/skein/internal/integration/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

var must = kit.Must
