package broken

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/conformance"
	"github.com/skeinq/skein/conformance/internal/cases"
	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/conformance/internal/model"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

func memoryStore(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
	all := withTransactions(clock)
	return func() ports.ShardStore { return all.open() }
}

func TestMemory(t *testing.T) { conformance.Run(t, memoryStore) }

// Each case has a name of its own and a rule, since failures are read by these.
func TestCasesAreNamed(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range cases.Groups(env.Probe(t, memoryStore)) {
		for _, c := range g.Cases {
			name := g.Name + "/" + c.Name
			if seen[name] || c.Name == "" || c.Rule == "" {
				t.Errorf("case %q has no name, no rule, or the name of another case", name)
			}
			seen[name] = true
		}
	}
}

func modelStore(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
	m := model.New(clock)
	return func() ports.ShardStore { return m }
}

func TestModel(t *testing.T) { conformance.Run(t, modelStore) }

// A store may hand over all claims of earlier leases with turns, and none with the acquire.
func TestModelWithLateOrphans(t *testing.T) {
	conformance.Run(t, func(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
		m := model.New(clock)
		m.Reach = func(turn int64, _ string) bool { return turn > 0 }
		return func() ports.ShardStore { return m }
	})
}

// unreliable makes backends in which about one call in oneIn fails. Half of the failed calls are
// carried out all the same.
func unreliable(f env.Factory, oneIn int) env.Factory {
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
			return storekit.Intercept(open(),
				func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
					breaks, late := draw()
					switch {
					case !breaks, call.Method == "Ping", call.Method == "Settle", call.Method == "SettlePayload":
						return next(ctx) // Repeating repeats none of these methods
					case late:
						_ = next(ctx)
					}
					return harness.ErrNoReply
				})
		}
	}
}

func TestDisturbedMemory(t *testing.T) {
	t.Parallel()
	conformance.RunDisturbed(t, unreliable(memoryStore, 20))
}

func TestDisturbedModel(t *testing.T) {
	tier.Long(t, "runs the whole suite on a second store in memory; TestDisturbedMemory is the short one")
	t.Parallel()
	conformance.RunDisturbed(t, unreliable(modelStore, 20))
}

// The suite finds the fault of a broken store even if calls fail and are repeated.
func TestDisturbanceHidesNoFault(t *testing.T) {
	tier.Long(t, "runs a case for each broken store once more; TestBrokenStoresFail is the short one")
	for _, b := range brokenStores() {
		t.Run(b.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := caseNamed(t, b.caught)
				if len(record(t, c, env.Repeating(unreliable(b.factory, 10)))) == 0 {
					t.Errorf("the case %q passes", b.caught)
				}
			})
		})
	}
}
