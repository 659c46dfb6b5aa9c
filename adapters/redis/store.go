// Package redis is a [ports.ShardStore] on Redis 7.0 or later, or Valkey: standalone, behind
// Sentinel, or a Cluster.
//
//	client := goredis.NewClient(&goredis.Options{Addr: "localhost:6379"})
//	store := redis.New(client, redis.Options{})
//
// [New] makes a [Store] with [Options]. The client remains the caller's.
//
// Every change of state is one Lua script on one shard. The keys of a shard share a hash tag, so a
// queue spreads over a Cluster by its shards, and a turn costs one round trip.
// docs/operations/redis.md describes what Redis can lose, what its errors mean, and which rights a
// user needs.
package redis

import (
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/logs"
	"github.com/skeinq/skein/ports"
)

var (
	_ ports.ShardStore  = (*Store)(nil)
	_ ports.Notifier    = (*Store)(nil)
	_ ports.TurnLimiter = (*Store)(nil)
	_ ports.Checker     = (*Store)(nil)
)

// DefaultPrefix is the prefix of every key and channel if Options.Prefix is empty.
const DefaultPrefix = "skein:"

// Options are the options of a [Store]. The zero value is ready.
type Options struct {
	// Prefix is the prefix of every key and channel. It lets several backends share one Redis.
	// Empty means [DefaultPrefix]. It must not have braces.
	Prefix string
	// WaitReplicas is the number of replicas that must have a push, a change of schedules, an
	// import, an acquired lease, granted permits, taken grants of a rate or a stop before the call
	// succeeds. 0 waits for no replica.
	// If fewer replicas confirm within WaitTimeout, the call returns an error of unknown outcome: the
	// server has stored the change, and may lose it in a failover.
	WaitReplicas int
	// WaitTimeout is the maximum time of that wait. 0 means 1 s. With WaitReplicas it must be below
	// the client's ReadTimeout; otherwise the first call returns [ports.ErrUnusable].
	WaitTimeout time.Duration
	// Clock replaces the server's clock, for tests. All stores on a backend must have the same
	// Clock. nil means the server's TIME.
	Clock func() time.Time
	// Logger receives the messages of the store, such as a warning about a setting that can't be
	// checked, or an error about a damaged record. docs/reference/log.md lists them. nil means
	// [slog.Default].
	Logger *slog.Logger
}

// Store is a handle on a backend in Redis. It implements [ports.ShardStore], [ports.Notifier],
// [ports.Checker] and [ports.TurnLimiter], and is safe for concurrent use. Make it with [New]; the
// zero value is invalid.
//
// The client remains the caller's, who closes it. The client's options decide how long a call waits
// for a server that does not answer, and how often a call is repeated if that is safe. A call whose
// context ends returns at once. If a call meets its deadline, and the server answers on a new
// connection while that of the call is still silent, the client's other connections to the server
// that were not heard since the call began are dropped too.
type Store struct {
	client goredis.UniversalClient
	link   *exchange.Link
	prefix string
	clock  func() time.Time
	logger *slog.Logger
	server serverCheck
	names  keyNames
	seen   seenQueues
	small  *smallPushes
	// apartBySlot is true once a server has refused a script with keys of several slots.
	apartBySlot atomic.Bool
	// noTransactions is true once the server has replied that the user may not run transactions.
	noTransactions atomic.Bool

	replicas    int
	waitTimeout time.Duration
}

// defaultWaitTimeout is below the default ReadTimeout of clients.
const defaultWaitTimeout = time.Second

// New returns a [Store] on a *redis.Client, including one for Sentinel, or a *redis.ClusterClient.
// New doesn't contact the server. The first call checks it. It returns [ports.ErrUnusable], with
// advice in the text, if the client has another type, if the options are invalid, if a server is
// too old or may evict keys, if the user lacks a right, or if the data needs a newer program. In a
// Cluster the first call checks the masters that it can reach.
//
// New adds a hook to the client, which drops connections that have gone silent. It covers
// connections that the client dials afterwards, so make the store before the client's first call.
func New(client goredis.UniversalClient, o Options) *Store {
	s := &Store{
		client:      client,
		prefix:      o.Prefix,
		clock:       o.Clock,
		logger:      logs.New(o.Logger),
		server:      serverCheck{beside: make(chan struct{})},
		replicas:    o.WaitReplicas,
		waitTimeout: o.WaitTimeout,
	}

	if s.waitTimeout <= 0 {
		s.waitTimeout = defaultWaitTimeout
	}
	s.link = exchange.New(client, s.replicas, s.waitTimeout)
	s.small = s.newSmallPushes()
	if s.prefix == "" {
		s.prefix = DefaultPrefix
	}
	return s
}

// String returns the location of the store, for the log: the initial addresses of the client and
// the prefix, without user and password.
func (s *Store) String() string {
	addresses := "another client"
	switch c := s.client.(type) {
	case *goredis.Client:
		addresses = c.Options().Addr
		if db := c.Options().DB; db != 0 {
			addresses += "/" + strconv.Itoa(db)
		}
	case *goredis.ClusterClient:
		addresses = "cluster " + strings.Join(c.Options().Addrs, " ")
	}
	return "redis " + addresses + " prefix " + s.prefix
}

// The best number of a node's turns in flight at once. A server runs one script at a time, so a few
// turns keep it busy while others are on their way. More turns in flight would only be smaller. A
// Cluster is several servers.
const (
	maxTurnsOfServer  = 8
	maxTurnsOfServers = 16
)

// MaxTurns implements [ports.TurnLimiter].
func (s *Store) MaxTurns() int {
	if _, cluster := s.client.(*goredis.ClusterClient); cluster {
		return maxTurnsOfServers
	}
	return maxTurnsOfServer
}

// now is the instant for a script, or empty if the script is to ask the server.
func (s *Store) now() any {
	if s.clock == nil {
		return ""
	}
	return int64(core.InstantOf(s.clock()))
}
