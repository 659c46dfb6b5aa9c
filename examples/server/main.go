// Server is a server as it could run in production, as an example to copy: it takes events of
// orders by POST /orders/{id}, with the form values number and what, and handles them with retries,
// a log, metrics at /debug/vars, the probes /livez and /readyz, and the dashboard of its store at
// /jobs/, with the API below /jobs/api/v1. On a signal it lets the running handlers finish, and
// stops. A second signal ends it at once.
//
// The flag -store names the store: memory:// (the default, for trying it out), redis://HOST:PORT/DB
// or postgres://HOST:PORT/DATABASE.
package main

import (
	"context"
	"errors"
	"expvar"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/skeinq/skein"
)

// event is something that happened to an order. Its sender numbers it. Equal bytes are the same
// payload, so an event that is sent twice is stored once, and two similar events with different
// numbers are both stored.
type event struct {
	Number int
	What   string
}

// orders is the queue, as pushers and handlers share it: here both are one program. The
// events of an order are handled in order of their numbers.
var orders = skein.NewQueue("orders", skein.QueueOptions[event]{
	MaxRetries: 10,
	Score:      func(e event) float64 { return float64(e.Number) },
})

func main() {
	storeURL := flag.String("store", "memory://", "where jobs are kept: memory://, redis://… or postgres://…")
	address := flag.String("listen", "localhost:8080", "the address to serve HTTP at")
	flag.Parse()
	if err := run(*storeURL, *address); err != nil {
		log.Fatal(err)
	}
}

func run(storeURL, address string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // after this a signal ends the process
	defer stop()

	store, closeStore, err := openStore(ctx, storeURL)
	if err != nil {
		return err
	}
	defer closeStore()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	slog.Info("serving", "address", listener.Addr())
	return serve(ctx, store, listener, work)
}

// work handles the events that came for an order since its last call, in order. It may be called
// again with the same events, so yours should be able to repeat its effects.
func work(ctx context.Context, id string, events []event) error {
	slog.InfoContext(ctx, "order", "id", id, "events", events)
	return nil
}

// serve takes and handles events until ctx ends, and returns when all has stopped.
func serve(
	ctx context.Context,
	store skein.Store,
	l net.Listener,
	work func(context.Context, string, []event) error,
) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	handler, err := routes(ctx, store, skein.NewClient(store, skein.ClientOptions{}))
	if err != nil {
		return err
	}
	web := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
	}
	webEnded := make(chan error, 1)
	go func() {
		err := web.Serve(l)
		end(err) // without HTTP there is nothing to do here
		webEnded <- err
	}()

	server := skein.NewServer(store, skein.ServerOptions{
		Observer:   metrics{},
		Middleware: []skein.Middleware{logSlow},
		// Handlers end within the time that Kubernetes leaves a process, 30 s.
		ShutdownTimeout: 20 * time.Second,
		OnBuried: func(_ context.Context, b skein.Buried) error {
			buried.Add(b.Queue, int64(len(b.Payloads))) // alert on this one
			return nil
		},
	}, orders.Handler(work))
	err = server.Run(ctx)

	// Requests are served until here, because a push needs no running handler.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err = errors.Join(err, web.Shutdown(closing))
	if failed := <-webEnded; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve HTTP: %w", failed))
	}
	return err
}

// Metrics, by queue.
var (
	executions = expvar.NewMap("executions")
	buried     = expvar.NewMap("buried")
)

// metrics counts executions.
type metrics struct{ skein.NopObserver }

// BatchEnd implements skein.Observer.
func (metrics) BatchEnd(_ context.Context, e skein.BatchEvent) {
	executions.Add(e.Shard.Queue, int64(len(e.Claims)))
}

// logSlow is middleware that logs slow calls. The server itself logs failures.
func logSlow(next skein.RunFunc) skein.RunFunc {
	return func(ctx context.Context, b *skein.RawBatch) error {
		began := time.Now()
		err := next(ctx, b)
		if took := time.Since(began); took > time.Second {
			slog.WarnContext(ctx, "slow",
				"queue", b.Queue, "id", b.Jobs[0].ID, "retries", b.Jobs[0].Retries, "took", took)
		}
		return err
	}
}
