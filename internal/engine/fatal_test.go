package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// panickingScheduler is a mistake in a user's scheduler.
type panickingScheduler struct{}

func (panickingScheduler) Next(core.Instant, []core.Head) core.Choice {
	panic("the scheduler's mistake")
}
func (panickingScheduler) Ran(int, bool) {}

// panickingStore is a mistake in a user's store.
type panickingStore struct {
	ports.ShardStore
	method string
}

func (s panickingStore) Announce(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
	s.call("Announce")
	return s.ShardStore.Announce(ctx, r)
}

func (s panickingStore) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	s.call("Acquire")
	return s.ShardStore.Acquire(ctx, r)
}

func (s panickingStore) Renew(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
	s.call("Renew")
	return s.ShardStore.Renew(ctx, r)
}

func (s panickingStore) call(method string) {
	if method == s.method {
		panic("the store's mistake")
	}
}

// fatalEnv names the mistake that the test's own process makes, as its child.
const fatalEnv = "SKEIN_TEST_FATAL"

// runFatally runs a node that panics, and whose Fatal takes its time.
func runFatally(mistake string) {
	cfg := engine.Config{
		Queues: []*engine.Queue{newQueue(queueName, each(succeed))}, Owner: "owner", Node: "node", Lanes: 5,
		PollInterval: poll, LeaseTTL: 1500 * time.Millisecond, Splitter: core.LaneSplitter{}, Scheduler: core.Lag,
		Logger: slog.New(slog.DiscardHandler), Jitter: func() int { return 0 },
		Fatal: func(err error) {
			time.Sleep(200 * time.Millisecond)
			text, _, _ := strings.Cut(err.Error(), "\n")
			fmt.Printf("fatal: %s; many goroutines: %t\n", text, runtime.NumGoroutine() > 100)
		},
	}
	cfg.Queues[0].Shards = 10
	store := panickingStore{memory.New(memory.Options{}), mistake}
	if mistake == "Scheduler" {
		cfg.Scheduler = func(core.SchedulerConfig) core.Scheduler { return panickingScheduler{} }
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println("Run returned:", engine.New(store, cfg).Run(ctx))
}

func TestAPanicOutsideOfHandlersEndsTheProcessAndIsReportedOnce(t *testing.T) {
	if mistake := os.Getenv(fatalEnv); mistake != "" {
		runFatally(mistake)
		os.Exit(0)
	}
	for _, mistake := range []string{"Scheduler", "Announce", "Acquire", "Renew"} {
		t.Run(mistake, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			child := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$")
			child.Env = append(os.Environ(), fatalEnv+"="+mistake)
			var out, crash strings.Builder
			child.Stdout, child.Stderr = &out, &crash
			if err := child.Run(); err == nil || child.ProcessState.ExitCode() != 2 {
				t.Errorf("the process ended with %v, want a panic", err)
			}
			said := "the store's mistake"
			if mistake == "Scheduler" {
				said = "the scheduler's mistake"
			}
			if want := fmt.Sprintf("fatal: panic: %s; many goroutines: false\n", said); out.String() != want {
				t.Errorf("it said:\n%s\nwant:\n%s", out.String(), want)
			}
			if !strings.Contains(crash.String(), "panic: "+said) {
				t.Errorf("its last output:\n%.2000s\nwant the panic %q", crash.String(), said)
			}
		})
	}
}
