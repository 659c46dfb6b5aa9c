package memory_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/conformance"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// ttl is longer than any test takes.
const ttl = time.Hour

// holder holds the lease of one shard: it pushes and turns, and fails the test on any
// error.
type holder struct {
	t      testing.TB
	store  *memory.Store
	shard  core.Shard
	shards int
	lease  ports.Lease
	number int64
}

// hold declares a queue and acquires its first shard.
func hold(t testing.TB, s *memory.Store, queue string, shards int) *holder {
	t.Helper()
	h := &holder{t: t, store: s, shard: core.Shard{Queue: queue}, shards: shards}
	_, err := s.Declare(t.Context(), ports.DeclareRequest{Queue: queue, Shards: shards})
	h.ok(err)
	got, err := s.Acquire(t.Context(), ports.AcquireRequest{
		Shard: h.shard, Shards: shards, Generation: 1, Owner: t.Name(), Attempt: 1, TTL: ttl,
	})
	h.ok(err)
	h.lease = ports.Lease{Shard: h.shard, Owner: t.Name(), Token: got.Token}
	return h
}

func (h *holder) ok(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *holder) push(entries ...core.Entry) {
	h.t.Helper()
	_, err := h.store.Push(h.t.Context(), ports.PushRequest{
		Queue: h.shard.Queue, Shards: h.shards, Generation: 1, Entries: entries,
	})
	h.ok(err)
}

// turn settles, and claims at most want jobs.
func (h *holder) turn(want int, settlements ...core.Settlement) ports.TurnReply {
	h.t.Helper()
	reply, err := h.store.Turn(h.t.Context(), ports.TurnRequest{
		Lease: h.lease, Number: h.number + 1, TTL: ttl, Settlements: settlements, Want: want,
	})
	h.ok(err)
	h.number = reply.Last
	return reply
}

// entries returns one payload for each of n ids, with rising scores.
func entries(n int) []core.Entry {
	list := make([]core.Entry, n)
	for i := range list {
		list[i] = core.Entry{
			ID:      fmt.Sprintf("order-%07d", i),
			Payload: core.Payload{Data: []byte("changed"), Score: float64(i)},
		}
	}
	return list
}

func ids(claims []core.Claim) []string {
	list := make([]string, len(claims))
	for i := range claims {
		list[i] = claims[i].ID
	}
	return list
}

func TestConformance(t *testing.T) {
	conformance.Run(t, func(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
		store := memory.New(memory.Options{Clock: clock})
		return func() ports.ShardStore { return store.Open() }
	})
}

func TestHandlesShareABackend(t *testing.T) {
	store := memory.New(memory.Options{})
	h := hold(t, store, "orders", 1)
	other := store.Open()
	_, err := other.Push(t.Context(), ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: entries(2)})
	h.ok(err)
	if diff := cmp.Diff([]string{"order-0000000", "order-0000001"}, ids(h.turn(10).Claims)); diff != "" {
		t.Errorf("claims of what another handle pushed (-want +got):\n%s", diff)
	}
	stats, err := memory.New(memory.Options{}).Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	if err == nil {
		t.Errorf("another backend knows the queue: %v", stats)
	}
}

// BenchmarkPush pushes fresh jobs, one entry or a page of them a call.
func BenchmarkPush(b *testing.B) {
	for _, size := range []int{1, 500} {
		b.Run(fmt.Sprintf("entries=%d", size), func(b *testing.B) {
			h := hold(b, memory.New(memory.Options{}), "orders", 1)
			all := entries(b.N + size)
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += size {
				h.push(all[n : n+size]...)
			}
			reportRate(b)
		})
	}
}

// BenchmarkTurn settles and claims a number of jobs a turn, out of many that wait.
func BenchmarkTurn(b *testing.B) {
	for _, size := range []int{256, 1} {
		b.Run(fmt.Sprintf("jobs=%d", size), func(b *testing.B) {
			h := hold(b, memory.New(memory.Options{}), "orders", 1)
			const batch = 10_000
			all := entries(b.N + size)
			for n := 0; n < len(all); n += batch {
				h.push(all[n:min(n+batch, len(all))]...)
			}

			settle := make([]core.Settlement, 0, size)
			r := ports.TurnRequest{Lease: h.lease, TTL: ttl, Want: size}
			ctx := context.Background()

			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += size {
				r.Number++
				r.Settlements = settle
				reply, err := h.store.Turn(ctx, r)
				if err != nil || len(reply.Claims) == 0 {
					b.Fatal(err, len(reply.Claims))
				}

				settle = settle[:0]
				for i := range reply.Claims {
					c := &reply.Claims[i]
					settle = append(settle, core.Settlement{ID: c.ID, Receipt: c.Receipt, Processed: true})
				}
			}
			reportRate(b)
		})
	}
}

// BenchmarkHotID works one id with many payloads: the time is that of a payload.
func BenchmarkHotID(b *testing.B) {
	const waiting = 50_000
	payloads := func(n int) []core.Entry {
		list := entries(n)
		for i := range list {
			list[i].Data, list[i].ID = []byte(list[i].ID), "hot"
		}
		return list
	}

	b.Run("push", func(b *testing.B) {
		h := hold(b, memory.New(memory.Options{}), "orders", 1)
		all := payloads(waiting + b.N)
		h.push(all[:waiting]...)
		b.ReportAllocs()
		b.ResetTimer()
		for n := range b.N {
			h.push(all[waiting+n])
		}
	})

	b.Run("claim and put back", func(b *testing.B) {
		h := hold(b, memory.New(memory.Options{}), "orders", 1)
		h.push(payloads(waiting)...)
		var back []core.Settlement
		b.ReportAllocs()
		b.ResetTimer()
		for n := 0; n < b.N; n += core.MaxTurnPayloads {
			c := h.turn(1, back...).Claims[0]
			back = []core.Settlement{{ID: c.ID, Receipt: c.Receipt, Rest: core.Requeue}}
		}
	})
}

func reportRate(b *testing.B) {
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
