package skein

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/skeinq/skein/internal/engine"
)

// AddHandler adds a queue to the running server and declares it in the store. It is safe for
// concurrent use. It returns when the server may acquire the queue's shards. Other servers release
// the shards of this server's share within an announce interval, which is a third of their
// LeaseTTL.
//
// AddHandler returns [ErrInvalidOptions] before OnStart has returned and after Run's context has
// ended, if the server already serves the queue, if jobs of the queue still run since it was
// removed, if the Splitter pins shards to lanes, or if the Scheduler can't have the queue. It
// returns [ErrInvalidQueue], [ErrShardCountMismatch] and [ErrQueueMismatch] as Run does. It returns
// other errors if the store does not answer; the caller may then call it again.
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

// RemoveQueue removes a queue from the running server. The server claims no more jobs of it and
// lets its handlers finish. Handlers are not cancelled. Other servers take the shards over as this
// server releases them. RemoveQueue returns when all shards are released. If ctx ends before that,
// it returns an error that wraps the cause of ctx, and the removal continues. It is safe for
// concurrent use.
//
// RemoveQueue returns [ErrInvalidOptions] if Run has not begun to work or has ended, if the server
// doesn't serve the queue or serves no other, if the Splitter pins shards to lanes, or if the
// Scheduler names the queue.
func (s *Server) RemoveQueue(ctx context.Context, queue string) error {
	e, err := s.engine()
	if err != nil {
		return err
	}
	return e.RemoveQueue(ctx, queue)
}

// SetLanes changes how many batches the running server runs at once. Surplus lanes end after their
// current batch. The server's share of the shards changes with its lanes. SetLanes is safe for
// concurrent use.
//
// SetLanes returns [ErrInvalidOptions] if lanes is below 1, if Run has not begun to work or has
// ended, or if the Splitter pins shards to lanes.
func (s *Server) SetLanes(lanes int) error {
	e, err := s.engine()
	if err != nil {
		return err
	}
	return e.SetLanes(lanes)
}

// Node returns the state that the server would announce now: its lanes, how many of them are busy,
// its running and waiting jobs, and the leases that it holds in each queue. Node visits each shard
// of the server, so call it every few seconds, not for each job. Before Run has begun to work it
// returns the zero Node. After Run has ended, the Node has no lease, no job and no busy lane. Node
// is safe for concurrent use.
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
	return nil, fmt.Errorf("%w: the server is not running; call Run first", ErrInvalidOptions)
}

// mainVersion returns the version of the program's main module, or "".
func mainVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return info.Main.Version
}
