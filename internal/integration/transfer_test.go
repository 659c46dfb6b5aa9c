package integration_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// transferred returns a morgue of 300 ids in 7 groups, as lines. It has hostile ids, bytes and
// Metas, and one id has more payloads than a step moves.
func transferred(t *testing.T) []byte {
	var file bytes.Buffer
	_, err := inspect.WriteDeadLetters(&file, func(yield func(core.DeadLetter, error) bool) {
		for n := range 300 {
			d := core.DeadLetter{
				ID:        fmt.Sprintf("%03d/é %%{}", n),
				ChangedAt: core.Instant(1_700_000_000_000_000 + n),
				Failures:  core.Failures{{Text: "boom\n"}},
				Group:     fmt.Sprint("g", n%7),
			}
			for k := range 1 + 1200*(n/299) + n%3 {
				p := core.Payload{Data: fmt.Appendf(nil, "%05d\x00\xff", k), Score: float64(k) / 3}
				if k%2 == 1 {
					p.Meta = []byte("m\xfe")
				}
				d.Payloads = append(d.Payloads, p)
			}
			if !yield(d, nil) {
				return
			}
		}
	})
	must(t, err)
	return file.Bytes()
}

// A morgue goes from store to store and is the same in each.
func TestAMorgueMovesBetweenStores(t *testing.T) {
	t.Parallel()
	redisServer := testservers.Redis(t)
	want := transferred(t)
	file := want
	for at, store := range []ports.ShardStore{
		memory.New(memory.Options{}),
		redis.New(redisServer, redis.Options{Prefix: testservers.Prefix(t, redisServer)}),
		kit.NewPostgres(t, testservers.Postgres(t)),
		memory.New(memory.Options{}),
	} {
		_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 3 + 2*at})
		must(t, err)
		i := inspect.New(store, inspect.Options{})
		for repeat := range 2 {
			r, err := i.Import(t.Context(), "orders", inspect.ReadDeadLetters(bytes.NewReader(file)), nil)
			if want := (1 - repeat) * 301; err != nil || r.Handled != want {
				t.Fatalf("store %d: Import handled %d, %v; want %d", at, r.Handled, err, want)
			}
		}
		var out bytes.Buffer
		_, err = inspect.WriteDeadLetters(io.Writer(&out), i.Export(t.Context(), "orders", inspect.ListOptions{}))
		must(t, err)
		if diff := cmp.Diff(string(want), out.String()); diff != "" {
			t.Fatalf("store %d exports otherwise (-want +got):\n%.2000s", at, diff)
		}
		file = out.Bytes()
	}
}

// stored returns everything that a queue has queued and dead, with every field, in order of id.
func stored(t *testing.T, store ports.ShardStore, queue string) (all []string) {
	t.Helper()
	i := inspect.New(store, inspect.Options{})
	payloads := func(id string, place inspect.Place) (text string) {
		for p, err := range i.Payloads(t.Context(), queue, id, inspect.PayloadOptions{Place: place}) {
			must(t, err)
			text += fmt.Sprintf(" %q@%v(%q)", p.Data, p.Score, p.Meta)
		}
		return text
	}
	for j, err := range i.Jobs(t.Context(), queue, inspect.ListOptions{}) {
		must(t, err)
		all = append(all, fmt.Sprint("queued ", j.ID, j.PerformAt, j.Retries, j.Recoveries, j.FirstPush, j.LastError,
			payloads(j.ID, inspect.PlaceQueued)))
	}
	for d, err := range i.Morgue(t.Context(), queue, inspect.ListOptions{}) {
		must(t, err)
		all = append(all,
			fmt.Sprint("dead ", d.ID, d.ChangedAt, d.LastError, d.Group, payloads(d.ID, inspect.PlaceDead)))
	}
	slices.Sort(all)
	return all
}

// Queued jobs and dead letters move from store to store, and between two queues of one, and are the
// same in each.
func TestAQueueMovesBetweenStores(t *testing.T) {
	t.Parallel()
	redisServer := testservers.Redis(t)
	type place struct {
		store  ports.ShardStore
		queue  string
		shards int
	}
	first, second :=
		memory.New(memory.Options{}), redis.New(redisServer, redis.Options{Prefix: testservers.Prefix(t, redisServer)})
	third := kit.NewPostgres(t, testservers.Postgres(t))
	places := []place{
		{first, "orders", 3}, {second, "orders", 5}, {second, "wide", 16}, {third, "wide", 2},
		{third, "orders", 7}, {first, "back", 1},
	}
	for _, p := range places {
		_, err := p.store.Declare(t.Context(), ports.DeclareRequest{Queue: p.queue, Shards: p.shards})
		must(t, err)
		must(t, p.store.Pause(t.Context(), p.queue))
	}
	queued := tier.Count(40, 300) // two rounds of payloads, or more than one step
	var want []string
	for at, p := range places {
		i := inspect.New(p.store, inspect.Options{})
		if at == 0 {
			_, err := i.Import(t.Context(), p.queue, inspect.ReadDeadLetters(bytes.NewReader(transferred(t))), nil)
			must(t, err)
			for n := range queued {
				j := core.Job{ID: fmt.Sprintf("%03d/é %%{}", n), State: core.State{
					PerformAt:  core.Instant(1_700_000_000_000_000 + n),
					RetryCount: n%4 - 1,
					Recoveries: n % 3,
					FirstPush:  core.Instant(n),
					Failures:   core.Failures{{Text: "boom\n"}},
				}}
				for k := range 1 + n%20 {
					j.Payloads = append(j.Payloads,
						core.Payload{Data: fmt.Appendf(nil, "%05d\x00\xff", k), Score: float64(k) / 3})
					if k%2 == 1 {
						j.Payloads[k].Meta = []byte("m\xfe")
					}
				}
				_, err := p.store.Import(t.Context(), ports.ImportRequest{
					Shard:      core.Shard{Queue: p.queue, Index: core.ShardOf(j.ID, p.shards)},
					Shards:     p.shards,
					Generation: 1,
					Jobs:       []core.Job{j},
				})
				must(t, err)
			}
			want = stored(t, p.store, p.queue)
		}
		if diff := cmp.Diff(want, stored(t, p.store, p.queue)); diff != "" {
			t.Fatalf("queue %d holds (-want +got):\n%.2000s", at, diff)
		}
		if at+1 == len(places) {
			break
		}
		to := inspect.Target{Queue: places[at+1].queue, Inspector: inspect.New(places[at+1].store, inspect.Options{})}
		jobs, err := i.Move(t.Context(), p.queue, to, inspect.AllJobs(nil, inspect.BulkOptions{}))
		if err != nil || jobs.Handled != queued {
			t.Fatalf("from queue %d: %+v, %v", at, jobs, err)
		}
		dead, err := i.MoveMorgue(t.Context(), p.queue, to, inspect.AllDead(nil, inspect.BulkOptions{}))
		if err != nil || dead.Handled != 300 {
			t.Fatalf("from queue %d: %+v, %v", at, dead, err)
		}
		if left := stored(t, p.store, p.queue); len(left) > 0 {
			t.Fatalf("queue %d still has %.500q", at, left)
		}
		must(t, i.Forget(t.Context(), p.queue))
	}
}
