package redis

import (
	"log/slog"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

var (
	_ ports.ShardStore = (*Store)(nil)
	_ ports.Notifier   = (*Store)(nil)
)

// DefaultPrefix begins the name of every key and channel unless Options say
// otherwise.
const DefaultPrefix = "skein:"

// Options are how a store uses its Redis. The zero value is fit for use.
type Options struct {
	// Prefix begins the name of every key and channel, so that several backends
	// can share one Redis. Empty is DefaultPrefix. It must have no braces.
	Prefix string
	// WaitReplicas is how many replicas must have a push or an acquire before the
	// call succeeds; 0 waits for none. Fewer within WaitTimeout make it an error of
	// unknown outcome: the server has it, and may lose it in a failover.
	WaitReplicas int
	// WaitTimeout bounds that wait. 0 is 1 s. It must be below the client's
	// ReadTimeout.
	WaitTimeout time.Duration
	// Clock replaces the server's clock as the backend's only one, for tests:
	// every handle must be given the same. nil is the server's TIME.
	Clock func() time.Time
	// Logger is told what may be wrong with the server but can't be checked. nil
	// is slog.Default().
	Logger *slog.Logger
}

// Store is a handle on a backend in Redis. It implements ports.ShardStore and
// ports.Notifier and is safe for any number of goroutines. Use New; the zero
// value is not fit for use.
//
// The client stays the caller's, who closes it. How long a call waits for a
// server that does not answer, and how often one that may be repeated is, are
// the client's options; a call whose context ends returns at once.
type Store struct {
	client goredis.UniversalClient
	prefix string
	clock  func() time.Time
	logger *slog.Logger
	server check
	crew   crew
	names  keyNames
	pushes gatherer

	replicas    int
	waitTimeout time.Duration
}

// defaultWaitTimeout is below the ReadTimeout that clients have unless told.
const defaultWaitTimeout = time.Second

// New makes a handle. It asks nothing of the server: the first call does, and
// fails if the server is too old or may evict keys, saying what to do.
func New(client goredis.UniversalClient, o Options) *Store {
	s := &Store{
		client: client, crew: make(crew), prefix: o.Prefix, clock: o.Clock, logger: o.Logger,
		replicas: o.WaitReplicas, waitTimeout: o.WaitTimeout,
	}
	if s.waitTimeout <= 0 {
		s.waitTimeout = defaultWaitTimeout
	}
	if s.prefix == "" {
		s.prefix = DefaultPrefix
	}
	if s.logger == nil {
		s.logger = slog.Default()
	}
	return s
}

// now is the instant for a script: empty if it shall ask the server.
func (s *Store) now() any {
	if s.clock == nil {
		return ""
	}
	return int64(core.InstantOf(s.clock()))
}
