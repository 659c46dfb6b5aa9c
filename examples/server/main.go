// Server has the shape of one in production: it takes events of orders by POST
// /orders/{id} and works them with retries, a log, and metrics at /debug/vars. On a
// signal it lets what runs finish, and stops. -store says where jobs are kept.
package main

import (
	"context"
	"errors"
	"expvar"
	"flag"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"syscall"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/internal/backends" // yours calls memory.New or redis.New
	"github.com/skeinq/skein/ports"
)

var orders = skein.NewQueue("orders", skein.QueueOptions[string]{MaxRetries: 10})
var executions = expvar.NewMap("executions") // by queue

type metrics struct{ ports.NopObserver }

func (metrics) BatchEnd(_ context.Context, e ports.BatchEvent) {
	executions.Add(e.Shard.Queue, int64(len(e.Claims)))
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

func serve(ctx context.Context, store ports.ShardStore, l net.Listener, work func(context.Context, string, []string) error) error {
	client, mux := skein.NewClient(store, skein.ClientOptions{}), http.NewServeMux()
	mux.Handle("GET /debug/vars", expvar.Handler())
	mux.HandleFunc("POST /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		if err := orders.Push(r.Context(), client, r.PathValue("id"), r.FormValue("event")); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable) // the sender repeats it
		}
	})
	web := &http.Server{Handler: mux}
	go func() { _ = web.Serve(l) }() // until Shutdown
	options := skein.ServerOptions{Observer: metrics{}, Middleware: []skein.Middleware{logErrors}}
	server := skein.NewServer(store, options, orders.Handler(work))
	return errors.Join(server.Run(ctx), web.Shutdown(context.WithoutCancel(ctx)))
}

func main() {
	url := flag.String("store", "memory://", backends.Usage)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	store, closeStore, err := backends.Open(ctx, *url)
	l, listenErr := net.Listen("tcp", "localhost:8080")
	if err = errors.Join(err, listenErr); err == nil {
		err = errors.Join(serve(ctx, store, l, func(context.Context, string, []string) error { return nil }), closeStore())
	}
	if err != nil {
		log.Fatal(err)
	}
}
