package skein_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// A job on its last chance waits while another one runs in its process. Why names the job that it
// waits for, whenever somebody asks.
func TestWhyNamesTheJobThatHasTheLastChance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const shards = 2
		store := memory.New(memory.Options{})
		q := skein.NewQueue[string]("orders", skein.QueueOptions[string]{Shards: shards})
		if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: shards}); err != nil {
			t.Fatal(err)
		}
		var ids [shards]string
		for n := 0; ids[0] == "" || ids[1] == ""; n++ {
			id := fmt.Sprint("id-", n)
			ids[core.ShardOf(id, shards)] = id
		}
		for index, id := range ids {
			j := core.Job{
				ID:       id,
				State:    core.State{RetryCount: core.FreshRetryCount, Recoveries: skein.DefaultMaxRecoveries},
				Payloads: []core.Payload{{Data: []byte(`"p"`)}},
			}
			r := ports.ImportRequest{
				Shard:      core.Shard{Queue: "orders", Index: index},
				Shards:     shards,
				Generation: 1,
				Jobs:       []core.Job{j},
			}
			if _, err := store.Import(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}

		var running atomic.Value
		server := skein.NewServer(store, skein.ServerOptions{Lanes: 4, Logger: quiet},
			q.Handler(func(_ context.Context, id string, _ []string) error {
				running.Store(id)
				time.Sleep(time.Minute)
				return nil
			}))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- server.Run(ctx) }()

		time.Sleep(10 * time.Second) // the server has announced its job
		i := inspect.New(store, inspect.Options{})
		for range 100 {
			runs, waits := running.Load().(string), ids[0]
			if runs == waits {
				waits = ids[1]
			}
			v, err := i.Why(t.Context(), "orders", waits)
			if err != nil || v.Reason != inspect.BehindLastChance ||
				!strings.Contains(v.Text, fmt.Sprintf("job %q of orders/%d", runs, core.ShardOf(runs, shards))) {
				t.Fatalf("%s waits for %s: %v, %q, %v", waits, runs, v.Reason, v.Text, err)
			}
			time.Sleep(123 * time.Millisecond)
		}

		time.Sleep(2 * time.Minute)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
