package main

import (
	"context"

	"github.com/hibiken/asynq"
	goredis "github.com/redis/go-redis/v9"
)

const asynqName = "asynq"

// fillers is the number of goroutines that fill asynq, which has no call that stores many jobs.
const fillers = 10

// asynqSystem is asynq at default options, except for its concurrency.
type asynqSystem struct {
	redis       goredis.UniversalClient
	client      *asynq.Client
	concurrency int
}

func newAsynq(client goredis.UniversalClient, concurrency int) *asynqSystem {
	return &asynqSystem{redis: client, client: asynq.NewClientFromRedisClient(client), concurrency: concurrency}
}

// withAsynq returns asynq with a concurrency, which is 0 for the default.
func withAsynq(concurrency int) opener {
	return func(ctx context.Context, l *lab) (system, error) {
		return newAsynq(l.redis, concurrency), l.flush(ctx)
	}
}

func (s *asynqSystem) push(ctx context.Context, j job) error {
	_, err := s.client.EnqueueContext(ctx, asynq.NewTask("bench", j.payload), asynq.TaskID(j.id))
	return err
}

func (s *asynqSystem) fill(ctx context.Context, jobs []job) error {
	return each(ctx, fillers, jobs, s.push)
}

func (s *asynqSystem) serve(_ context.Context, handle func([]byte)) (func() error, error) {
	server := asynq.NewServerFromRedisClient(s.redis, asynq.Config{
		Concurrency: s.concurrency, LogLevel: asynq.FatalLevel,
	})
	err := server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		handle(t.Payload())
		return nil
	}))
	return func() error { server.Shutdown(); return nil }, err
}

// left counts the jobs in every list and set in which asynq keeps jobs.
func (s *asynqSystem) left(ctx context.Context) (int64, error) {
	const queue = "asynq:{default}:"
	pipe := s.redis.Pipeline()
	counts := []*goredis.IntCmd{pipe.LLen(ctx, queue+"pending"), pipe.LLen(ctx, queue+"active")}
	for _, set := range []string{"scheduled", "retry", "archived"} {
		counts = append(counts, pipe.ZCard(ctx, queue+set))
	}

	if _, err := pipe.Exec(ctx); err != nil {
		return 0, err
	}

	var left int64
	for _, c := range counts {
		left += c.Val()
	}
	return left, nil
}
