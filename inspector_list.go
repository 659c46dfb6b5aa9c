package skein

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/skeinq/skein/ports"
)

// Order is what a list is sorted by.
type SortBy uint8

const (
	// ByTime lists jobs by (PerformAt, id), claimed ones by (Since, id) and dead
	// letters by (ChangedAt, id). Every list has it.
	ByTime SortBy = SortBy(ports.ByTime)
	// ByID lists dead letters by id, and the jobs of a queue that was declared
	// with IndexIDs.
	ByID SortBy = SortBy(ports.ByID)
	// RetryingByTime lists the jobs with a failure by (PerformAt, id).
	RetryingByTime SortBy = SortBy(ports.RetryingByTime)
	// RetryingByID lists the jobs with a failure by id.
	RetryingByID SortBy = SortBy(ports.RetryingByID)
	// RetryingByCount lists the jobs with a failure by (RetryCount, id).
	RetryingByCount SortBy = SortBy(ports.RetryingByCount)
)

// ListOptions say what to list. The zero value is everything ByTime, without
// payloads.
type ListOptions struct {
	// Order is ByTime unless given.
	SortBy SortBy
	// Descending turns the list around.
	Descending bool
	// After starts behind this place, in the list's direction. The zero value is
	// the start.
	After Cursor
	// Limit ends the list after so many elements. 0 is no limit.
	Limit int
	// Payloads is how many payloads of each element to fetch, lowest score first.
	// 0 is none; Find gives all.
	Payloads int
}

// Jobs lists the queued jobs of a queue. It has all orders; ByID is
// ErrQueueMismatch for a queue without IndexIDs. Options that can't be are
// ErrInvalidOptions.
func (i *Inspector) Jobs(ctx context.Context, queue string, o ListOptions) iter.Seq2[QueuedJob, error] {
	err := o.check("jobs", ByTime, ByID, RetryingByTime, RetryingByID, RetryingByCount)
	return pages(o, err, func(r ports.PageRequest) ([]QueuedJob, ports.Cursor, error) {
		r.Queue = queue
		page, err := i.store.Jobs(ctx, ports.JobsRequest{PageRequest: r, SortBy: ports.SortBy(o.SortBy)})
		return convert(page.Jobs, func(v *ports.JobView) QueuedJob { return i.queuedJob(v, o.SortBy) }), page.Next, err
	})
}

// Claimed lists the jobs of a queue that lanes have taken. It has the order
// ByTime only; others are ErrInvalidOptions.
func (i *Inspector) Claimed(ctx context.Context, queue string, o ListOptions) iter.Seq2[ClaimedJob, error] {
	err := o.check("claimed jobs", ByTime)
	return pages(o, err, func(r ports.PageRequest) ([]ClaimedJob, ports.Cursor, error) {
		r.Queue = queue
		page, err := i.store.Claimed(ctx, r)
		return convert(page.Claims, i.claimedJob), page.Next, err
	})
}

// Morgue lists the dead letters of a queue. It has the orders ByTime and ByID;
// others are ErrInvalidOptions.
func (i *Inspector) Morgue(ctx context.Context, queue string, o ListOptions) iter.Seq2[DeadLetter, error] {
	err := o.check("the morgue", ByTime, ByID)
	return pages(o, err, func(r ports.PageRequest) ([]DeadLetter, ports.Cursor, error) {
		r.Queue = queue
		page, err := i.store.Morgue(ctx, ports.MorgueRequest{PageRequest: r, ByID: o.SortBy == ByID})
		return convert(page.DeadLetters, func(v *ports.DeadLetterView) DeadLetter { return i.deadLetter(v, o.SortBy) }), page.Next, err
	})
}

// check returns ErrInvalidOptions for what a list can't do.
func (o *ListOptions) check(list string, orders ...SortBy) error {
	switch {
	case !slices.Contains(orders, o.SortBy):
		return fmt.Errorf("%w: list %s in order %d; it has the orders %d", ErrInvalidOptions, list, o.SortBy, orders)
	case o.Limit < 0:
		return fmt.Errorf("%w: Limit %d is negative; 0 is no limit", ErrInvalidOptions, o.Limit)
	case o.Payloads < 0:
		return fmt.Errorf("%w: Payloads %d is negative; Find gives all", ErrInvalidOptions, o.Payloads)
	}
	return nil
}

// pages is a list that fetches its elements page by page.
func pages[V any](
	o ListOptions, refused error, fetch func(ports.PageRequest) ([]V, ports.Cursor, error),
) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		var none V
		if refused != nil {
			yield(none, refused)
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
