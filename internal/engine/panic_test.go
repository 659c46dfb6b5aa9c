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
	"github.com/skeinq/skein/internal/engine/execution"
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

// patience is how long the child waits for its own end, which a busy machine may delay.
const patience = 5 * time.Minute

// fatalEnv names the mistake that the test's own process makes, as its child.
const fatalEnv = "SKEIN_TEST_FATAL"

// runFatally runs a node that panics, and whose Fatal takes its time.
func runFatally(mistake string) {
	cfg := engine.Config{
		Queues:       []*engine.Queue{newQueue(queueName, each(succeed))},
		Owner:        "owner",
		Node:         "node",
		Lanes:        5,
		PollInterval: poll,
		LeaseTTL:     1500 * time.Millisecond,
		Splitter:     core.LaneSplitter{},
		Scheduler:    core.Lag,
		Logger:       slog.New(slog.DiscardHandler),
		Jitter:       func() int { return 0 },
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
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
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

// TestAGoexitFailsOnlyWhatHasBegun has a handler end its goroutine in the first job of
// a batch: those behind it have not run, so they have not failed.
func TestAGoexitFailsOnlyWhatHasBegun(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pushEach(3)
		w.start(each(func(_ context.Context, c *core.Claim) error {
			if c.ID == "job-0" {
				runtime.Goexit()
			}
			return nil
		}), batches(3))
		w.sleep(5 * time.Second)
		w.wantCounts(1, 0, 2, 1)
	})
}

func TestAHandlerThatPanicsFailsWithItsStack(t *testing.T) {
	inWorld(t, func(w *world) {
		w.start(func(context.Context, *execution.Batch) error { panic("boom") })
		w.sleep(poll)
		w.push("job", "x")
		w.wantCounts(1, 0, 0, 1)
		for _, text := range []string{"panic: boom", "panic_test.go"} {
			if job := w.find("job").Queued; job == nil || !strings.Contains(job.Failures.Newest().Text, text) {
				w.Errorf("job %+v; want an error with %q", job, text)
			}
		}
	})
}

func TestAHandlerThatEndsItsGoroutineFailsAndItsLaneGoesOn(t *testing.T) {
	for name, scheduler := range map[string]core.SchedulerFunc{"lag": core.Lag, "seq": core.Seq} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				a := w.audit()
				w.start(a.watch(func(_ context.Context, c *core.Claim) error {
					if c.ID == "bad" {
						runtime.Goexit()
					}
					return nil
				}), lanes(1), func(s *setup) { s.Scheduler = scheduler })
				w.sleep(poll)
				w.push("bad", "x")
				w.push("good", "x")
				w.sleep(4 * poll) // Seq waits after a round without success
				a.wantRuns("bad", 1)
				a.wantRuns("good", 1)
				w.wantCounts(1, 0, 1, 1)
				if job := w.find("bad").Queued; job == nil || !strings.Contains(job.Failures.Newest().Text, "Goexit") {
					w.Errorf("job %+v; want an error that names Goexit", job)
				}
			})
		})
	}
}

// nilError is an error whose methods panic.
type nilError struct{ text *string }

func (e nilError) Error() string { return *e.text }

func TestAnErrorThatPanicsIsLoggedWithItsStack(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(func(context.Context, *core.Claim) error { return nilError{} }))
		w.sleep(poll)
		w.push("job", "x")
		w.sleep(poll)
		if lines := n.log.lines("level=ERROR", "handler panicked", "stack="); len(lines) != 1 {
			w.Errorf("%d lines of a panic with its stack, want 1; the log:\n%s", len(lines), n.log.tail(5))
		}
	})
}
