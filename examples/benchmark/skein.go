package main

import (
	"context"
	"log/slog"
	"slices"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/redis"
)

const (
	skeinName  = "skein"
	pushedMany = 500
)

// skeinSystem is Skein at default options, but for what is set here.
type skeinSystem struct {
	store  *redis.Store
	queue  *skein.Queue[[]byte]
	client *skein.Client
	// prefetch is the server's; 0 is its default.
	prefetch int
}

func newSkein(client goredis.UniversalClient, prefetch int) *skeinSystem {
	store := redis.New(client, redis.Options{})
	return &skeinSystem{
		store:    store,
		queue:    skein.NewQueue("bench", skein.QueueOptions[[]byte]{Codec: skein.Raw{}}),
		client:   skein.NewClient(store, skein.ClientOptions{}),
		prefetch: prefetch,
	}
}

func (s *skeinSystem) push(ctx context.Context, j job) error {
	return s.queue.Push(ctx, s.client, j.id, j.payload)
}

func (s *skeinSystem) fill(ctx context.Context, jobs []job) error {
	return s.pushMany(ctx, jobs, 1)
}

// pushMany stores jobs 500 in a call, from so many goroutines.
func (s *skeinSystem) pushMany(ctx context.Context, jobs []job, goroutines int) error {
	size := (len(jobs) + goroutines - 1) / goroutines
	return concurrently(ctx, slices.Collect(slices.Chunk(jobs, size)), func(ctx context.Context, part []job) error {
		entries := make([]skein.Entry[[]byte], 0, pushedMany)
		for chunk := range slices.Chunk(part, pushedMany) {
			entries = entries[:0]
			for _, j := range chunk {
				entries = append(entries, skein.Entry[[]byte]{ID: j.id, Payload: j.payload})
			}
			if err := s.queue.PushMany(ctx, s.client, entries); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *skeinSystem) serve(ctx context.Context, handle func([]byte)) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	h := s.queue.Handler(func(_ context.Context, _ string, payloads [][]byte) error {
		for _, p := range payloads {
			handle(p)
		}
		return nil
	})
	server := skein.NewServer(s.store, skein.ServerOptions{
		Prefetch: s.prefetch, Logger: slog.New(slog.DiscardHandler),
	}, h)
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	return func() error { cancel(); return <-done }, nil
}

func (s *skeinSystem) left(ctx context.Context) (int64, error) {
	stats, err := skein.NewInspector(s.store, skein.InspectorOptions{}).Stats(ctx, s.queue.Name())
	if err != nil {
		return 0, err
	}
	return stats[0].Length() + stats[0].Claimed + stats[0].Dead, nil
}
