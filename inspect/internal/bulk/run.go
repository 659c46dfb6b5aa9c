package bulk

import (
	"context"
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Options are the limits of a run.
type Options struct {
	// Before limits the run to entries that are older. [core.MaxInstant] means the time at which
	// the run begins.
	Before core.Instant
	// Limit, Stop, Rate and DryRun are as in inspect.BulkOptions.
	Limit, Rate int
	Stop        func(done int) bool
	DryRun      bool
	// Keeps is true if the run makes checkpoints. Checkpoint is called with each of them; nil means
	// no call.
	Keeps      bool
	Checkpoint func(text string)
}

// Run is an action on all entries of a kind.
type Run struct {
	*Tally
	// At is the content of the next checkpoint.
	At Standing
	// Last is the checkpoint after the last step.
	Last string
	// Earlier is the Handled of earlier calls.
	Earlier int
	// Missed are the shards that could not be reached, in order, without those that are finished. No
	// checkpoint is behind the first of them.
	Missed []core.Shard
	// Limited is true if Limit or Stop has ended the run.
	Limited bool

	o Options
	// before is the Done of earlier calls. taken is the number of entries that this call has
	// handled, for Limit.
	before, taken int
	// stopped is the last result of Stop.
	stopped bool
	// began is when the last step began.
	began time.Time
}

// New returns a run that counts in t. at describes the action.
func New(at Standing, o Options, t *Tally) *Run {
	at.Version = version
	return &Run{Tally: t, At: at, o: o}
}

// Continue makes the run continue from a checkpoint. It returns [ErrInvalidCheckpoint] for the
// checkpoint of another action.
func (r *Run) Continue(text string) error {
	if !r.o.Keeps {
		return fmt.Errorf("%w: %s can't use Continue: an edit and a DryRun have no checkpoints, "+
			"and an action with a match has them only with a Filter",
			core.ErrInvalidOptions, r.At.Action)
	}

	was, err := parse(text)
	if err != nil {
		return err
	}
	if err := was.sameAction(&r.At); err != nil {
		return err
	}
	if r.o.Before < was.Before { // the first call's may have been in the future
		return fmt.Errorf("%w: Before differs from that of the action; omit it to continue", ErrInvalidCheckpoint)
	}

	r.At, r.Last, r.before, r.Earlier = was, text, was.Done, was.Handled
	r.Done, r.Total, r.Handled, r.Met = was.Done, was.Total, was.Handled, was.Met
	return nil
}

// shards begins or continues the run with the queue's present state. It calls shard for each shard
// that is left: with the maximum number of its entries to handle, by count, and with the position
// in its list to begin behind. Once the run is Limited, there is room for no entry of any shard.
func (r *Run) shards(
	stats *ports.QueueStats,
	count func(*ports.Counts) int64,
	shard func(s core.Shard, left int, after ports.Cursor) error,
) error {
	if err := r.begin(stats, count); err != nil {
		return err
	}

	start := r.At
	if err := r.note(start.Shard, start.cursor()); err != nil {
		return err
	}

	for at := range stats.Shards {
		s := &stats.Shards[at]
		left := int(count(&s.Counts))
		if left == 0 || s.Shard.Index < start.Shard {
			continue
		}

		var after ports.Cursor
		if s.Shard.Index == start.Shard {
			after = start.cursor()
		}
		if err := shard(s.Shard, left, after); err != nil {
			return err
		}
	}
	return nil
}

// begin takes the state of the queue. It returns an error if the queue was resharded since the
// checkpoint.
func (r *Run) begin(stats *ports.QueueStats, count func(*ports.Counts) int64) error {
	shards := stats.Queue.Shards
	if r.At.Shards == 0 { // not continued
		r.At.Shards, r.At.Before = shards, min(endOf(stats.Now), r.o.Before)
		r.Total = int(count(&stats.Counts))
	}

	if r.At.Shards != shards {
		return fmt.Errorf("%w: the queue had %d shards and now has %d; start the action again with Before",
			ErrInvalidCheckpoint, r.At.Shards, shards)
	}

	for _, shard := range stats.Unreached {
		if shard.Index >= r.At.Shard {
			r.Missed = append(r.Missed, shard)
		}
	}
	return nil
}

// endOf returns the end of the microsecond in which a run began. Dead letters that were buried in
// the same microsecond, before the run began, belong to the run.
func endOf(began core.Instant) core.Instant { return began + 1 }

// room returns the maximum number of entries that the next step may handle, at most n. 0 means that
// Limit or Stop ends the run.
func (r *Run) room(n int) int {
	if r.o.Rate > 0 {
		n, r.began = min(n, r.o.Rate), time.Now()
	}
	if r.o.Limit > 0 {
		n = min(n, r.o.Limit-r.taken)
	}
	if r.Limited = r.stopped || n <= 0; r.Limited {
		return 0
	}
	return n
}

// step notes that a step has handled n entries and that all entries before a position are dealt
// with. Then it waits as Rate demands.
func (r *Run) step(ctx context.Context, n, shard int, from ports.Cursor) error {
	r.taken += n
	if err := r.note(shard, from); err != nil {
		return err
	}
	r.stopped = r.o.Stop != nil && r.o.Stop(r.Done-r.before)
	if r.o.Rate == 0 || r.stopped {
		return nil
	}

	due := r.began.Add(time.Duration(float64(n) / float64(r.o.Rate) * float64(time.Second)))
	if wait := time.Until(due); wait > 0 { // a step that took too long is not made up for
		return Wait(ctx, wait)
	}
	return nil
}

// note makes the checkpoint of a position. It makes none behind the last shard, where the action is
// finished, and none for an action that found no entry.
func (r *Run) note(shard int, from ports.Cursor) error {
	if len(r.Missed) > 0 && shard >= r.Missed[0].Index {
		shard, from = r.Missed[0].Index, ports.Cursor{}
	}
	if nothing := r.Total == 0 && len(r.Missed) == 0; nothing || !r.o.Keeps || shard >= r.At.Shards {
		return nil
	}
	r.At.Shard, r.At.Key, r.At.ID = shard, from.Key, from.ID
	return r.mark()
}

// Mark makes the checkpoint of a place in the schedules of a move.
func (r *Run) Mark(shard int, place core.ScheduleKey, different int) error {
	r.At.Schedules, r.At.Shard, r.At.Key, r.At.ID, r.At.Name, r.At.Different =
		true, shard, 0, place.ID, place.Name, different
	return r.mark()
}

// mark makes the checkpoint of At.
func (r *Run) mark() error {
	r.At.Done, r.At.Total, r.At.Handled, r.At.Met = r.Done, r.Total, r.Handled, r.Met
	text, err := r.At.text()
	if err != nil {
		return err
	}
	r.Last = text
	if r.o.Checkpoint != nil {
		r.o.Checkpoint(text)
	}
	return nil
}

// Ends reports whether Limit or Stop ends the run, after n more entries were handled.
func (r *Run) Ends(n int) bool {
	r.taken += n
	r.stopped = r.stopped || r.o.Stop != nil && r.o.Stop(r.Done-r.before)
	return r.stopped || r.o.Limit > 0 && r.taken >= r.o.Limit
}

// Wait waits for d. If ctx ends before that, it returns the context's error.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
