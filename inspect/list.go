package inspect

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// ListOptions select what to list. The zero value lists everything [ByTime], without payloads.
type ListOptions struct {
	// SortBy is the order of the list. The zero value is [ByTime].
	SortBy SortBy
	// Descending reverses the list.
	Descending bool
	// After starts the list behind this position, in the list's direction. The zero value is the
	// start. After takes precedence over FromTime, FromID and FromRetries.
	After Cursor
	// FromTime starts a list by time at this time, inclusive, in the list's direction. FromID
	// starts a list by id, and FromRetries a list [RetryingByCount]. The zero value is the start.
	// Only the field that belongs to the order of the list may be set.
	FromTime    time.Time
	FromID      string
	FromRetries int
	// Prefix limits a list by id to the ids with that prefix. Empty means all ids.
	Prefix string
	// Group limits the list of dead letters [ByTime] to those of a group. It is a name that
	// [Inspector.Groups] has returned. Empty means all groups.
	Group string
	// Shards are the indexes of the shards to list. nil means all shards, an empty list means no
	// shard.
	Shards []int
	// Fresh leaves jobs with a failure out of lists [ByTime] and [ByID].
	Fresh bool
	// Held limits a list of queued jobs to the held ones. It needs the order [ByTime] or
	// [RetryingByTime], ascending and without FromTime: held jobs all have the same time, so they
	// are listed by id.
	Held bool
	// Limit is the maximum number of elements of the list. 0 means no limit.
	Limit int
	// Payloads is the maximum number of payloads to fetch of each element, lowest score first. 0
	// fetches no payload; [Inspector.Payloads] lists all payloads of one id.
	Payloads int
	// ErrorBytes is the maximum size in bytes of the text of each element's last failure, truncated
	// between characters, before Options.DecodeError decodes it. A value below 0 means no text. Older
	// failures are then not fetched. 0 fetches all failures, whole.
	ErrorBytes int
	// MaxCount is the maximum number of payloads to count of each element; the element's
	// PayloadCount is at most MaxCount. 0 counts all payloads, a value below 0 counts none. On
	// Postgres a list reads the payloads that it counts.
	MaxCount int
}

// jobOrders are the sort orders of queued jobs.
var jobOrders = []SortBy{ByTime, ByID, RetryingByTime, RetryingByID, RetryingByCount}

// morgueOrders are the sort orders of dead letters.
var morgueOrders = []SortBy{ByTime, ByID}

// Jobs lists the queued jobs of a queue, in any order of [SortBy]. For [ByID] and a queue without
// IndexIDs the error is [ErrQueueMismatch]. For invalid options it is [ErrInvalidOptions].
func (i *Inspector) Jobs(ctx context.Context, queue string, o ListOptions) iter.Seq2[QueuedJob, error] {
	err := o.check("jobs", jobOrders...)
	rules := i.ruler(queue)
	return pages(o, err, func(r ports.PageRequest) (listPage[QueuedJob], error) {
		r.Queue = queue
		page, err := ask(i, func(s Store) (ports.JobsPage, error) {
			return s.Jobs(ctx, ports.JobsRequest{PageRequest: r, SortBy: o.jobsOrder(), Fresh: o.Fresh})
		})
		views, err := viewsOf(ctx, rules, page.Jobs, payloadsOfJob, err)
		view := func(v *ports.JobView) QueuedJob { return views.queuedJob(v, o.SortBy) }
		return listPage[QueuedJob]{convert(page.Jobs, view), page.Next, page.Unreached}, err
	})
}

// jobsOrder returns the list of the store that is read. The held jobs are the end of the list
// RetryingByTime.
func (o *ListOptions) jobsOrder() ports.SortBy {
	if o.Held {
		return ports.RetryingByTime
	}
	return ports.SortBy(o.SortBy)
}

// heldFrom returns where the held jobs begin in the list of jobs with a failure by time.
func heldFrom() *ports.Cursor { return &ports.Cursor{Key: int64(core.MaxInstant)} }

// Claimed lists the claimed jobs of a queue. Its only order is [ByTime]. For another order, or for
// invalid options, the error is [ErrInvalidOptions].
func (i *Inspector) Claimed(ctx context.Context, queue string, o ListOptions) iter.Seq2[ClaimedJob, error] {
	err := o.check("claimed jobs", ByTime)
	rules := i.ruler(queue)
	return pages(o, err, func(r ports.PageRequest) (listPage[ClaimedJob], error) {
		r.Queue = queue
		page, err := ask(i, func(s Store) (ports.ClaimedPage, error) { return s.Claimed(ctx, r) })
		views, err := viewsOf(ctx, rules, page.Claims, payloadsOfClaim, err)
		view := func(v *ports.ClaimView) ClaimedJob { return views.claimedJob(v) }
		return listPage[ClaimedJob]{convert(page.Claims, view), page.Next, page.Unreached}, err
	})
}

// Morgue lists the dead letters of a queue, [ByTime] or [ByID]. For another order, or for invalid
// options, the error is [ErrInvalidOptions].
func (i *Inspector) Morgue(ctx context.Context, queue string, o ListOptions) iter.Seq2[DeadLetter, error] {
	err := o.check("the morgue", morgueOrders...)
	rules := i.ruler(queue)
	return pages(o, err, func(r ports.PageRequest) (listPage[DeadLetter], error) {
		r.Queue = queue
		page, err := ask(i, func(s Store) (ports.MorguePage, error) {
			return s.Morgue(ctx, ports.MorgueRequest{PageRequest: r, ByID: o.SortBy == ByID, Group: o.Group})
		})
		views, err := viewsOf(ctx, rules, page.DeadLetters, payloadsOfLetter, err)
		view := func(v *ports.DeadLetterView) DeadLetter { return views.deadLetter(v, o.SortBy) }
		return listPage[DeadLetter]{convert(page.DeadLetters, view), page.Next, page.Unreached}, err
	})
}

// check returns ErrInvalidOptions unless the order is one of the allowed ones and the other options
// are valid for it.
func (o *ListOptions) check(list string, allowed ...SortBy) error {
	byID, byCount := o.SortBy == ByID || o.SortBy == RetryingByID, o.SortBy == RetryingByCount

	switch {
	case !slices.Contains(allowed, o.SortBy):
		return fmt.Errorf("%w: %s can't be sorted by %v; use one of %v", ErrInvalidOptions, list, o.SortBy, allowed)
	case o.Limit < 0:
		return fmt.Errorf("%w: a limit of %d rows; give 0 or more, 0 means no limit", ErrInvalidOptions, o.Limit)
	case o.Payloads < 0:
		return fmt.Errorf("%w: %d payloads of each row; give 0 or more", ErrInvalidOptions, o.Payloads)
	case o.FromRetries < 0:
		return fmt.Errorf("%w: a list can't begin at %d retries; 0 is the start", ErrInvalidOptions, o.FromRetries)
	case !o.FromTime.IsZero() && (byID || byCount), o.FromID != "" && !byID, o.FromRetries != 0 && !byCount:
		return fmt.Errorf(
			"%w: a list by %v can't begin at that value; "+
				"give a value of that order: a time, an id or a number of retries",
			ErrInvalidOptions, o.SortBy)
	case o.Prefix != "" && !byID:
		return fmt.Errorf("%w: a list by %v has no prefix; sort it by id", ErrInvalidOptions, o.SortBy)
	case o.Fresh && (len(allowed) < len(jobOrders) || o.SortBy != ByTime && o.SortBy != ByID):
		return fmt.Errorf("%w: only a list of queued jobs by time or by id can be limited to fresh jobs",
			ErrInvalidOptions)
	case o.Held && (len(allowed) < len(jobOrders) || o.SortBy != ByTime && o.SortBy != RetryingByTime ||
		o.Descending || o.Fresh || !o.FromTime.IsZero()):
		return fmt.Errorf(
			"%w: only an ascending list of queued jobs by time can be limited to held jobs, without FromTime and Fresh",
			ErrInvalidOptions)
	case o.Group != "" && (!slices.Equal(allowed, morgueOrders) || o.SortBy != ByTime):
		return fmt.Errorf("%w: only a list of dead letters by time can be limited to a group", ErrInvalidOptions)
	}
	return checkGroup(o.Group)
}

// request returns the request for the first page.
func (o *ListOptions) request() ports.PageRequest {
	r := ports.PageRequest{
		After:      o.After.port(),
		Descending: o.Descending,
		Limit:      o.Limit,
		Payloads:   o.Payloads,
		Shards:     o.Shards,
		Prefix:     o.Prefix,
		ErrorBytes: o.ErrorBytes,
		MaxCount:   o.MaxCount,
	}

	if o.Fresh && o.Limit > 0 { // some entries of a page may be left out
		r.Limit = max(o.Limit, ports.DefaultPage)
	}

	switch {
	case o.Held:
		r.From = heldFrom()
		if r.After != (ports.Cursor{}) && r.After.Key < r.From.Key { // of another list
			r.After = ports.Cursor{}
		}
	case !o.FromTime.IsZero():
		r.From = &ports.Cursor{Key: int64(core.InstantOf(o.FromTime))}
	case o.FromID != "":
		r.From = &ports.Cursor{ID: o.FromID}
	case o.FromRetries > 0:
		r.From = &ports.Cursor{Key: int64(o.FromRetries) - 1}
	}
	return r
}

// listPage is a page of a list.
type listPage[V any] struct {
	elements  []V
	next      ports.Cursor
	unreached []core.Shard
}

// pages returns a list that fetches its elements page by page. If invalid is not nil, the list has
// only this error. A page may be short, even empty: the list ends with the page that has no next
// one.
func pages[V any](
	o ListOptions,
	invalid error,
	fetch func(ports.PageRequest) (listPage[V], error),
) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		var none V
		if invalid != nil {
			yield(none, invalid)
			return
		}

		var unreached []core.Shard
		r, left := o.request(), o.Limit
		for {
			page, err := fetch(r)
			if errors.Is(err, ports.ErrInvalidRequest) {
				err = fmt.Errorf("%w: %w", ErrInvalidOptions, err)
			}
			if err != nil {
				yield(none, err)
				return
			}

			if o.Limit > 0 {
				page.elements = page.elements[:min(left, len(page.elements))]
				left -= len(page.elements)
			}
			for _, v := range page.elements {
				if !yield(v, nil) {
					return
				}
			}

			unreached = mergeShards(unreached, page.unreached)
			r.After = page.next
			if page.next == (ports.Cursor{}) || o.Limit > 0 && left == 0 {
				break
			}
			if o.Limit > 0 && !o.Fresh {
				r.Limit = left
			}
		}

		if err := partial(unreached); err != nil {
			yield(none, err)
		}
	}
}
