package conformance

import (
	"testing"
	"time"

	"github.com/skeinq/skein/ports"
)

func modelStore(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
	m := newModel(clock)
	return func() ports.ShardStore { return m }
}

func TestModel(t *testing.T) { Run(t, modelStore) }

// A store may hand over what earlier leases left with a later turn.
func TestModelWithLateOrphans(t *testing.T) {
	Run(t, func(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
		m := newModel(clock).(*model)
		m.reach = func(turn int64, _ string) bool { return turn > 0 }
		return func() ports.ShardStore { return m }
	})
}
