package prometheus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// openShop runs a server with a queue that is well, orders, and one whose jobs fail, mails;
// reports has jobs that nobody works, calls have a rate that their handler slows down, and a check of
// the store warns. It returns where Prometheus
// scrapes it.
func openShop(t *testing.T) string {
	t.Helper()
	store := memory.New(memory.Options{})
	m := newMetrics(t, Options{Queues: []string{"orders", "mails", "reports"}})
	orders := skein.NewQueue("orders", skein.QueueOptions[int]{Shards: 3})
	mails := skein.NewQueue("mails", skein.QueueOptions[int]{Shards: 3, MaxRetries: skein.NoRetries})
	calls := skein.NewQueue("calls", skein.QueueOptions[int]{Shards: 3, Rate: core.Rate{Count: 1, Per: time.Second}})
	reports := skein.NewQueue("reports", skein.QueueOptions[int]{Shards: 3})
	client := skein.NewClient(store, skein.ClientOptions{Observer: m})
	due := skein.At(time.Now().Add(-10 * time.Minute))
	for i := range 100 {
		if err := reports.Push(t.Context(), client, strconv.Itoa(i), i, due); err != nil {
			t.Fatal(err)
		}
	}
	set := core.Settings{Version: 1, Set: []core.Setting{{Name: core.SettingMaxRunning, Value: "20"}}}
	if err := store.Configure(t.Context(), ports.ConfigureRequest{Queue: "reports", Settings: set}); err != nil {
		t.Fatal(err)
	}
	m.DeadLettersExpired(ports.ExpiryEvent{Shard: core.Shard{Queue: "mails"}, Expired: 1}) // the shop is too young
	if err := orders.Schedule(t.Context(), client, "sweep", skein.Interval(time.Second), "all", 0); err != nil {
		t.Fatal(err)
	}
	server := skein.NewServer(store, skein.ServerOptions{
		Name:     "shop",
		Observer: m,
		Logger:   slog.New(slog.DiscardHandler),
	},
		orders.Each(func(context.Context, string, int) error { return nil }),
		mails.Each(func(context.Context, string, int) error { return errors.New("no such mailbox") }),
		calls.Each(func(context.Context, string, int) error { return skein.SlowDown(time.Second) }))
	m.Watch(server.Node)
	// A server removes its first dead letter ten minutes after a change of what a queue keeps.
	m.DeadLettersExpired(ports.ExpiryEvent{Shard: core.Shard{Queue: "mails"}, Expired: 1})
	for i := range 10 {
		if err := calls.Push(t.Context(), client, strconv.Itoa(i), i); err != nil {
			t.Fatal(err)
		}
	}

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- server.Run(ctx) }()
	go func() { ended <- pushOn(ctx, client, orders, mails) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
	})
	registry := prometheus.NewRegistry()
	registry.MustRegister(m, newCollector(t, checkedStore{store}), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	web := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(web.Close)
	return web.URL
}

// pushOn pushes a job to each queue and pauses, until the context ends.
func pushOn(ctx context.Context, client *skein.Client, queues ...*skein.Queue[int]) error {
	for n := 0; ctx.Err() == nil; n++ {
		for _, q := range queues {
			if err := q.Push(ctx, client, strconv.Itoa(n), n); err != nil && ctx.Err() == nil {
				return fmt.Errorf("push to %s: %w", q.Name(), err)
			}
		}
		time.Sleep(tick / 10) // the pace of pushes: a slow machine pushes fewer
	}
	return nil
}
