package kills_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/tier"
)

// A chain: each job of the first queue pushes the same id to the second one, which nobody serves.
var (
	chained = skein.NewQueue[int]("chained", skein.QueueOptions[int]{MaxRecoveries: 1 << 20, BatchSize: 4})
	follows = skein.NewQueue[int]("follows", skein.QueueOptions[int]{})
)

// chainWorker works the chain until it is empty. It kills itself in one of its first 20 pushes,
// before the push, after it, or a few milliseconds after it, in the turns that report the jobs as
// done.
func chainWorker() error {
	store, closeStore, err := backends.Open(context.Background(), os.Getenv(storeVariable))
	if err != nil {
		return err
	}
	defer func() { _ = closeStore() }()
	var pushes atomic.Int64
	survived := 1 + rand.Int64N(20)
	client := skein.NewClient(store, skein.ClientOptions{
		Middleware: []skein.PushMiddleware{func(next skein.PushFunc) skein.PushFunc {
			return func(ctx context.Context, push *skein.RawPush) error {
				dies := os.Getenv(chainDies) != "" && pushes.Add(1) == survived
				moment := rand.N(3)
				if dies && moment == 0 {
					killMyself()
				}
				err := next(ctx, push)
				switch {
				case dies && moment == 1:
					killMyself()
				case dies:
					time.AfterFunc(rand.N(5*time.Millisecond), killMyself) // no result depends on when
				}
				return err
			}
		}},
	})
	ctx, stop := context.WithCancel(context.Background())
	go stopWhenEmpty(ctx, store, chained.Name(), stop)
	return skein.NewServer(store, skein.ServerOptions{
		Lanes: 4, LeaseTTL: chainTTL, PollInterval: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	}, chained.Handler(func(ctx context.Context, id string, numbers []int) error {
		return follows.Then(ctx, client, id, numbers[0])
	})).Run(ctx)
}

const (
	chainDies = "SKEIN_TEST_CHAIN_DIES"
	// chainTTL is how long the next process waits for the leases of a killed one.
	chainTTL = 2 * time.Second
)

// If a source is done its target was pushed, wherever the process was killed. Several chains share
// the kills, since most of the time passes with waiting for leases.
func TestThenLosesNothingByKills(t *testing.T) {
	t.Parallel()
	chains := tier.Count(1, 4)
	kills := kit.FromVariable(t, killsVariable, tier.Count(3, 100)) / chains
	for name, newURL := range kit.StoreURLs(t) {
		for chain := range chains {
			t.Run(fmt.Sprint(name, " ", chain), func(t *testing.T) {
				t.Parallel()
				killChain(t, newURL(t), kills)
			})
		}
	}
}

// killChain works a chain whose processes kill themselves, the given number of times.
func killChain(t *testing.T, url string, kills int) {
	store := kit.Open(t, url)
	client, ids := skein.NewClient(store, skein.ClientOptions{}), 40*kills
	entries := make([]skein.Entry[int], ids)
	for n := range entries {
		entries[n] = skein.Entry[int]{ID: fmt.Sprint("id-", n), Payload: n}
	}
	for page := range slices.Chunk(entries, 2000) {
		if err := chained.PushMany(t.Context(), client, page); err != nil {
			t.Fatal(err)
		}
	}
	j := newJournal(t)
	killed := 0
	for ; killed < kills; killed++ {
		p := startProgram(t, os.Args[0], "chain", url, j, chainDies+"=1")
		if !p.wasKilled(t) {
			break // nothing is left
		}
	}
	if p := startProgram(t, os.Args[0], "chain", url, j); p.wasKilled(t) {
		t.Fatal("the last process was killed")
	}
	checkChain(t, store, ids, killed)
}

func checkChain(t *testing.T, store skein.Store, ids, killed int) {
	t.Helper()
	inspector := inspect.New(store, inspect.Options{})
	stats, err := inspector.Stats(t.Context(), "chained")
	if err != nil {
		t.Fatal(err)
	}
	if killed == 0 || stats[0].Processed != int64(ids) || stats[0].Dead != 0 {
		t.Errorf("%d kills, %d of %d sources are done, %d dead", killed, stats[0].Processed, ids, stats[0].Dead)
	}
	for n := range ids {
		found, err := inspector.Find(t.Context(), "follows", fmt.Sprint("id-", n))
		if err != nil {
			t.Fatal(err)
		}
		if found.Queued == nil || found.Queued.PayloadCount != 1 {
			t.Fatalf("after %d kills the target of id-%d is %+v, want one payload", killed, n, found.Queued)
		}
	}
	t.Logf("%d processes were killed: %d sources are done, and each has its target", killed, ids)
}
