package execution

import (
	"context"
	"log/slog"
	"math/rand/v2"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/clock"
	"github.com/skeinq/skein/internal/engine/guard"
	"github.com/skeinq/skein/internal/engine/report"
)

// Queue is how the jobs of a queue run. All fields are set.
type Queue struct {
	Policy core.RetryPolicy
	// Records is true if the store keeps a record of each job that is done.
	Records bool
	// DropStale is true if the queue drops stale payloads, so that payloads that are done raise the marks
	// of their ids.
	DropStale bool
	// Merge is the rule by which the queue stores its payloads.
	Merge core.MergeRule
	// Earliest is true if pushes of this program use that rule, so that they run awaiting jobs.
	Earliest bool
	// Run handles a batch. Jobs to which it gave no outcome get that of its error or panic.
	Run func(ctx context.Context, b *Batch) error
	// Outcome returns what a non-nil error means for a job. It may panic, as the error's own methods
	// may. Text returns the stored text of an error, and the group of the dead letters with that
	// error. It does not panic.
	Outcome func(err error) core.Outcome
	Text    func(err error) (text, group string)
	// Stored returns the error message that a stored text stands for. It does not panic.
	Stored func(text string) string
}

// Server is what the batches of a server share.
type Server struct {
	// Handlers is the parent of the handlers' contexts. Once Stop has ended, no job begins.
	Handlers, Stop context.Context
	Clock          *clock.Clock
	// Node is the name of the server, which failures keep.
	Node   string
	Logger *slog.Logger
	Jobs   *report.Jobs
	// Jitter returns a whole number, which is cut to 0 … core.BackoffJitter-1.
	Jitter func() int
	// CheckPool is called whenever a handler settles in a transaction.
	CheckPool func()
	// Observed is set if the server has an observer, which is notified of each job's end.
	Observed bool
}

// Shard is a shard whose jobs run on a server.
type Shard struct {
	ID     core.Shard
	Queue  *Queue
	Server *Server
}

// jitter returns an integer from 0 to core.BackoffJitter-1, whatever the configured function
// returns.
func (s *Server) jitter() (draw int) {
	failed := guard.Goroutine(func() error {
		draw = s.Jitter()
		return nil
	})
	if failed != nil {
		if s.Jobs.Mishap("Jitter") {
			s.Logger.Error("Jitter panicked; a random one is used", "error", failed)
		}
		return rand.IntN(core.BackoffJitter)
	}
	return max(0, min(draw, core.BackoffJitter-1))
}
