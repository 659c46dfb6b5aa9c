package service

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/skeinq/skein/inspect"
)

// TrackedQuery chooses a page of the tracked ids of a queue.
type TrackedQuery struct {
	After int `query:"after" doc:"the value of next of the previous page"`
	Limit int `query:"limit" min:"1" max:"100" default:"20" doc:"the maximum number of rows; each costs as much as the route why"`
}

// TrackedRow is a tracked id with its verdict, whose text is redacted already.
type TrackedRow struct {
	ID     string    `json:"id" class:"id" doc:"the id"`
	Since  time.Time `json:"since" class:"public" wide:"true" doc:"when it was tracked first"`
	Reason string    `json:"reason" class:"public" doc:"the reason why its job does not run, as of the route why; unreached if its shard can't be reached now"`
	Text   string    `json:"text" class:"public" doc:"the reason as a sentence, with figures"`
	Until  time.Time `json:"until,omitzero" class:"public" wide:"true" doc:"when the reason ends by itself, if that is known"`
	// Verdict has the reason for pages. It is zero for Unreached.
	Verdict Verdict `json:"-" class:"public"`
}

// Unreached and UnreachedText are the reason of a tracked id whose shard can't be reached.
const (
	Unreached     = "unreached"
	UnreachedText = "the shard of this id can't be reached now"
)

func (c *call) tracked(q *TrackedQuery) (*List[TrackedRow], error) {
	if q.After < 0 {
		return nil, ProblemBadRequest.With("after is %d; give the value of next of the previous page", q.After)
	}
	all, err := c.inspector.Tracked(c.ctx, c.queue)
	if err != nil {
		return nil, err
	}

	from := min(q.After, len(all))
	to := min(from+q.Limit, len(all))
	rows, errs := make([]TrackedRow, to-from), make([]error, to-from)

	var wait sync.WaitGroup
	slots := make(chan struct{}, trackedAtOnce)
	for n, t := range all[from:to] {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			rows[n], errs[n] = c.trackedRow(t)
		})
	}
	wait.Wait()

	reply := newList(rowsOf(c, rows))
	if to < len(all) {
		reply.Next = strconv.Itoa(to)
	}
	return reply, errors.Join(errs...)
}

// At most trackedAtOnce ids are looked up at once, each for at most trackedTime, so that an id
// whose shard hangs leaves time for the others.
const (
	trackedAtOnce = 20
	trackedTime   = LookTime * 3 / 5
)

// trackedRow returns the row of a tracked id.
func (c *call) trackedRow(t inspect.TrackedID) (TrackedRow, error) {
	row := TrackedRow{ID: t.ID, Since: t.Since}
	ctx, end := context.WithTimeout(c.ctx, trackedTime)
	defer end()

	switch why, err := (&call{c.Service, ctx, c.queue, c.who, nil}).why(&WhyQuery{Queue: c.queue, ID: t.ID}); {
	case err == nil:
		row.Reason, row.Text, row.Until, row.Verdict = why.Reason, why.Text, why.Until, why.Verdict
	case !errors.Is(c.ctx.Err(), context.Canceled) &&
		(ctx.Err() != nil || c.ProblemOf(c.queue, err).silent()):
		row.Reason, row.Text = Unreached, UnreachedText
	default:
		return row, err
	}
	return row, nil
}

// TrackBody names an id.
type TrackBody struct {
	ID string `json:"id" doc:"the id"`
}

func (b *TrackBody) about(a *Action) { a.IDs = []string{b.ID} }

// TrackReply is the answer of a change of the tracked ids.
type TrackReply struct {
	Changed bool `json:"changed" doc:"whether the list has changed; false if an id to track was tracked already, or an id to untrack was not tracked"`
}

func (c *call) track(b *TrackBody) (*TrackReply, error) {
	changed, err := c.inspector.Track(c.ctx, c.queue, b.ID)
	return &TrackReply{changed}, err
}

func (c *call) untrack(b *TrackBody) (*TrackReply, error) {
	changed, err := c.inspector.Untrack(c.ctx, c.queue, b.ID)
	return &TrackReply{changed}, err
}
