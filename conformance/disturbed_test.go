package conformance

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/ports"
)

// unreliable makes backends on which about one call in so many fails: half of
// these are carried out all the same.
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
			return keepExtras(open(), &harness.Relay{Around: func(_ string, call func() error) error {
				breaks, late := draw()
				if breaks && !late {
					return errNoReply
				}
				if err := call(); !breaks {
					return err
				}
				return errNoReply
			}})
		}
	}
}

// keepExtras puts a relay before a store, whose optional interfaces stay reliable.
func keepExtras(store ports.ShardStore, r *harness.Relay) ports.ShardStore {
	r.ShardStore = store
	if s, ok := store.(full); ok {
		return struct {
			*harness.Relay
			ports.Notifier
			ports.Settler
		}{r, s, s}
	}
	return r
}

func TestDisturbedMemory(t *testing.T) {
	t.Parallel()
	RunDisturbed(t, unreliable(memoryStore, 20))
}

func TestDisturbedModel(t *testing.T) {
	t.Parallel()
	RunDisturbed(t, unreliable(modelStore, 20))
}

// What a broken store breaks is seen although its calls are repeated.
func TestDisturbanceHidesNoFault(t *testing.T) {
	for _, b := range brokenStores() {
		t.Run(b.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := caseNamed(t, b.caught)
				if len(record(t, c, retrying(unreliable(b.factory, 10)))) == 0 {
					t.Errorf("the case %q passes", b.caught)
				}
			})
		})
	}
}
