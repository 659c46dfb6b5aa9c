package integration_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/testservers"
)

const (
	poisonID = "poison"
	// poisonTTL is long enough for a busy machine: a lease that is lost though its
	// process lives counts as a crash, too.
	poisonTTL      = 3 * time.Second
	poisonRounds   = 4
	innocentOrders = 40
)

// roundsVariable says how many rounds of each store are made, by default a few.
const roundsVariable = "SKEIN_TEST_POISON_ROUNDS"

var poisoned = skein.NewQueue[string]("poisoned", skein.QueueOptions[string]{Shards: 5})

// poisonWorker is a process that works the queue until nothing is left in it. The
// poisonous job kills it 50 ms after it has started, beside jobs of 150 to 300 ms.
func poisonWorker() int {
	store, closeStore, err := backends.Open(context.Background(), os.Getenv(storeVariable))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer func() { _ = closeStore() }()
	handler := poisoned.Handler(func(_ context.Context, id string, _ []string) error {
		if id == poisonID {
			time.Sleep(50 * time.Millisecond)
			process, _ := os.FindProcess(os.Getpid())
			_ = process.Kill()
			select {}
		}
		time.Sleep(150*time.Millisecond + time.Duration(len(id)%4)*50*time.Millisecond)
		return nil
	})
	ctx, stop := context.WithCancel(context.Background())
	go stopWhenEmpty(ctx, store, stop)
	err = skein.NewServer(store, skein.ServerOptions{
		Lanes: 5, LeaseTTL: poisonTTL, PollInterval: 100 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	}, handler).Run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}

func stopWhenEmpty(ctx context.Context, store inspect.Store, stop func()) {
	inspector := inspect.New(store, inspect.Options{})
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		stats, err := inspector.Stats(ctx, poisoned.Name())
		if err == nil && stats[0].Fresh+stats[0].Retrying+stats[0].Claimed == 0 {
			stop()
		}
	}
}

// A job that kills its process ends in the morgue after MaxRecoveries + 1 crashes,
// and takes nobody with it.
func TestPoisonAloneEndsInTheMorgue(t *testing.T) {
	rounds := poisonRounds
	if text := os.Getenv(roundsVariable); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatalf("%s: %v", roundsVariable, err)
		}
	}
	redis, postgres := testservers.Redis(t), testservers.Postgres(t)
	for name, open := range map[string]func(*testing.T) (url string){
		"Redis": func(t *testing.T) string {
			return storeURL(redis) + "?prefix=" + testservers.Prefix(t, redis)
		},
		"Postgres": func(t *testing.T) string {
			return postgresStoreURL(t, testservers.Schema(t, postgres))
		},
	} {
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
	store, closeStore, err := backends.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeStore() }()
	entries := []skein.Entry[string]{{ID: poisonID, Payload: "kill"}}
	for n := range innocentOrders {
		entries = append(entries, skein.Entry[string]{ID: fmt.Sprintf("order-%s%d", strings.Repeat("x", n%4), n), Payload: "work"})
	}
	client := skein.NewClient(store, skein.ClientOptions{})
	if err := poisoned.PushMany(t.Context(), client, entries); err != nil {
		t.Fatal(err)
	}
	kills := workUntilEmpty(t, url)
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
	if want := skein.DefaultMaxRecoveries + 1; kills != want {
		t.Errorf("the process was killed %d times, want %d", kills, want)
	}
	stats, err := inspector.Stats(t.Context(), poisoned.Name())
	if err != nil || stats[0].Processed != innocentOrders || stats[0].Failed != 1 {
		t.Errorf("processed %d, failed %d, %v; want %d and 1", stats[0].Processed, stats[0].Failed, err, innocentOrders)
	}
}

// workUntilEmpty starts the worker again and again until it ends by itself, and
// returns how often it was killed.
func workUntilEmpty(t *testing.T, url string) (kills int) {
	for {
		process := exec.CommandContext(t.Context(), os.Args[0])
		process.Env = append(os.Environ(), workerVariable+"=poison", storeVariable+"="+url)
		out, err := process.CombinedOutput()
		if err == nil {
			return kills
		}
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.Exited() {
			t.Fatalf("the worker: %v\n%s", err, out)
		}
		kills++
		if kills > 10*skein.DefaultMaxRecoveries {
			t.Fatalf("the worker was killed %d times, and the queue is not empty", kills)
		}
	}
}
