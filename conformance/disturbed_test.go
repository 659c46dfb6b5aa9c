package conformance

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// unreliable makes backends in which about one call in oneIn fails. Half of the failed calls are
// carried out all the same.
func unreliable(f Factory, oneIn int) Factory {
	var backends atomic.Uint64
	return func(t testing.TB, clock func() time.Time) func() ports.ShardStore {
		open := f(t, clock)
		var mu sync.Mutex
		random := rand.New(rand.NewPCG(1, backends.Add(1)))
		draw := func() (breaks, late bool) {
			mu.Lock()
			defer mu.Unlock()
			return random.IntN(oneIn) == 0, random.IntN(2) == 0
		}
		return func() ports.ShardStore {
			return storekit.Intercept(open(), func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
				breaks, late := draw()
				switch {
				case !breaks, call.Method == "Ping", call.Method == "Settle", call.Method == "SettlePayload": // Repeating does not repeat these
					return next(ctx)
				case late:
					_ = next(ctx)
				}
				return errNoReply
			})
		}
	}
}

func TestDisturbedMemory(t *testing.T) {
	t.Parallel()
	RunDisturbed(t, unreliable(memoryStore, 20))
}

func TestDisturbedModel(t *testing.T) {
	tier.Long(t, "runs the whole suite on a second store in memory; TestDisturbedMemory is the short one")
	t.Parallel()
	RunDisturbed(t, unreliable(modelStore, 20))
}

// The suite finds the fault of a broken store even if calls fail and are repeated.
func TestDisturbanceHidesNoFault(t *testing.T) {
	tier.Long(t, "runs a case for each broken store once more; TestBrokenStoresFail is the short one")
	for _, b := range brokenStores() {
		t.Run(b.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := caseNamed(t, b.caught)
				if len(record(t, c, repeating(unreliable(b.factory, 10)))) == 0 {
					t.Errorf("the case %q passes", b.caught)
				}
			})
		})
	}
}
