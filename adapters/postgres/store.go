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

// DefaultSchema is the schema of the tables and functions if Options.Schema is empty.
const DefaultSchema = "skein"

// Options are the options of a [Store]. The zero value is ready.
type Options struct {
	// Schema is the schema of the backend's tables and functions. It lets several backends share
	// one database. Empty means DefaultSchema. Any name that Postgres accepts is possible, at most
	// 63 bytes; the store quotes it. With any other name every call returns ports.ErrUnusable.
	Schema string
	// Clock replaces the server's clock, for tests. All stores on a backend must have the same
	// Clock. nil means the server's clock_timestamp().
	Clock func() time.Time
	// Listen configures the connection that receives wake-ups. It is for a pool that goes through
	// PgBouncer in transaction mode, where LISTEN can't work. With nil that connection has the
	// pool's settings. In both cases it is one connection beside the pool, which does not count
	// against MaxConns. To follow a failover, Listen names all servers, with
	// target_session_attrs=read-write; pgx.ParseConfig makes such a configuration from a URL with
	// several hosts.
	Listen *pgx.ConnConfig
	// NoWakeups turns wake-ups off: the store sends and receives no wake-up, and servers poll.
	NoWakeups bool
	// VacuumEvery is the number of claims after which the store vacuums some tables, in addition to
	// autovacuum: those with at least as many dead rows as live ones, at least three times as many
	// dead rows as their indexes have pages, and at least VacuumEvery/50 dead rows. 0 means
	// [DefaultVacuumEvery]; below 0 the store never vacuums. If the role does not own the tables,
	// it can't vacuum them, and the store does not try.
	VacuumEvery int
	// Logger receives failures of the store's own work, such as a vacuum. nil means [slog.Default].
	Logger *slog.Logger
}

// Store is a handle on a backend in Postgres. It implements [ports.ShardStore], [ports.Notifier],
// [ports.Checker], [ports.Settler], [ports.Pooled] and [ports.TurnLimiter], and is safe for
// concurrent use. Make it with [New]; the zero value returns [ports.ErrUnusable] from every call.
//
// The pool remains the caller's, who closes it. Calls keep no session state and take no session
// locks, so the pool may go through PgBouncer in transaction mode. [Migrate] must have made the
// schema; otherwise the first call returns ports.ErrUnusable with that reason.
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

	small *smallPushes
	// byRule has the names of queues that a push found with a merge rule.
	byRule sync.Map
	// unreadSettings has, by queue, the settings that can't be read, as they were logged.
	unreadSettings sync.Map
	// merging has, by queue, how many of the next small pushes go alone.
	merging sync.Map

	maxTurns int
}

// New returns a handle. It doesn't contact the server. If the schema is missing or has an
// unsupported version, calls return [ports.ErrUnusable], with advice in the text.
func New(pool *pgxpool.Pool, o Options) *Store {
	s := &Store{
		pooled:      pooled{pool: pool},
		options:     o,
		schema:      quoted(o.Schema),
		schemaCheck: schemaCheck{checking: make(chan struct{}, 1)},
	}
	if pool != nil {
		s.maxTurns = max(1, int(pool.Config().MaxConns)/2)
	}
	s.small = s.newSmallPushes()
	return s
}

// MaxTurns implements [ports.TurnLimiter]. It is half of the pool's MaxConns, at least 1, so that
// pushes, renewals and handlers find connections while all turns are in flight.
func (s *Store) MaxTurns() int { return s.maxTurns }

// Connections implements [ports.Pooled]: the pool's MaxConns.
func (s *Store) Connections() int {
	if s.pool == nil {
		return 0
	}
	return int(s.pool.Config().MaxConns)
}

// String returns the location of the store, for the log: host, port, database and schema of the
// pool, without user and password.
func (s *Store) String() string {
	if s.pool == nil {
		return "postgres without a pool"
	}
	c := s.pool.Config().ConnConfig
	return fmt.Sprintf("postgres %s/%s schema %s",
		net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), c.Database, s.schema)
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
