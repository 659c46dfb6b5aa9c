package kills_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/tier"
)

// awaited is a queue whose jobs are waited for. A fifth of its runs fail.
var awaited = skein.NewQueue[int]("awaited", skein.QueueOptions[int]{
	Shards:        8,
	MaxRetries:    1 << 20,
	MaxRecoveries: 1 << 20,
	Backoff:       func(int) time.Duration { return 20 * time.Millisecond },
	Keep:          skein.Keep{Age: time.Hour},
})

// awaitedWorker is a server that keeps a journal of the payloads that it has handled. It ends by an
// interrupt.
func awaitedWorker() error {
	options := skein.ServerOptions{Lanes: 8, LeaseTTL: 2 * time.Second, PollInterval: 100 * time.Millisecond}
	return serveWithJournal(options, func(j journal) skein.Handler {
		return awaited.JobHandler(func(ctx context.Context, job *skein.Job[int]) error {
			time.Sleep(rand.N(10 * time.Millisecond)) // so that some die here; on a slow machine others do
			if rand.N(5) == 0 {
				return errors.New("fails at times")
			}
			for _, number := range job.Values() {
				j.write(journalLine{what: lineEnded, pid: os.Getpid(), id: job.ID, token: int64(number)})
			}
			return skein.SetResult(ctx, len(job.Payloads))
		})
	})
}

// awaitedServers is how many servers work at once, and awaitedIDs how many ids the waits share: so
// a payload often meets a queued or a claimed job of its id.
const (
	awaitedServers = 3
	awaitedIDs     = 150
)

// While servers are killed and replaced, each wait for an id returns, and none before what was
// pushed for it is done.
func TestWaitsReturnWhileServersAreKilled(t *testing.T) {
	t.Parallel()
	for name, newURL := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killServersOfWaits(t, newURL(t), 300, 1)
		})
	}
}

func TestManyWaitsReturnWhileServersAreKilled(t *testing.T) {
	tier.Long(t, "replaces processes at length")
	onEachStoreAndCluster(t, func(t *testing.T, url string, ends int) { killServersOfWaits(t, url, 10_000, ends) })
}

func killServersOfWaits(t *testing.T, url string, waits, ends int) {
	store, j := kit.Open(t, url), newJournal(t)
	client := skein.NewClient(store, skein.ClientOptions{})
	start := func() *process { return startProcess(t, "awaited", url, j) }
	var servers []*process
	for range awaitedServers {
		servers = append(servers, start())
	}

	// The waits are spread over the ends: each goroutine begins one after another, until no more
	// servers end and all waits have begun.
	var running sync.WaitGroup
	var next, begun atomic.Int64
	var over atomic.Bool
	for range min(waits/3, 1000) {
		running.Go(func() {
			for {
				number := int(next.Add(1))
				if number > waits && over.Load() {
					return
				}
				begun.Add(1)
				waitFor(t, client, j, number)
				// The waits are spread over the ends of the servers. On a slow machine there are fewer beside each.
				time.Sleep(rand.N(time.Duration(ends) * time.Second / 5))
			}
		})
	}
	replace(t, servers, ends, time.Second, func() {}, start)
	over.Store(true)
	running.Wait()
	for _, p := range servers {
		p.interrupt(t)
	}

	checkWaits(t, j, int(begun.Load()))
}

// waitFor pushes a number for one of the ids and waits for it. The journal has a line once Wait has
// returned.
func waitFor(t *testing.T, client *skein.Client, j journal, number int) {
	id := fmt.Sprint("id-", number%awaitedIDs)
	for awaited.Push(t.Context(), client, id, number) != nil {
		if t.Context().Err() != nil {
			return
		}
	}
	past, err := skein.Wait[int](t.Context(), client, awaited, id)
	j.write(journalLine{what: lineWaited, pid: os.Getpid(), id: id, token: int64(number)})
	if err != nil || past.Result < 1 {
		t.Errorf("the wait for %s returned %+v, %v", id, past, err)
	}
}

// checkWaits checks that each number was handled before its wait returned.
func checkWaits(t *testing.T, j journal, begun int) {
	t.Helper()
	type push struct {
		id     string
		number int64
	}
	handled, returned, early := map[push]bool{}, 0, 0
	for _, l := range j.read(t) {
		switch p := (push{l.id, l.token}); {
		case l.what == lineEnded:
			handled[p] = true
		case l.what == lineWaited:
			returned++
			if !handled[p] {
				early++
				t.Errorf("the wait for payload %d of %s returned before it was handled", l.token, l.id)
			}
		}
	}
	t.Logf("%d waits returned, %d of them early", returned, early)
	if returned != begun {
		t.Errorf("%d of %d waits returned", returned, begun)
	}
}
