package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Queues lists the queues of the store in order of name.
func (i *Inspector) Queues(ctx context.Context) ([]Queue, error) {
	queues, err := ask(i, func(s Store) ([]ports.Queue, error) { return s.Queues(ctx) })
	return convert(queues, queueOf), err
}

// Stats returns the sizes of the named queues, in the given order. Without names it returns the
// sizes of all queues, in order of name. If shards can't be reached, it returns the sizes of the
// other shards and a *[PartialError].
func (i *Inspector) Stats(ctx context.Context, queues ...string) ([]QueueStats, error) {
	if len(queues) == 0 {
		return i.allStats(ctx)
	}

	stats, err := ask(i, func(s Store) ([]ports.QueueStats, error) {
		return s.Stats(ctx, ports.StatsRequest{Queues: queues})
	})
	if err != nil {
		return nil, err
	}
	return convert(stats, queueStatsOf), partial(unreachedOf(stats))
}

// mostForgotten is the number of tries of allStats: a queue of the list may be forgotten before its
// sizes are read.
const mostForgotten = 10

// allStats is Stats of all queues.
func (i *Inspector) allStats(ctx context.Context) (stats []QueueStats, err error) {
	for range mostForgotten {
		all, failed := i.Queues(ctx)
		if failed != nil || len(all) == 0 {
			return nil, failed
		}
		stats, err = i.Stats(ctx, convert(all, func(q *Queue) string { return q.Name })...)
		if !errors.Is(err, ErrUnknownQueue) {
			break
		}
	}
	return stats, err
}

// unreachedOf returns the shards that stats lack.
func unreachedOf(stats []ports.QueueStats) (unreached []core.Shard) {
	for at := range stats {
		unreached = append(unreached, stats[at].Unreached...)
	}
	return unreached
}

// Day is the HistoryOptions.Step of statistics by day.
const Day = ports.Day

// DaysKept is how many days before the present one History lists.
const DaysKept = ports.DaysKept

// HistoryOptions select a part of a queue's history. The zero value selects the whole history, by
// minute.
type HistoryOptions struct {
	// From and To bound the starts of the minutes: From is inclusive, To is exclusive. The zero
	// From means the oldest minute, the zero To means no end.
	From, To time.Time
	// Step is the time that one element sums up: whole minutes, at most a [Day]. 0 means one minute.
	// Elements begin at multiples of Step since 1970 UTC. The first and the last element lack the
	// minutes that From and To leave out.
	//
	// The elements of a Day are different: each is a whole day of UTC. They are the days with a part
	// between From and To.
	Step time.Duration
}

// History lists statistics of a queue over all servers, by minute or by step, oldest first: how
// jobs ended, and how long they waited and ran. Minutes in which nothing was counted are left out.
// A server reports its counts after each third of ServerOptions.LeaseTTL, usually every few seconds.
// So the counts of the last seconds may be missing.
//
// The store keeps the minutes of the last 24 hours, and the sums of the present day and of the 30
// days before it. If a part of the history can't be reached, the rest comes with a *[PartialError].
//
// History returns [ErrInvalidOptions] if Step is not of whole minutes, negative or longer than a
// [Day].
func (i *Inspector) History(ctx context.Context, queue string, o HistoryOptions) ([]MinuteStats, error) {
	r := ports.HistoryRequest{Queue: queue, From: core.InstantOf(o.From), Step: o.Step}
	if !o.To.IsZero() {
		r.To = max(1, core.InstantOf(o.To)) // 0 means no end
	}
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidOptions, err)
	}
	reply, err := ask(i, func(s Store) (ports.HistoryReply, error) { return s.History(ctx, r) })
	if err != nil {
		return nil, err
	}
	return convert(reply.Minutes, minuteStatsOf), partial(reply.Unreached)
}

// Pause stops claims of a queue on all servers until Resume. Claimed jobs continue, and pushes are
// accepted. A repeated call changes nothing.
func (i *Inspector) Pause(ctx context.Context, queue string) error {
	return i.control(ctx, queue, "pause", Store.Pause)
}

// Resume ends a Pause. A repeated call changes nothing.
func (i *Inspector) Resume(ctx context.Context, queue string) error {
	return i.control(ctx, queue, "resume", Store.Resume)
}

// SetMerge changes the merge rule of a queue (docs/rules.md 2). The new rule holds from each id's
// next merge on. SetMerge itself removes nothing: an id that has more payloads than the new rule
// keeps has them until they are handled, put back, buried or revived, and has no more after other
// merges. A repeated call changes nothing.
//
// Servers and clients that declare the queue with its former rule return [ErrQueueMismatch] when
// they start, and continue if they run. So call SetMerge first, and then deploy the new rule.
//
// It returns [core.ErrInvalidRule] for an invalid rule, and [ErrQueueMismatch] for a change between
// a rule that counts each push (Every) and one that does not. Move the jobs for that.
func (i *Inspector) SetMerge(ctx context.Context, queue string, rule core.MergeRule) error {
	return i.control(ctx, queue, "set merge rule "+rule.String(), func(
		s Store,
		ctx context.Context,
		queue string,
	) error {
		return s.SetMerge(ctx, ports.SetMergeRequest{Queue: queue, Merge: rule})
	})
}

func (i *Inspector) control(
	ctx context.Context, queue, verb string, call func(Store, context.Context, string) error,
) error {
	d := i.begin(ctx, verb, queue, nil).start(ctx)
	_, err := persist(ctx, i, func(s Store) (struct{}, error) { return struct{}{}, call(s, ctx, queue) })
	d.end(ctx, 0, err)
	if err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	return nil
}

// queueStats returns the state of one queue.
func (i *Inspector) queueStats(ctx context.Context, queue string) (ports.QueueStats, error) {
	return persist(ctx, i, func(s Store) (none ports.QueueStats, err error) {
		stats, err := s.Stats(ctx, ports.StatsRequest{Queues: []string{queue}})
		if err != nil {
			return none, err
		}
		if len(stats) != 1 {
			return none, fmt.Errorf("%w: %q", ErrUnknownQueue, queue)
		}
		return stats[0], nil
	})
}

// record returns the store's record of a queue.
func (i *Inspector) record(ctx context.Context, queue string) (ports.Queue, error) {
	queues, err := persist(ctx, i, func(s Store) ([]ports.Queue, error) { return s.Queues(ctx) })
	if err != nil {
		return ports.Queue{}, err
	}
	for at := range queues {
		if queues[at].Name == queue {
			return queues[at], nil
		}
	}
	return ports.Queue{}, fmt.Errorf("%w: %q", ErrUnknownQueue, queue)
}

// ruler returns the merge rule of a queue to a reader of its payloads. It reads the queue's record
// once, and only if a payload looks as if it had a stamp, so that a look at a queue without stamps
// costs no other call.
type ruler struct {
	inspector *Inspector
	queue     string
	known     bool
	merge     core.MergeRule
}

func (i *Inspector) ruler(queue string) *ruler { return &ruler{inspector: i, queue: queue} }

// rule returns the rule by which to read stored payloads.
func (r *ruler) rule(ctx context.Context, payloads []core.Payload) (core.MergeRule, error) {
	if r.known || !slices.ContainsFunc(payloads, core.Payload.Stamped) {
		return r.merge, nil
	}
	record, err := r.inspector.record(ctx, r.queue)
	if err != nil {
		return core.MergeRule{}, err
	}
	r.known, r.merge = true, record.Merge
	return r.merge, nil
}

func payloadsOfJob(v *ports.JobView) []core.Payload           { return v.Payloads }
func payloadsOfClaim(v *ports.ClaimView) []core.Payload       { return v.Payloads }
func payloadsOfLetter(v *ports.DeadLetterView) []core.Payload { return v.Payloads }

// viewsOf returns the viewer for a page of a queue's entries, or err if that is not nil.
func viewsOf[V any](
	ctx context.Context,
	r *ruler,
	page []V,
	payloads func(*V) []core.Payload,
	err error,
) (viewer, error) {
	for at := 0; at < len(page) && err == nil; at++ {
		_, err = r.rule(ctx, payloads(&page[at]))
	}
	if err != nil {
		return viewer{}, err
	}
	return r.inspector.views.of(r.merge), nil
}

// shards returns the shard count of a queue.
func (i *Inspector) shards(ctx context.Context, queue string) (int, error) {
	record, err := i.record(ctx, queue)
	return record.Shards, err
}
