package skein

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/guard"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/internal/logs"
	"github.com/skeinq/skein/internal/scores"
	"github.com/skeinq/skein/ports"
)

// ClientOptions are the options of a client. The zero value is ready.
type ClientOptions struct {
	// Middleware wraps each push, the first outermost. NewClient builds the chain once. Default: no
	// middleware.
	Middleware []PushMiddleware
	// Observer is notified of each push. nil means no observer.
	Observer Observer
}

// Client pushes jobs, and [Wait] waits for them by it. A push needs no running server. A Client is
// safe for concurrent use; a process needs one per store. Make it with [NewClient].
type Client struct {
	store   ports.Producer
	options ClientOptions
	// pushing is the chain of middleware, and invalid is its error.
	pushing PushFunc
	invalid error
	// The fields below are shared with the clients that Via makes.
	scores *scores.Source
	// generations has those of the queues declared so far, by declaration.
	generations *sync.Map
	// waiter waits for ids of the store. It is nil if the store can only be pushed to.
	waiter *waiter
}

// NewClient returns a client that pushes to a store. It doesn't contact the store and never fails.
// If the store or a middleware is nil, every push returns [ErrInvalidOptions].
func NewClient(store ports.Producer, options ClientOptions) *Client {
	options.Observer = guard.Observer(options.Observer, logs.New(nil))
	c := &Client{store: store, options: options, scores: &scores.Source{}, generations: &sync.Map{}}
	c.pushing, c.invalid = wrapPush(options.Middleware)
	c.waiter = waiterOf(store)
	return c
}

// Via returns a client that pushes through another producer, such as a transaction on the same
// store. It shares the middleware and the observer of c, and waits by the store of c.
func (c *Client) Via(producer ports.Producer) *Client {
	if c == nil {
		return nil
	}
	via := *c
	via.store = producer
	return &via
}

// RawPush is an encoded and validated push, as middleware of a client sees it.
type RawPush struct {
	// Queue is the queue's name. If middleware changes it, the push is refused with
	// [ErrInvalidOptions].
	Queue string
	// Entries are the pushed entries. Middleware may change, add and remove entries; the result is
	// validated again.
	Entries []RawEntry

	client *Client
	target target
	tell   *Met
}

// PushFunc stores a push. It returns the errors of [Queue.PushMany].
type PushFunc func(ctx context.Context, push *RawPush) error

// PushMiddleware wraps the pushes of a client. It returns a [PushFunc] that calls next. That
// PushFunc may read and change the encoded entries, or refuse the push with an error of its own.
type PushMiddleware func(next PushFunc) PushFunc

// wrapPush returns send within the middleware, the first outermost.
func wrapPush(middleware []PushMiddleware) (PushFunc, error) {
	next := PushFunc(send)
	for i := len(middleware) - 1; i >= 0; i-- {
		if middleware[i] == nil {
			return nil, fmt.Errorf("%w: client middleware %d of %d is nil", ErrInvalidOptions, i+1, len(middleware))
		}
		if next = middleware[i](next); next == nil {
			return nil, fmt.Errorf("%w: client middleware %d of %d returned a nil PushFunc",
				ErrInvalidOptions, i+1, len(middleware))
		}
	}
	return next, nil
}

// send is the innermost PushFunc.
func send(ctx context.Context, p *RawPush) error {
	switch {
	case p == nil || p.client == nil:
		return fmt.Errorf(
			"%w: middleware called the next PushFunc with a RawPush of its own; call it with the one that it received",
			ErrInvalidOptions,
		)
	case p.Queue != p.target.name:
		return fmt.Errorf("%w: middleware set the Queue of a push to %q from %q; push to that queue instead",
			ErrInvalidOptions, p.Queue, p.target.name)
	}
	return p.client.send(ctx, p.target, p.Entries, p.tell)
}

// defaultScores sets the default scores of entries, rising in their order.
func (c *Client) defaultScores(entries []RawEntry) {
	first := c.scores.Take(len(entries), time.Now())
	for i := range entries {
		entries[i].Score = scores.At(first + int64(i))
	}
}

// target is the queue of a push, with the options that the store must agree to.
type target struct {
	name     string
	shards   int
	indexIDs bool
	merge    MergeRule
	rule     core.PushRule
	// dropStale is true if a push drops stale entries.
	dropStale bool
}

// declaration returns the options that the store must agree to.
func (t target) declaration() ports.DeclareRequest {
	return ports.DeclareRequest{Queue: t.name, Shards: t.shards, IndexIDs: t.indexIDs, Merge: t.merge}
}

// check returns the error of a client that can't push, or nil.
func (c *Client) check() error {
	if c == nil || c.scores == nil {
		return fmt.Errorf("%w: no client; make one with NewClient", ErrInvalidOptions)
	}
	return c.invalid
}

// push stores entries through the middleware.
func (c *Client) push(ctx context.Context, t target, entries []RawEntry, met *Met) error {
	return c.pushing(ctx, &RawPush{Queue: t.name, Entries: entries, client: c, target: t, tell: met})
}

// send stores entries. It declares the queue first if this client has not done so, and again if the
// store's record of the queue has changed.
func (c *Client) send(ctx context.Context, t target, entries []RawEntry, met *Met) (err error) {
	var reply ports.PushReply
	if o := c.options.Observer; o != nil {
		start := time.Now()
		defer func() {
			o.Pushed(ctx, ports.PushEvent{
				Queue:      t.name,
				Entries:    len(entries),
				Took:       time.Since(start),
				Err:        err,
				New:        reply.New,
				Merged:     reply.Merged,
				Duplicate:  reply.Duplicate,
				Superseded: reply.Superseded,
				Stale:      reply.Stale,
				Repeated:   reply.Repeated,
			})
		}()
	}

	if len(entries) == 0 {
		return nil
	}
	if isNil(c.store) {
		return fmt.Errorf("%w: the client has no store; pass one to NewClient", ErrInvalidOptions)
	}
	if err := ctx.Err(); err != nil { // stores can't distinguish it from a call that was given up
		return fmt.Errorf("push to queue %q: %w, nothing is stored: %w", t.name, ErrNotBegun, err)
	}

	// A declaration that is made for this push can't be outdated, only a known one can.
	_, known := c.generations.Load(t.declaration())
	generation, err := c.generation(ctx, t)
	if err != nil {
		return err
	}

	request := ports.PushRequest{
		Queue:      t.name,
		Shards:     t.shards,
		Generation: generation,
		Rule:       t.rule,
		DropStale:  t.dropStale,
		Stamped:    t.merge.Same == core.SamePush,
		Entries:    stored(t.merge, entries),
	}
	if reply, err = c.store.Push(ctx, request); known && outdated(err) {
		var again ports.PushReply
		again, err = c.sendAgain(ctx, t, request, err)
		reply.Add(again)
	}

	met.add(reply, len(entries), err)
	return err
}

// stored returns entries with their payloads as a queue of a merge rule stores them. Middleware
// sees the payloads as they were pushed.
func stored(rule MergeRule, entries []RawEntry) []RawEntry {
	if rule.Same != core.SamePush {
		return entries
	}
	entries = slices.Clone(entries)
	for i := range entries {
		entries[i].Payload = rule.Stored(entries[i].Payload)
	}
	return entries
}

// outdated reports whether an error means that the store's record of the queue differs from the
// one that this client saw.
func outdated(err error) bool {
	return errors.Is(err, ports.ErrUnknownQueue) || errors.Is(err, ports.ErrShardCountMismatch)
}

// sendAgain declares the queue anew and pushes again the entries that were not stored. If that
// fails, its error names them.
func (c *Client) sendAgain(ctx context.Context, t target, r ports.PushRequest, cause error) (ports.PushReply, error) {
	var partly *PushError
	part := errors.As(cause, &partly) && len(partly.Entries) < len(r.Entries)

	generation, err := c.declare(ctx, t)
	switch {
	case err != nil && part:
		return ports.PushReply{}, &PushError{Entries: partly.Entries, Err: err}
	case err != nil:
		return ports.PushReply{}, err
	}

	r.Generation = generation
	if !part {
		return c.store.Push(ctx, r)
	}

	all := r.Entries
	r.Entries = make([]core.Entry, len(partly.Entries))
	for i, at := range partly.Entries {
		r.Entries[i] = all[at]
	}

	met, err := c.store.Push(ctx, r)
	return met, renumber(err, partly.Entries)
}

// renumber returns the error of a push of some entries. The positions in a PushError become
// positions in the whole push: part has the position of each of these entries.
func renumber(err error, part []int) error {
	var failed *PushError
	if !errors.As(err, &failed) {
		return err
	}
	whole := &PushError{Err: failed.Err, Entries: make([]int, len(failed.Entries))}
	for i, at := range failed.Entries {
		whole.Entries[i] = part[at]
	}
	return whole
}

// generation returns the generation of the queue, which it declares if this client has not done so.
func (c *Client) generation(ctx context.Context, t target) (int64, error) {
	if known, ok := c.generations.Load(t.declaration()); ok {
		return known.(int64), nil
	}
	return c.declare(ctx, t)
}

// declare declares the queue, and returns its generation.
func (c *Client) declare(ctx context.Context, t target) (int64, error) {
	r, err := c.store.Declare(ctx, t.declaration())
	if err != nil {
		return 0, report.DeclareError(t.name, err)
	}
	c.generations.Store(t.declaration(), r.Generation)
	return r.Generation, nil
}
