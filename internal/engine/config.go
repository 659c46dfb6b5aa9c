package engine

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/dispatch"
	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/internal/engine/retention"
	"github.com/skeinq/skein/internal/engine/ticks"
	"github.com/skeinq/skein/ports"
)

// Store is what the engine needs of a store.
type Store interface {
	Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error)
	ports.Consumer
	ports.Permitter
	ports.Limiter
	ports.Registry
	ticks.Store
	// Stats is that of ports.Inspector. A node with Config.RecoverOrphans calls it, and one that removes
	// old dead letters.
	retention.Store
}

// Queue is a queue that the node serves. All fields are set, except those whose comments explain 0;
// the root package fills in the defaults.
type Queue struct {
	Name     string
	Shards   int
	IndexIDs bool
	// BatchSize is how many ids a handler gets at once, at most core.MaxTurnJobs.
	BatchSize int
	// Parallel bounds how many batches of one shard run at once on this node. 0: no bound.
	Parallel int
	// MaxLanes bounds how many lanes of this node run batches of the queue at once. 0: no bound.
	MaxLanes int
	// MaxRunning bounds how many batches of the queue run at once over all nodes. 0: no bound.
	MaxRunning int
	// Rate is at which rate batches of the queue start over all nodes. The zero Rate is no bound.
	Rate core.Rate
	// KeyOf is the key of each job's rate. It is nil if the queue has no rates by key.
	KeyOf KeyOf
	// Keep is which dead letters are kept. The zero value keeps all.
	Keep core.Retention
	// Past bounds the records of what became of its ids. The zero value keeps none.
	Past core.KeepPast
	// PerJob is how many payloads of an id a handler gets at once, and Bytes how many bytes of
	// payload a turn claims.
	PerJob int
	Bytes  int
	// Queue is how its jobs run and merge.
	execution.Queue

	generation atomic.Int64
	// refused is set if the store meanwhile has the queue with another shard count.
	refused atomic.Bool
	// inForceRate is the rate of its starts, and rates are the calls for slots.
	inForceRate atomic.Pointer[core.Rate]
	rates       rates
	// inForce are the bounds of its batches. limit has them too, for the dispatcher. permits are nil
	// until the queue has a bound over all nodes.
	inForce atomic.Pointer[dispatch.Bounds]
	limit   *dispatch.Limit
	permits atomic.Pointer[permits]
	// kept is which dead letters are kept now, and since when.
	kept atomic.Pointer[kept]
	// following is the version of the settings in force.
	following atomic.Int64
	// settings are those in force, which operators have set. otherRule is the stored merge rule if it is
	// not Merge, which was logged. Engine.recording guards both.
	settings  core.Settings
	otherRule *core.MergeRule
	// loops are those of its shards. removed is set once the node no longer serves the queue, and gone
	// once its loops have ended.
	loops   sync.WaitGroup
	removed atomic.Bool
	gone    atomic.Bool
}

// mostLanes returns how many lanes of the node may run the queue, or 0 for no bound.
func (q *Queue) mostLanes() int {
	b := q.inForce.Load()
	if b.Lanes == 0 || b.Total == 0 {
		return max(b.Lanes, b.Total)
	}
	return min(b.Lanes, b.Total)
}

// batches returns how many batches the given number of jobs makes.
func (q *Queue) batches(jobs int) int { return (jobs + q.BatchSize - 1) / q.BatchSize }

// Config is how a node runs. All fields are set, except Prefetch, RecoverOrphans and those whose
// comments allow nil.
type Config struct {
	Queues []*Queue
	// Owner owns the leases. It is drawn anew for each engine.
	Owner string
	Node  string
	Host  string
	PID   int
	// Version is that of the program, for people. It may be empty.
	Version string
	Lanes   int
	// PollInterval is how often idle shards are polled, and how long a claimed job may wait to
	// start before it goes back.
	PollInterval time.Duration
	// LeaseTTL is how long a lease lasts.
	LeaseTTL time.Duration
	// ShutdownTimeout is how long handlers may run after a stop before their contexts are cancelled.
	ShutdownTimeout time.Duration
	// Prefetch bounds how many jobs of a shard are claimed ahead of the lane. 0 claims one batch
	// at a time.
	Prefetch int
	// RecoverOrphans puts back what dead nodes left claimed in queues that no node serves.
	RecoverOrphans bool

	Splitter  core.Splitter
	Scheduler core.SchedulerFunc
	Logger    *slog.Logger
	// Observer is notified of batches, turns and leases. It may be nil.
	Observer ports.Observer
	// Started is called once, when the queues are declared and nothing is claimed yet. Its error
	// ends Run. It may be nil.
	Started func(ctx context.Context) error
	// Buried is called after payloads went to the morgue, by goroutines of its own. It may be
	// nil.
	Buried func(ctx context.Context, b report.Buried) error
	// Fatal is called before a panic outside of handlers ends the process. It may be nil.
	Fatal func(err error)
	// Jitter returns a whole number, which is cut to 0 … core.BackoffJitter-1. It is safe for
	// concurrent use.
	Jitter func() int
}

// QueueNamer is a [core.Scheduler] that knows queues by name, such as those of [core.StrictBy] and
// [core.WeightedBy]. A server that does not serve each of these queues refuses to run.
type QueueNamer interface {
	// QueueNames lists the names, each once.
	QueueNames() []string
}

// checkScheduler returns core.ErrInvalidOptions if the scheduler is nil or names a queue that the
// node does not serve.
func checkScheduler(s core.Scheduler, served map[string]*Queue) error {
	if s == nil {
		return fmt.Errorf("%w: the Scheduler returned a nil scheduler", core.ErrInvalidOptions)
	}

	naming, ok := s.(QueueNamer)
	if !ok {
		return nil
	}

	for _, name := range naming.QueueNames() {
		if served[name] == nil {
			return fmt.Errorf(
				"%w: the Scheduler names queue %q, for which the server has no handler; it has one for each of %q",
				core.ErrInvalidOptions, name, slices.Sorted(maps.Keys(served)),
			)
		}
	}
	return nil
}
