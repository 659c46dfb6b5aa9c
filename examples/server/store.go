package main

import (
	"context"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/adapters/redis"
)

// openStore returns the store of a URL, and a function that closes its connections. Yours needs
// one of these cases.
func openStore(ctx context.Context, storeURL string) (store skein.Store, closeStore func(), err error) {
	u, err := url.Parse(storeURL)
	if err != nil {
		return nil, nil, fmt.Errorf("store: %w", err)
	}

	switch u.Scheme {
	case "memory":
		return memory.New(memory.Options{}), func() {}, nil
	case "redis", "rediss":
		options, err := goredis.ParseURL(storeURL)
		if err != nil {
			return nil, nil, fmt.Errorf("store: %w", err)
		}
		client := goredis.NewClient(options)
		return redis.New(client, redis.Options{}), func() { _ = client.Close() }, nil
	case "postgres", "postgresql":
		config, err := pgxpool.ParseConfig(storeURL)
		if err != nil {
			return nil, nil, fmt.Errorf("store: %w", err)
		}
		// A handler of each lane may hold a connection; four more are for the server itself.
		config.MaxConns = max(config.MaxConns, skein.DefaultLanes+4)
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return nil, nil, fmt.Errorf("store: %w", err)
		}
		// Or migrate where you migrate your own tables; see docs/operations/postgres.md.
		if err := postgres.Migrate(ctx, pool, postgres.MigrateOptions{}); err != nil {
			pool.Close()
			return nil, nil, fmt.Errorf("store: %w", err)
		}
		return postgres.New(pool, postgres.Options{}), pool.Close, nil
	}
	return nil, nil, fmt.Errorf("store %s: use memory://, redis://HOST:PORT/DB or postgres://HOST:PORT/DATABASE",
		u.Redacted())
}
