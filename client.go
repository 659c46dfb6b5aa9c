package skein

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// ClientOptions are the options of a client. The zero value is ready.
type ClientOptions struct {
	// Observer watches pushes. nil is none.
	Observer ports.Observer
}

// Client pushes jobs. It needs no server, and waits for none. It is safe for
// concurrent use; a process needs one for each store.
type Client struct {
	store    ports.Producer
	observer ports.Observer
	scores   scores
	// generations are those of the queues declared so far, by name.
	generations sync.Map
}

// NewClient makes a client that pushes to a store. It does not reach for it.
func NewClient(store ports.Producer, options ClientOptions) *Client {
	return &Client{store: store, observer: options.Observer}
}

// scores gives default scores: the time in seconds, each at least 1 µs above the
// one before (RULES 1).
type scores struct{ last atomic.Int64 }

func (s *scores) next(now time.Time) float64 {
	for {
		last := s.last.Load()
		us := max(now.UnixMicro(), last+1)
		if s.last.CompareAndSwap(last, us) {
			return float64(us) / 1e6
		}
	}
}

// target is the queue of a push, as the store must know it.
type target struct {
	name     string
	shards   int
	indexIDs bool
}

// push stores entries, and declares the queue where the store does not know it.
func (c *Client) push(ctx context.Context, t target, rule core.PushRule, entries []core.Entry) (err error) {
	if c.observer != nil {
		start := time.Now()
		defer func() {
			c.observer.Pushed(ctx, ports.PushEvent{
				Queue: t.name, Entries: len(entries), Took: time.Since(start), Err: err,
			})
		}()
	}
	generation, known := c.generations.Load(t.name)
	if !known {
		if generation, err = c.declare(ctx, t); err != nil {
			return err
		}
	}
	request := ports.PushRequest{
		Queue: t.name, Shards: t.shards, Generation: generation.(int64), Rule: rule, Entries: entries,
	}
	if _, err = c.store.Push(ctx, request); known && outdated(err) {
		return c.pushAgain(ctx, t, request, err)
	}
	return err
}

// outdated reports whether the store's record of the queue is not the one that
// this client saw.
func outdated(err error) bool {
	return errors.Is(err, ports.ErrUnknownQueue) || errors.Is(err, ports.ErrShardCountMismatch)
}

// pushAgain declares the queue anew and repeats what was not stored.
func (c *Client) pushAgain(ctx context.Context, t target, r ports.PushRequest, cause error) error {
	generation, err := c.declare(ctx, t)
	if err != nil {
		return err
	}
	r.Generation = generation.(int64)
	var partly *ports.PushError
	if !errors.As(cause, &partly) || len(partly.Entries) == len(r.Entries) {
		_, err = c.store.Push(ctx, r)
		return err
	}
	all := r.Entries
	r.Entries = make([]core.Entry, len(partly.Entries))
	for i, at := range partly.Entries {
		r.Entries[i] = all[at]
	}
	_, err = c.store.Push(ctx, r)
	return renumber(err, partly.Entries)
}

// renumber makes a PushError about a part of a push speak of the whole.
func renumber(err error, part []int) error {
	var failed *ports.PushError
	if !errors.As(err, &failed) {
		return err
	}
	whole := &ports.PushError{Err: failed.Err, Entries: make([]int, len(failed.Entries))}
	for i, at := range failed.Entries {
		whole.Entries[i] = part[at]
	}
	return whole
}

func (c *Client) declare(ctx context.Context, t target) (any, error) {
	r, err := c.store.Declare(ctx, ports.DeclareRequest{Queue: t.name, Shards: t.shards, IndexIDs: t.indexIDs})
	if err != nil {
		return nil, fmt.Errorf("declare queue %q: %w", t.name, err)
	}
	c.generations.Store(t.name, r.Generation)
	return r.Generation, nil
}
