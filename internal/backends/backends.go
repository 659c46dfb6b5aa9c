// Package backends makes a store of a URL, for commands: with cmd and the tests
// it is the only place that imports every store.
package backends

import (
	"fmt"
	"net/url"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/ports"
)

// Usage says which URLs Open takes, for the help of a command's flag.
const Usage = "memory://, redis://HOST:PORT/DB (rediss:// with TLS), or redis+cluster://HOST:PORT?addr=HOST:PORT"

// Open makes the store that a URL names, and what closes its connections. The
// store is not reached for yet. A Redis URL may carry prefix=NAME: beside what
// go-redis reads of one.
func Open(rawURL string) (store ports.ShardStore, closeStore func() error, err error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, nil, fmt.Errorf("store: %w; use %s", err, Usage)
	}
	if u.Scheme == "memory" {
		return memory.New(memory.Options{}), func() error { return nil }, nil
	}
	query := u.Query()
	options := redis.Options{Prefix: query.Get("prefix")}
	query.Del("prefix")
	u.RawQuery = query.Encode()
	client, err := redisClient(u)
	if err != nil {
		return nil, nil, fmt.Errorf("store %s: %w; use %s", u.Redacted(), err, Usage)
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
