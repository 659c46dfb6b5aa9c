package redis_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// A page larger than the list of one script is complete and in order, even if one shard has nearly
// all of it.
func TestRedisPagesOfManyScripts(t *testing.T) {
	t.Parallel()
	client := testservers.Redis(t)
	store := redis.New(client, redis.Options{Prefix: testservers.Prefix(t, client)})
	if _, err := store.Declare(t.Context(), ports.DeclareRequest{
		Queue: "orders", Shards: 3, IndexIDs: true,
	}); err != nil {
		t.Fatal(err)
	}
	var byTime []core.Entry
	for i := range 3000 {
		e := core.Entry{ID: fmt.Sprintf("%05d", i), When: core.At(core.Instant(7919 * i % 3000 / 2))} // each time twice
		if core.ShardOf(e.ID, 3) == 0 || i%10 == 0 {
			byTime = append(byTime, e)
		}
	}
	for some := range slices.Chunk(byTime, ports.MaxPush) {
		_, err := store.Push(t.Context(), ports.PushRequest{Queue: "orders", Shards: 3, Generation: 1, Entries: some})
		if err != nil {
			t.Fatal(err)
		}
	}
	byID := slices.Clone(byTime)
	slices.SortFunc(byTime, func(a, b core.Entry) int {
		at, _ := a.When.Fixed()
		bt, _ := b.When.Fixed()
		if at != bt {
			return int(at - bt)
		}
		return strings.Compare(a.ID, b.ID)
	})
	for order, want := range map[ports.SortBy][]core.Entry{ports.ByTime: byTime, ports.ByID: byID} {
		for _, descending := range []bool{false, true} {
			for _, limit := range []int{ports.MaxPage, 333, 249, 250} {
				r := ports.JobsRequest{SortBy: order, PageRequest: ports.PageRequest{
					Queue: "orders", Limit: limit, Descending: descending,
				}}
				if got := allJobs(t, store, r); !slices.Equal(got, ids(want)) {
					t.Errorf("order %d, descending %t, %d a page: %d jobs in another order than the %d pushed",
						order, descending, limit, len(got), len(want))
				}
			}
			slices.Reverse(want)
		}
	}
}

// allJobs are the ids on all pages; each but the last must be full.
func allJobs(t *testing.T, store *redis.Store, r ports.JobsRequest) (all []string) {
	t.Helper()
	for {
		page, err := store.Jobs(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		for _, job := range page.Jobs {
			all = append(all, job.ID)
		}
		if r.After = page.Next; r.After == (ports.Cursor{}) {
			return all
		}
		if len(page.Jobs) != r.Limit {
			t.Fatalf("a page of %d has %d jobs", r.Limit, len(page.Jobs))
		}
	}
}

func ids(entries []core.Entry) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = e.ID
	}
	return out
}
