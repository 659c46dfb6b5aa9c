package redis_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// TestRedisMergesAsMemoryDoes pushes more payloads for one id than a record has room for, removes
// them by turns and steps, and compares each reply with the memory store's. It has more payloads of
// one id than the suite's random test, which tests everything else too.
func TestRedisMergesAsMemoryDoes(t *testing.T) {
	t.Parallel()
	client := testservers.Redis(t)
	rapid.Check(t, func(rt *rapid.T) {
		now := time.UnixMicro(1_800_000_000_123_456)
		clock := func() time.Time { return now }
		prefix := testservers.Prefix(t, client)
		p := &oneJob{t: rt, stores: [2]ports.ShardStore{
			memory.New(memory.Options{Clock: clock}), redis.New(client, redis.Options{Prefix: prefix, Clock: clock}),
		}}
		p.begin()
		rt.Repeat(map[string]func(*rapid.T){
			"push": func(*rapid.T) { p.push() },
			"turn": func(*rapid.T) { p.turn() },
			"bury": func(*rapid.T) {
				ask(p, "Bury", ports.JobStep{Shard: p.lease.Shard, IDs: []string{"a"}}, steps(ports.ShardStore.Bury))
			},
			"revive": func(*rapid.T) { ask(p, "Revive", p.dead(), steps(ports.ShardStore.Revive)) },
			"purge":  func(*rapid.T) { ask(p, "Purge", p.dead(), steps(ports.ShardStore.Purge)) },
			"edit":   func(*rapid.T) { p.edit() },
			"later":  func(*rapid.T) { now = now.Add(time.Second) },
			"": func(*rapid.T) {
				ask(p, "Find", "a", func(s ports.ShardStore, id string) (ports.Found, error) {
					return s.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: id, Payloads: 1000})
				})
			},
		})
	})
}

// oneJob is one job in both stores, and their caller's knowledge of it.
type oneJob struct {
	t      *rapid.T
	stores [2]ports.ShardStore
	lease  ports.Lease
	last   int64
	claims []core.Claim
}

// ask makes a call on both stores, whose answers must be the same.
func ask[Q, A any](p *oneJob, what string, q Q, call func(ports.ShardStore, Q) (A, error)) A {
	p.t.Helper()
	want, err := call(p.stores[0], q)
	if err != nil {
		p.t.Fatalf("%s on the memory store: %v", what, err)
	}
	got, err := call(p.stores[1], q)
	if err != nil {
		p.t.Fatalf("%s: %v", what, err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		p.t.Fatalf("%s %+v (-memory +redis):\n%s", what, q, diff)
	}
	return got
}

// steps calls a method of the port with a context.
func steps[Q, A any](call func(ports.ShardStore, context.Context, Q) (A, error)) func(ports.ShardStore, Q) (A, error) {
	return func(s ports.ShardStore, q Q) (A, error) { return call(s, context.Background(), q) }
}

func (p *oneJob) begin() {
	p.lease = ports.Lease{Shard: core.Shard{Queue: "orders"}, Owner: "me"}
	ask(p, "Declare", ports.DeclareRequest{Queue: "orders", Shards: 1}, steps(ports.ShardStore.Declare))
	p.lease.Token = ask(p, "Acquire", ports.AcquireRequest{
		Shard: p.lease.Shard, Shards: 1, Generation: 1, Owner: "me", Attempt: 1, TTL: time.Hour,
	}, steps(ports.ShardStore.Acquire)).Token
}

func (p *oneJob) data() []byte {
	return []byte(fmt.Sprintf("payload-%02d", rapid.IntRange(0, 24).Draw(p.t, "data")))
}

func (p *oneJob) push() {
	r := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1}
	for range rapid.IntRange(1, 12).Draw(p.t, "entries") {
		e := core.Entry{ID: "a", Payload: core.Payload{
			Data: p.data(), Score: float64(rapid.IntRange(-3, 9).Draw(p.t, "score")) / 2,
		}}
		if rapid.IntRange(0, 3).Draw(p.t, "tagged") == 0 {
			e.Meta = []byte(fmt.Sprint("meta ", e.Score))
		}
		r.Entries = append(r.Entries, e)
	}
	ask(p, "Push", r, steps(ports.ShardStore.Push))
}

// turn settles all claims in one way, and some of their payloads in another.
func (p *oneJob) turn() {
	r := ports.TurnRequest{
		Lease: p.lease, Number: p.last + 1, TTL: time.Hour, Want: rapid.IntRange(0, 1).Draw(p.t, "want"),
		PerJob: rapid.SampledFrom([]int{0, 1, 3, 9, 15}).Draw(p.t, "per job"),
	}
	for _, c := range p.claims {
		x := core.Settlement{
			ID:      c.ID,
			Receipt: c.Receipt,
			Rest:    p.disposition(),
			Letter:  core.DeadLetter{Failures: core.Failures{{Text: "no"}}},
			PutBack: core.PutBack{
				RetryCount: 1, Failures: core.Failures{{Text: "boom"}},
			},
		}
		for i := range c.Payloads {
			if rapid.Bool().Draw(p.t, "except") {
				x.Except = append(x.Except, core.PayloadDisposition{Position: i, Disposition: p.disposition()})
			}
		}
		r.Settlements = append(r.Settlements, x)
	}
	reply := ask(p, "Turn", r, steps(ports.ShardStore.Turn))
	p.last, p.claims = reply.Last, reply.Claims
}

func (p *oneJob) disposition() core.Disposition {
	return rapid.SampledFrom([]core.Disposition{core.Discard, core.Requeue, core.Requeue, core.Bury}).Draw(p.t,
		"disposition")
}

func (p *oneJob) dead() ports.DeadLetterStep {
	ref := ports.DeadLetterRef{ID: "a"}
	for range rapid.IntRange(0, 9).Draw(p.t, "named") {
		ref.Payloads = append(ref.Payloads, p.data())
	}
	return ports.DeadLetterStep{Shard: p.lease.Shard, DeadLetters: []ports.DeadLetterRef{ref}}
}

func (p *oneJob) edit() {
	ask(p, "Edit", ports.EditRequest{Shard: p.lease.Shard, ID: "a", Old: p.data(), New: p.data()},
		steps(ports.ShardStore.Edit))
}
