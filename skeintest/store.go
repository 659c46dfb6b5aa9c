package skeintest

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// TB is the part of testing.TB that this package uses.
type TB interface {
	Helper()
	Context() context.Context
	Output() io.Writer
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// DefaultMaxJobs is the MaxJobs of a Store.
const DefaultMaxJobs = 10_000

// Store is a store in memory on a clock of its own, with a client and an
// inspector. Make it with New. It is a ports.ShardStore, for clients, inspectors
// and servers with options of your own, and fails on demand; see FailingStore.
//
// The clock starts at midnight UTC of 1 January 2000 and stands still until
// Advance or Drain moves it. Only the store goes by it: time.Now, and the Timeout
// of a queue, stay as they are. It is safe for concurrent use, but for its fields,
// which are set before it is used, and Drain, one at a time.
type Store struct {
	*FailingStore
	// Client pushes to the store, without middleware.
	Client *skein.Client
	// Inspector shows what the store holds.
	Inspector *inspect.Inspector
	// Server are the options of the server that Drain works with, such as
	// middleware and hooks. Lanes, Prefetch, Splitter, Scheduler and TTL are
	// Drain's own; a Logger that is nil writes to the test's output.
	Server skein.ServerOptions
	// MaxJobs is how many jobs a Drain runs before it takes them to go round in
	// circles, and fails the test. 0 is DefaultMaxJobs.
	MaxJobs int

	clock *clock
	// transacted are the settlements that handlers have made, by execution.
	transacted sync.Map
}

// New makes an empty store.
func New() *Store {
	c := &clock{now: start()}
	s := &Store{clock: c}
	s.FailingStore = NewFailingStore(storekit.Intercept(memory.New(memory.Options{Clock: c.time}), s.noteSettled))
	s.Client = skein.NewClient(s, skein.ClientOptions{})
	s.Inspector = inspect.New(s, inspect.Options{DecodeError: s.decodeError})
	return s
}

// decodeError undoes what the Server's ErrorCodec does.
func (s *Store) decodeError(stored string) string {
	if decode := s.Server.ErrorCodec.Decode; decode != nil {
		return decode(stored)
	}
	return stored
}

// Settle implements ports.Settler, for handlers that call skein.SettleIn: it settles at
// once, as a transaction does that commits. A Fault may name it.
func (s *Store) Settle(ctx context.Context, shard core.Shard, settle []core.Settlement) error {
	return s.shardStore.(ports.Settler).Settle(ctx, shard, settle) // memory is one
}

// noteSettled remembers the settlements that handlers make.
func (s *Store) noteSettled(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
	err := next(ctx)
	if r, ok := call.Request.(*storekit.SettleRequest); ok && err == nil {
		for i := range r.Settlements {
			x := &r.Settlements[i]
			s.transacted.Store(execution{r.Shard, x.ID, x.Receipt}, x)
		}
	}
	return err
}

// Now is the store's time.
func (s *Store) Now() time.Time { return s.clock.time() }

// Advance moves the store's time by d and works nothing. A handler may call it,
// to take a while.
func (s *Store) Advance(d time.Duration) { s.clock.advance(d) }

// clock is a store's time.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

// start is where each clock starts, as in the bubbles of testing/synctest.
func start() time.Time { return time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC) }

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// moveTo moves the clock on to t, never back.
func (c *clock) moveTo(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.now) {
		c.now = t
	}
}
