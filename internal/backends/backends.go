// Package backends makes the store that a URL names, for commands. Apart from cmd and the tests it
// is the only package that imports every store.
package backends

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/ports"
)

// Usage lists the URLs that Open and Connect take, for the help of a command's flag.
const Usage = "memory://, redis://HOST:PORT/DB?prefix=NAME: (rediss:// with TLS), " +
	"redis-cluster://HOST:PORT?addr=HOST:PORT, or postgres://HOST:PORT/DATABASE?schema=NAME"

// Backend is a store that a URL names.
type Backend struct {
	Store ports.ShardStore
	// Pool and Schema are those of Postgres. Pool is nil for other stores.
	Pool   *pgxpool.Pool
	Schema string
	// Close closes its connections.
	Close func() error
}

// ErrURL is a URL that names no store.
var ErrURL = errors.New("the store's URL can't be used")

// Connect returns the store that a URL names. It does not connect to a server yet, and changes
// nothing. A Redis URL may carry prefix=NAME in addition to the parameters of go-redis, and one of
// Postgres schema=NAME in addition to those of pgx. Errors wrap ErrURL and contain no password.
func Connect(ctx context.Context, rawURL string) (*Backend, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		// The parser's error would show the password.
		return nil, fmt.Errorf("%w: it is not a URL; use %s", ErrURL, Usage)
	}

	shown := redacted(u)
	var b *Backend
	switch u.Scheme {
	case "memory":
		b = &Backend{Store: memory.New(memory.Options{}), Close: func() error { return nil }}
	case "postgres", "postgresql":
		b, err = connectPostgres(ctx, u)
	default:
		b, err = connectRedis(u)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %s; use %s", ErrURL, shown, reason(u, err), Usage)
	}

	return b, nil
}

// Open is Connect for a program that is about to run: it creates a Postgres schema, or brings it
// to the newest version.
func Open(ctx context.Context, rawURL string) (store ports.ShardStore, closeStore func() error, err error) {
	b, err := Connect(ctx, rawURL)
	if err != nil {
		return nil, nil, err
	}
	if b.Pool != nil {
		if err := postgres.Migrate(ctx, b.Pool, postgres.MigrateOptions{Schema: b.Schema}); err != nil {
			return nil, nil, errors.Join(err, b.Close())
		}
	}
	return b.Store, b.Close, nil
}

// secrets are the parameters of a URL that are passwords.
var secrets = []string{"password", "sslpassword"}

// redacted returns a URL without its passwords.
func redacted(u *url.URL) string {
	shown := *u
	query := shown.Query()
	for _, name := range secrets {
		if query.Has(name) {
			query.Set(name, "xxxxx")
		}
	}
	shown.RawQuery = query.Encode()
	return shown.Redacted()
}

// reason returns the text of a driver's error for a URL, without the text if it repeats a password.
func reason(u *url.URL, err error) string {
	hidden := []string{u.User.String()}
	if password, _ := u.User.Password(); password != "" {
		hidden = append(hidden, password)
	}
	for _, name := range secrets {
		hidden = append(hidden, u.Query().Get(name))
	}
	for _, secret := range hidden {
		if secret != "" && strings.Contains(err.Error(), secret) {
			return "it can't be read"
		}
	}
	return err.Error()
}

// take returns a parameter of a URL, and removes it from the URL, because the driver does not know
// it.
func take(u *url.URL, name string) string {
	query := u.Query()
	value := query.Get(name)
	query.Del(name)
	u.RawQuery = query.Encode()
	return value
}

func connectPostgres(ctx context.Context, u *url.URL) (*Backend, error) {
	schema := take(u, "schema")
	pool, err := pgxpool.New(ctx, u.String())
	if err != nil {
		return nil, err
	}
	store := postgres.New(pool, postgres.Options{Schema: schema})
	return &Backend{Store: store, Pool: pool, Schema: schema, Close: func() error { pool.Close(); return nil }}, nil
}

func connectRedis(u *url.URL) (*Backend, error) {
	options := redis.Options{Prefix: take(u, "prefix")}
	client, err := redisClient(u)
	if err != nil {
		return nil, err
	}
	return &Backend{Store: redis.New(client, options), Close: client.Close}, nil
}

func redisClient(u *url.URL) (goredis.UniversalClient, error) {
	switch u.Scheme {
	case "redis", "rediss":
		o, err := goredis.ParseURL(u.String())
		if err != nil {
			return nil, err
		}
		return goredis.NewClient(o), nil
	case "redis-cluster", "rediss-cluster":
		u.Scheme = u.Scheme[:len(u.Scheme)-len("-cluster")]
		o, err := goredis.ParseClusterURL(u.String())
		if err != nil {
			return nil, err
		}
		return goredis.NewClusterClient(o), nil
	}
	return nil, fmt.Errorf("unknown scheme %q", u.Scheme)
}
