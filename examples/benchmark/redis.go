package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	goredis "github.com/redis/go-redis/v9"
)

// redisConnections is how many connections the systems may open: as many as asynq can use at its
// highest concurrency.
const redisConnections = 64

// openRedis makes a lab of a Redis. The database must be empty, and is flushed before every
// measurement. Without a URL openRedis starts a Redis.
func openRedis(ctx context.Context, url string, jobs int, log io.Writer) (*lab, error) {
	stop := func() error { return nil }
	if url == "" {
		var err error
		if url, stop, err = startRedis(ctx); err != nil {
			return nil, err
		}
	}

	client, err := emptyRedis(ctx, url)
	if err != nil {
		return nil, errors.Join(err, stop())
	}

	return &lab{
		redis: client,
		jobs:  jobs,
		log:   log,
		close: func() error { return errors.Join(client.Close(), stop()) },
	}, nil
}

func emptyRedis(ctx context.Context, url string) (*goredis.Client, error) {
	options, err := goredis.ParseURL(url)
	if err != nil {
		return nil, err
	}

	options.PoolSize = redisConnections
	client := goredis.NewClient(options)

	size, err := client.DBSize(ctx).Result()
	if err == nil && size > 0 {
		err = fmt.Errorf("%s has %d keys; give a database that is empty, since it is flushed", url, size)
	}
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}

	return client, nil
}
