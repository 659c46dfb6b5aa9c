package skein_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// recordingSettler is a Settler that only records its calls.
type recordingSettler struct{ settled []core.Settlement }

func (l *recordingSettler) Settle(_ context.Context, _ core.Shard, settle []core.Settlement) error {
	l.settled = append(l.settled, settle...)
	return nil
}

func (l *recordingSettler) SettlePayload(context.Context, core.Shard, core.PayloadSettlement) error {
	return nil
}

// A payload that settles itself is done, also as the last one, whatever outcome the job has.
func TestThePayloadThatSettlesItselfIsDone(t *testing.T) {
	for name, outcome := range map[string]error{
		"snoozed": skein.Snooze(time.Hour), "failed": errBoom, "buried": skein.Bury(errBoom),
	} {
		t.Run(name, func(t *testing.T) {
			store := memory.New(memory.Options{})
			queue := skein.NewQueue("orders", skein.QueueOptions[string]{})
			pushMany(t, store, queue, 1)
			runDue(t, store, skein.ServerOptions{},
				queue.JobHandler(func(ctx context.Context, job *skein.Job[string]) error {
					job.Settle(outcome)
					return job.Payloads[0].SettleIn(ctx, store)
				}))
			stats, err := inspect.New(store, inspect.Options{}).Stats(t.Context(), "orders")
			if err != nil {
				t.Fatal(err)
			}
			if s := stats[0]; s.Processed != 1 || s.Fresh+s.Retrying+s.Claimed+s.Dead != 0 {
				t.Errorf("processed %d, queued %d, dead %d; want 1, 0, 0", s.Processed, s.Fresh+s.Retrying, s.Dead)
			}
		})
	}
}

func TestEachKindOfHandlerSettlesWhatItWorks(t *testing.T) {
	queue := skein.NewQueue("orders", skein.QueueOptions[string]{Shards: 1, BatchSize: 3})
	cases := []struct {
		name       string
		middleware func(store ports.Settler) skein.Middleware
		handler    func(store ports.Settler) skein.Handler
	}{
		{"Handler", nil, func(store ports.Settler) skein.Handler {
			return queue.Handler(func(ctx context.Context, _ string, _ []string) error {
				return skein.SettleIn(ctx, store)
			})
		}},
		{"JobHandler", nil, func(store ports.Settler) skein.Handler {
			return queue.JobHandler(func(ctx context.Context, _ *skein.Job[string]) error {
				return skein.SettleIn(ctx, store)
			})
		}},
		{"BatchHandler", nil, func(store ports.Settler) skein.Handler {
			return queue.BatchHandler(func(ctx context.Context, _ *skein.Batch[string]) error {
				return skein.SettleIn(ctx, store)
			})
		}},
		{"middleware", func(store ports.Settler) skein.Middleware {
			return func(next skein.RunFunc) skein.RunFunc {
				return func(ctx context.Context, b *skein.RawBatch) error {
					return errors.Join(next(ctx, b), skein.SettleIn(ctx, store))
				}
			}
		}, func(ports.Settler) skein.Handler { return nop(queue) }},
	}

	for _, tt := range cases {
		for _, committed := range []bool{true, false} {
			t.Run(tt.name, func(t *testing.T) {
				store := memory.New(memory.Options{})
				var settler ports.Settler = store
				if !committed {
					settler = &recordingSettler{}
				}

				for _, id := range []string{"a", "b", "c"} {
					push(t, store, queue, id, "x")
				}

				o := skein.ServerOptions{}
				if tt.middleware != nil {
					o.Middleware = append(o.Middleware, tt.middleware(settler))
				}
				runDue(t, store, o, tt.handler(settler))

				want := ports.Counts{Processed: 3}
				if !committed {
					want = ports.Counts{Retrying: 3, Failed: 3}
				}
				equal(t, "counts", counts(t, store, "orders"), want)

				found, err := store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "a", Payloads: 1000})
				if err != nil {
					t.Fatal(err)
				}
				if !committed && found.Queued.Failures.Newest().Text != skein.ErrNotCommitted.Error() {
					t.Errorf("the job's error is %q, want that of %v", found.Queued.Failures.Newest().Text, skein.ErrNotCommitted)
				}
			})
		}
	}
}

// counts returns those of a queue, but for the time of its oldest job.
func counts(t *testing.T, store ports.ShardStore, queue string) ports.Counts {
	t.Helper()
	stats, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{queue}})
	if err != nil {
		t.Fatal(err)
	}
	stats[0].Oldest = core.Head{}
	return stats[0].Counts
}

func TestSettleOutsideAHandlerIsRefused(t *testing.T) {
	if err := skein.SettleIn(t.Context(), memory.New(memory.Options{})); err == nil {
		t.Error("no error")
	}
}

func TestATimeoutEndsSettling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		queue := skein.NewQueue("orders", skein.QueueOptions[string]{Timeout: time.Second})
		push(t, store, queue, "a", "x")
		var got error
		runDue(t, store, skein.ServerOptions{}, queue.Handler(func(ctx context.Context, _ string, _ []string) error {
			<-ctx.Done()
			got = skein.SettleIn(ctx, store)
			return got
		}))
		if !errors.Is(got, skein.ErrTimeout) {
			t.Errorf("Settle = %v, want ErrTimeout", got)
		}
		equal(t, "counts", counts(t, store, "orders"), ports.Counts{Retrying: 1, Failed: 1})
	})
}

func TestSettleInWithoutASettlerIsRefused(t *testing.T) {
	queue := skein.NewQueue("orders", skein.QueueOptions[string]{})
	for name, settler := range map[string]ports.Settler{"nil": nil, "a nil pointer": (*memory.Store)(nil)} {
		t.Run(name, func(t *testing.T) {
			store := memory.New(memory.Options{})
			push(t, store, queue, "a", "x")
			var err error
			runDue(t, store, skein.ServerOptions{},
				queue.Handler(func(ctx context.Context, _ string, _ []string) error {
					err = skein.SettleIn(ctx, settler)
					return nil
				}))
			if !errors.Is(err, skein.ErrInvalidOptions) {
				t.Errorf("got %v, want ErrInvalidOptions", err)
			}
		})
	}
}
