package skein_test

import (
	"context"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// blank is a queue at default options whose jobs do nothing.
var blank = skein.NewQueue("blank", skein.QueueOptions[[]byte]{Codec: skein.RawCodec{}})

// serve handles n jobs of the store.
func serve(b *testing.B, store ports.ShardStore, n int) { serveObserved(b, store, n, nil) }

// serveObserved is serve with an Observer.
func serveObserved(b *testing.B, store ports.ShardStore, n int, observer skein.Observer) {
	ctx, stop := context.WithCancel(b.Context())
	var done atomic.Int64
	h := blank.Handler(func(context.Context, string, [][]byte) error {
		if done.Add(1) == int64(n) {
			stop()
		}
		return nil
	})
	if err := skein.NewServer(store, skein.ServerOptions{Logger: quiet, Observer: observer}, h).Run(ctx); err != nil {
		b.Fatal(err)
	}
}

func reportRate(b *testing.B) {
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

// BenchmarkEngine is the engine alone: one id a batch, on a store that always
// has jobs and allocates nothing.
func BenchmarkEngine(b *testing.B) {
	store := newEndless(blank.Name(), skein.DefaultShards)
	b.ReportAllocs()
	b.ResetTimer()
	serve(b, store, b.N)
	reportRate(b)
}

// BenchmarkMemory handles backlogs of up to 200,000 blank jobs, each with an id
// and a payload of its own, on the memory store. After each it hands as many jobs
// over a channel and does nothing else: "%channel" is the rate of the first in
// percent of the second's.
func BenchmarkMemory(b *testing.B) {
	const backlog = 200_000
	store := memory.New(memory.Options{})
	var handing time.Duration
	b.ReportAllocs()

	for left := b.N; left > 0; left -= backlog {
		b.StopTimer()
		n := min(left, backlog)
		fill(b, store, n)
		b.StartTimer()
		serve(b, store, n)
		b.StopTimer()
		start := time.Now()
		handOver(n)
		handing += time.Since(start)
		b.StartTimer()
	}

	reportRate(b)
	b.ReportMetric(100*handing.Seconds()/b.Elapsed().Seconds(), "%channel")
}

// fill pushes n jobs.
func fill(b *testing.B, store ports.ShardStore, n int) {
	client := skein.NewClient(store, skein.ClientOptions{})
	entries := make([]skein.Entry[[]byte], n)
	for i := range entries {
		entries[i].ID = "order-" + strconv.Itoa(i)
	}
	for chunk := range slices.Chunk(entries, 500) {
		if err := blank.PushMany(b.Context(), client, chunk); err != nil {
			b.Fatal(err)
		}
	}
}

// handOver is the measure for the others: it passes n jobs from one goroutine to
// another.
func handOver(n int) {
	jobs := make(chan core.Claim)
	go func() {
		defer close(jobs)
		for range n {
			jobs <- core.Claim{}
		}
	}()
	for range jobs {
	}
}

// endless is a store whose shards never run out of due jobs. Its replies share
// their slices, so that it allocates nothing.
type endless struct {
	ports.ShardStore
	now    core.Instant
	claims [][]core.Claim
}

func newEndless(queue string, shards int) *endless {
	s := &endless{now: core.InstantOf(time.Now()), claims: make([][]core.Claim, shards)}
	for i := range 10_000 {
		id := "order-" + strconv.Itoa(i)
		shard := core.ShardOf(id, shards)
		if len(s.claims[shard]) == core.MaxTurnJobs {
			continue
		}
		s.claims[shard] = append(s.claims[shard], core.Claim{Job: core.Job{
			ID: id, Payloads: []core.Payload{{}}, State: core.Pushed(core.When{}, s.now),
		}})
	}
	return s
}

func (s *endless) Declare(context.Context, ports.DeclareRequest) (ports.DeclareReply, error) {
	return ports.DeclareReply{Generation: 1}, nil
}

func (s *endless) Acquire(_ context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	return ports.AcquireReply{Token: 1, Now: s.now, Remaining: r.TTL, Head: core.Head{Due: s.now, OK: true}}, nil
}

func (s *endless) Ticks(context.Context, ports.TicksRequest) (ports.TicksReply, error) {
	return ports.TicksReply{}, nil
}

func (s *endless) Turn(_ context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	return ports.TurnReply{
		Last:      r.Number,
		Now:       s.now,
		Remaining: r.TTL,
		Claims:    s.claims[r.Lease.Shard.Index][:r.Want],
		Head:      core.Head{Due: s.now, OK: true},
	}, nil
}

func (s *endless) Renew(_ context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
	return ports.RenewReply{Now: s.now, Remaining: r.TTL}, nil
}

func (s *endless) Release(context.Context, ports.Lease) error { return nil }

func (s *endless) Heads(_ context.Context, shards []core.Shard) (ports.HeadsReply, error) {
	heads := make([]core.Head, len(shards))
	for i := range heads {
		heads[i] = core.Head{Due: s.now, OK: true}
	}
	return ports.HeadsReply{Now: s.now, Heads: heads}, nil
}

func (s *endless) Announce(context.Context, ports.AnnounceRequest) (ports.AnnounceReply, error) {
	return ports.AnnounceReply{Now: s.now}, nil
}

func (s *endless) Retire(context.Context, string) error { return nil }

func (s *endless) Record(context.Context, ports.RecordRequest) error { return nil }
