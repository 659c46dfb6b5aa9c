package kills_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// durableStores start for each kind of store a server that stores on disk what it acknowledges.
var durableStores = map[string]func(testing.TB) *testservers.Durable{
	"Redis":    testservers.DurableRedis,
	"Postgres": testservers.DurablePostgres,
}

// After an outage of the store no burst follows: the slots that passed meanwhile are gone.
func TestNoBurstFollowsAnOutageOfTheStore(t *testing.T) {
	tier.Long(t, "stops and starts stores")
	for name, start := range durableStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			f := newRatedFlow(t, server.URL)
			servers := []*process{f.start(), f.start()}
			for _, p := range servers {
				f.await(p, ratedRate.Count)
			}

			const outages = 3
			for range outages {
				server.Stop()
				time.Sleep(4 * time.Second) // in which 200 slots pass, or more on a slow machine
				server.Start(t)
				f.push(10 * ratedRate.Count)
				for _, p := range servers {
					f.await(p, f.begunBy(p)+2*ratedRate.Count)
				}
			}

			for _, p := range servers {
				p.interrupt(t)
			}
			t.Logf("%d outages: %v", outages, checkRate(t, f.j.read(t), ratedRate))
		})
	}
}

// A store that is started again from its disk has every grant and every stop that it has replied.
func TestAStoreThatStartsAgainForgetsNoGrant(t *testing.T) {
	tier.Long(t, "stops and starts stores")
	for name, start := range durableStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t)
			store := kit.Open(t, server.URL)
			_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: rated.Name(), Shards: 1})
			must(t, err)
			rate := core.Rate{Count: 1, Per: time.Hour, Burst: 3}
			take := func(key string, want, granted int) ports.Grant {
				t.Helper()
				reply, err := store.Take(t.Context(), ports.TakeRequest{
					Queue: rated.Name(), Takes: []ports.Take{{Key: key, Rate: rate, Want: want}},
				})
				must(t, err)
				if got := reply.Grants[0].Granted; got != granted {
					t.Errorf("%d slots of %q are granted, want %d", got, key, granted)
				}
				return reply.Grants[0]
			}

			take("all", 10, 4)
			take("some", 2, 2)
			must(t, store.Stop(t.Context(), ports.StopRequest{Queue: rated.Name(), Key: "stopped", For: time.Hour}))
			var before []ports.Grant
			for _, key := range []string{"all", "stopped"} {
				before = append(before, take(key, 1, 0))
			}

			server.Stop()
			server.Start(t)
			store = kit.Open(t, server.URL) // a take is not repeated on a connection that has ended
			for i, key := range []string{"all", "stopped"} {
				if diff := cmp.Diff(before[i], take(key, 1, 0)); diff != "" {
					t.Errorf("%q after the start (-before +after):\n%s", key, diff)
				}
			}
			take("some", 10, 2)
		})
	}
}
