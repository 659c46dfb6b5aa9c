package dashboard

import (
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// The page of an id that waits for another job on its last chance names that job.
func TestAPageNamesTheJobThatHasTheLastChance(t *testing.T) {
	h := newHouse(t, Options{})
	shard := core.Shard{Queue: "orders", Index: core.ShardOf("a", houseShards)}
	job := core.Job{
		ID:       "a",
		State:    core.State{RetryCount: core.FreshRetryCount, Recoveries: 3},
		Payloads: []core.Payload{{Data: []byte("p")}},
	}
	r := ports.ImportRequest{Shard: shard, Shards: houseShards, Generation: 1, Jobs: []core.Job{job}}
	if _, err := h.store.Import(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	h.turn("orders", shard.Index, 0) // takes the lease
	for queue, want := range map[string]string{
		"orders": `last chance no: taken by job "culprit" of orders/0`,
		"mail":   "last chance no: taken by a job of mail/0",
	} {
		h.announce(ports.Node{Name: "blue", Lanes: 8, Queues: []string{"orders"}, Status: ports.NodeStatus{
			Queues:     []ports.QueueStatus{{Queue: "orders", MaxRecoveries: 3}},
			LastChance: ports.LastChance{Shard: core.Shard{Queue: queue}, ID: "culprit"},
		}})
		says(t, h.get("/id?q=orders&id=a"), "The job is on its last chance", want)
	}
}
