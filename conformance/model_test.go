package conformance

import (
	"testing"
	"time"

	"github.com/skeinq/skein/conformance/internal/model"
	"github.com/skeinq/skein/ports"
)

func modelStore(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
	m := model.New(clock)
	return func() ports.ShardStore { return m }
}

func TestModel(t *testing.T) { Run(t, modelStore) }

// A store may hand over all claims of earlier leases with turns, and none with the acquire.
func TestModelWithLateOrphans(t *testing.T) {
	Run(t, func(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
		m := model.New(clock)
		m.Reach = func(turn int64, _ string) bool { return turn > 0 }
		return func() ports.ShardStore { return m }
	})
}
