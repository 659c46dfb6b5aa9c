package skein

import (
	"context"
	"errors"
	"fmt"

	"github.com/skeinq/skein/internal/engine/execution"
	"github.com/skeinq/skein/internal/engine/guard"
)

// Limits of what one job may push by [Queue.Then]. In a handler of [Queue.Each] they apply to each
// payload by itself.
const (
	// MaxThenEntries is the maximum number of entries.
	MaxThenEntries = 500
	// MaxThenBytes is the maximum size of their ids, payloads, Metas and tags in bytes.
	MaxThenBytes = 1 << 20
)

// Then pushes a payload for an id of the queue once the calling handler's job has succeeded, so
// that one job starts the next. ctx is the handler's context, and c is the client that pushes. The
// client may belong to another store than the job.
//
// The payload is encoded and checked at the call. After the handler has returned nil, the server
// pushes everything that the handler asked for, in one call for each client and queue, and only
// then reports the job as done. Queues are pushed to in the order of their first Then. If
// [Job.Settle] has set another outcome than done, nothing is pushed. If a push fails, the later
// ones are not made, and the job fails with its error and is retried. So each push happens at least
// once: after a crash the handler runs again and pushes again, and the payload merges with the one
// that still waits. By [Every] it does so only with the same [Score]. If the handler returns an
// error, nothing is pushed either. The exception is a handler that has marked a payload as done:
// that payload does not run again, so everything is pushed. With [Queue.Each] this holds for each
// payload by itself.
//
// c must outlive the handler: a client that [Client.Via] made of the handler's own transaction
// can't push after it. On Postgres, a push in the transaction of [SettleIn], through [Client.Via],
// happens exactly once. Then and SettleIn exclude each other.
//
// A BatchHandler can't use Then, since its jobs have no contexts of their own. Such a handler calls
// [Queue.PushMany] as its last step, for the jobs that have succeeded, and returns the error. If
// that push fails, each job without an outcome of its own fails and is retried.
//
// Errors are those of [Queue.Push] about the queue, the client and the entry. Then returns
// [ErrInvalidOptions] if ctx is not the context of a handler of one job, if the handler has
// returned or has called SettleIn, and beyond [MaxThenEntries] or [MaxThenBytes]. The goroutines of
// a handler may call Then concurrently.
func (q *Queue[T]) Then(ctx context.Context, c *Client, id string, payload T, options ...PushOption) error {
	if err := errors.Join(q.check(), c.check()); err != nil {
		return err
	}

	scored := make([]RawEntry, 1)
	c.defaultScores(scored)
	encoded := optioned{RawEntry: scored[0]}
	err := q.encode(&encoded, &Entry[T]{ID: id, Payload: payload, Options: options})
	if err == nil && encoded.tell != nil {
		err = fmt.Errorf("%w: Tell is for a push that happens at once; leave it out", ErrInvalidOptions)
	}

	if err != nil {
		return fmt.Errorf("push to queue %q after the job: %w", q.name, err)
	}

	err = execution.Attach(ctx, func(kept any) (any, error) {
		list, _ := kept.(*following)
		if list == nil {
			list = &following{}
		}
		return list, list.add(c, q.target(), encoded.RawEntry)
	})

	if err != nil {
		return fmt.Errorf("%w: push to queue %q after the job: %w", ErrInvalidOptions, q.name, err)
	}
	return nil
}

// following is the pushes of a job that wait until the job has succeeded.
type following struct {
	pushes         []followingPush
	entries, bytes int
}

// followingPush is the part of a following that one client pushes to one queue.
type followingPush struct {
	client  *Client
	target  target
	entries []RawEntry
}

// add adds an entry within the limits.
func (f *following) add(c *Client, t target, e RawEntry) error {
	size := len(e.ID) + len(e.Data) + len(e.Meta) + len(e.Tags)
	if f.entries == MaxThenEntries || f.bytes+size > MaxThenBytes {
		return fmt.Errorf(
			"the job has %d entries of %d bytes, at most %d and %d are possible; call PushMany in the handler",
			f.entries, f.bytes, MaxThenEntries, MaxThenBytes,
		)
	}
	f.entries, f.bytes = f.entries+1, f.bytes+size

	for i := range f.pushes {
		if p := &f.pushes[i]; p.client == c && p.target == t {
			p.entries = append(p.entries, e)
			return nil
		}
	}

	f.pushes = append(f.pushes, followingPush{client: c, target: t, entries: []RawEntry{e}})
	return nil
}

// pushFollowing makes the pushes that a handler has asked for, if the handler succeeded. ctx is the
// job's context. The push has the queue's Timeout, because a store that hangs must not keep the
// lane.
func (q *Queue[T]) pushFollowing(ctx context.Context, b *execution.Batch, kept any, succeeded bool) error {
	list, _ := kept.(*following)
	if list == nil || !succeeded {
		return nil
	}

	if q.options.Timeout != 0 {
		var cancel context.CancelFunc
		ctx, cancel = b.WithTimeout(ctx, q.options.Timeout, ErrTimeout)
		defer cancel()
	}

	for i := range list.pushes {
		p := &list.pushes[i]
		if err := guard.Call(func() error { return p.client.push(ctx, p.target, p.entries, nil) }); err != nil {
			return fmt.Errorf("push after the job: %w", err)
		}
	}

	return nil
}

// followed makes the pushes that a job's handler has asked for, and returns the handler's result.
// If a push fails, followed returns its error: the job fails, and none of its payloads counts as
// done.
func (q *Queue[T]) followed(ctx context.Context, c call, result error) error {
	kept := c.batch.EndAttach()
	if kept == nil {
		return result
	}
	err := q.pushFollowing(ctx, c.batch, kept, c.batch.Settles(c.job, result))
	if err == nil {
		return result
	}
	c.batch.UnmarkDone(c.job)
	return err
}
