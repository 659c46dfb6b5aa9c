package postgres

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/logs"
	"github.com/skeinq/skein/ports"
)

var (
	_ ports.ShardStore  = (*Store)(nil)
	_ ports.Notifier    = (*Store)(nil)
	_ ports.Settler     = (*Store)(nil)
	_ ports.TurnLimiter = (*Store)(nil)
	_ ports.Checker     = (*Store)(nil)
)

// DefaultSchema holds the tables and functions unless Options.Schema says otherwise.
const DefaultSchema = "skein"

// Options are how a store uses its database. The zero value is ready to use.
type Options struct {
	// Schema holds the backend's tables and functions, so that several backends
	// can share one database. Empty is DefaultSchema. Any name that Postgres
	// takes will do, of at most 63 bytes; it is quoted. With one that it does not
	// take, every call fails with ports.ErrUnusable.
	Schema string
	// Clock replaces the server's clock as the backend's only one, for tests:
	// every handle must be given the same. nil is the server's clock_timestamp().
	Clock func() time.Time
	// Listen is how the connection that receives wake-ups is made, for a pool that
	// goes through PgBouncer in transaction mode, where LISTEN can't work. nil
	// takes a connection of the pool out of it. For a failover it names all servers, with
	// target_session_attrs=read-write, as pgx.ParseConfig makes it of a URL with many hosts.
	Listen *pgx.ConnConfig
	// NoWakeups turns wake-ups off: none is sent or received, and the engine polls.
	NoWakeups bool
	// VacuumEvery is after how many claims of this store it vacuums the tables that have
	// as many dead rows as live ones, and three times as many as their indexes have pages,
	// beside what autovacuum does. 0 is [DefaultVacuumEvery]; below 0 it never does. A role
	// that does not own the tables can't vacuum them, and does not try.
	VacuumEvery int
	// Logger receives what the store does by itself and could not do, such as a vacuum
	// that failed. nil is [slog.Default].
	Logger *slog.Logger
}

// Store is a handle on a backend in Postgres. It is safe for concurrent use. Make it with
// [New]; the zero value fails every call with [ports.ErrUnusable].
//
// The pool stays the caller's, who closes it. Calls keep no session state and
// take no session locks, so that the pool may go through PgBouncer in transaction
// mode. The schema must have been made by [Migrate]; otherwise the first call fails with
// ports.ErrUnusable, and says so.
type Store struct {
	pooled
	options     Options
	schema      string // quoted
	schemaCheck schemaCheck
	texts       sync.Map // statements by their templates

	// For wake-ups: the receiver, the sender, and the shards that wait in this process.
	listener listener
	notifier notifier
	idle     idleShards

	vacuumers [tableGroups]vacuumer

	maxTurns int
}

// New returns a handle. It asks nothing of the server: the first call does, and
// fails with [ports.ErrUnusable] if the schema is not of this version, saying what to do.
func New(pool *pgxpool.Pool, o Options) *Store {
	s := &Store{pooled: pooled{pool: pool}, options: o, schema: quoted(o.Schema), schemaCheck: schemaCheck{checking: make(chan struct{}, 1)}}
	if pool != nil {
		s.maxTurns = max(1, int(pool.Config().MaxConns)/2)
	}
	return s
}

// MaxTurns implements [ports.TurnLimiter]. It is half of the pool's MaxConns, at least 1:
// pushes, renewals and handlers find connections while all turns are in flight.
func (s *Store) MaxTurns() int { return s.maxTurns }

// Connections implements [ports.Pooled]: the pool's MaxConns.
func (s *Store) Connections() int {
	if s.pool == nil {
		return 0
	}
	return int(s.pool.Config().MaxConns)
}

// String says where the store is, for the log: host, port, database and schema of the pool; no user and no password.
func (s *Store) String() string {
	if s.pool == nil {
		return "postgres without a pool"
	}
	c := s.pool.Config().ConnConfig
	return fmt.Sprintf("postgres %s/%s schema %s", net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), c.Database, s.schema)
}

func (s *Store) logger() *slog.Logger { return logs.New(s.options.Logger) }

// quoted returns a schema's name, or the default, quoted for SQL.
func quoted(schema string) string {
	if schema == "" {
		schema = DefaultSchema
	}
	return pgx.Identifier{schema}.Sanitize()
}

// sql returns a statement with the schema's name in place of {schema}.
func (s *Store) sql(template string) string {
	if text, ok := s.texts.Load(template); ok {
		return text.(string)
	}
	text := strings.ReplaceAll(template, "{schema}", s.schema)
	s.texts.Store(template, text)
	return text
}

// now returns the instant for a statement: nil if the server's clock counts.
func (s *Store) now() any {
	if s.options.Clock == nil {
		return nil
	}
	return int64(core.InstantOf(s.options.Clock()))
}
