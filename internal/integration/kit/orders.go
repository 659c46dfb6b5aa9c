package kit

import (
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Orders fills the queue "orders", which has many shards, by calls of its store alone.
type Orders struct {
	T      *testing.T
	Store  ports.ShardStore
	Shards int
}

// Push pushes n jobs, whose ids begin with a name.
func (o Orders) Push(name string, n int) {
	o.T.Helper()

	entries := make([]core.Entry, 0, 1000)
	for i := range n {
		entries = append(entries, core.Entry{
			ID:      fmt.Sprintf("%s-%07d", name, 7919*i%n),
			Payload: core.Payload{Data: make([]byte, 100)},
		})

		if len(entries) == cap(entries) || i == n-1 {
			_, err := o.Store.Push(o.T.Context(), ports.PushRequest{
				Queue:      "orders",
				Shards:     o.Shards,
				Generation: 1,
				Entries:    entries,
			})
			Must(o.T, err)
			entries = entries[:0]
		}
	}
}

// Bury buries the queued jobs.
func (o Orders) Bury() {
	o.T.Helper()

	for _, shard := range core.Shards("orders", o.Shards) {
		for {
			page, err := o.Store.Jobs(o.T.Context(), ports.JobsRequest{
				PageRequest: ports.PageRequest{Queue: "orders", Shards: []int{shard.Index}, Limit: ports.MaxStep},
			})
			Must(o.T, err)
			if len(page.Jobs) == 0 {
				break
			}

			var ids []string
			for _, j := range page.Jobs {
				ids = append(ids, j.ID)
			}

			_, err = o.Store.Bury(o.T.Context(), ports.JobStep{Shard: shard, IDs: ids})
			Must(o.T, err)
		}
	}
}

// Fail puts the given number of jobs of each shard back as failed, with different retry counts, and
// leaves one job of each shard claimed.
func (o Orders) Fail(each int) {
	o.T.Helper()

	for _, shard := range core.Shards("orders", o.Shards) {
		acquired, err := o.Store.Acquire(o.T.Context(), ports.AcquireRequest{
			Shard:      shard,
			Shards:     o.Shards,
			Generation: 1,
			Owner:      "measures",
			Attempt:    1,
			TTL:        time.Hour,
		})
		Must(o.T, err)

		r := ports.TurnRequest{
			Lease:  ports.Lease{Shard: shard, Owner: "measures", Token: acquired.Token},
			Number: 1,
			TTL:    time.Hour,
			Want:   each,
		}

		reply, err := o.Store.Turn(o.T.Context(), r)
		Must(o.T, err)

		r.Number, r.Want = 2, 1
		for i, c := range reply.Claims {
			back := core.PutBack{
				Delay:      time.Duration(i) * time.Minute,
				RetryCount: i % 25,
				Failures:   core.Failures{{Text: "dial tcp 10.0.0.1:443: connection refused"}},
			}
			r.Settlements = append(r.Settlements, core.Settlement{
				ID:      c.ID,
				Receipt: c.Receipt,
				Rest:    core.Requeue,
				PutBack: back,
				Failed:  true,
			})
		}

		_, err = o.Store.Turn(o.T.Context(), r)
		Must(o.T, err)
	}
}

// Counts returns the counts of the queue.
func (o Orders) Counts(t *testing.T) ports.Counts {
	t.Helper()
	stats, err := o.Store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	Must(t, err)
	return stats[0].Counts
}
