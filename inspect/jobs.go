package inspect

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Pause stops claims of a queue on all nodes until Resume. What is claimed goes
// on, and pushes are taken. Repeating it changes nothing.
func (i *Inspector) Pause(ctx context.Context, queue string) error {
	return i.control(ctx, queue, "pause", Store.Pause)
}

// Resume ends a Pause. Repeating it changes nothing.
func (i *Inspector) Resume(ctx context.Context, queue string) error {
	return i.control(ctx, queue, "resume", Store.Resume)
}

func (i *Inspector) control(
	ctx context.Context, queue, verb string, call func(Store, context.Context, string) error,
) error {
	d := i.begin(ctx, verb, queue, nil).start(ctx)
	_, err := persist(ctx, i, func(s Store) (struct{}, error) { return struct{}{}, call(s, ctx, queue) })
	d.end(ctx, 0, err)
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return nil
}

// RunNow makes the queued jobs of these ids due. Those that are due already are
// not counted.
func (i *Inspector) RunNow(ctx context.Context, queue string, ids []string, o BulkOptions) (Result, error) {
	return i.onJobs(ctx, o.action("run now"), queue, ids, Store.Expedite)
}

// RunAllNow makes the queued jobs due that match, or all of them if match is nil, the latest first; by
// Prefix, in order of id, for a queue with IndexIDs alone ([ErrQueueMismatch]). It handles
// those that were first pushed before it began, as they are when it comes to them: what moves meanwhile
// may be missed. One that was made due, and has failed again before the action goes on from a Checkpoint, is made
// due once more.
//
// match is called once with each of them and all its payloads, or as many as o.Payloads says, from
// the caller's goroutine.
func (i *Inspector) RunAllNow(
	ctx context.Context, queue string, match func(QueuedJob) bool, o BulkOptions,
) (Result, error) {
	return i.onAllJobs(ctx, o.onAll("run all now", queue, match != nil, true), queue, laterJobs, match, Store.Expedite)
}

// Bury moves the queued jobs of these ids whole to the morgue. They keep their
// error, or get one that says they were buried by hand.
func (i *Inspector) Bury(ctx context.Context, queue string, ids []string, o BulkOptions) (Result, error) {
	return i.onJobs(ctx, o.action("bury"), queue, ids, Store.Bury)
}

// BuryFailed moves the queued jobs with a failure that match, or all of them if match is nil, whole to the
// morgue, the earliest first, or by Prefix in order of id. It handles those that were first pushed before it
// began; see [Inspector.RunAllNow]. Payloads that are pushed for a job after match has looked go with it.
func (i *Inspector) BuryFailed(
	ctx context.Context, queue string, match func(QueuedJob) bool, o BulkOptions,
) (Result, error) {
	return i.onAllJobs(ctx, o.onAll("bury failed", queue, match != nil, true), queue, failedJobs, match, Store.Bury)
}

// BuryFresh moves the queued jobs without a failure that match, or all of them if match is nil, whole to the morgue, the
// earliest first; by Prefix, in order of id, for a queue with IndexIDs alone ([ErrQueueMismatch]). It handles those that were
// first pushed before it began. One that fails after match has looked goes with them.
func (i *Inspector) BuryFresh(
	ctx context.Context, queue string, match func(QueuedJob) bool, o BulkOptions,
) (Result, error) {
	return i.onAllJobs(ctx, o.onAll("bury fresh", queue, match != nil, true), queue, freshJobs, match, Store.Bury)
}

// Delete removes the queued jobs of these ids. A claimed job is not touched and
// may come back, unless [Inspector.Cancel] drops it.
func (i *Inspector) Delete(ctx context.Context, queue string, ids []string, o BulkOptions) (Result, error) {
	return i.onJobs(ctx, o.action("delete"), queue, ids, Store.Delete)
}

// DeleteFailed removes the queued jobs with a failure that match, or all of them if match is nil; see
// [Inspector.BuryFailed].
func (i *Inspector) DeleteFailed(
	ctx context.Context, queue string, match func(QueuedJob) bool, o BulkOptions,
) (Result, error) {
	return i.onAllJobs(ctx, o.onAll("delete failed", queue, match != nil, true), queue, failedJobs, match, Store.Delete)
}

// DeleteFresh removes the queued jobs without a failure that match, or all of them if match is nil; see [Inspector.BuryFresh].
func (i *Inspector) DeleteFresh(
	ctx context.Context, queue string, match func(QueuedJob) bool, o BulkOptions,
) (Result, error) {
	return i.onAllJobs(ctx, o.onAll("delete fresh", queue, match != nil, true), queue, freshJobs, match, Store.Delete)
}

// DeleteAll removes the queued jobs that match, or all of them if match is nil, with and without a failure: it empties a
// queue, but for what is claimed and what is in the morgue. See [Inspector.BuryFresh].
func (i *Inspector) DeleteAll(
	ctx context.Context, queue string, match func(QueuedJob) bool, o BulkOptions,
) (Result, error) {
	return i.onAllJobs(ctx, o.onAll("delete all", queue, match != nil, true), queue, allJobs, match, Store.Delete)
}

// CancelMode is what becomes of a cancelled job when its handler has returned,
// whatever that returned.
type CancelMode uint8

const (
	// CancelModePutBack queues the job again, untouched. It is due, so it runs again
	// at once; to hold it back, Pause the queue before.
	CancelModePutBack CancelMode = iota
	// CancelModeDrop removes the job.
	CancelModeDrop
)

// Cancel ends the claimed jobs of these ids: with the next turn of their shard
// their handlers' contexts end, with the cause skein.ErrCancelled, and once a
// handler has returned its job ends by mode; the last call counts. What is queued
// for these ids is not touched. An unknown mode is [ErrInvalidOptions].
func (i *Inspector) Cancel(
	ctx context.Context, queue string, ids []string, mode CancelMode, o BulkOptions,
) (Result, error) {
	verb := "cancel"
	if mode == CancelModeDrop {
		verb = "cancel and drop"
	}
	a := o.action(verb)
	if mode > CancelModeDrop {
		return a.end(fmt.Errorf("%w: CancelMode %d; use CancelModePutBack or CancelModeDrop", ErrInvalidOptions, mode))
	}
	return i.onIDs(ctx, a, queue, ids, func(s Store, shard core.Shard, ids []string) (ports.StepReply, error) {
		return s.Cancel(ctx, ports.CancelRequest{Shard: shard, IDs: ids, Drop: mode == CancelModeDrop})
	})
}

func (i *Inspector) onJobs(
	ctx context.Context, a *action, queue string, ids []string, step jobStep,
) (Result, error) {
	return i.onIDs(ctx, a, queue, ids, func(s Store, shard core.Shard, ids []string) (ports.StepReply, error) {
		return step(s, ctx, ports.JobStep{Shard: shard, IDs: ids})
	})
}

func (i *Inspector) onIDs(
	ctx context.Context, a *action, queue string, ids []string,
	step func(Store, core.Shard, []string) (ports.StepReply, error),
) (r Result, err error) {
	defer a.log(ctx, i, queue, ids)(&err)
	if a.invalid != nil {
		return a.end(a.invalid)
	}
	if err := validateIDs(ids); err != nil {
		return a.end(err)
	}
	a.progress.Total = len(ids)
	self := func(id string) string { return id }
	chunks := func(ids []string) iter.Seq[[]string] { return slices.Chunk(ids, ports.MaxStep) }
	return a.end(onEntries(ctx, i, a, queue, ids, self, chunks, step))
}
