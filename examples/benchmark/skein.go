package main

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

const skeinName = "skein"

// skeinSystem is Skein at default options, except for those that are set here.
type skeinSystem struct {
	log    *slog.Logger // events that would disturb a figure, such as a lost lease
	store  ports.ShardStore
	queue  *skein.Queue[[]byte]
	client *skein.Client
	// setting is the settings that differ from the defaults.
	setting skeinSetting
}

// fewLanes is the number of lanes unless a setting has another one. Handlers that do nothing can't
// use more lanes.
const fewLanes = 5

// skeinSetting is the configuration of Skein. 0 means the default.
type skeinSetting struct {
	lanes, shards, prefetch int
	observer                ports.Observer
}

// String returns the lanes and shards.
func (s skeinSetting) String() string {
	return plural(cmp.Or(s.lanes, fewLanes), "lane") + ", " + plural(s.shardCount(), "shard")
}

// shardCount returns how many shards the queue has.
func (s skeinSetting) shardCount() int { return cmp.Or(s.shards, skein.DefaultShards) }

// withSkein returns Skein with a setting.
func withSkein(setting skeinSetting) opener {
	return func(ctx context.Context, l *lab) (system, error) {
		if l.postgres != nil {
			err := renewed(ctx, l, skeinTables)
			return newSkeinOnPostgres(l, setting), err
		}
		return newSkein(l, redis.New(l.redis, redis.Options{}), setting), l.flush(ctx)
	}
}

func newSkein(l *lab, store ports.ShardStore, setting skeinSetting) *skeinSystem {
	return &skeinSystem{
		log:     slog.New(slog.NewTextHandler(l.log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		store:   store,
		queue:   skein.NewQueue("bench", skein.QueueOptions[[]byte]{Codec: skein.RawCodec{}, Shards: setting.shards}),
		client:  skein.NewClient(store, skein.ClientOptions{}),
		setting: setting,
	}
}

func (s *skeinSystem) push(ctx context.Context, j job) error {
	return s.queue.Push(ctx, s.client, j.id, j.payload)
}

func (s *skeinSystem) fill(ctx context.Context, jobs []job) error {
	return s.pushMany(ctx, jobs, 1)
}

func (s *skeinSystem) pushMany(ctx context.Context, jobs []job, goroutines int) error {
	return eachChunk(ctx, goroutines, pushedMany, jobs, func(ctx context.Context, chunk []job) error {
		entries := make([]skein.Entry[[]byte], len(chunk))
		for i, j := range chunk {
			entries[i] = skein.Entry[[]byte]{ID: j.id, Payload: j.payload}
		}
		return s.queue.PushMany(ctx, s.client, entries)
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
		Lanes:    cmp.Or(s.setting.lanes, fewLanes),
		Prefetch: s.setting.prefetch,
		Observer: s.setting.observer,
		Logger:   s.log,
	}, h)

	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	return func() error { cancel(); return <-done }, nil
}

func (s *skeinSystem) left(ctx context.Context) (int64, error) {
	stats, err := inspect.New(s.store, inspect.Options{}).Stats(ctx, s.queue.Name())
	if err != nil {
		return 0, err
	}
	return stats[0].Length() + stats[0].Claimed + stats[0].Dead, nil
}
