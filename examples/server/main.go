// Server has the shape of one in production, but for its store, which is in memory:
// it takes events of orders by POST /orders/{id} and works them with retries, a log,
// and metrics at /debug/vars. On a signal it lets what runs finish, and stops.
package main

import (
	"context"
	"errors"
	"expvar"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/ports"
)

var orders = skein.NewQueue("orders", skein.QueueOptions[string]{MaxRetries: 10})

type metrics struct{ ports.NopObserver }

var executions, busy = expvar.NewMap("executions"), expvar.NewMap("busy_ns") // by queue

func (metrics) BatchEnd(_ context.Context, e ports.BatchEvent) {
	executions.Add(e.Shard.Queue, int64(len(e.Claims)))
	busy.Add(e.Shard.Queue, e.Took.Nanoseconds())
}

func logErrors(next skein.RunFunc) skein.RunFunc {
	return func(ctx context.Context, b *skein.RawBatch) error {
		err := next(ctx, b)
		if err != nil {
			slog.Warn("failed", "queue", b.Queue, "id", b.Jobs[0].ID, "retries", b.Jobs[0].Retries, "error", err)
		}
		return err
	}
}

func serve(ctx context.Context, l net.Listener, work func(context.Context, string, []string) error) error {
	store, mux := memory.New(memory.Options{}), http.NewServeMux()
	client := skein.NewClient(store, skein.ClientOptions{})
	mux.Handle("GET /debug/vars", expvar.Handler())
	mux.HandleFunc("POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		if err := orders.Push(r.Context(), client, r.PathValue("id"), r.FormValue("event")); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable) // the sender repeats it
		}
	})
	web := &http.Server{Handler: mux}
	go func() { _ = web.Serve(l) }() // until Shutdown
	options := skein.ServerOptions{Observer: metrics{}, Middleware: []func(skein.RunFunc) skein.RunFunc{logErrors}}
	err := skein.NewServer(store, options, orders.Handler(work)).Run(ctx)
	return errors.Join(err, web.Shutdown(context.WithoutCancel(ctx)))
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", "localhost:8080")
	if err == nil {
		err = serve(ctx, l, func(context.Context, string, []string) error { return nil })
	}
	if err != nil {
		log.Fatal(err)
	}
}
