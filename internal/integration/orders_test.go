package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// orders fills the queue "orders", which has many shards, by calls of its store alone.
type orders struct {
	t      *testing.T
	store  ports.ShardStore
	shards int
}

// push pushes n jobs, whose ids begin with a name.
func (o orders) push(name string, n int) {
	o.t.Helper()
	entries := make([]core.Entry, 0, 1000)
	for i := range n {
		entries = append(entries, core.Entry{ID: fmt.Sprintf("%s-%07d", name, 7919*i%n), Payload: core.Payload{Data: make([]byte, 100)}})
		if len(entries) == cap(entries) || i == n-1 {
			_, err := o.store.Push(o.t.Context(), ports.PushRequest{Queue: "orders", Shards: o.shards, Generation: 1, Entries: entries})
			must(o.t, err)
			entries = entries[:0]
		}
	}
}

// bury buries the queued jobs.
func (o orders) bury() {
	o.t.Helper()
	for _, shard := range core.Shards("orders", o.shards) {
		for {
			page, err := o.store.Jobs(o.t.Context(), ports.JobsRequest{PageRequest: ports.PageRequest{Queue: "orders", Shards: []int{shard.Index}, Limit: ports.MaxStep}})
			must(o.t, err)
			if len(page.Jobs) == 0 {
				break
			}
			var ids []string
			for _, j := range page.Jobs {
				ids = append(ids, j.ID)
			}
			_, err = o.store.Bury(o.t.Context(), ports.JobStep{Shard: shard, IDs: ids})
			must(o.t, err)
		}
	}
}

// fail puts the given number of jobs of each shard back as failed, with different retry counts, and
// leaves one job of each shard claimed.
func (o orders) fail(each int) {
	o.t.Helper()
	for _, shard := range core.Shards("orders", o.shards) {
		acquired, err := o.store.Acquire(o.t.Context(), ports.AcquireRequest{Shard: shard, Shards: o.shards, Generation: 1, Owner: "measures", Attempt: 1, TTL: time.Hour})
		must(o.t, err)
		r := ports.TurnRequest{Lease: ports.Lease{Shard: shard, Owner: "measures", Token: acquired.Token}, Number: 1, TTL: time.Hour, Want: each}
		reply, err := o.store.Turn(o.t.Context(), r)
		must(o.t, err)
		r.Number, r.Want = 2, 1
		for i, c := range reply.Claims {
			back := core.PutBack{Delay: time.Duration(i) * time.Minute, RetryCount: i % 25, Error: "dial tcp 10.0.0.1:443: connection refused"}
			r.Settlements = append(r.Settlements, core.Settlement{ID: c.ID, Receipt: c.Receipt, Rest: core.Requeue, PutBack: back, Failed: true})
		}
		_, err = o.store.Turn(o.t.Context(), r)
		must(o.t, err)
	}
}

// counts returns the counts of the queue.
func (o orders) counts(t *testing.T) ports.Counts {
	t.Helper()
	stats, err := o.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	must(t, err)
	return stats[0].Counts
}
