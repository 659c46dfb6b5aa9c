package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// BenchmarkBesideClaims measures calls on a shard that has many claimed jobs. Their cost must
// depend on the jobs that they take, not on the claimed jobs, nor on how many jobs wait in front
// since their ids are claimed.
func BenchmarkBesideClaims(b *testing.B) {
	stores := map[string]func(b *testing.B) ports.ShardStore{
		"memory": func(*testing.B) ports.ShardStore { return memory.New(memory.Options{}) },
		"redis": func(b *testing.B) ports.ShardStore {
			client := testservers.Redis(b)
			return redis.New(client, redis.Options{Prefix: testservers.Prefix(b, client)})
		},
		"postgres": func(b *testing.B) ports.ShardStore {
			pool := testservers.OwnPostgres(b)
			schema := testservers.Schema(b, pool)
			must(b, postgres.Migrate(b.Context(), pool, postgres.MigrateOptions{Schema: schema}))
			return postgres.New(pool, postgres.Options{Schema: schema})
		},
	}
	for name, open := range stores {
		for _, claimed := range []int{10, 1000, 5000} {
			for _, waiting := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/%d claimed, waiting %t", name, claimed, waiting), func(b *testing.B) {
					s := newBusyShard(b, open(b), claimed, waiting)
					b.Run("turn", s.turns)
					b.Run("look", s.looks)
					b.Run("renew", s.renewals)
					b.Run("heads", s.heads)
					b.Run("acquire", s.acquires)
				})
			}
		}
	}
}

// busyShard is a shard with claimed jobs, on the clock of the server.
type busyShard struct {
	store   ports.ShardStore
	shard   core.Shard
	lease   ports.Lease
	turn    ports.TurnRequest
	attempt int64
	pushed  int
}

// newBusyShard claims the given number of jobs. If waiting, each of their ids has another job that
// is due.
func newBusyShard(b *testing.B, store ports.ShardStore, claimed int, waiting bool) *busyShard {
	b.Helper()
	s := &busyShard{store: store, shard: core.Shard{Queue: "orders"}}
	_, err := store.Declare(b.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(b, err)
	s.acquire(b)
	for first := 0; first < claimed; first += core.MaxTurnJobs {
		n := min(core.MaxTurnJobs, claimed-first)
		s.push(b, first, n)
		if reply := s.exchange(b, n); len(reply.Claims) != n {
			b.Fatalf("%d claims, want %d", len(reply.Claims), n)
		}
	}
	if waiting {
		for first := 0; first < claimed; first += 1000 {
			s.push(b, first, min(1000, claimed-first))
		}
		for range 5 {
			time.Sleep(500 * time.Millisecond)
			s.exchange(b, 1)
		}
	}
	s.pushed = 1_000_000
	return s
}

func (s *busyShard) acquire(b *testing.B) {
	b.Helper()
	s.attempt++
	reply, err := s.store.Acquire(b.Context(), ports.AcquireRequest{
		Shard: s.shard, Shards: 1, Generation: 1, Owner: "bench", Attempt: s.attempt, TTL: time.Hour,
	})
	must(b, err)
	s.lease = ports.Lease{Shard: s.shard, Owner: "bench", Token: reply.Token}
	s.turn = ports.TurnRequest{Lease: s.lease, TTL: time.Hour, Node: "bench"}
}

// push pushes jobs of n ids from a number on.
func (s *busyShard) push(b *testing.B, first, n int) {
	b.Helper()
	entries := make([]core.Entry, n)
	for i := range entries {
		score := float64(time.Now().UnixMicro()) / 1e6
		entries[i] = core.Entry{ID: fmt.Sprintf("order-%07d", first+i), Payload: core.Payload{
			Data: fmt.Appendf(nil, "%088d", first+i), Score: score,
		}}
	}
	_, err := s.store.Push(b.Context(), ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: entries})
	must(b, err)
}

// exchange makes a turn.
func (s *busyShard) exchange(b *testing.B, want int) ports.TurnReply {
	b.Helper()
	s.turn.Number++
	s.turn.Want = want
	reply, err := s.store.Turn(b.Context(), s.turn)
	must(b, err)
	s.turn.Number = reply.Last
	return reply
}

// turns measures turns that settle a job and claim the next.
func (s *busyShard) turns(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		s.push(b, s.pushed, 1)
		s.pushed++
		b.StartTimer()
		reply := s.exchange(b, 1)
		if len(reply.Claims) != 1 {
			b.Fatalf("%d claims, want 1", len(reply.Claims))
		}
		c := reply.Claims[0]
		s.turn.Settlements = []core.Settlement{{ID: c.ID, Receipt: c.Receipt, Processed: true}}
	}
	s.exchange(b, 0)
	s.turn.Settlements = nil
}

// looks measures turns that find nothing.
func (s *busyShard) looks(b *testing.B) {
	for b.Loop() {
		s.exchange(b, 10)
	}
}

func (s *busyShard) renewals(b *testing.B) {
	for b.Loop() {
		_, err := s.store.Renew(b.Context(), ports.RenewRequest{Lease: s.lease, TTL: time.Hour})
		must(b, err)
	}
}

func (s *busyShard) heads(b *testing.B) {
	for b.Loop() {
		_, err := s.store.Heads(b.Context(), []core.Shard{s.shard})
		must(b, err)
	}
}

func (s *busyShard) acquires(b *testing.B) {
	for b.Loop() {
		s.acquire(b)
	}
}
