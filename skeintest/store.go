package skeintest

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/virtual"
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

// DefaultMaxJobs is the MaxJobs of a [Store].
const DefaultMaxJobs = 10_000

// Store is a store in memory with a clock of its own, a client and an inspector. Make it with
// [New]. It is a [ports.ShardStore] and a [ports.Settler], so clients, inspectors and servers with
// other options can use it too. It fails on demand like a [FailingStore].
//
// The clock starts at midnight UTC of 1 January 2000 and stands still until [Store.Advance] or
// [Store.Drain] moves it. Only the store uses that clock: [time.Now] and the Timeout of a queue are
// not affected. A Store is safe for concurrent use, with two exceptions: set its fields before you
// use it, and run one Drain at a time.
type Store struct {
	// FailingStore fails calls of the store on demand; see [FailingStore.Fail].
	*FailingStore
	// Client pushes to the store, without middleware.
	Client *skein.Client
	// Inspector reads and changes the content of the store.
	Inspector *inspect.Inspector
	// Server has the options of the server that Drain runs, such as middleware and hooks. Drain
	// sets Lanes, Prefetch, Splitter, Scheduler and LeaseTTL itself. By default Jitter returns 0,
	// and Logger writes to the test's output. OnStart is called once per Drain.
	Server skein.ServerOptions
	// MaxJobs is a number of jobs that one Drain does not reach unless its jobs never end. When it
	// has run that many jobs, Drain stops and fails the test. 0 means [DefaultMaxJobs].
	MaxJobs int
	// Twice makes [Store.Drain] run each job twice before it ends, as after a crash: the result of
	// the first run is lost with the lease of its shard, and the job is recovered and runs again. So
	// the effects of a handler that is not idempotent are there twice. The events are those of the
	// second runs.
	//
	// As after a real crash, the second run has a higher fencing token, Recoveries is 1, and a job
	// of [skein.Queue.Each] ends its payloads one by one. What was settled in a transaction does not
	// run again. A queue that allows no recovery buries or holds its jobs instead. A Rate counts
	// both runs, and so does MaxJobs.
	Twice bool

	// inner is the store without faults.
	inner ports.ShardStore
	clock *virtual.Clock
	// transacted are the settlements that handlers have made, by execution.
	transacted sync.Map
	// parts are the payloads that were settled by themselves, by execution. Each value is
	// a []core.PayloadSettlement, in the order of the calls.
	parts sync.Map
}

// New returns an empty store.
func New() *Store {
	c := virtual.NewClock(start())
	s := &Store{clock: c}
	s.inner = storekit.Intercept(memory.New(memory.Options{Clock: c.Now}), s.noteSettled)
	s.FailingStore = NewFailingStore(s.inner)
	s.Client = skein.NewClient(s, skein.ClientOptions{})
	s.Inspector = inspect.New(s, inspect.Options{DecodeError: s.decodeError})
	return s
}

// decodeError reverses the Server's ErrorCodec.
func (s *Store) decodeError(stored string) string {
	if decode := s.Server.ErrorCodec.Decode; decode != nil {
		return decode(stored)
	}
	return stored
}

// Settle implements [ports.Settler], for handlers that call [skein.SettleIn]. It settles at once,
// like a transaction that commits. A [Fault] with the Method "Settle" makes it fail.
func (s *Store) Settle(ctx context.Context, shard core.Shard, settlements []core.Settlement) error {
	return s.shardStore.(ports.Settler).Settle(ctx, shard, settlements) // the memory store is a Settler
}

// SettlePayload implements [ports.Settler] in the same way.
func (s *Store) SettlePayload(ctx context.Context, shard core.Shard, p core.PayloadSettlement) error {
	return s.shardStore.(ports.Settler).SettlePayload(ctx, shard, p)
}

// noteSettled intercepts the store, to remember the settlements that handlers make.
func (s *Store) noteSettled(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
	err := next(ctx)
	if err != nil {
		return err
	}

	switch r := call.Request.(type) {
	case *storekit.SettleRequest:
		for i := range r.Settlements {
			x := &r.Settlements[i]
			s.transacted.Store(execution{r.Shard, x.ID, x.Receipt.Whole()}, x)
		}
	case *storekit.SettlePayloadRequest:
		s.notePart(r.Shard, r.Settlement)
	case *ports.TurnRequest:
		skipped := call.Reply.(*ports.TurnReply).SkippedParts
		for i := range r.Parts {
			if !slices.Contains(skipped, i) {
				s.notePart(r.Lease.Shard, r.Parts[i])
			}
		}
	}
	return nil
}

// notePart remembers the end of one payload of a job.
func (s *Store) notePart(shard core.Shard, part core.PayloadSettlement) {
	key := execution{shard, part.ID, part.Receipt.Whole()}
	before, _ := s.parts.Load(key)
	all, _ := before.([]core.PayloadSettlement)
	s.parts.Store(key, append(slices.Clone(all), part))
}

// Now returns the store's time.
func (s *Store) Now() time.Time { return s.clock.Now() }

// Advance moves the store's clock by d, runs no job and fires no tick. A handler may call it to
// simulate a long run, and a test to simulate a downtime.
func (s *Store) Advance(d time.Duration) { s.clock.Advance(d) }

// start returns the time at which each clock starts, the same as in the bubbles of
// testing/synctest.
func start() time.Time { return time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC) }
