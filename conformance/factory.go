package conformance

import (
	"testing"
	"time"

	"github.com/skeinq/skein/ports"
)

// Factory makes an empty backend whose stores read the given clock for all
// time, and returns how to open handles on it. Each handle is a store of its
// own, as another process would have it; all share the backend's data. Clean-up
// goes to t.Cleanup. A Factory may be called while earlier backends are in use,
// also by parallel tests.
type Factory func(t testing.TB, clock func() time.Time) (open func() ports.ShardStore)
