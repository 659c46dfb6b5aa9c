package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// fleetConnections is how many the nodes of a fleet may open together on Postgres: with those of
// the lab they are fewer than a server takes that nobody has configured.
const fleetConnections = 64

// wokenStore is the interface of a store that a node needs.
type wokenStore interface {
	ports.ShardStore
	ports.Notifier
	ports.TurnLimiter
}

// openStore returns a store on connections of its own, as those of another process, and a function
// that closes them. On Postgres, conns bounds their number.
func (l *lab) openStore(ctx context.Context, connections int) (wokenStore, func() error, error) {
	if l.postgres == nil {
		options := *l.redis.Options()
		client := goredis.NewClient(&options)
		return redis.New(client, redis.Options{}), client.Close, nil
	}
	config := l.postgres.Config()
	config.MaxConns = int32(connections)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, nil, err
	}
	return postgres.New(pool, postgres.Options{}), func() error { pool.Close(); return nil }, nil
}

// nodeStore is the store of one node, which counts the calls of its engine. When the node's context
// ends, all its calls to the database end too, as if the process had been killed.
type nodeStore struct {
	wokenStore
	calls *callCounter
	life  context.Context
}

var errDead = errors.New("the node is dead")

// counted makes a call, and counts it.
func counted[T any](s *nodeStore, method string, call func() (T, error)) (T, error) {
	if s.life.Err() != nil {
		var none T
		return none, errDead
	}
	s.calls.add(method)
	return call()
}

// done counts a call that returns nothing.
func done(s *nodeStore, method string, call func() error) error {
	_, err := counted(s, method, func() (struct{}, error) { return struct{}{}, call() })
	return err
}

// Declare implements ports.Producer.
func (s *nodeStore) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	return counted(s, "Declare", func() (ports.DeclareReply, error) { return s.wokenStore.Declare(ctx, r) })
}

// Acquire implements ports.Consumer.
func (s *nodeStore) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	return counted(s, "Acquire", func() (ports.AcquireReply, error) { return s.wokenStore.Acquire(ctx, r) })
}

// Turn implements ports.Consumer.
func (s *nodeStore) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	return counted(s, "Turn", func() (ports.TurnReply, error) { return s.wokenStore.Turn(ctx, r) })
}

// Renew implements ports.Consumer.
func (s *nodeStore) Renew(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
	return counted(s, "Renew", func() (ports.RenewReply, error) { return s.wokenStore.Renew(ctx, r) })
}

// Release implements ports.Consumer.
func (s *nodeStore) Release(ctx context.Context, l ports.Lease) error {
	return done(s, "Release", func() error { return s.wokenStore.Release(ctx, l) })
}

// Heads implements ports.Consumer.
func (s *nodeStore) Heads(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
	return counted(s, "Heads", func() (ports.HeadsReply, error) { return s.wokenStore.Heads(ctx, shards) })
}

// Announce implements ports.Registry.
func (s *nodeStore) Announce(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
	return counted(s, "Announce", func() (ports.AnnounceReply, error) { return s.wokenStore.Announce(ctx, r) })
}

// Retire implements ports.Registry.
func (s *nodeStore) Retire(ctx context.Context, owner string) error {
	return done(s, "Retire", func() error { return s.wokenStore.Retire(ctx, owner) })
}

// Wakeups implements ports.Notifier.
func (s *nodeStore) Wakeups(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(s.life, cancel)
	return counted(s, "Wakeups", func() (<-chan core.Shard, error) { return s.wokenStore.Wakeups(ctx, shards) })
}

// callCounter counts calls by method. The zero value is ready.
type callCounter struct {
	mu sync.Mutex
	of map[string]int64
}

func (c *callCounter) add(method string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int64{}
	}
	c.of[method]++
}

// take returns the calls since it was last called, in order of method.
func (c *callCounter) take() []calls {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []calls
	for method, count := range c.of {
		all = append(all, calls{unit: method, count: count})
	}
	c.of = nil
	slices.SortFunc(all, func(a, b calls) int { return cmp.Compare(a.unit, b.unit) })
	return all
}
