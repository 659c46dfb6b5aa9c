package inspect

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/skeinq/skein/ports"
)

// ListOptions say what to list. The zero value lists everything [ByTime], without
// payloads.
type ListOptions struct {
	// SortBy is [ByTime] unless set.
	SortBy SortBy
	// Descending reverses the list.
	Descending bool
	// After starts behind this place, in the list's direction. The zero value is
	// the start.
	After Cursor
	// Limit ends the list after so many elements. 0 is no limit.
	Limit int
	// Payloads is how many payloads of each element to fetch, lowest score first.
	// 0 fetches none; [Inspector.Find] returns all.
	Payloads int
}

// Jobs lists the queued jobs of a queue. It can be sorted in every way; [ByID] is
// [ErrQueueMismatch] for a queue without IndexIDs. Invalid options are
// [ErrInvalidOptions].
func (i *Inspector) Jobs(ctx context.Context, queue string, o ListOptions) iter.Seq2[QueuedJob, error] {
	err := o.check("jobs", ByTime, ByID, RetryingByTime, RetryingByID, RetryingByCount)
	return pages(o, err, func(r ports.PageRequest) ([]QueuedJob, ports.Cursor, error) {
		r.Queue = queue
		page, err := ask(i, func(s Store) (ports.JobsPage, error) {
			return s.Jobs(ctx, ports.JobsRequest{PageRequest: r, SortBy: ports.SortBy(o.SortBy)})
		})
		return convert(page.Jobs, func(v *ports.JobView) QueuedJob { return i.views.queuedJob(v, o.SortBy) }), page.Next, err
	})
}

// Claimed lists the jobs of a queue that lanes have taken. It is sorted [ByTime];
// anything else is [ErrInvalidOptions].
func (i *Inspector) Claimed(ctx context.Context, queue string, o ListOptions) iter.Seq2[ClaimedJob, error] {
	err := o.check("claimed jobs", ByTime)
	return pages(o, err, func(r ports.PageRequest) ([]ClaimedJob, ports.Cursor, error) {
		r.Queue = queue
		page, err := ask(i, func(s Store) (ports.ClaimedPage, error) { return s.Claimed(ctx, r) })
		view := func(v *ports.ClaimView) ClaimedJob { return i.views.claimedJob(v) }
		return convert(page.Claims, view), page.Next, err
	})
}

// Morgue lists the dead letters of a queue. It can be sorted [ByTime] and [ByID];
// anything else is [ErrInvalidOptions].
func (i *Inspector) Morgue(ctx context.Context, queue string, o ListOptions) iter.Seq2[DeadLetter, error] {
	err := o.check("the morgue", ByTime, ByID)
	return pages(o, err, func(r ports.PageRequest) ([]DeadLetter, ports.Cursor, error) {
		r.Queue = queue
		page, err := ask(i, func(s Store) (ports.MorguePage, error) {
			return s.Morgue(ctx, ports.MorgueRequest{PageRequest: r, ByID: o.SortBy == ByID})
		})
		view := func(v *ports.DeadLetterView) DeadLetter { return i.views.deadLetter(v, o.SortBy) }
		return convert(page.DeadLetters, view), page.Next, err
	})
}

// check returns ErrInvalidOptions unless the list can be sorted so, and the limits are valid.
func (o *ListOptions) check(list string, allowed ...SortBy) error {
	switch {
	case !slices.Contains(allowed, o.SortBy):
		return fmt.Errorf("%w: %s can't be sorted by %v; possible are %v", ErrInvalidOptions, list, o.SortBy, allowed)
	case o.Limit < 0:
		return fmt.Errorf("%w: Limit %d is negative; 0 is no limit", ErrInvalidOptions, o.Limit)
	case o.Payloads < 0:
		return fmt.Errorf("%w: Payloads %d is negative; Find returns all", ErrInvalidOptions, o.Payloads)
	}
	return nil
}

// pages returns a list that fetches its elements page by page, or whose only pair is
// the error invalid.
func pages[V any](
	o ListOptions, invalid error, fetch func(ports.PageRequest) ([]V, ports.Cursor, error),
) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		var none V
		if invalid != nil {
			yield(none, invalid)
			return
		}
		r := ports.PageRequest{
			After: o.After.port(), Descending: o.Descending, Limit: o.Limit, Payloads: o.Payloads,
		}
		for {
			page, next, err := fetch(r)
			if err != nil {
				yield(none, err)
				return
			}
			for _, v := range page {
				if !yield(v, nil) {
					return
				}
			}
			if r.After = next; next == (ports.Cursor{}) {
				return
			}
			if o.Limit == 0 {
				continue
			}
			if r.Limit -= len(page); r.Limit <= 0 {
				return
			}
		}
	}
}
