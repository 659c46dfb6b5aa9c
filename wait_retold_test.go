package skein_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// These tests retell what users of other libraries have asked for: to wait for a job and to get its
// result. Each is named after the report, and states what holds here.

// screenshots is a queue whose jobs take some seconds.
func screenshots() *skein.Queue[string] {
	return skein.NewQueue("screenshots", skein.QueueOptions[string]{
		Keep:       skein.Keep{Age: time.Hour},
		MaxRetries: skein.NoRetries,
	})
}

// serveScreenshots runs a server with a value of the queue of its own, as another process would.
func serveScreenshots(t *testing.T, store skein.Store) (stop func()) {
	t.Helper()
	handler := screenshots().Handler(func(ctx context.Context, id string, pages []string) error {
		time.Sleep(10 * time.Second)
		if pages[0] == "no page" {
			return errors.New("404")
		}
		return skein.SetResult(ctx, "https://bucket/"+id)
	})
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	server := skein.NewServer(store, skein.ServerOptions{Lanes: 20, Logger: slog.New(slog.DiscardHandler)}, handler)
	go func() { stopped <- server.Run(ctx) }()
	return func() {
		cancel()
		check(t, <-stopped)
	}
}

// asynq#511: "info.Get(&string) will wait main thread until async task is completed".
func TestAsynq511WaitsUntilATaskIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		defer serveScreenshots(t, store)()
		client, queue := skein.NewClient(store, skein.ClientOptions{}), screenshots()
		check(t, queue.Push(t.Context(), client, "a", "https://example.com"))
		past, err := skein.Wait[string](t.Context(), client, queue, "a")
		if err != nil || past.Result != "https://bucket/a" {
			t.Errorf("Wait returned %+v, %v", past, err)
		}
	})
}

// asynq#265: a web form waits up to 30 s for its screenshot. A request that is repeated after a
// deadline, or comes to another web server, gets the same result, and a late one does at once.
func TestAsynq265AWebFormWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		queue := screenshots()
		request := func(id string, patience time.Duration) (string, error) {
			client := skein.NewClient(store, skein.ClientOptions{})
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			past, err := skein.Wait[string](ctx, client, queue, id)
			return past.Result, err
		}

		client := skein.NewClient(store, skein.ClientOptions{})
		check(t, queue.Push(t.Context(), client, "a", "https://example.com"))
		check(t, queue.Push(t.Context(), client, "b", "no page"))
		defer serveScreenshots(t, store)()
		if _, err := request("a", 5*time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after 5 s the request got %v", err)
		}
		for range 2 {
			if url, err := request("a", 30*time.Second); err != nil || url != "https://bucket/a" {
				t.Errorf("the request got %q, %v", url, err)
			}
		}

		_, err := request("b", 30*time.Second)
		var end *skein.NotDoneError
		if !errors.As(err, &end) || end.Reason != skein.ErrDead || end.Failure.Text != "404" {
			t.Errorf("the request for a page that fails got %v", err)
		}
	})
}

// River#602: a test waits until many jobs are done, and counts their failures. There, events come
// only to the client that has worked the job; here two servers share the jobs.
func TestRiver602ManyJobsOnTwoServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		defer serveScreenshots(t, store)()
		defer serveScreenshots(t, store)()
		client, queue := skein.NewClient(store, skein.ClientOptions{}), screenshots()
		const jobs = 300
		var entries []skein.Entry[string]
		for i := range jobs {
			page := "https://example.com"
			if i%10 == 0 {
				page = "no page"
			}
			entries = append(entries, skein.Entry[string]{ID: fmt.Sprint(i), Payload: page})
		}
		check(t, queue.PushMany(t.Context(), client, entries))

		results := make(chan error)
		for i := range jobs {
			go func() {
				_, err := skein.Wait[string](t.Context(), client, queue, fmt.Sprint(i))
				results <- err
			}()
		}
		done, dead := 0, 0
		for range jobs {
			switch err := <-results; {
			case err == nil:
				done++
			case errors.Is(err, skein.ErrDead):
				dead++
			default:
				t.Error(err)
			}
		}
		if done != jobs*9/10 || dead != jobs/10 {
			t.Errorf("%d done and %d dead of %d", done, dead, jobs)
		}
	})
}
