package inspect

import (
	"context"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

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

// jobKind is the queued jobs of a sweep.
type jobKind struct {
	inspector *Inspector
	*action
	sortBy SortBy
	which  whichJobs
	step   jobStep
	// move is set if the action moves the jobs.
	move *mover
	// matches is true if the action has a match.
	matches bool
}

// onAllJobs acts on the matching queued jobs of each shard, in the order of the list that has the
// fewest other jobs. That is the list by time, backwards for jobs to run now, or the list by id if
// there is a Prefix.
func (i *Inspector) onAllJobs(
	ctx context.Context, a *action, queue string, which whichJobs, match func(QueuedJob) bool, step jobStep,
) (r Result, err error) {
	defer a.log(ctx, i, queue, nil)(&err)
	return i.sweepJobs(ctx, &jobKind{action: a, which: which, step: step}, queue, match)
}

// sweepJobs is onAllJobs for an action that is already in the audit.
func (i *Inspector) sweepJobs(ctx context.Context, k *jobKind, queue string, match func(QueuedJob) bool) (Result, error) {
	k.inspector, k.sortBy = i, ByTime
	a, which := k.action, k.which
	if a.going.o.Group != "" && a.invalid == nil {
		a.invalid = fmt.Errorf("%w: jobs have no Group; only dead letters have one", ErrInvalidOptions)
	}
	a.going.at.Part = a.going.at.Part || which == laterJobs
	k.matches = match != nil
	prefix := a.going.o.Prefix
	switch {
	case which == failedJobs && prefix != "":
		k.sortBy = RetryingByID
	case which == failedJobs, which == heldJobs:
		k.sortBy = RetryingByTime
	case prefix != "":
		k.sortBy = ByID
	}
	page := ports.PageRequest{Limit: ports.MaxStep, ErrorBytes: -1, MaxCount: -1, Prefix: prefix, Descending: which == laterJobs && k.sortBy == ByTime}
	if which == heldJobs {
		page.From = heldFrom()
	}
	if k.matches || a.going.o.DryRun || k.move != nil {
		page.ErrorBytes, page.MaxCount = 0, 0
		page.Limit, page.Payloads = a.going.o.page()
	}
	if k.move != nil && !k.matches && !a.going.o.DryRun {
		page.MaxCount = page.Payloads + 1 // it matters only whether a job came whole
	}
	s := &sweep[ports.JobView, QueuedJob]{action: a, kind: k, queue: queue, page: page, match: match}
	return s.run(ctx, i)
}

// whole reports whether match needs all payloads.
func (k *jobKind) whole() bool { return k.matches && k.going.o.Payloads == 0 }

func (k *jobKind) count(c *ports.Counts) int64 {
	switch k.which {
	case failedJobs:
		return c.Retrying
	case freshJobs:
		return c.Fresh
	case heldJobs:
		return c.Held
	}
	return c.Fresh + c.Retrying
}

func (k *jobKind) list(ctx context.Context, r ports.PageRequest) ([]ports.JobView, ports.Cursor, error) {
	page, err := persist(ctx, k.inspector, func(s Store) (ports.JobsPage, error) {
		return s.Jobs(ctx, ports.JobsRequest{PageRequest: r, SortBy: ports.SortBy(k.sortBy), Fresh: k.which == freshJobs})
	})
	return page.Jobs, page.Next, err
}

func (k *jobKind) place(v *ports.JobView) ports.Cursor {
	return k.inspector.views.queuedJob(v, k.sortBy).Cursor.port()
}

func (k *jobKind) fate(v *ports.JobView, before, now core.Instant) fate {
	switch {
	case k.which == laterJobs && v.PerformAt <= now && k.sortBy == ByTime:
		return beyond
	case k.which == laterJobs && v.PerformAt <= now, v.FirstPush >= before:
		return passed
	}
	return looked
}

func (k *jobKind) complete(ctx context.Context, v *ports.JobView, before core.Instant) (bool, error) {
	if !k.whole() || len(v.Payloads) == v.Count {
		return true, nil
	}
	found, _, err := k.inspector.whole(ctx, k.going.at.Queue, v.ID, ports.PlaceQueued)
	if err != nil || found.Queued == nil || found.Queued.FirstPush >= before {
		return false, err
	}
	if fresh := found.Queued.Fresh(); k.which == failedJobs && fresh || k.which == freshJobs && !fresh || k.which == heldJobs && !found.Queued.Held() {
		return false, nil
	}
	*v = *found.Queued
	v.Count = len(v.Payloads)
	return true, nil
}

func (k *jobKind) show(v *ports.JobView) QueuedJob { return k.inspector.views.queuedJob(v, k.sortBy) }

func (k *jobKind) sample(chosen []QueuedJob) {
	k.going.jobs = append(k.going.jobs, chosen[:min(len(chosen), maxSamples-len(k.going.jobs))]...)
}

func (k *jobKind) act(ctx context.Context, shard core.Shard, chosen []QueuedJob, stored []ports.JobView) error {
	if k.move != nil {
		return k.move.jobs(ctx, shard, stored, k.going.at.Before)
	}
	ids := convert(chosen, func(j *QueuedJob) string { return j.ID })
	for chunk := range slices.Chunk(ids, ports.MaxStep) {
		err := onChunk(ctx, k.inspector, k.action, chunk, func(s Store, ids []string) (ports.StepReply, error) {
			return k.step(s, ctx, ports.JobStep{
				Shard: shard, IDs: ids, Before: k.going.at.Before, Failed: k.which == failedJobs || k.which == heldJobs, Held: k.which == heldJobs,
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
