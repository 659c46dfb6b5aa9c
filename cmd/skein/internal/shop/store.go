package shop

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// shown is the shop's store as the dashboard sees it. It adds what a memory store can't have:
// unreadable records, checks of a server, jobs that began before the process did, and actions that
// take time. The shop's servers and customers work on the memory store itself.
type shown struct{ ports.ShardStore }

// unreadable is the shard with unreadable records.
var unreadable = core.Shard{Queue: "orders", Index: 3}

// perEntry is the time that an action takes for each job or dead letter. An action on all dead
// letters of emails then takes some ten seconds, which is long enough to press Stop.
const perEntry = 15 * time.Millisecond

// running has, for each of the shop's servers, how long it has run when the shop opens.
var running = map[string]time.Duration{
	"worker-a": 40 * time.Minute,
	"worker-b": 39 * time.Minute,
	"worker-c": 3 * time.Hour,
}

// edits are the dashboard's additions to the memory store.
type edits struct {
	// opened is when the shop opened. stuck has, for each job that never ends, when it began.
	opened core.Instant
	stuck  map[string]core.Instant
	mu     sync.Mutex // guards aside
	aside  []ports.QuarantinedRecord
}

func newEdits() *edits {
	now := core.InstantOf(time.Now())
	record := func(
		key, id string,
		place ports.Place,
		ago time.Duration,
		reason, stored string,
	) ports.QuarantinedRecord {
		return ports.QuarantinedRecord{
			Key:    key,
			ID:     id,
			Place:  place,
			Since:  now.Add(-ago),
			Reason: reason,
			Stored: []byte(stored),
			Size:   len(stored),
		}
	}

	return &edits{opened: now, stuck: map[string]core.Instant{}, aside: []ports.QuarantinedRecord{
		record("1", "order-5024", ports.PlaceQueued, 95*time.Minute, "its payloads are lost", "\x01\x02\x00"),
		record("2", "order-5087", ports.PlaceDead, 80*time.Minute, "its record has no end",
			"\x01{\"number\":7215,\"what\":\"bou"),
	}}
}

// view returns the store as the dashboard sees it.
func (s *Shop) view() *shown {
	return &shown{ShardStore: storekit.Intercept(s.store, s.edits.edit)}
}

// Check implements [ports.Checker].
func (s *shown) Check(context.Context) ([]ports.Check, error) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return []ports.Check{
		{Name: "memory", Value: fmt.Sprintf("%d MiB in use", m.HeapInuse>>20)},
		{
			Name:   "persistence",
			Status: ports.CheckWarn,
			Value:  "jobs are kept in memory only, and are lost when this process ends",
			Advice: "Use Redis or Postgres for jobs that matter; this shop is a demonstration",
		},
	}, nil
}

// edit changes the result of a call of the memory store.
func (e *edits) edit(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
	if r, ok := call.Request.(*ports.DiscardRequest); ok && r.Shard == unreadable {
		*call.Reply.(*int) = e.discard(r.Keys)
		return nil
	}

	if err := next(ctx); err != nil {
		return err
	}

	switch reply := call.Reply.(type) {
	case *[]ports.QueueStats:
		e.stats(*reply)
	case *ports.QuarantinedShards:
		r := call.Request.(*ports.QuarantinedShardsRequest)
		if r.Queue == unreadable.Queue && (r.Shards == nil || slices.Contains(r.Shards, unreadable.Index)) &&
			len(e.records()) > 0 {
			reply.Shards = append(reply.Shards, unreadable)
		}
	case *ports.QuarantinePage:
		if call.Request.(*ports.QuarantineRequest).Shard == unreadable {
			reply.Records = e.records()
		}
	case *ports.NodesReply:
		e.nodes(reply.Nodes)
	case *ports.ClaimedPage:
		for at := range reply.Claims {
			e.claim(&reply.Claims[at])
		}
	case *ports.Found:
		if reply.Claim != nil {
			e.claim(reply.Claim)
		}
	case *ports.StepReply:
		return sleep(ctx, time.Duration(reply.Handled)*perEntry)
	}
	return nil
}

func (e *edits) records() []ports.QuarantinedRecord {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.aside)
}

func (e *edits) discard(keys []string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	before := len(e.aside)
	e.aside = slices.DeleteFunc(e.aside, func(r ports.QuarantinedRecord) bool { return slices.Contains(keys, r.Key) })
	return before - len(e.aside)
}

// stats counts the unreadable records.
func (e *edits) stats(queues []ports.QueueStats) {
	n := int64(len(e.records()))
	for at := range queues {
		for i := range queues[at].Shards {
			if sh := &queues[at].Shards[i]; sh.Shard == unreadable {
				sh.Quarantined += n
				queues[at].Quarantined += n
			}
		}
	}
}

// nodes sets back the start of each server, and of the jobs that never end.
func (e *edits) nodes(nodes []ports.Node) {
	for at := range nodes {
		n := &nodes[at]
		if ago, runs := running[n.Name]; runs {
			n.StartedAt = min(n.StartedAt, e.opened.Add(-ago))
			n.Status.StartedAt = n.StartedAt
		}
		n.Status.Longest = slices.Clone(n.Status.Longest)
		for i := range n.Status.Longest {
			if since, stuck := e.stuck[n.Status.Longest[i].ID]; stuck {
				n.Status.Longest[i].Began = since
			}
		}
	}
}

// claim sets back the time of the claim of a job that never ends.
func (e *edits) claim(c *ports.ClaimView) {
	if since, stuck := e.stuck[c.ID]; stuck {
		c.Since = since
	}
}
