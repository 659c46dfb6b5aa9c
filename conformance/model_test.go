package conformance

import (
	"testing"
	"time"

	"github.com/skeinq/skein/ports"
)

func TestModel(t *testing.T) { Run(t, modelStore) }

// A store may hand over what earlier leases left with a later turn.
func TestModelWithLateOrphans(t *testing.T) {
	Run(t, func(tb testing.TB, clock func() time.Time) func() ports.ShardStore {
		open := modelStore(tb, clock)
		open().(*model).reach = func(turn int64, _ string) bool { return turn > 0 }
		return open
	})
}

func TestRandomModel(t *testing.T) { testRandom(t, modelStore) }

func TestRandomLate(t *testing.T) {
	testRandom(t, func(tb testing.TB, clock func() time.Time) func() ports.ShardStore {
		open := modelStore(tb, clock)
		open().(*model).reach = func(turn int64, _ string) bool { return turn > 0 }
		return open
	})
}

func modelStore(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
	m := newModel(clock)
	return func() ports.ShardStore { return m }
}
