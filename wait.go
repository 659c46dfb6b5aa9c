package skein

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/waits"
	"github.com/skeinq/skein/ports"
)

// Why [Wait] returns a [NotDoneError].
var (
	// ErrDead reports an id with a dead letter: the handler has buried what was pushed, or its
	// retries are over, or an operator has buried it.
	ErrDead = errors.New("it is in the morgue")
	// ErrHeld reports an id whose job is held: its retries are over, its queue has the option Hold,
	// and nothing of the id runs until an operator acts.
	ErrHeld = errors.New("its job is held until an operator acts")
	// ErrNoRecord reports an id of which nothing waits or runs, and no record says that it was done.
	// Either the queue keeps no records (QueueOptions.Keep), or no longer this one, or the job was
	// removed, or nothing was pushed.
	ErrNoRecord = errors.New("nothing of it waits or runs, and no record says that it was done")
)

// NotDoneError is the error of [Wait] for an id that is settled and not known to be done.
// [errors.Is] reports which of [ErrDead], [ErrHeld] and [ErrNoRecord] it is.
type NotDoneError struct {
	Queue, ID string
	// Reason is ErrDead, ErrHeld or ErrNoRecord.
	Reason error
	// Failure is the last failure of the dead letter or of the held job, with its Text as the servers
	// have stored it, which is encoded if they have an ErrorCodec. It is zero for ErrNoRecord.
	Failure Failure
	// Waited reports whether Wait has seen the id's job waiting or running. With ErrNoRecord, and in
	// a queue that keeps records of that age, the job was removed then. Otherwise nothing was pushed
	// for the id, or it had ended before.
	Waited bool
}

// Error implements error.
func (e *NotDoneError) Error() string {
	text := fmt.Sprintf("wait for id %q of queue %q: %v", e.ID, e.Queue, e.Reason)
	switch {
	case e.Reason == ErrNoRecord && e.Waited:
		return text + ": the job was removed, or its queue keeps no records or too few of them"
	case e.Reason == ErrNoRecord:
		return text + ": nothing was pushed, or its queue keeps no records or too few of them"
	case e.Failure.Text != "":
		return text + ": " + e.Failure.Text
	}
	return text
}

// Unwrap returns Reason.
func (e *NotDoneError) Unwrap() error { return e.Reason }

// Past is the record of the last run of an id that was done, as [Wait] returns it. A queue keeps
// such records if it has the option Keep.
type Past[R any] struct {
	// DoneAt is when the run was settled, and StartedAt is when it started, both by the store's
	// clock; the server has estimated StartedAt. Took is how long the handler ran.
	DoneAt    time.Time
	StartedAt time.Time
	Took      time.Duration
	// Node is the name of the server that ran the job. It is empty if the server has no name.
	Node string
	// Score is the highest score of the payloads of the run, and PayloadCount is their number.
	// Payloads that were settled one by one before are not counted.
	Score        float64
	PayloadCount int
	// Attempt is 1 if the job had not failed before, 2 for the first retry, and so on.
	Attempt int
	// Result is what the handler has passed to [SetResult]. HasResult is false if it has passed
	// nothing.
	Result    R
	HasResult bool
}

// Wait waits until everything that was pushed for an id of a queue before the call is settled, and
// returns the record of the id's last run that was done, with its result:
//
//	invoice, err := skein.Wait[Invoice](ctx, client, orders, "42")
//
// The error is nil if the job is done. It is a *[NotDoneError] if the id is settled in another way;
// the Past is then that of another run of the id that was done, or zero. If ctx ends first, Wait
// returns its error, wrapped. Give ctx a deadline, since a job may be due much later, be retried
// for weeks, or belong to a queue without servers. Invalid queues and ids are refused as
// [Queue.Push] refuses them. A result that R can't represent is [ErrInvalidPayload], and the rest
// of the Past is set. A queue that the store does not know is [ErrUnknownQueue]. While the store
// does not answer, Wait tries again.
//
// Pushes that are stored later do not delay Wait unless they merge into a job that it waits for. If
// several runs handled what it waits for, the Past is that of the last one, and if some of the
// payloads are in the morgue, the error is ErrDead. If the id was settled before the call, Wait
// returns at once with what was last: the record or the dead letter.
//
// The waits of a client for a queue share their reads of the store. An id is read again after a
// quarter of the time that its wait has lasted, at least 1 ms and at most a second. So Wait returns
// at most about a quarter later than the job is done. At its end each wait makes one more read, for
// the record.
//
// In a handler use [Await] instead, or the lane does nothing but wait: docs/guide/dependencies.md.
// If c was made by [Client.Via], Wait asks the store of the original client.
func Wait[R, T any](ctx context.Context, c *Client, q *Queue[T], id string) (Past[R], error) {
	found, err := wait(ctx, c, errors.Join(q.check(), c.check()), q.Name(), id)
	if found == nil {
		return Past[R]{}, err
	}

	past := Past[R]{
		DoneAt:       found.DoneAt.Time(),
		StartedAt:    found.Started.Time(),
		Took:         found.Took,
		Node:         found.Node,
		Score:        found.Score,
		PayloadCount: found.Payloads,
		Attempt:      found.Attempt,
		HasResult:    len(found.Result) > 0,
	}
	if past.HasResult {
		if bad := json.Unmarshal(found.Result, &past.Result); bad != nil && err == nil {
			err = fmt.Errorf("%w: the result of id %q of queue %q: %w", ErrInvalidPayload, id, q.Name(), bad)
		}
	}
	return past, err
}

// waiting is what a client needs of its store to wait.
type waiting interface {
	waits.Store
	Find(ctx context.Context, r ports.FindRequest) (ports.Found, error)
}

// waiter waits for the ids of one store.
type waiter struct {
	store  waiting
	poller *waits.Poller
}

// waiterOf returns the waiter of a client's store, or nil if a client can't wait by it.
func waiterOf(store ports.Producer) *waiter {
	s, ok := store.(waiting)
	if !ok || isNil(store) {
		return nil
	}
	return &waiter{s, waits.New(s)}
}

// wait is Wait without types. invalid is the error of the queue or the client. The record may be
// there beside an error.
func wait(ctx context.Context, c *Client, invalid error, queue, id string) (*core.Past, error) {
	switch {
	case invalid != nil:
		return nil, invalid
	case c.waiter == nil:
		return nil, fmt.Errorf("%w: the client's store can't be read, only pushed to; "+
			"wait by a client of the store itself", ErrInvalidOptions)
	}
	if err := core.ValidateID(id); err != nil {
		return nil, fmt.Errorf("wait for an id of queue %q: %w", queue, err)
	}

	w := idWait{waiter: c.waiter, queue: queue, id: id}
	for {
		if err := w.poller.Wait(ctx, queue, id, &w.seen); err != nil {
			return nil, w.failed(ctx, err)
		}
		past, over, err := w.end(ctx)
		if over {
			return past, err
		}
	}
}

// idWait is one call of Wait.
type idWait struct {
	*waiter
	queue, id string
	seen      waits.Seen
}

// failed returns the error of a wait that has ended without a verdict.
func (w *idWait) failed(ctx context.Context, err error) error {
	err = fmt.Errorf("wait for id %q of queue %q: %w", w.id, w.queue, err)
	switch last := &w.seen.Last; {
	case ctx.Err() == nil:
	case w.seen.Err != nil:
		err = fmt.Errorf("%w; the last read of the store failed: %w", err, w.seen.Err)
	case last.Claimed:
		err = fmt.Errorf("%w; a server has claimed the job", err)
	case last.Queued:
		err = fmt.Errorf("%w; the job is queued", err)
	}
	return err
}

// end reads what became of an id that is settled or held. over is false if it is neither any more.
func (w *idWait) end(ctx context.Context) (past *core.Past, over bool, err error) {
	found, err := w.find(ctx)
	if err != nil {
		return nil, true, err
	}

	switch p := found.Pending(); {
	case p.Settled(w.seen.Until):
	case p.Stopped():
		return found.Past, true, w.notDone(ErrHeld, found.Queued.Failures)
	default:
		return nil, false, nil // an operator has released it
	}

	past = found.Past
	switch d := found.DeadLetter; {
	case d != nil && w.died(d, past):
		return past, true, w.notDone(ErrDead, d.Failures)
	case past == nil, w.seen.Waited && past.DoneAt < w.seen.Since:
		return past, true, w.notDone(ErrNoRecord, nil)
	}
	return past, true, nil
}

// died reports whether a dead letter is of what was waited for. If no job was seen, that is decided
// by what came last.
func (w *idWait) died(d *ports.DeadLetterView, past *core.Past) bool {
	if w.seen.Waited {
		return d.ChangedAt >= w.seen.Since
	}
	return past == nil || d.ChangedAt >= past.DoneAt
}

func (w *idWait) notDone(reason error, failures core.Failures) error {
	e := &NotDoneError{Queue: w.queue, ID: w.id, Reason: reason, Waited: w.seen.Waited}
	if len(failures) > 0 {
		e.Failure = failureOf(failures.Newest())
	}
	return e
}

// findPause is the first pause after a failed Find; each further one is twice as long, up to
// longestFindPause.
const (
	findPause        = 50 * time.Millisecond
	longestFindPause = time.Second
)

// find finds the id. While the store does not answer, it tries again.
func (w *idWait) find(ctx context.Context) (ports.Found, error) {
	for pause := findPause; ; pause = min(2*pause, longestFindPause) {
		found, err := w.store.Find(ctx, ports.FindRequest{Queue: w.queue, ID: w.id, MaxCount: -1})
		if err == nil {
			return found, nil
		}
		w.seen.Err = err
		if ctx.Err() != nil {
			return ports.Found{}, w.failed(ctx, ctx.Err())
		}
		if waits.Lasts(err) {
			return ports.Found{}, w.failed(ctx, err)
		}

		select {
		case <-ctx.Done():
			return ports.Found{}, w.failed(ctx, ctx.Err())
		case <-time.After(pause):
		}
	}
}
