package inspect

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect/internal/bulk"
	"github.com/skeinq/skein/ports"
)

// ErrNotPaused reports a move into a queue that is not paused, or was resumed during the move. The
// queue may be shown as paused if an interrupted pause has left out shards. Pause it with
// [Inspector.Pause], and resume it once everything has been moved.
var ErrNotPaused = ports.ErrNotPaused

// Target is the queue to which a move moves. A Checkpoint of a move is refused for a target with
// another Queue or Store. Store is a name only: continue a move with an Inspector of the same
// store, and do not change the target until the move was repeated to its end.
type Target struct {
	// Queue is the name of the queue.
	Queue string
	// Inspector is an inspector of the store that has the queue. nil means the store of the source.
	Inspector *Inspector
	// Store and FromStore are names for the target's store and for that of the source. Both audits
	// have them. They may be empty.
	Store, FromStore string
}

// Move moves the selected jobs from a queue to another one. By [JobIDs] it also moves the dead
// letters and schedules of these ids; see below for [AllJobs]. It moves the jobs with payloads,
// scores, Meta, time, retries, recoveries, error and tags, the dead letters with their time, error,
// group and tags, and the schedules with their next tick and their counts. It also copies the
// records of the ids, with results, and their marks. Claimed jobs are not touched; jobs that are
// queued behind them move.
//
// Both queues must have been declared, and the target must be paused (otherwise [ErrNotPaused]): a
// job that ran there before its original is deleted could miss a push. Pause the source too.
// Otherwise a job may run in both queues, and payloads that are pushed there may run before those
// that have moved. A target that is resumed during the move ends it with [ErrNotPaused]. If both
// queues have the same name, the ids of their stores must differ (otherwise [ErrInvalidOptions]):
// a queue that is moved into itself would be deleted. See [Inspector.RenewStoreID].
//
// Each step copies at most 250 jobs, 1,000 payloads or 8 MiB and then deletes at the source exactly
// the payloads that it has copied. So an interrupted move loses nothing. Call it again with the
// same target: what was copied already merges with its copy. Nothing is doubled if the source is
// paused and only pushes change both queues until then. If an entry is deleted, buried, purged or
// edited at the source between its copy and its deletion, the copy stays.
//
// A payload that is pushed to the source meanwhile stays there for another call, unless it merges
// with one that moves. A job that exceeds a step goes in parts. Each part takes the lowest payloads
// that are there then, as many in all as the job had at first. At the target, payloads merge by the
// merge rule of that queue; those that it drops are counted in its Counts.Superseded. Of two states
// of an id a held one stays, else the one with more failures, on a tie that of the target; of two
// fresh ones the earlier time stays.
//
// A schedule that changes at the source between its copy and its removal, for example by a tick, is
// copied again. If the target has another schedule with the same id and name, both stay. The move
// continues, and ends with [ErrScheduleExists]. A schedule that the target's merge rule refuses
// ends the move.
//
// [AllJobs] moves all queued jobs that match, in order of their time, or of their ids with a
// Prefix. Dead letters stay; [Inspector.MoveMorgue] moves them. A move of all jobs, without match,
// Prefix and Before, then moves all schedules of the queue too, and copies all records, also those of
// ids without a job. Limit and Stop count each schedule. Any other move leaves the schedules, since
// their ids may have other jobs, and copies the records of the jobs that it moves.
//
// Records stay at the source too, until they go there by its bounds or the queue is forgotten, and
// are not counted. If the target has a record of an id, the one that was done later stays
// (docs/rules.md 14).
//
// Result.Handled counts jobs, dead letters and schedules. An entry that another operator or a
// server has taken meanwhile is not counted.
func (i *Inspector) Move(ctx context.Context, from string, to Target, jobs JobSelection) (Result, error) {
	v := verbs{ids: "move", all: "move all"}
	verb, err := v.of(jobs.by, jobs.which, v.jobs())
	if err != nil {
		return i.refuse(ctx, moveVerb(verb, to), from, err)
	}
	if jobs.by == byMatch {
		return i.moveAll(ctx, from, to, &jobs)
	}
	return i.moveIDs(ctx, from, to, jobs.ids)
}

func (i *Inspector) moveIDs(ctx context.Context, from string, to Target, ids []string) (r Result, err error) {
	a := newAction(moveVerb("move", to), nil)
	defer a.log(ctx, i, from, ids)(&err)
	if err := validateIDs(ids); err != nil {
		return a.end(err)
	}

	m, err := i.mover(ctx, a, "move", from, to)
	if err != nil {
		return a.end(err)
	}
	record, err := i.record(ctx, from)
	if err != nil {
		return a.end(err)
	}

	if err := m.carryPast(ctx); err != nil {
		return a.end(err)
	}

	a.Total, a.merge = len(ids), record.Merge
	for _, id := range ids {
		shard := core.Shard{Queue: from, Index: core.ShardOf(id, record.Shards)}
		if err := a.try(ctx, shard, func() error { return m.id(ctx, shard, id) }); err != nil {
			return a.end(fmt.Errorf("shard %v: %w", shard, err))
		}
	}
	return a.end(m.errDifferent())
}

func (i *Inspector) moveAll(
	ctx context.Context, from string, to Target, jobs *JobSelection,
) (r Result, err error) {
	a := jobs.options.action(moveVerb("move all", to), from, jobs.match != nil, true)
	defer a.log(ctx, i, from, nil)(&err)

	m, err := i.mover(ctx, a, "move all", from, to)
	if err == nil && (jobs.match != nil || a.run.At.Part) && !a.all.DryRun {
		err = m.carryPast(ctx)
	}
	if err != nil {
		return a.end(err)
	}
	if !a.run.At.Schedules {
		r, err = visitJobs(ctx, &jobKind{action: a, which: allJobs, move: m, match: jobs.match})
		if err != nil || r.Checkpoint != "" || jobs.match != nil || a.run.At.Part {
			return r, err
		}
	}

	if jobs.options.DryRun {
		count := 0
		count, err = i.countSchedules(ctx, from)
		r.Handled, r.Done, r.Total = r.Handled+count, r.Done+count, r.Total+count
	} else {
		r, err = m.rest(ctx)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", a.verb, err)
	}
	return r, nil
}

// MoveMorgue moves the dead letters of [AllDead] to the morgue of another queue, and copies the
// records of their ids; see [Inspector.Move], which moves those of single ids.
func (i *Inspector) MoveMorgue(
	ctx context.Context,
	from string,
	to Target,
	dead DeadLetterSelection,
) (r Result, err error) {
	if dead.by != byMatch {
		return i.refuse(ctx, moveVerb("move morgue", to), from,
			fmt.Errorf("%w: the move of a morgue acts on AllDead; Move moves single ids", ErrInvalidOptions))
	}

	a := dead.options.action(moveVerb("move morgue", to), from, dead.match != nil, true)
	defer a.log(ctx, i, from, nil)(&err)
	defer func() { a.sayLater(ctx, &r, err) }()
	m, err := i.mover(ctx, a, "move morgue", from, to)
	if err == nil && !a.all.DryRun {
		err = m.carryPast(ctx)
	}
	if err != nil {
		return a.end(err)
	}
	move := func(ctx context.Context, shard core.Shard, chosen []ports.DeadLetterView) error {
		return m.letters(ctx, shard, chosen, a.run.At.Before)
	}
	return visitDeadLetters(ctx, &deadKind{action: a, match: dead.match, do: move, moves: true})
}

// moveVerb names the target too, so a Checkpoint of a move to a queue of another name is refused,
// and the audit has it.
func moveVerb(verb string, to Target) string {
	return auditText(verb + " to " + to.Queue + inStore(to.Store))
}

// inStore returns the part of a verb that names a store, if it has a name.
func inStore(name string) string {
	if name == "" {
		return ""
	}
	return " in " + name
}

// arriveIn begins the deed of a move in the audit of the target's store, if that is another one
// than the source's. It is the same deed in all calls of a continued move.
func (m *mover) arriveIn(ctx context.Context, kind string, to Target) {
	if m.into == m.inspector {
		return
	}
	from := m.deed.action
	d := m.into.begin(ctx, auditText(kind+" from "+m.queue+inStore(to.FromStore)), to.Queue, nil)
	d.action.ID, d.action.IDs, d.action.Named, d.action.Handled = from.ID+"-to", from.IDs, from.Named, from.Handled
	d.action.Prefix, d.action.Group, d.action.Filter, d.action.Reason =
		from.Prefix, from.Group, from.Filter, from.Reason
	m.arrival = d.start(ctx)
}

// mover moves entries of one queue to another. It copies them first, so that a crash loses nothing,
// and then deletes what it has copied.
type mover struct {
	*action // its inspector and queue are those of the source
	into    *Inspector
	to      ports.Queue
	// different is the number of schedules that stay since the target has others by their keys.
	different int
	// carriesPast is true if each job and dead letter takes the record of its id along.
	carriesPast bool
}

// mover prepares a move, and refuses one that could lose something.
func (i *Inspector) mover(ctx context.Context, a *action, kind, from string, to Target) (*mover, error) {
	if a.invalid != nil {
		return nil, a.invalid
	}
	m := &mover{action: a, into: cmp.Or(to.Inspector, i)}
	if from == to.Queue {
		if err := m.otherStore(ctx); err != nil {
			return nil, err
		}
	}

	stats, err := m.into.queueStats(ctx, to.Queue)
	if err != nil {
		return nil, fmt.Errorf("the target: %w", err)
	}
	m.to = stats.Queue

	if a.all != nil && a.all.DryRun {
		return m, nil
	}
	if !m.to.Paused {
		return nil, fmt.Errorf("%w: %q; pause it before something is moved to it, and resume it afterwards",
			ErrNotPaused, to.Queue)
	}
	m.arriveIn(ctx, kind, to)
	return m, nil
}

// otherStore returns an error unless the target is in another store than the queue of the same name
// that is the source: a queue that is moved into itself would be deleted.
func (m *mover) otherStore(ctx context.Context) error {
	if m.into == m.inspector {
		return fmt.Errorf("%w: %q is the source and the target; name two queues", ErrInvalidOptions, m.queue)
	}

	var ids [2]string
	for at, side := range []*Inspector{m.inspector, m.into} {
		id, err := persist(ctx, side, func(s Store) (string, error) { return s.StoreID(ctx) })
		if err == nil && id == "" {
			_, err = side.record(ctx, m.queue) // a store without queues need not have an id
		}
		if err != nil {
			return err
		}
		if id == "" {
			return fmt.Errorf("%w: a store has lost its id, so it is unknown whether both queues %q are the same; "+
				"run skein repair identity on the store for which skein doctor shows none", ErrInvalidOptions, m.queue)
		}
		ids[at] = id
	}

	if ids[0] == ids[1] {
		return fmt.Errorf(
			"%w: both stores have the id %s, so both queues %q may be the same; "+
				"name two queues or, if one store is a copy of the other, run skein repair identity on the copy",
			ErrInvalidOptions, ids[0], m.queue)
	}
	return nil
}

// id moves what the source has of one id.
func (m *mover) id(ctx context.Context, shard core.Shard, id string) error {
	if err := m.pastOf(ctx, []string{id}); err != nil {
		return err
	}

	moved, err := m.job(ctx, shard, id, 0)
	m.Pass(0, moved)
	if err != nil {
		return err
	}

	moved, err = m.letter(ctx, shard, id, 0)
	m.Pass(0, moved)
	if err != nil {
		return err
	}

	r := ports.SchedulesRequest{Queue: m.queue, Shards: []int{shard.Index}, ID: id}
	err = m.schedules(ctx, shard, r, func(_ core.ScheduleKey, moved int) bool {
		m.Pass(0, moved)
		return true
	})
	if err != nil {
		return err
	}

	m.Pass(1, 0)
	return nil
}

// jobs moves queued jobs of a shard that were first pushed before an instant.
func (m *mover) jobs(ctx context.Context, shard core.Shard, jobs []ports.JobView, before core.Instant) error {
	if err := m.pastOf(ctx, convert(jobs, func(v *ports.JobView) string { return v.ID })); err != nil {
		return err
	}
	return carry(ctx, m, &jobCargo, jobs,
		func(v *ports.JobView) (core.Job, int) { return v.Job, v.Count },
		func(found *ports.Found) *core.Job {
			if v := queuedBefore(found, before); v != nil {
				return &v.Job
			}
			return nil
		},
		func(id string) (int, error) { return m.job(ctx, shard, id, before) },
		func(chunk []core.Job) error {
			return onChunk(ctx, m.action, chunk, func(s Store, jobs []core.Job) (ports.StepReply, error) {
				return s.Delete(ctx, deletion(shard, jobs, before))
			})
		})
}

// deletion is the step that deletes exactly the payloads of copied jobs.
func deletion(shard core.Shard, jobs []core.Job, before core.Instant) ports.JobStep {
	return ports.JobStep{
		Shard:    shard,
		Before:   before,
		IDs:      convert(jobs, func(j *core.Job) string { return j.ID }),
		Payloads: convert(jobs, func(j *core.Job) []core.Payload { return j.Payloads }),
	}
}

// job moves one queued job in parts, unless it was first pushed at or after an instant, 0 for any.
func (m *mover) job(ctx context.Context, shard core.Shard, id string, before core.Instant) (moved int, err error) {
	return m.inParts(ctx, id, ports.PlaceQueued, func(found *ports.Found) (p part, err error) {
		v := queuedBefore(found, before)
		if v == nil {
			return p, nil
		}

		jobs := []core.Job{v.Job}
		if err := put(ctx, m, &jobCargo, jobs); err != nil {
			return p, err
		}

		reply, err := persist(ctx, m.inspector, func(s Store) (ports.StepReply, error) {
			return s.Delete(ctx, deletion(shard, jobs, before))
		})
		return part{of: v.Count, payloads: len(v.Payloads), handled: reply.Handled}, err
	})
}

// queuedBefore returns the queued job of a reply, or nil if there is none, or if it was first
// pushed at or after an instant, 0 for any.
func queuedBefore(found *ports.Found, before core.Instant) *ports.JobView {
	v := found.Queued
	if v == nil || len(v.Payloads) == 0 || before > 0 && v.FirstPush >= before {
		return nil
	}
	return v
}

// letters moves dead letters of a shard that last changed before an instant.
func (m *mover) letters(
	ctx context.Context,
	shard core.Shard,
	letters []ports.DeadLetterView,
	before core.Instant,
) error {
	if err := m.pastOf(ctx, convert(letters, func(v *ports.DeadLetterView) string { return v.ID })); err != nil {
		return err
	}
	return carry(ctx, m, &letterCargo, letters,
		func(v *ports.DeadLetterView) (core.DeadLetter, int) { return v.DeadLetter, v.Count },
		func(found *ports.Found) *core.DeadLetter {
			if v := deadBefore(found, before); v != nil {
				return &v.DeadLetter
			}
			return nil
		},
		func(id string) (int, error) { return m.letter(ctx, shard, id, before) },
		func(chunk []core.DeadLetter) error {
			for refs := range bulk.Refs(convert(chunk, payloadsOf)) {
				if err := onChunk(ctx, m.action, refs, stepOn(ctx, shard, Store.Purge, before)); err != nil {
					return err
				}
			}
			return nil
		})
}

// letter moves one dead letter in parts, unless it has changed at or after an instant; 0 is the
// time of its first part.
func (m *mover) letter(ctx context.Context, shard core.Shard, id string, before core.Instant) (moved int, err error) {
	return m.inParts(ctx, id, ports.PlaceDead, func(found *ports.Found) (p part, err error) {
		v := deadBefore(found, before)
		if v == nil {
			return p, nil
		}

		if before == 0 {
			before = v.ChangedAt + 1
		}

		if err := put(ctx, m, &letterCargo, []core.DeadLetter{v.DeadLetter}); err != nil {
			return p, err
		}

		refs := []ports.DeadLetterRef{payloadsOf(&v.DeadLetter)}
		reply, err := persist(ctx, m.inspector, func(s Store) (ports.StepReply, error) {
			return stepOn(ctx, shard, Store.Purge, before)(s, refs)
		})
		return part{of: v.Count, payloads: len(v.Payloads), handled: reply.Handled}, err
	})
}

// deadBefore returns the dead letter of a reply, or nil if there is none, or if it has changed at
// or after an instant, 0 for any.
func deadBefore(found *ports.Found, before core.Instant) *ports.DeadLetterView {
	v := found.DeadLetter
	if v == nil || len(v.Payloads) == 0 || before > 0 && v.ChangedAt >= before {
		return nil
	}
	return v
}

// part is what was moved of an entry that had a number of payloads. The zero value is that nothing
// is left to move.
type part struct{ of, payloads, handled int }

// inParts moves one entry in parts, lowest payloads first. It takes as many payloads as the entry
// had, and returns 1 if it has moved any. An interrupted move of the entry counts nothing.
func (m *mover) inParts(
	ctx context.Context, id string, place ports.Place, move func(*ports.Found) (part, error),
) (moved int, err error) {
	r := ports.FindRequest{
		Queue:    m.queue,
		ID:       id,
		Payloads: core.MaxTurnPayloads,
		After:    &ports.PayloadCursor{Place: place},
	}
	for left := 0; ; r.MaxCount = -1 {
		found, err := persist(ctx, m.inspector, func(s Store) (ports.Found, error) { return s.Find(ctx, r) })
		if err != nil {
			return 0, err
		}
		if slices.Contains(found.Damaged, place) {
			return 0, fmt.Errorf("id %q of queue %q is not moved: the store can't read its record in %v; "+
				"its next use sets it aside, then see Quarantined", id, m.queue, place)
		}

		p, err := move(&found)
		if err != nil {
			return 0, err
		}

		// Only the first reply has the count of the payloads.
		if r.MaxCount == 0 {
			left = p.of
		}
		moved = max(moved, p.handled)
		if left -= p.payloads; left <= 0 || p.payloads == 0 || len(found.Next) == 0 {
			return moved, nil
		}
	}
}

// cargo is a kind of entries that a mover moves.
type cargo[E any] struct {
	place    ports.Place
	id       func(*E) string
	payloads func(*E) *[]core.Payload
	set      func(*ports.ImportRequest, []E)
}

var (
	jobCargo = cargo[core.Job]{
		ports.PlaceQueued,
		func(j *core.Job) string { return j.ID },
		func(j *core.Job) *[]core.Payload { return &j.Payloads },
		func(r *ports.ImportRequest, jobs []core.Job) { r.Jobs = jobs },
	}
	letterCargo = cargo[core.DeadLetter]{
		ports.PlaceDead,
		func(d *core.DeadLetter) string { return d.ID },
		func(d *core.DeadLetter) *[]core.Payload { return &d.Payloads },
		func(r *ports.ImportRequest, letters []core.DeadLetter) { r.DeadLetters = letters },
	}
)

// steps divides entries into steps.
func (c *cargo[E]) steps(entries []E) iter.Seq[[]E] {
	return bulk.Whole(func(e *E) (string, []core.Payload) { return c.id(e), *c.payloads(e) })(entries)
}

// carry moves entries of a shard. It copies them in steps, and removes what each step has copied.
// What came without all payloads it reads again. It moves one by one, in parts, what does not fit
// into a step.
func carry[V, E any](
	ctx context.Context,
	m *mover,
	c *cargo[E],
	views []V,
	of func(*V) (e E, count int),
	in func(*ports.Found) *E,
	one func(id string) (int, error),
	remove func([]E) error,
) error {
	var whole []E
	var bound core.Bound
	step := func() error {
		for chunk := range c.steps(whole) {
			if err := put(ctx, m, c, chunk); err != nil {
				return err
			}
			if err := remove(chunk); err != nil {
				return err
			}
		}
		whole, bound = whole[:0], core.Bound{}
		return nil
	}

	for at := range views {
		e, count := of(&views[at])
		there := true
		if len(*c.payloads(&e)) < count {
			again, err := read(ctx, m, c, c.id(&e), in)
			if err != nil {
				return err
			}
			if there = again != nil; there {
				e = *again
			}
		}

		payloads := *c.payloads(&e)
		if !there || !fits(payloads) {
			moved, err := one(c.id(&e))
			m.Met += moved
			m.Pass(1, moved)
			if err != nil {
				return err
			}
			continue
		}

		if !bound.TakeWhole(payloads) {
			if err := step(); err != nil {
				return err
			}
			bound.TakeWhole(payloads)
		}
		whole = append(whole, e)
	}
	return step()
}

// fits reports whether all payloads of an entry fit into a step.
func fits(payloads []core.Payload) bool {
	var bound core.Bound
	return bound.Take(payloads) == len(payloads)
}

// read returns an entry with all payloads, or nil if it has more than one call returns, is gone or
// can't be read.
func read[E any](ctx context.Context, m *mover, c *cargo[E], id string, in func(*ports.Found) *E) (*E, error) {
	r := ports.FindRequest{
		Queue:    m.queue,
		ID:       id,
		Payloads: core.MaxTurnPayloads,
		MaxCount: -1,
		After:    &ports.PayloadCursor{Place: c.place},
	}
	found, err := persist(ctx, m.inspector, func(s Store) (ports.Found, error) { return s.Find(ctx, r) })
	if err != nil || len(found.Next) > 0 {
		return nil, err
	}
	return in(&found), nil
}

// put imports entries into the shards of the target, with their payloads as the target stores them.
// An entry that then exceeds a step goes in parts.
func put[E any](ctx context.Context, m *mover, c *cargo[E], entries []E) error {
	var parts []E
	for _, e := range entries {
		rest := m.to.Merge.Imported(m.merge.PushedAll(*c.payloads(&e)))
		for more := true; more; more = len(rest) > 0 {
			var bound core.Bound
			n := bound.Take(rest)
			*c.payloads(&e), rest = rest[:n:n], rest[n:]
			parts = append(parts, e)
		}
	}

	for chunk := range c.steps(parts) {
		for at, some := range bulk.ByShard(chunk, m.to.Shards, c.id) {
			if err := putIn(ctx, m, c, at, some); err != nil {
				return err
			}
		}
	}
	return nil
}

// putIn imports the entries of a step into one shard of the target.
func putIn[E any](ctx context.Context, m *mover, c *cargo[E], at int, entries []E) error {
	r := m.importInto(at)
	for len(entries) > 0 {
		c.set(&r, entries)
		reply, err := persist(ctx, m.into, func(s Store) (ports.StepReply, error) { return s.Import(ctx, r) })
		if err != nil {
			return fmt.Errorf("the target %v: %w", r.Shard, err)
		}
		if reply.Reached == 0 {
			return fmt.Errorf("the target %v: the store has imported none of %d entries", r.Shard, len(entries))
		}
		entries = entries[min(reply.Reached, len(entries)):]
	}
	return nil
}
