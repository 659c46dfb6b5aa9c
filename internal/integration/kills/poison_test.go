package kills_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/tier"
)

const (
	poisonID = "poison"
	// poisonTTL is long enough for a busy machine: a lease that is lost though its
	// process lives counts as a crash, too.
	poisonTTL      = 3 * time.Second
	poisonRounds   = 4
	innocentOrders = 40
)

// roundsVariable is the number of rounds for each store, by default a few.
const roundsVariable = "SKEIN_TEST_POISON_ROUNDS"

var poisoned = skein.NewQueue[string]("poisoned", skein.QueueOptions[string]{Shards: 5})

// poisonWorker is a process that works the queue until nothing is left in it. The
// poisonous job kills it 50 ms after it has started, beside jobs of 150 to 300 ms.
func poisonWorker() int {
	return workPoisoned(5, func(_ context.Context, job *skein.Job[string]) error {
		if job.ID == poisonID {
			time.Sleep(50 * time.Millisecond)
			killMyself()
		}
		time.Sleep(150*time.Millisecond + time.Duration(len(job.ID)%4)*50*time.Millisecond)
		return nil
	})
}

// workPoisoned works the queue by the given number of lanes until nothing is left in it.
func workPoisoned(lanes int, handle func(context.Context, *skein.Job[string]) error) int {
	store, closeStore, err := backends.Open(context.Background(), os.Getenv(storeVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer func() { _ = closeStore() }()
	ctx, stop := context.WithCancel(context.Background())
	go stopWhenEmpty(ctx, store, poisoned.Name(), stop)
	err = skein.NewServer(store, skein.ServerOptions{
		Lanes: lanes, LeaseTTL: poisonTTL, PollInterval: 100 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	}, poisoned.JobHandler(handle)).Run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}

// killMyself ends this process as SIGKILL from elsewhere does.
func killMyself() {
	process, _ := os.FindProcess(os.Getpid())
	_ = process.Kill()
	select {}
}

func stopWhenEmpty(ctx context.Context, store inspect.Store, queue string, stop func()) {
	inspector := inspect.New(store, inspect.Options{})
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		stats, err := inspector.Stats(ctx, queue)
		if err == nil && stats[0].Fresh+stats[0].Retrying+stats[0].Claimed == 0 {
			stop()
		}
	}
}

// A job that kills its process is in the morgue after MaxRecoveries + 1 crashes, and no other job
// is.
func TestPoisonAloneEndsInTheMorgue(t *testing.T) {
	tier.Long(t, "kills processes at length")
	rounds := kit.FromVariable(t, roundsVariable, poisonRounds)
	for name, open := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			for round := range rounds {
				t.Run(strconv.Itoa(round), func(t *testing.T) {
					t.Parallel()
					poisonRound(t, open(t))
				})
			}
		})
	}
}

func poisonRound(t *testing.T, url string) {
	var orders []string
	for n := range innocentOrders {
		orders = append(orders, fmt.Sprintf("order-%s%d", strings.Repeat("x", n%4), n))
	}
	workPoisonBeside(t, "poison", url, newJournal(t), orders)
}

// workPoisonBeside pushes the poisonous job and innocent ones, starts a process that works
// them until it ends by itself, and checks that only the poison was buried, as soon as
// it may be. It returns the processes that were killed.
func workPoisonBeside(t *testing.T, worker, url string, j journal, innocent []string) (killed []int) {
	t.Helper()
	store, closeStore, err := backends.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeStore() }()
	entries := []skein.Entry[string]{{ID: poisonID, Payload: "kill"}}
	for _, id := range innocent {
		entries = append(entries, skein.Entry[string]{ID: id, Payload: "work"})
	}
	client := skein.NewClient(store, skein.ClientOptions{})
	if err := poisoned.PushMany(t.Context(), client, entries); err != nil {
		t.Fatal(err)
	}
	killed = workUntilEmpty(t, worker, url, j)
	inspector := inspect.New(store, inspect.Options{})
	var dead []string
	for letter, err := range inspector.Morgue(t.Context(), poisoned.Name(), inspect.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		dead = append(dead, letter.ID)
	}
	if diff := cmp.Diff([]string{poisonID}, dead); diff != "" {
		t.Errorf("the morgue (-want +got):\n%s", diff)
	}
	if want := skein.DefaultMaxRecoveries + 1; len(killed) != want {
		t.Errorf("the process was killed %d times, want %d", len(killed), want)
	}
	stats, err := inspector.Stats(t.Context(), poisoned.Name())
	if err != nil || stats[0].Processed != int64(len(innocent)) || stats[0].Failed != 1 {
		t.Errorf("processed %d, failed %d, %v; want %d and 1", stats[0].Processed, stats[0].Failed, err, len(innocent))
	}
	return killed
}

// workUntilEmpty starts the worker again and again until it ends by itself, and
// returns the processes that were killed.
func workUntilEmpty(t *testing.T, worker, url string, j journal) (killed []int) {
	t.Helper()
	for {
		p := startProcess(t, worker, url, j)
		if !p.wasKilled(t) {
			return killed
		}
		killed = append(killed, p.pid())
		if len(killed) > 10*skein.DefaultMaxRecoveries {
			t.Fatalf("the worker was killed %d times, and the queue is not empty", len(killed))
		}
	}
}
