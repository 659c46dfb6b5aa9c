package skein_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
)

// The service allows ten calls a minute. When it asks for a pause all the same, no job of the queue
// starts before that is over, on any server.
func ExampleSlowDown() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer service.Close()

	ctx, store := context.Background(), memory.New(memory.Options{})
	mails := skein.NewQueue("mails", skein.QueueOptions[string]{
		Shards: 1,
		Rate:   skein.Rate{Count: 10, Per: time.Minute},
	})
	client := skein.NewClient(store, skein.ClientOptions{})
	for _, user := range []string{"ann", "bob"} {
		if err := mails.Push(ctx, client, user, "welcome"); err != nil {
			log.Fatal(err)
		}
	}

	handler := mails.Each(func(ctx context.Context, user, mail string) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, service.URL+"/"+user+"/"+mail, nil)
		if err != nil {
			return err
		}
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer reply.Body.Close()

		if reply.StatusCode == http.StatusTooManyRequests {
			seconds, err := strconv.Atoi(reply.Header.Get("Retry-After"))
			if err != nil {
				seconds = 60 // it may be a date
			}
			return skein.SlowDown(time.Duration(seconds) * time.Second)
		}
		return nil
	})

	ran, err := skein.NewServer(store, skein.ServerOptions{Logger: slog.New(slog.DiscardHandler)}, handler).RunDue(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ran", ran)

	rate, err := inspect.New(store, inspect.Options{}).Rate(ctx, "mails", 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the next start is in", rate.Limiters[0].NextSlot.Sub(rate.Now).Round(time.Hour))
	// Output:
	// ran 1
	// the next start is in 1h0m0s
}
