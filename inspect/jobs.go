package inspect

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect/internal/bulk"
	"github.com/skeinq/skein/internal/errorgroup"
	"github.com/skeinq/skein/ports"
)

// RunNow makes the selected jobs due that are not due yet, and releases those that are held, as
// [Inspector.Release] does. It acts on [JobIDs] and [AllJobs].
//
// On all jobs it begins in each shard with the latest time. A job whose time changes meanwhile may
// be missed. If a job was made due and has failed again before the action continues from a
// Checkpoint, it is made due once more.
func (i *Inspector) RunNow(ctx context.Context, queue string, jobs JobSelection) (Result, error) {
	return i.onJobs(ctx, queue, jobs, verbs{ids: "run now", all: "run all now"}, laterJobs, Store.Expedite)
}

// Release releases the selected jobs that are held. They become due, have all their retries and
// recoveries again, and keep their last error until they succeed. A queued job of [JobIDs] that is
// not held becomes due, as with [Inspector.RunNow]. To continue without the payload that failed,
// call [Inspector.Bury] with [FirstPayloads] instead.
//
// Release acts on [JobIDs] and on [AllJobs], which means all held jobs, in order of id within each
// shard. It refuses a Prefix with [ErrInvalidOptions]. A job that another call has released
// meanwhile keeps its state, also if it has failed since. A job that is held again before the
// action continues from a Checkpoint may be released once more.
func (i *Inspector) Release(ctx context.Context, queue string, jobs JobSelection) (Result, error) {
	if jobs.by == byMatch && jobs.options.Prefix != "" {
		return i.refuse(ctx, "release all", queue,
			fmt.Errorf("%w: a release accepts no Prefix; name the ids, or give a match", ErrInvalidOptions))
	}
	return i.onJobs(ctx, queue, jobs, verbs{ids: "release", all: "release all"}, heldJobs, Store.Expedite)
}

// Bury moves the selected jobs to the morgue, with all their payloads or, by [FirstPayloads], with
// the first one. The dead letter has the job's failure, or core.BuriedByHand if it has none.
// Payloads that are pushed for a job after the call of match are buried with it.
func (i *Inspector) Bury(ctx context.Context, queue string, jobs JobSelection) (Result, error) {
	v := verbs{ids: "bury", part: "bury first", all: "bury all", failed: "bury failed", fresh: "bury fresh"}
	return i.onJobs(ctx, queue, jobs, v, allJobs, Store.Bury)
}

// Delete removes the selected jobs or, by [FirstPayloads], their first payloads. Claimed jobs and
// dead letters stay. A claimed job may be requeued later, unless [Inspector.Cancel] drops it.
func (i *Inspector) Delete(ctx context.Context, queue string, jobs JobSelection) (Result, error) {
	v := verbs{ids: "delete", part: "delete first", all: "delete all", failed: "delete failed", fresh: "delete fresh"}
	return i.onJobs(ctx, queue, jobs, v, allJobs, Store.Delete)
}

// CancelMode decides what happens to a cancelled job when its handler has returned, whatever the
// handler returned.
type CancelMode uint8

const (
	// CancelModePutBack requeues the job untouched. The job is due, so it runs again at once. To
	// prevent that, pause the queue first.
	CancelModePutBack CancelMode = iota
	// CancelModeDrop removes the job.
	CancelModeDrop
)

// Cancel ends the claimed jobs of these ids. The contexts of their handlers end with the next turn
// of their shard, with the cause skein.ErrCancelled. When a handler has returned, its job ends as
// mode decides. If a handler ignores its context and its process is killed, the next owner of the
// shard ends the job in the same way. After several calls the mode of the last one applies. Queued
// jobs of these ids are not touched. For an unknown mode Cancel returns [ErrInvalidOptions].
func (i *Inspector) Cancel(ctx context.Context, queue string, ids []string, mode CancelMode) (Result, error) {
	verb := "cancel"
	if mode == CancelModeDrop {
		verb = "cancel and drop"
	}

	a := newAction(verb, nil)
	if mode > CancelModeDrop {
		return a.end(fmt.Errorf("%w: unknown CancelMode %d; use CancelModePutBack or CancelModeDrop",
			ErrInvalidOptions, mode))
	}

	return i.onIDs(ctx, a, queue, ids, func(s Store, shard core.Shard, ids []string) (ports.StepReply, error) {
		return s.Cancel(ctx, ports.CancelRequest{Shard: shard, IDs: ids, Drop: mode == CancelModeDrop})
	})
}

func (i *Inspector) onJobIDs(
	ctx context.Context, a *action, queue string, ids []string, step jobStep,
) (Result, error) {
	return i.onIDs(ctx, a, queue, ids, func(s Store, shard core.Shard, ids []string) (ports.StepReply, error) {
		return step(s, ctx, ports.JobStep{Shard: shard, IDs: ids})
	})
}

func (i *Inspector) onFirst(
	ctx context.Context, a *action, queue string, first []FirstPayload, step jobStep,
) (r Result, err error) {
	ids := convert(first, func(f *FirstPayload) string { return f.ID })
	defer a.log(ctx, i, queue, ids)(&err)
	if err := validateIDs(ids); err != nil {
		return a.end(err)
	}
	if at, twice := repeated(ids); twice {
		return a.end(fmt.Errorf("%w: id %q is named twice; a job has one first payload", ErrInvalidRequest, ids[at]))
	}

	a.Total = len(first)
	if first, err = a.storedFirst(ctx, first); err != nil {
		return a.end(err)
	}

	id := func(f *FirstPayload) string { return f.ID }
	steps := bulk.Whole(func(f *FirstPayload) (string, []core.Payload) {
		return f.ID, []core.Payload{{Data: f.Data}}
	})
	return a.end(onReached(ctx, a, first, id, steps, func(
		s Store,
		shard core.Shard,
		chunk []FirstPayload,
	) (ports.StepReply, error) {
		named := ports.JobStep{Shard: shard, First: make([][]byte, len(chunk))}
		for at := range chunk {
			named.IDs, named.First[at] = append(named.IDs, chunk[at].ID), chunk[at].Data
		}
		return step(s, ctx, named)
	}))
}

// storedFirst returns first payloads as they are stored, from first payloads as they were pushed.
// Where these differ, it reads the jobs, and leaves out those of shards that can't be reached.
// It is called once for an action: after a step of unknown outcome it could find the next payload
// of the same bytes.
func (a *action) storedFirst(ctx context.Context, first []FirstPayload) (stored []FirstPayload, err error) {
	record, err := a.inspector.record(ctx, a.queue)
	if err != nil || record.Merge.Same != core.SamePush {
		return first, err
	}

	for _, f := range first {
		shard := core.Shard{Queue: a.queue, Index: core.ShardOf(f.ID, record.Shards)}
		err := a.try(ctx, shard, func() error {
			r := ports.FindRequest{Queue: a.queue, ID: f.ID, Payloads: 1, MaxCount: -1}
			found, err := persist(ctx, a.inspector, func(s Store) (ports.Found, error) { return s.Find(ctx, r) })
			if err != nil {
				return err
			}

			if payloads := payloadsIn(&found, ports.PlaceQueued); len(payloads) > 0 &&
				bytes.Equal(record.Merge.Pushed(payloads[0]).Data, f.Data) {
				f.Data = payloads[0].Data
			}
			stored = append(stored, f)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return stored, nil
}

// repeated returns the position of the first id that also occurs earlier in the list. ok is false
// if there is no such id.
func repeated(ids []string) (at int, ok bool) {
	seen := make(map[string]bool, len(ids))
	for at, id := range ids {
		if seen[id] {
			return at, true
		}
		seen[id] = true
	}
	return 0, false
}

func (i *Inspector) onIDs(
	ctx context.Context, a *action, queue string, ids []string,
	step func(Store, core.Shard, []string) (ports.StepReply, error),
) (r Result, err error) {
	defer a.log(ctx, i, queue, ids)(&err)
	if err := validateIDs(ids); err != nil {
		return a.end(err)
	}

	a.Total = len(ids)
	self := func(id *string) string { return *id }
	chunks := func(ids []string) iter.Seq[[]string] { return slices.Chunk(ids, ports.MaxStep) }
	return a.end(onReached(ctx, a, ids, self, chunks, step))
}

// jobStep is a method of a store that makes a step on jobs.
type jobStep func(Store, context.Context, ports.JobStep) (ports.StepReply, error)

// whichJobs selects the queued jobs that an action on all jobs handles.
type whichJobs uint8

const (
	allJobs whichJobs = iota
	// failedJobs and freshJobs are the jobs with and without a failure, laterJobs are the jobs that
	// are not due, and heldJobs are the held jobs.
	failedJobs
	freshJobs
	laterJobs
	heldJobs
)

// jobKind is a visit's access to queued jobs.
type jobKind struct {
	*action
	sortBy SortBy
	which  whichJobs
	step   jobStep
	// move is set if the action moves the jobs.
	move *mover
	// match chooses jobs; nil chooses all.
	match func(QueuedJob) bool
}

// onAllJobs acts on the matching queued jobs of each shard, in the order of the list that has the
// fewest other jobs. That is the list by time, backwards for jobs to run now, or the list by id if
// there is a Prefix.
func (i *Inspector) onAllJobs(
	ctx context.Context,
	a *action,
	queue string,
	which whichJobs,
	match func(QueuedJob) bool,
	step jobStep,
) (r Result, err error) {
	defer a.log(ctx, i, queue, nil)(&err)
	return visitJobs(ctx, &jobKind{action: a, which: which, step: step, match: match})
}

// visitJobs is onAllJobs for an action that is already in the audit.
func visitJobs(ctx context.Context, k *jobKind) (Result, error) {
	k.sortBy = ByTime
	if k.all.Group != "" {
		k.ofGroup()
	}
	a, which, prefix := k.action, k.which, k.all.Prefix
	a.run.At.Part = a.run.At.Part || which == laterJobs

	switch {
	case which == failedJobs && prefix != "":
		k.sortBy = RetryingByID
	case which == failedJobs, which == heldJobs, a.all.Group != "":
		k.sortBy = RetryingByTime
	case prefix != "":
		k.sortBy = ByID
	}

	page := ports.PageRequest{
		Limit:      ports.MaxStep,
		ErrorBytes: -1,
		MaxCount:   -1,
		Prefix:     prefix,
		Descending: which == laterJobs && k.sortBy != ByID,
	}
	if which == heldJobs {
		page.From = heldFrom()
	}
	if k.match != nil || a.all.DryRun || k.move != nil {
		page.ErrorBytes, page.MaxCount = 0, 0
		page.Limit, page.Payloads = a.all.page()
	}
	if k.move != nil && k.match == nil && !a.all.DryRun {
		page.MaxCount = page.Payloads + 1 // it matters only whether a job came whole
	}

	return k.onAll(ctx, func(stats *ports.QueueStats) error { return bulk.Visit(ctx, a.run, stats, page, k) })
}

// ofGroup limits the visit to the jobs that have failed for an error of the group, as Errors groups
// them.
func (k *jobKind) ofGroup() {
	chosen := k.match
	if chosen == nil && k.move == nil {
		k.all.Payloads = -1 // only errors are read
	}
	k.match = func(j QueuedJob) bool {
		return j.Retries > 0 && errorgroup.Of("", j.LastError) == k.all.Group && (chosen == nil || chosen(j))
	}

	switch {
	case k.which == allJobs:
		k.which = failedJobs
	case k.which == freshJobs && k.invalid == nil:
		k.invalid = fmt.Errorf("%w: jobs without a failure have no Group; use FailedJobs or AllJobs", ErrInvalidOptions)
	}
}

func (k *jobKind) Count(c *ports.Counts) int64 {
	switch {
	case k.which == heldJobs:
		return c.Held
	case k.which == failedJobs, k.all.Group != "":
		return c.Retrying
	case k.which == freshJobs:
		return c.Fresh
	}
	return c.Fresh + c.Retrying
}

func (k *jobKind) List(ctx context.Context, r ports.PageRequest) ([]ports.JobView, ports.Cursor, error) {
	page, err := persist(ctx, k.inspector, func(s Store) (ports.JobsPage, error) {
		return s.Jobs(ctx, ports.JobsRequest{
			PageRequest: r,
			SortBy:      ports.SortBy(k.sortBy),
			Fresh:       k.which == freshJobs,
		})
	})
	return page.Jobs, page.Next, err
}

func (k *jobKind) Place(v *ports.JobView) ports.Cursor { return k.show(v).Cursor.port() }

func (k *jobKind) Fate(v *ports.JobView, before, now core.Instant) bulk.Fate {
	switch {
	case k.which == laterJobs && v.PerformAt <= now && k.sortBy != ByID:
		return bulk.Beyond
	case k.which == laterJobs && v.PerformAt <= now, v.FirstPush >= before:
		return bulk.Passed
	}
	return bulk.Looked
}

func (k *jobKind) Complete(ctx context.Context, v *ports.JobView, before core.Instant) (bool, error) {
	if k.match == nil || k.all.Payloads != 0 || len(v.Payloads) == v.Count {
		return true, nil
	}

	found, _, err := k.inspector.whole(ctx, k.queue, v.ID, ports.PlaceQueued)
	if err != nil || found.Queued == nil || found.Queued.FirstPush >= before {
		return false, err
	}
	if fresh := found.Queued.Fresh(); k.which == failedJobs && fresh ||
		k.which == freshJobs && !fresh || k.which == heldJobs && !found.Queued.Held() {
		return false, nil
	}

	*v = *found.Queued
	v.Count = len(v.Payloads)
	return true, nil
}

func (k *jobKind) show(v *ports.JobView) QueuedJob { return k.views().queuedJob(v, k.sortBy) }

func (k *jobKind) Match(v *ports.JobView) bool { return k.match == nil || k.match(k.show(v)) }

func (k *jobKind) Sample(chosen []ports.JobView) {
	k.sampleJobs = sampled(k.sampleJobs, chosen, k.show)
}

func (k *jobKind) Act(ctx context.Context, shard core.Shard, chosen []ports.JobView) error {
	before := k.run.At.Before
	if k.move != nil {
		return k.move.jobs(ctx, shard, chosen, before)
	}

	ids := convert(chosen, func(v *ports.JobView) string { return v.ID })
	for chunk := range slices.Chunk(ids, ports.MaxStep) {
		err := onChunk(ctx, k.action, chunk, func(s Store, ids []string) (ports.StepReply, error) {
			return k.step(s, ctx, ports.JobStep{
				Shard:  shard,
				IDs:    ids,
				Before: before,
				Failed: k.which == failedJobs || k.which == heldJobs,
				Held:   k.which == heldJobs,
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
