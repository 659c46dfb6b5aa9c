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

// lane is a test's hold on one shard: it declares, pushes and turns, and fails the
// test on any error.
type lane struct {
	t      testing.TB
	store  *memory.Store
	shard  core.Shard
	shards int
	lease  ports.Lease
	number int64
}

// work declares a queue and acquires its first shard.
func work(t testing.TB, s *memory.Store, queue string, shards int) *lane {
	t.Helper()
	l := &lane{t: t, store: s, shard: core.Shard{Queue: queue}, shards: shards}
	_, err := s.Declare(t.Context(), ports.DeclareRequest{Queue: queue, Shards: shards})
	l.ok(err)
	got, err := s.Acquire(t.Context(), ports.AcquireRequest{
		Shard: l.shard, Shards: shards, Generation: 1, Owner: t.Name(), Attempt: 1, TTL: ttl,
	})
	l.ok(err)
	l.lease = ports.Lease{Shard: l.shard, Owner: t.Name(), Token: got.Token}
	return l
}

func (l *lane) ok(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lane) push(entries ...core.Entry) {
	l.t.Helper()
	_, err := l.store.Push(l.t.Context(), ports.PushRequest{
		Queue: l.shard.Queue, Shards: l.shards, Generation: 1, Entries: entries,
	})
	l.ok(err)
}

// turn settles, and claims as many jobs as are wanted.
func (l *lane) turn(want int, settle ...core.Settlement) ports.TurnReply {
	l.t.Helper()
	reply, err := l.store.Turn(l.t.Context(), ports.TurnRequest{
		Lease: l.lease, Number: l.number + 1, TTL: ttl, Settlements: settle, Want: want,
	})
	l.ok(err)
	l.number = reply.Last
	return reply
}

// entries are n payloads for as many ids, with rising scores.
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
	l := work(t, store, "orders", 1)
	other := store.Open()
	_, err := other.Push(t.Context(), ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: entries(2)})
	l.ok(err)
	if diff := cmp.Diff([]string{"order-0000000", "order-0000001"}, ids(l.turn(10).Claims)); diff != "" {
		t.Errorf("claims of what another handle pushed (-want +got):\n%s", diff)
	}
	stats, err := memory.New(memory.Options{}).Stats(t.Context(), []string{"orders"})
	if err == nil {
		t.Errorf("another backend knows the queue: %v", stats)
	}
}

// BenchmarkPush pushes fresh jobs, one entry or a page of them a call.
func BenchmarkPush(b *testing.B) {
	for _, size := range []int{1, 500} {
		b.Run(fmt.Sprintf("entries=%d", size), func(b *testing.B) {
			l := work(b, memory.New(memory.Options{}), "orders", 1)
			all := entries(b.N + size)
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += size {
				l.push(all[n : n+size]...)
			}
			reportRate(b)
		})
	}
}

// BenchmarkTurn settles and claims so many jobs a turn, out of many that wait.
func BenchmarkTurn(b *testing.B) {
	for _, size := range []int{256, 1} {
		b.Run(fmt.Sprintf("jobs=%d", size), func(b *testing.B) {
			l := work(b, memory.New(memory.Options{}), "orders", 1)
			const batch = 10_000
			all := entries(b.N + size)
			for n := 0; n < len(all); n += batch {
				l.push(all[n:min(n+batch, len(all))]...)
			}
			settle := make([]core.Settlement, 0, size)
			r := ports.TurnRequest{Lease: l.lease, TTL: ttl, Want: size}
			ctx := context.Background()
			b.ReportAllocs()
			b.ResetTimer()
			for n := 0; n < b.N; n += size {
				r.Number++
				r.Settlements = settle
				reply, err := l.store.Turn(ctx, r)
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
		l := work(b, memory.New(memory.Options{}), "orders", 1)
		all := payloads(waiting + b.N)
		l.push(all[:waiting]...)
		b.ReportAllocs()
		b.ResetTimer()
		for n := range b.N {
			l.push(all[waiting+n])
		}
	})
	b.Run("claim and put back", func(b *testing.B) {
		l := work(b, memory.New(memory.Options{}), "orders", 1)
		l.push(payloads(waiting)...)
		var back []core.Settlement
		b.ReportAllocs()
		b.ResetTimer()
		for n := 0; n < b.N; n += core.MaxTurnPayloads {
			c := l.turn(1, back...).Claims[0]
			back = []core.Settlement{{ID: c.ID, Receipt: c.Receipt, Rest: core.Requeue}}
		}
	})
}

func reportRate(b *testing.B) {
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
