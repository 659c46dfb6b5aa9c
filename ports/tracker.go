package ports

import (
	"context"

	"github.com/skeinq/skein/core"
)

// MaxTracked is the maximum number of tracked ids of a queue.
const MaxTracked = 1000

// Tracker keeps a list of tracked ids for each queue, for people who watch them. The list is kept
// beside the queue's record. It has no influence on jobs, pushes and turns, and Forget removes it.
type Tracker interface {
	// Track adds an id to the tracked ids of a queue or, with Untrack, removes it. changed reports
	// whether the call has changed the list. The id need not have a job. An id that is tracked
	// already keeps its Since. Concurrent calls take effect one after another.
	//
	// Errors, with nothing changed: ErrUnknownQueue; core.ErrInvalidID; ErrTooManyTracked if the
	// queue already has MaxTracked other tracked ids. A repeated call changes nothing more.
	Track(ctx context.Context, r TrackRequest) (changed bool, err error)

	// Tracked returns the tracked ids of a queue, in order of their bytes.
	//
	// Errors: ErrUnknownQueue.
	Tracked(ctx context.Context, queue string) ([]TrackedID, error)
}

// TrackRequest adds an id to the tracked ids of a queue, or removes it.
type TrackRequest struct {
	Queue, ID string
	// Untrack is true if the id is removed instead.
	Untrack bool
}

// Validate returns [core.ErrInvalidID] for an id that no job can have.
func (r *TrackRequest) Validate() error { return core.ValidateID(r.ID) }

// TrackedID is a tracked id.
type TrackedID struct {
	ID string
	// Since is when it was added to the list, by the store's clock.
	Since core.Instant
}
