package skein

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/internal/logs"
)

// Defaults of a server (docs/rules.md 3).
const (
	DefaultLanes           = 20
	DefaultPollInterval    = time.Second
	DefaultLeaseTTL        = 10 * time.Second
	DefaultShutdownTimeout = 20 * time.Second
	DefaultPrefetch        = 2 * core.MaxTurnJobs

	// NoPrefetch is the Prefetch of a server that claims jobs only when a lane is
	// free for them.
	NoPrefetch = -1
)

// minLeaseTTL leaves the engine time between its renewals.
const minLeaseTTL = 50 * time.Millisecond

// ServerOptions are the options of a server. The zero value of each is its default.
type ServerOptions struct {
	// Lanes is how many batches run at once, whatever the number of shards, unless the
	// Splitter or a queue's Parallel or MaxLanes bounds it. Default 20.
	Lanes int
	// PollInterval is how often the store is asked about idle shards. A store that
	// sends wake-ups is asked about each at every fifth interval, unless the renewal of
	// its lease has brought the answer, to find work whose wake-up was lost. It is also
	// how long a job that was claimed ahead may wait to start before it is put
	// back. Default 1 s.
	PollInterval time.Duration
	// LeaseTTL is how long a lease lasts unless it is renewed, which happens after a
	// third of it. The shards of a server that was killed wait so long at most, also
	// if it is started again at once; a server that stops releases them. If the
	// store does not answer for four fifths of it, the lease is lost: handlers are
	// cancelled with [ErrLeaseLost]. At least 50 ms. Default 10 s.
	LeaseTTL time.Duration
	// Prefetch is how many jobs of a shard are at most claimed before a lane is free
	// for them; fewer are, unless jobs are short. Default 512, two full turns.
	// [NoPrefetch] claims none ahead.
	Prefetch int
	// ShutdownTimeout is how long handlers may go on after Run's context has
	// ended before theirs ends too. Keep it below the time after which the process
	// is killed, by enough to settle what was cancelled: Kubernetes kills 30 s after
	// it asked for the end. Default 20 s.
	ShutdownTimeout time.Duration
	// RecoverOrphans lets this server put back what servers that died had claimed in queues that no
	// server serves now, not even itself. About once per LeaseTTL it looks for such jobs. They
	// go back as the next server of their queue would put them back, count as recovered, and wait for it;
	// it buries those that have been recovered too often. Without it they are shown as claimed, and as
	// orphaned, until that server starts. RunDue ignores it. Default false.
	RecoverOrphans bool
	// Splitter says which shards this server works, and whether lanes share them. Default
	// [SpreadSplitter]: its part of the shards of each queue, by lanes, of all servers that
	// serve the queue, and any lane runs any of them.
	Splitter Splitter
	// Scheduler builds what chooses of which shard the next batch is: one scheduler for
	// all lanes, or for each if the Splitter pins shards to lanes. Default [Lag].
	Scheduler SchedulerFunc
	// Middleware wraps each call of a handler, the first outermost: of one job, or
	// of a batch for a BatchHandler. It is built once for each handler, by
	// NewServer.
	Middleware []Middleware
	// OnStart is called once, after the store has answered and before a job is
	// claimed. Its error ends Run. nil is not called.
	OnStart func(ctx context.Context) error
	// OnBuried is called after this server has sent payloads to the morgue; it is not
	// called for what an operator buries. It runs beside the work, up to 4 calls at
	// once, one for RunDue, and its error or panic is logged and stops nothing. 1,000
	// burials may wait for their call; one more is logged as an error and not
	// reported, as is one whose call has not begun when ShutdownTimeout is over. Then
	// the context of those that run ends, with the cause [ErrShutdown], and Run
	// returns when they have. nil is not called.
	OnBuried func(ctx context.Context, b Buried) error
	// OnFatal is called with the error that Run is about to return or, before it ends
	// the process, with a panic outside a handler. nil is not called.
	OnFatal func(err error)
	// Jitter returns the random part of the default backoff, a whole number that is
	// limited to 0 … 29; it is not called for a queue with a Backoff. It must be safe
	// for concurrent use. Default: at random, also where it panics.
	Jitter func() int
	// FormatError returns the text of a failure, of which 4 KiB are kept. Default:
	// the error's own, which for a panic has the stack.
	FormatError func(err error) string
	// ErrorCodec changes how error texts are stored. The zero value stores them
	// as they are.
	ErrorCodec ErrorCodec
	// ErrorGroup names the group of an error: the morgue counts dead letters by group and acts on them by group, and
	// the log sums failures up by it. Keep ids, numbers and secrets out: the name is stored as it is, its first
	// 64 bytes without control characters, and a shard tells 1,000 groups apart. It is called at each failure, and must
	// be safe for concurrent use. Default, also where it returns "" or panics: the type of the innermost error, and
	// the first line of the text with # for numbers, quoted parts and paths; the function that panicked; the type
	// alone beside an ErrorCodec.
	ErrorGroup func(err error) string
	// Logger receives what an operator should know, few records however much goes wrong: the first failure of a
	// kind at once and then a count each minute, a handler's panic as an error with its stack. docs/log.md has every
	// message, its level, keys and bound. Each record has lib=skein; none has a payload. A panic of its handler loses
	// the record; a handler that blocks stops the work, so hand over to a goroutine what may take long. Default
	// [slog.Default].
	Logger *slog.Logger
	// Observer is notified of what the server does. nil measures nothing.
	Observer Observer
	// Name is the node's name, for people, of which [core.Text] is kept. Default: the host's.
	Name string
	// Version is the program's version, which is shown with the node. Default: that of the
	// main module, as the go command has stamped it.
	Version string
}

// Server works queues. Make it with [NewServer] and call [Server.Run].
type Server struct {
	store    Store
	options  ServerOptions
	handlers []Handler
	// runs are the handlers within the middleware, and invalid is its error.
	runs    []runBatch
	invalid error
	started atomic.Bool
	// mishaps has the options that panic where a default takes their place.
	mishaps *logs.Once
	// running is the engine while Run works.
	running atomic.Pointer[engine.Engine]
}

// NewServer returns a server that works the handlers' queues on a store. It doesn't
// contact the store, and never fails: Run returns what is wrong. Shards are dealt in
// the order of the handlers.
func NewServer(store Store, options ServerOptions, handlers ...Handler) *Server {
	o := options
	orDefault(&o.Lanes, DefaultLanes)
	orDefault(&o.PollInterval, DefaultPollInterval)
	orDefault(&o.LeaseTTL, DefaultLeaseTTL)
	orDefault(&o.Prefetch, DefaultPrefetch)
	orDefault(&o.ShutdownTimeout, DefaultShutdownTimeout)
	if o.Splitter == nil {
		o.Splitter = SpreadSplitter{}
	}
	if o.Scheduler == nil {
		o.Scheduler = Lag
	}
	if o.Jitter == nil {
		o.Jitter = func() int { return mathrand.IntN(core.BackoffJitter) }
	}
	if o.FormatError == nil {
		o.FormatError = error.Error
	}
	o.Logger = logs.New(o.Logger)
	s := &Server{store: store, options: o, handlers: handlers, mishaps: logs.NewOnce(time.Minute, 10)}
	s.bind()
	return s
}

// bind builds the middleware around each handler.
func (s *Server) bind() {
	s.runs = make([]runBatch, len(s.handlers))
	for i, h := range s.handlers {
		if h.bind == nil || s.invalid != nil {
			continue
		}
		s.runs[i], s.invalid = h.bind(s.options.Middleware)
	}
}

// Run works until ctx ends, then drains: it claims nothing more, lets handlers
// finish for ShutdownTimeout before it cancels their contexts, settles what has
// finished, puts back what has not started and releases its shards. It returns
// once every handler has returned.
//
// It returns at once, with all mistakes in one error, for invalid options:
// [ErrInvalidOptions], [ErrInvalidQueue], [ErrSplit]. It returns
// [ErrShardCountMismatch] or [ErrQueueMismatch] if the store has a queue with other
// permanent options, and [ErrUnusable] where waiting cures nothing, such as a wrong
// password, if the store says so when the server starts. A store that can't be
// reached, or that becomes unusable later, does not end it: it waits, logs that,
// again each minute and when it is over, and goes on. The first record comes when the
// store has given up repeating the call, which takes Redis and Postgres some seconds.
// After a drain it returns nil. A server runs once.
//
// Run handles no signals; use [os/signal.NotifyContext] or the like.
func (s *Server) Run(ctx context.Context) (err error) {
	defer func() {
		if err != nil && s.options.OnFatal != nil {
			s.options.OnFatal(err)
		}
	}()
	if err := s.check(); err != nil {
		return err
	}
	if s.started.Swap(true) {
		return fmt.Errorf("%w: a server runs once; make another", ErrInvalidOptions)
	}
	running := engine.New(s.store, s.config())
	s.running.Store(running)
	return running.Run(ctx)
}

// RunDue works what is due, and what becomes due meanwhile, and returns when
// there is nothing left, or when ctx ends and the current batch has ended with it
// as in Run. It runs one batch at a time in the caller's goroutine, shard after
// shard whatever the [Scheduler], for programs that a timer starts, and for tests. It
// learns of a cancelled job only between batches. It returns how many jobs ran.
//
// Unlike Run it may be called again and again, and it gives up at the first error
// of the store, such as [ErrLeaseHeld] for a shard that another server works. A queue with
// MaxRunning is passed over while other servers run as many of its batches.
func (s *Server) RunDue(ctx context.Context) (jobs int, err error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	return engine.New(s.store, s.config()).RunDue(ctx)
}

// check returns all mistakes in one error.
func (s *Server) check() error {
	o := &s.options
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalidOptions}, args...)...))
		}
	}
	refuse(isNil(s.store), "no store; give NewServer one")
	refuse(o.Lanes < 1, "%d Lanes; a server has at least one", o.Lanes)
	refuse(o.PollInterval < time.Millisecond, "PollInterval %v; at least 1ms", o.PollInterval)
	refuse(o.LeaseTTL < minLeaseTTL, "LeaseTTL %v; at least %v", o.LeaseTTL, minLeaseTTL)
	refuse(o.Prefetch < NoPrefetch, "Prefetch %d; for none use NoPrefetch", o.Prefetch)
	refuse(o.ShutdownTimeout < 0, "ShutdownTimeout %v is negative", o.ShutdownTimeout)
	errs = append(errs, s.invalid)
	refuse(len(s.handlers) == 0, "no handlers")
	seen := make(map[string]bool)
	for i, h := range s.handlers {
		if h.err != nil {
			errs = append(errs, h.err)
			continue
		}
		if h.serve == nil {
			refuse(true, "handler %d of %d is empty; make it with Queue.Handler", i+1, len(s.handlers))
			continue
		}
		refuse(seen[h.name], "queue %q has two handlers", h.name)
		seen[h.name] = true
	}
	return errors.Join(errs...)
}
