package main

import (
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// why and node ls name the job that has the last chance of a server.
func TestCommandsNameTheJobThatHasTheLastChance(t *testing.T) {
	store, shard := memory.New(memory.Options{}), core.Shard{Queue: "orders"}
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	job := core.Job{
		ID:       "42",
		State:    core.State{RetryCount: core.FreshRetryCount, Recoveries: 3},
		Payloads: []core.Payload{{Data: []byte("p")}},
	}
	_, err = store.Import(t.Context(), ports.ImportRequest{
		Shard:      shard,
		Shards:     1,
		Generation: 1,
		Jobs:       []core.Job{job},
	})
	must(t, err)
	_, err = store.Acquire(t.Context(), ports.AcquireRequest{
		Shard:      shard,
		Shards:     1,
		Generation: 1,
		Owner:      "w",
		Attempt:    1,
		TTL:        time.Hour,
	})
	must(t, err)
	_, err = store.Announce(t.Context(), ports.AnnounceRequest{TTL: time.Hour, Node: ports.Node{
		Owner: "w", Name: "blue", Lanes: 8, Queues: []string{"orders"}, Status: ports.NodeStatus{
			Queues:     []ports.QueueStatus{{Queue: "orders", MaxRecoveries: 3}},
			LastChance: ports.LastChance{Shard: core.Shard{Queue: "mail", Index: 7}, ID: "culprit"},
		},
	}})
	must(t, err)

	for command, want := range map[string]string{
		"job why orders 42":         "✗ last chance taken by job \"culprit\" of mail/7\n",
		"job why orders 42 -o json": `"reason": "behind a last chance"`,
		"node ls -o wide":           "mail/7 culprit",
	} {
		if code, stdout, stderr := runOn(t, store, strings.Fields(command)...); code != 0 ||
			!strings.Contains(stdout, want) {
			t.Errorf("%s ends with %d, want %q in: %s%s", command, code, want, stdout, stderr)
		}
	}
}
