package skein_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// invoice is what the handler of an order returns.
type invoice struct {
	Number int
	Events []string
}

// body returns the text of a reply.
func body(reply *http.Response) string {
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		log.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// The handler of a request pushes and waits for the result. It answers 202 if that takes too long,
// and the caller may ask again.
func ExampleWait() {
	store := memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{
		Keep:       skein.Keep{Age: time.Hour},
		MaxRetries: skein.NoRetries,
	})

	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.FormValue("order")
		ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
		defer cancel()
		if err := orders.Push(ctx, client, id, r.FormValue("event")); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}

		past, err := skein.Wait[invoice](ctx, client, orders, id)
		switch {
		case err == nil:
			_ = json.NewEncoder(w).Encode(past.Result)
		case errors.Is(err, skein.ErrDead):
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		case errors.Is(err, context.DeadlineExceeded):
			w.WriteHeader(http.StatusAccepted) // it goes on
		default:
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}))
	defer web.Close()

	// The jobs may run in this process or in any other.
	handler := orders.Handler(func(ctx context.Context, id string, events []string) error {
		if id == "13" {
			return errors.New("no such order")
		}
		return skein.SetResult(ctx, invoice{Number: 7, Events: events})
	})
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	server := skein.NewServer(store, skein.ServerOptions{Logger: slog.New(slog.DiscardHandler)}, handler)
	go func() { stopped <- server.Run(ctx) }()

	for _, order := range []string{"42", "13"} {
		reply, err := http.Get(web.URL + "?event=paid&order=" + order)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(reply.StatusCode, body(reply))
	}
	stop()
	fmt.Println(<-stopped)
	// Output:
	// 200 {"Number":7,"Events":["paid"]}
	// 422 wait for id "13" of queue "orders": it is in the morgue: no such order
	// <nil>
}
