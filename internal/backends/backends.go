// Package backends makes a store of a URL, for commands: with cmd and the tests
// it is the only place that imports every store.
package backends

import (
	"context"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/ports"
)

// Usage says which URLs Open takes, for the help of a command's flag.
const Usage = "memory://, redis://HOST:PORT/DB (rediss:// with TLS), redis+cluster://HOST:PORT?addr=HOST:PORT, " +
	"or postgres://HOST:PORT/DATABASE?schema=NAME"

// Open makes the store that a URL names, and what closes its connections. Redis is
// not reached for yet; its URL may carry prefix=NAME: beside what go-redis reads of
// one. A Postgres schema is made or brought to the newest version at once; its URL
// may carry schema=NAME beside what pgx reads of one.
func Open(ctx context.Context, rawURL string) (store ports.ShardStore, closeStore func() error, err error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, nil, fmt.Errorf("store: %w; use %s", err, Usage)
	}
	switch u.Scheme {
	case "memory":
		store, closeStore = memory.New(memory.Options{}), func() error { return nil }
	case "postgres", "postgresql":
		store, closeStore, err = openPostgres(ctx, u)
	default:
		store, closeStore, err = openRedis(u)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("store %s: %w; use %s", u.Redacted(), err, Usage)
	}
	return store, closeStore, nil
}

// take is a parameter of a URL that is ours, and not the driver's to see.
func take(u *url.URL, name string) string {
	query := u.Query()
	value := query.Get(name)
	query.Del(name)
	u.RawQuery = query.Encode()
	return value
}

// openPostgres migrates too: who starts a command expects it to run.
func openPostgres(ctx context.Context, u *url.URL) (ports.ShardStore, func() error, error) {
	schema := take(u, "schema")
	pool, err := pgxpool.New(ctx, u.String())
	if err != nil {
		return nil, nil, err
	}
	if err := postgres.Migrate(ctx, pool, postgres.MigrateOptions{Schema: schema}); err != nil {
		pool.Close()
		return nil, nil, err
	}
	return postgres.New(pool, postgres.Options{Schema: schema}), func() error {
		pool.Close()
		return nil
	}, nil
}

func openRedis(u *url.URL) (ports.ShardStore, func() error, error) {
	options := redis.Options{Prefix: take(u, "prefix")}
	client, err := redisClient(u)
	if err != nil {
		return nil, nil, err
	}
	return redis.New(client, options), client.Close, nil
}

func redisClient(u *url.URL) (goredis.UniversalClient, error) {
	switch u.Scheme {
	case "redis", "rediss":
		o, err := goredis.ParseURL(u.String())
		if err != nil {
			return nil, err
		}
		return goredis.NewClient(o), nil
	case "redis+cluster", "rediss+cluster":
		u.Scheme = u.Scheme[:len(u.Scheme)-len("+cluster")]
		o, err := goredis.ParseClusterURL(u.String())
		if err != nil {
			return nil, err
		}
		return goredis.NewClusterClient(o), nil
	}
	return nil, fmt.Errorf("unknown scheme %q", u.Scheme)
}
