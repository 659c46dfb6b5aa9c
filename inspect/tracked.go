package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/ports"
)

// MaxTracked is the maximum number of tracked ids of a queue.
const MaxTracked = ports.MaxTracked

// TrackedID is an id that is tracked.
type TrackedID struct {
	ID string
	// Since is when the id was added to the list, by the store's clock.
	Since time.Time
}

// Track adds an id to the tracked ids of a queue, which the dashboard and skein job tracked show
// with the [Verdict] of each. The id need not have a job, and stays tracked after its job has
// ended. changed is false if the id was tracked already; an earlier try of the same call may have
// added it. Track returns [ErrTooManyTracked] if the queue already has [MaxTracked] other tracked
// ids, and [ErrInvalidID] for an id that no job can have. [Inspector.Forget] removes the list.
func (i *Inspector) Track(ctx context.Context, queue, id string) (changed bool, err error) {
	return i.track(ctx, "track", ports.TrackRequest{Queue: queue, ID: id})
}

// Untrack removes an id from the tracked ids of a queue. changed is false if the id was not
// tracked.
func (i *Inspector) Untrack(ctx context.Context, queue, id string) (changed bool, err error) {
	return i.track(ctx, "untrack", ports.TrackRequest{Queue: queue, ID: id, Untrack: true})
}

func (i *Inspector) track(ctx context.Context, verb string, r ports.TrackRequest) (changed bool, err error) {
	d := i.begin(ctx, verb, r.Queue, []string{r.ID}).start(ctx)
	changed, err = persist(ctx, i, func(s Store) (bool, error) { return s.Track(ctx, r) })
	d.end(ctx, 0, err) // no entry of the queue has changed
	if err != nil {
		return false, fmt.Errorf("%s: %w", verb, err)
	}
	return changed, nil
}

// Tracked returns the tracked ids of a queue, in order of id.
func (i *Inspector) Tracked(ctx context.Context, queue string) ([]TrackedID, error) {
	stored, err := ask(i, func(s Store) ([]ports.TrackedID, error) { return s.Tracked(ctx, queue) })
	if err != nil {
		return nil, fmt.Errorf("tracked ids of %s: %w", queue, err)
	}

	all := make([]TrackedID, len(stored))
	for n, t := range stored {
		all[n] = TrackedID{ID: t.ID, Since: t.Since.Time()}
	}
	return all, nil
}
