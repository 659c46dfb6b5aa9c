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

	// NoPrefetch is the Prefetch of a server that claims a job only when a lane is free for it.
	NoPrefetch = -1
)

// minLeaseTTL leaves the engine time between its renewals.
const minLeaseTTL = 50 * time.Millisecond

// ServerOptions are the options of a server. The zero value of each field means its default.
type ServerOptions struct {
	// Lanes is the maximum number of batches that run at once. It does not depend on the number of
	// shards, unless the Splitter pins shards to lanes. A queue's Parallel and MaxLanes can lower
	// it. Default 20.
	Lanes int
	// PollInterval is how often the server polls the store for idle shards. If the store sends
	// wake-ups, each idle shard is polled at every fifth interval only, in case a wake-up was lost,
	// and not at all if the renewal of its lease has brought the answer. PollInterval is also how
	// long a job that was claimed ahead may wait before it is requeued. At least 1 ms. Default 1 s.
	PollInterval time.Duration
	// LeaseTTL is how long a lease lasts without renewal. The server renews it after a third of
	// that time. The shards of a server that was killed wait at most this long, even if it starts
	// again at once. A server that stops releases its shards. If the store does not answer for four
	// fifths of LeaseTTL, the lease is lost, and handlers are cancelled with [ErrLeaseLost]. At
	// least 50 ms. Default 10 s.
	LeaseTTL time.Duration
	// Prefetch is the maximum number of jobs of a shard that are claimed before a lane is free for
	// them. The server claims fewer, unless jobs are short. [NoPrefetch] claims no job ahead.
	// Default 512, two full turns.
	Prefetch int
	// ShutdownTimeout is how long handlers may continue after Run's context has ended. Then their
	// contexts end too. Choose it shorter than the time after which the process is killed, so that
	// the server can still settle the cancelled jobs: Kubernetes kills a process 30 s after it
	// asked it to stop. Default 20 s.
	ShutdownTimeout time.Duration
	// RecoverOrphans makes this server requeue jobs that dead servers had claimed in queues that no
	// server serves now, not even this one. It looks for such jobs about once per LeaseTTL. They
	// count as recovered and wait for a server of their queue. That server buries or holds a job
	// that was recovered too often. Without this option, such jobs are shown as claimed and
	// orphaned until a server of their queue starts. RunDue ignores it. Default false.
	RecoverOrphans bool
	// Splitter decides which shards this server owns, and whether its lanes share them. Default
	// [SpreadSplitter]: the shards of each queue are spread over its servers in proportion to their
	// lanes, and any lane runs any shard of its server.
	Splitter Splitter
	// Scheduler builds the scheduler, which chooses the shard of the next batch. All lanes share
	// one scheduler; if the Splitter pins shards to lanes, each lane has its own. Default [Lag].
	Scheduler SchedulerFunc
	// Middleware wraps each call of a handler, the first outermost. A call is for one job, or for a
	// batch with a BatchHandler. NewServer builds the chain once per handler. Default: no
	// middleware.
	Middleware []Middleware
	// Schedules are declared when Run or RunDue starts, before OnStart is called. If the store
	// can't be reached, Run waits. Run returns [ErrInvalidSchedule] or [ErrInvalidOptions] for an
	// invalid set. To change schedules while a program runs, use [Queue.Schedule]. Default: none.
	Schedules ScheduleSet
	// OnStart is called once by Run, after the store has answered and before a job is claimed. Each
	// RunDue calls it too. If it returns an error, Run or RunDue returns that error. nil means no
	// call.
	OnStart func(ctx context.Context) error
	// OnBuried is called after this server has sent payloads to the morgue. It is not called when
	// an operator buries a job. Up to 4 calls run at once, beside the handlers; with RunDue one. An
	// error or a panic of OnBuried is logged and has no other effect.
	//
	// At most 1,000 burials wait for their call. A further one is logged as an error and not
	// reported. When ShutdownTimeout is over, waiting burials are logged the same way. The context
	// of the running calls then ends with the cause [ErrShutdown], and Run returns when they have
	// returned. nil means no call.
	OnBuried func(ctx context.Context, b Buried) error
	// OnFatal is called with the error that Run is about to return. It is also called with a panic
	// outside a handler, before that panic ends the process. nil means no call.
	OnFatal func(err error)
	// Jitter returns the random part of the default backoff: a whole number, limited to 0 … 29. It
	// is not called for a queue with a Backoff. It must be safe for concurrent use. By default, and
	// if it panics, the number is random.
	Jitter func() int
	// FormatError returns the text of a failure, which is truncated to 3 KiB. It must be safe for
	// concurrent use. If it panics, the text is the type of the error and the panic. Default: the
	// error's own text, which for a panic has the stack.
	FormatError func(err error) string
	// ErrorCodec changes how error texts are stored. The zero value stores them
	// as they are.
	ErrorCodec ErrorCodec
	// ErrorGroup returns the name of an error's group. The morgue counts dead letters by group,
	// operators act on groups, and the log counts failures by group. The name is stored as it is,
	// so keep ids, numbers and secrets out of it. It is truncated to 64 bytes, and control
	// characters are removed. A shard distinguishes 1,000 groups. ErrorGroup is called at each
	// failure and must be safe for concurrent use.
	//
	// By default, and if ErrorGroup returns "" or panics, the group is the type of the innermost
	// error and the first line of the whole text as FormatError returns it, with # in place of
	// numbers, quoted parts, paths and URLs. The type is left out if it is that of errors.New,
	// errors.Join or fmt.Errorf. For a panic the group is the function that panicked. With an
	// ErrorCodec that encodes it is the type alone.
	ErrorGroup func(err error) string
	// Logger receives messages for operators. Their number is bounded: the first failure of a kind
	// is logged at once, and then a count once per minute. A handler's panic is logged as an error
	// with its stack. docs/reference/log.md lists every message with its level, keys and bound. Each
	// record has lib=skein, and no record has a payload. If the log handler panics, the record is
	// lost. If it blocks, the server blocks too, so a slow one should hand records to a goroutine.
	// Default [slog.Default].
	Logger *slog.Logger
	// Observer is notified of events of the server. nil means no observer.
	Observer Observer
	// Name is the server's name, as operators see it. Characters that stores can't keep are
	// replaced, see [core.Text]. Default: the name of the host.
	Name string
	// Version is the program's version, as operators see it. Default: the version of the main
	// module, as the go command recorded it, or "" without such a record.
	Version string
}

// Server runs the handlers of queues. Make it with [NewServer] and call [Server.Run].
type Server struct {
	store    Store
	options  ServerOptions
	handlers []Handler
	// runs are the handlers wrapped in the middleware. invalid is the error of wrapping them.
	runs    []runBatch
	invalid error
	started atomic.Bool
	// mishaps has the options that panic where a default takes their place.
	mishaps *logs.Once
	// running is the engine while Run works.
	running atomic.Pointer[engine.Engine]
}

// NewServer returns a server that runs the handlers' queues on a store. It doesn't contact the
// store and never fails: Run returns an error for invalid arguments. Shards are listed in the order
// of the handlers.
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

// Run runs handlers until ctx ends, and then shuts down: it claims no more jobs, lets handlers
// finish for ShutdownTimeout, cancels their contexts after that, settles the finished jobs,
// requeues the jobs that have not started, and releases the shards. It returns nil when every
// handler has returned. A server runs once.
//
// Run returns [ErrInvalidOptions], [ErrInvalidQueue] and [ErrSplit] at once, with all mistakes in
// one error. It returns [ErrShardCountMismatch] or [ErrQueueMismatch] if the store has a queue with
// other permanent options. It returns [ErrUnusable], such as for a wrong password, if the store
// reports it while the server starts.
//
// If the store can't be reached, or becomes unusable later, Run doesn't return: it waits and
// retries. It logs the failure when the store has given up repeating the call, which takes some
// seconds with Redis and Postgres. It logs again once per minute, and when the store answers again.
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
		return fmt.Errorf("%w: a server runs once; make another server", ErrInvalidOptions)
	}

	config := s.config()
	config.Started = func(ctx context.Context) error { return s.start(ctx, s.awaitSchedules) }
	running := engine.New(s.store, config)
	s.running.Store(running)
	return running.Run(ctx)
}

// start declares the server's schedules, and calls OnStart.
func (s *Server) start(ctx context.Context, declare func(context.Context) error) error {
	if err := declare(ctx); err != nil || s.options.OnStart == nil {
		return err
	}
	return s.options.OnStart(ctx)
}

// RunDue runs the jobs that are due, those of due schedules, and those that become due meanwhile.
// It returns how many jobs ran. It returns when nothing is due, or when ctx has ended and the
// current batch has ended as in Run. It is for programs that a timer starts, and for tests. It runs
// one batch at a time in the caller's goroutine, shard after shard whatever the [Scheduler] is. It
// notices a cancelled job only between batches.
//
// Unlike Run, RunDue may be called repeatedly. It returns at the first error of the store, such as
// [ErrLeaseHeld] for a shard that another server has leased. A queue with MaxRunning is skipped
// while other servers run that many batches of it.
func (s *Server) RunDue(ctx context.Context) (jobs int, err error) {
	if err := s.check(); err != nil {
		return 0, err
	}
	config := s.config()
	config.Started = func(ctx context.Context) error { return s.start(ctx, s.declareSchedules) }
	return engine.New(s.store, config).RunDue(ctx)
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

	refuse(isNil(s.store), "no store; pass one to NewServer")
	refuse(o.Lanes < 1, "%d Lanes; give at least one", o.Lanes)
	refuse(o.PollInterval < time.Millisecond, "PollInterval %v; at least 1ms", o.PollInterval)
	refuse(o.LeaseTTL < minLeaseTTL, "LeaseTTL %v; at least %v", o.LeaseTTL, minLeaseTTL)
	refuse(o.Prefetch < NoPrefetch, "Prefetch %d; use NoPrefetch for no prefetching", o.Prefetch)
	refuse(o.ShutdownTimeout < 0, "ShutdownTimeout %v is negative", o.ShutdownTimeout)

	errs = append(errs, s.invalid, o.Schedules.check())
	refuse(len(s.handlers) == 0, "no handlers; pass at least one")

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
