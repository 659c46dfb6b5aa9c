package service

import (
	"fmt"

	"github.com/skeinq/skein/inspect"
)

// movedPayloads is the number of payloads of each entry that a page has. With it most entries come
// whole, which saves a call for each.
const movedPayloads = 16

// MaxMoved is the maximum number of ids of one call. Each takes several calls of the store, so more
// might exceed the time of an operation.
const MaxMoved = 100

// MoveBody names the entries to move, and the queue to move them to.
type MoveBody struct {
	BulkBody
	To string `json:"to" doc:"the queue to move to; it must be paused, and the caller needs the right to move on both queues; by ids, at most 100 are moved; a match of {} takes all schedules of the queue too; records of what became of the ids are copied"`
}

func (b *MoveBody) target() string { return b.To }

func (b *MoveBody) check() error {
	switch {
	case b.To == "":
		return ProblemBadRequest.With("give to, the queue to move to")
	case len(b.IDs) > MaxMoved:
		return ProblemBadRequest.With("%d ids; move at most %d by one call", len(b.IDs), MaxMoved)
	}
	return nil
}

// move moves the queued jobs, dead letters and schedules of ids, or all queued jobs that match.
func (c *call) move(b *MoveBody) (*BulkReply, error) {
	jobs, err := c.selectJobs(&b.BulkBody, inspect.AllJobs, movedPayloads)
	if err != nil {
		return nil, err
	}
	result, err := c.inspector.Move(c.ctx, c.queue, inspect.Target{Queue: b.To}, jobs)
	reply, err := c.bulkReply(&result, err)
	return reply, c.halfway(err)
}

// halfway adds to the problem of a move that the store has not finished how far it came, and how to
// continue it.
func (c *call) halfway(err error) error {
	if err == nil {
		return nil
	}
	p := *c.ProblemOf(c.queue, err)
	if !p.silent() {
		return err
	}

	switch r := p.Result; {
	case r == nil:
		p.Detail += "; no entry is known to have moved; send the request again to continue"
	case r.Continue != "":
		p.Detail += fmt.Sprintf(
			"; %d entries have moved; send the request again with the continue of the result", r.Handled)
	default:
		p.Detail += fmt.Sprintf("; %d entries have moved; send the request again to move the others", r.Handled)
	}
	return &p
}

// moveMorgue moves all dead letters that match.
func (c *call) moveMorgue(b *MoveBody) (*BulkReply, error) {
	if b.IDs != nil {
		return nil, ProblemBadRequest.With("give match; jobs/move moves ids, with their dead letters")
	}
	if err := b.BulkBody.check(0); err != nil {
		return nil, err
	}

	dead, err := c.allDead(&b.BulkBody, movedPayloads)
	if err != nil {
		return nil, err
	}
	result, err := c.inspector.MoveMorgue(c.ctx, c.queue, inspect.Target{Queue: b.To}, dead)
	reply, err := c.bulkReply(&result, err)
	return reply, c.halfway(err)
}
