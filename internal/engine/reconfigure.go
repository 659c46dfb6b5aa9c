package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
)

// errNotRunning is the error of a change to a node that does not run.
var errNotRunning = fmt.Errorf(
	"%w: the server is not running; call this between the start and the end of Run", core.ErrInvalidOptions,
)

// AddQueue makes the running node serve one more queue. It returns the error of the queue's
// declaration. It returns core.ErrInvalidOptions if the node does not run, serves the queue
// already or still works it after a removal, if its lanes have shards of their own, or if its
// scheduler can't have the queue.
func (e *Engine) AddQueue(q *Queue) error {
	e.reconfiguring.Lock()
	defer e.reconfiguring.Unlock()

	p, err := e.changeable()
	if err != nil {
		return err
	}

	now := e.served.Load()
	switch {
	case now.byName()[q.Name] != nil:
		return fmt.Errorf("%w: the server already has a handler for queue %q", core.ErrInvalidOptions, q.Name)
	case e.leavingQueues[q.Name]:
		return fmt.Errorf(
			"%w: the server still runs jobs of queue %q since it was removed; wait for RemoveQueue to return",
			core.ErrInvalidOptions, q.Name,
		)
	}

	if err := e.declare(q); err != nil {
		return e.nameServers(err)
	}

	e.followCode(q)
	if err := e.readRecords([]*Queue{q}); err != nil {
		return err
	}
	return e.serveQueues(p, now.change(append(slices.Clone(now.queues), q), now.lanes))
}

// RemoveQueue makes the running node stop serving a queue: no more of its jobs are claimed, its
// handlers return, and its shards are released. It waits for that until ctx ends; then the removal
// continues by itself. It returns core.ErrInvalidOptions if the node does not run, does not serve
// the queue, or serves no other, or if its lanes have shards of their own.
func (e *Engine) RemoveQueue(ctx context.Context, name string) error {
	ended, err := e.beginRemoval(name)
	if err != nil {
		return err
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("remove queue %q: handlers still run; the removal continues: %w", name, context.Cause(ctx))
	}
}

// beginRemoval lets other nodes have the queue's shards. It returns a channel that is closed when
// this node has released them.
func (e *Engine) beginRemoval(name string) (ended chan struct{}, err error) {
	e.reconfiguring.Lock()
	defer e.reconfiguring.Unlock()

	p, err := e.changeable()
	if err != nil {
		return nil, err
	}

	now := e.served.Load()
	q := now.byName()[name]
	switch {
	case q == nil:
		return nil, fmt.Errorf("%w: the server has no handler for queue %q", core.ErrInvalidOptions, name)
	case len(now.queues) == 1:
		return nil, fmt.Errorf("%w: queue %q is the server's last; stop the server instead",
			core.ErrInvalidOptions, name)
	}

	remaining := slices.DeleteFunc(slices.Clone(now.queues), func(other *Queue) bool { return other == q })
	if err := e.serveQueues(p, now.change(remaining, now.lanes)); err != nil {
		return nil, fmt.Errorf("remove queue %q: %w", name, err)
	}

	q.removed.Store(true)
	e.leavingQueues[name] = true
	signal(e.nodesChanged)
	for _, s := range e.shards() { // shards of another node end at once
		signal(s.wake)
	}

	ended = make(chan struct{})
	e.start(&e.renewals, func() {
		defer close(ended)
		q.loops.Wait()
		e.endRemoval(q)
	})

	return ended, nil
}

// endRemoval forgets a queue whose shards are released.
func (e *Engine) endRemoval(q *Queue) {
	e.reconfiguring.Lock()
	defer e.reconfiguring.Unlock()

	q.gone.Store(true)
	delete(e.leavingQueues, q.Name)

	p, err := e.changeable()
	if err != nil { // the node stops
		return
	}

	now := e.served.Load()
	next := now.change(now.queues, now.lanes)
	next.shards = slices.DeleteFunc(next.shards, func(s *shard) bool { return s.queue == q })
	if err := e.adopt(p, next, nil); err != nil {
		e.log.Error("a queue was removed, but the scheduler keeps its shards", "queue", q.Name, "error", err)
	}
}

// SetLanes changes how many lanes the running node has. Surplus lanes end with their batch. It
// returns core.ErrInvalidOptions for less than one, if the node does not run, or if its lanes have
// shards of their own.
func (e *Engine) SetLanes(n int) error {
	if n < 1 {
		return fmt.Errorf("%w: %d Lanes; give at least one", core.ErrInvalidOptions, n)
	}

	e.reconfiguring.Lock()
	defer e.reconfiguring.Unlock()
	p, err := e.changeable()
	if err != nil {
		return err
	}

	now := e.served.Load()
	e.served.Store(now.change(now.queues, n))
	p.setLanes(n)
	signal(e.nodesChanged) // its share changes
	return nil
}

// changeable returns the node's only pool.
func (e *Engine) changeable() (*pool, error) {
	switch {
	case !e.serving:
		return nil, errNotRunning
	case len(e.pools) != 1 || !e.pools[0].shared:
		return nil, fmt.Errorf(
			"%w: the Splitter pins shards to lanes; queues and lanes of a running server change "+
				"only where lanes share its shards",
			core.ErrInvalidOptions,
		)
	}
	return e.pools[0], nil
}

// serveQueues makes the node serve other queues. It adds unknown shards that the splitter may
// assign to the node.
func (e *Engine) serveQueues(p *pool, next *served) error {
	split, err := e.split(next)
	if err == nil && len(split.Lanes) > 0 {
		err = errors.New("the Splitter pins shards to lanes, but did not before")
	}
	if err != nil {
		return fmt.Errorf("%w: %w", core.ErrInvalidOptions, err)
	}
	known := make(map[core.Shard]bool, len(next.shards))
	for _, s := range next.shards {
		known[s.ID] = true
	}
	more := slices.DeleteFunc(split.Shared, func(id core.Shard) bool { return known[id] })
	return e.adopt(p, next, e.newShards(next, more))
}

// adopt makes the node serve other queues, and adds shards.
func (e *Engine) adopt(p *pool, next *served, more []*shard) error {
	if err := p.setShards(more, e.cfg.Scheduler, next.byName()); err != nil {
		return err
	}
	next.shards = append(next.shards, more...)
	e.served.Store(next)
	e.startShards(more)
	e.subscribeAnew()
	signal(e.nodesChanged)
	return nil
}
