package skein

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/skeinq/skein/internal/engine"
)

// AddHandler makes the running server work one queue more, which is declared in the store. It is safe for
// concurrent use, and returns once the queue's shards are the server's to take. Other servers
// give it its share within an announce interval, a third of their LeaseTTL.
//
// Errors: [ErrInvalidOptions] before OnStart has returned and after Run's context has ended, if the server works the queue
// already or still runs jobs of it since it was removed, if the Splitter pins shards to lanes, or if the
// Scheduler can't have the queue; [ErrInvalidQueue]; [ErrShardCountMismatch] or [ErrQueueMismatch] as
// from Run; any other if the store does not answer, and then it may be called again.
func (s *Server) AddHandler(h Handler) error {
	e, err := s.engine()
	if err != nil {
		return err
	}
	switch {
	case h.err != nil:
		return h.err
	case h.serve == nil:
		return fmt.Errorf("%w: the handler is empty; make it with Queue.Handler", ErrInvalidOptions)
	}
	run, err := h.bind(s.options.Middleware)
	if err != nil {
		return err
	}
	return e.AddQueue(s.queue(h, run))
}

// RemoveQueue makes the running server work a queue no longer: it claims nothing more of it, its handlers
// finish, and other servers take the shards as they are released. It returns when all are,
// or with the cause of ctx if that ends before; the removal goes on all the same. Handlers are not
// cancelled. It is safe for concurrent use.
//
// Errors: [ErrInvalidOptions] if Run has not begun to work or has ended, if the server does not work
// the queue or works no other, if the Splitter pins shards to lanes, or if the Scheduler names the
// queue.
func (s *Server) RemoveQueue(ctx context.Context, queue string) error {
	e, err := s.engine()
	if err != nil {
		return err
	}
	return e.RemoveQueue(ctx, queue)
}

// SetLanes changes how many batches the running server runs at once. Lanes that are too many end with the
// batch that they run. The server's share of the shards follows its lanes. It is safe for concurrent
// use.
//
// Errors: [ErrInvalidOptions] for less than one, if Run has not begun to work or has ended, or if the
// Splitter pins shards to lanes.
func (s *Server) SetLanes(lanes int) error {
	e, err := s.engine()
	if err != nil {
		return err
	}
	return e.SetLanes(lanes)
}

// Node returns the server as it would announce itself now: its lanes and how many are busy, its jobs that run and
// that wait, and each queue's part, with the leases that it holds. It looks at each of its shards, so call it each few
// seconds, not for each job. It is zero before Run works and, but for its name, after it. It is safe for concurrent use.
func (s *Server) Node() Node {
	if e := s.running.Load(); e != nil {
		return e.Self()
	}
	return Node{}
}

// engine returns the engine of a server that has been started.
func (s *Server) engine() (*engine.Engine, error) {
	if e := s.running.Load(); e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("%w: the server does not run; call Run first", ErrInvalidOptions)
}

// mainVersion returns the version of the program's main module, or "".
func mainVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Main.Version
}
