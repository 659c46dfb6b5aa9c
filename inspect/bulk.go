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

// BulkOptions are the options of an action on all entries of a kind: RunAllNow, ReleaseAll,
// BuryFailed, BuryFresh, DeleteFailed, DeleteFresh, DeleteAll, MoveAll, ReviveAll, PurgeAll,
// MoveMorgue and EditAll. Actions on named entries have no options. The zero value is ready.
type BulkOptions struct {
	// Progress is called after each step that has dealt with entries, from the caller's goroutine.
	// nil means no call.
	Progress func(Progress)
	// Before limits the action to jobs that were first pushed before it, or to dead letters that
	// last changed before it. The zero value, or a time in the future, means the time at which the
	// action begins, by the store's clock.
	Before time.Time
	// Prefix limits the action to the ids with that prefix. Empty means all ids. ReleaseAll refuses
	// a Prefix.
	Prefix string
	// Group limits an action on dead letters to those of a group, a name that [Inspector.Groups]
	// has returned. Empty means all groups. It can't be combined with Prefix.
	Group string
	// Limit ends this call after it has handled the given number of jobs or dead letters, without
	// an error and with Result.Checkpoint. 0 means no limit.
	Limit int
	// Stop is called after each step, from the caller's goroutine, with the number of entries that
	// this call has dealt with. If it returns true, the action ends there, as with Limit. Stop can
	// limit the time of an action and keeps its counts exact. If ctx ends instead, the result of
	// the last step may be unknown. A step handles at most a few hundred entries. nil means no
	// call.
	Stop func(done int) bool
	// Rate is the maximum number of jobs or dead letters per second. A step then handles at most
	// Rate of them. 0 means no limit.
	Rate int
	// DryRun writes nothing. The Result counts the entries that the action would handle and has
	// samples. An EditFunc is not called.
	DryRun bool
	// Payloads is the maximum number of payloads of each entry that match gets, lowest score first.
	// 0 means all payloads, a value below 0 means none, and a value above 1,000 means 1,000. A
	// match on ids, times and errors needs no payload. With 0 the action reads every payload of the
	// entries that it considers. If match does not get all payloads of a dead letter, the whole
	// dead letter is handled. That includes payloads that are added after the call of match while
	// the store's clock stands still or steps back. EditAll refuses a value other than 0.
	Payloads int
	// Filter identifies match in checkpoints. It is, for example, the text from which match was
	// made. A Checkpoint with another Filter is refused. An action with a match and without a
	// Filter has no checkpoints. Filter is ignored without a match.
	Filter string
	// Checkpoint is called at the start and after each step, before the wait for Rate, with the
	// position to continue from, from the caller's goroutine. EditAll, a DryRun, and an action with
	// a match and without a Filter never call it. nil means no call.
	Checkpoint func(Checkpoint)
	// Continue continues an action from a Checkpoint. The method, the queue, Prefix, Group, match
	// and Filter must be the same as in the first call; the action keeps the Before of the first
	// call. Progress and Result count from the first call on. EditAll can't be continued: a dead
	// letter with some payloads already edited has changed, so the action would skip its other
	// payloads. A DryRun can't be continued either. A Checkpoint of another action is refused with
	// [ErrInvalidCheckpoint]. The Checkpoint of a move contains the Store of its [Target], which is
	// a name only, so give the same name and the same store.
	Continue Checkpoint
}

// page returns the maximum number of entries of a page of a sweep, and the maximum number of
// payloads of each entry. The second is the number that match gets or, if match gets all payloads,
// a number that suffices for most entries. The more payloads an entry may have, the fewer entries a
// page has.
func (o *BulkOptions) page() (entries, payloads int) {
	payloads = sweepPayloads
	if o.Payloads != 0 {
		payloads = min(max(0, o.Payloads), core.MaxTurnPayloads)
	}
	return sweepPage * sweepPayloads / max(payloads, sweepPayloads), payloads
}

// Progress is the progress of an action.
type Progress struct {
	// Done is the number of entries that the action has dealt with, and Total is the number of
	// entries when the action began. An entry is dealt with if it was handled, was skipped because
	// it doesn't match, or is gone. An action that returns no error has dealt with all entries.
	Done  int
	Total int
	// Handled is as in [Result].
	Handled int
}

// Result is the result of an action. It is valid even if the action returned an error.
type Result struct {
	// Handled is the number of jobs, dead letters or, for an edit, payloads that were changed. It
	// does not include changes of a step whose reply was lost. After a DryRun it is the number of
	// jobs or dead letters that the action would change.
	Handled int
	// Earlier is the part of Handled that earlier calls had counted, according to
	// BulkOptions.Continue. So this call changed Handled - Earlier.
	Earlier int
	// Gone is the number of entries of Total that a finished action on all entries of a kind did
	// not find as they were when it began. Either a killed call had handled them after the
	// Checkpoint that this call continued, or a step whose reply was lost had handled them, or
	// another operator or a server had. It includes the entries of Later that existed when the
	// action began.
	//
	// Gone is -1, which means unknown, if the action has not finished, for RunAllNow, and with
	// Prefix, Group or Before, because Total then counts more entries than the action applies to.
	// For an action on named entries it is 0.
	Gone int
	// Done and Total are as in [Progress].
	Done  int
	Total int
	// Later is the number of dead letters that an action on all dead letters skipped because they
	// are later than the action: they changed after it began, or after Before, or were imported
	// with a time in the future. Only the newest hundred dead letters are examined for that. Later
	// includes dead letters that match would refuse, since match is not called for them. Actions on
	// named ids handle such dead letters.
	Later int
	// Checkpoint is the position to continue from after Limit, Stop or an error of an action on all
	// entries of a kind, except EditAll. It is empty if the action has finished or has not begun.
	Checkpoint Checkpoint
	// Samples are the first dead letters that a DryRun would handle, and Jobs the first jobs, at
	// most ten.
	Samples []DeadLetter
	Jobs    []QueuedJob
}

// action is the state of a bulk action.
type action struct {
	// verb is the beginning of its errors.
	verb     string
	report   func(Progress)
	progress Progress
	// ended is set once the action has a result.
	ended bool
	// invalid is why the action can't begin.
	invalid error
	// met is the number of entries that the action has found as they were when it began: those that
	// it handled, and those that don't match.
	met int
	// going is set for actions on all entries of a kind.
	going *going
	// deed is the action in the audit.
	deed *deed
	// arrival is a move in the audit of its target, or nil.
	arrival *deed
}

// newAction makes an action on named entries. It has no options except report, which may be nil.
func newAction(verb string, report func(Progress)) *action {
	return &action{verb: verb, report: report}
}

// pass counts done entries as dealt with, and handled entries as handled.
func (a *action) pass(done, handled int) {
	a.progress.Handled += handled
	if done <= 0 {
		return
	}
	a.progress.Done = min(a.progress.Done+done, a.progress.Total) // a continued action may meet more
	if a.report != nil {
		a.report(a.progress)
	}
}

// end returns the action's result. An action without an error has finished with all entries: those
// that it did not meet no longer exist.
func (a *action) end(err error) (Result, error) {
	if err == nil {
		a.pass(a.progress.Total-a.progress.Done, 0)
		r := a.result("")
		if a.going != nil && !a.going.at.Part {
			r.Gone = max(0, r.Total-a.met)
		}
		return r, nil
	}
	var last Checkpoint
	if a.going != nil {
		last = a.going.last
		if errors.Is(err, ports.ErrInvalidRequest) {
			err = fmt.Errorf("%w: %w", ErrInvalidOptions, err)
		}
	}
	return a.result(last), fmt.Errorf("%s: %w", a.verb, err)
}

// limited returns the result of an action that Limit or Stop has ended.
func (a *action) limited() (Result, error) { return a.result(a.going.last), nil }

func (a *action) result(c Checkpoint) Result {
	a.ended = true
	r := Result{Handled: a.progress.Handled, Done: a.progress.Done, Total: a.progress.Total, Checkpoint: c}
	if a.going != nil {
		r.Samples, r.Jobs, r.Earlier = a.going.samples, a.going.jobs, a.going.earlier
		r.Gone = -1
	}
	return r
}

// onEntries acts on named entries, shard by shard, in the steps into which chunks divides the
// entries of a shard.
func onEntries[E any](
	ctx context.Context, i *Inspector, a *action, queue string, entries []E,
	id func(E) string, chunks func([]E) iter.Seq[[]E], step func(Store, core.Shard, []E) (ports.StepReply, error),
) error {
	away := &absent{inspector: i, queue: queue}
	if err := onReached(ctx, i, a, away, entries, id, chunks, step); err != nil {
		return err
	}
	return partial(away.met)
}

// onReached is onEntries, except that it skips the shards that can't be reached, and notes them in
// away.
func onReached[E any](
	ctx context.Context, i *Inspector, a *action, away *absent, entries []E,
	id func(E) string, chunks func([]E) iter.Seq[[]E], step func(Store, core.Shard, []E) (ports.StepReply, error),
) error {
	queue := away.queue
	shards, err := i.shards(ctx, queue)
	if err != nil {
		return err
	}
	for at, entries := range byShard(entries, shards, id) {
		shard := core.Shard{Queue: queue, Index: at}
		for chunk := range chunks(entries) {
			if away.has(shard) {
				break
			}
			err := onChunk(ctx, i, a, chunk, func(s Store, chunk []E) (ports.StepReply, error) { return step(s, shard, chunk) })
			if err != nil && !away.are(ctx, shard, err) {
				return fmt.Errorf("shard %v: %w", shard, err)
			}
		}
	}
	return nil
}

// absent are the shards that an action on named entries skips, since they can't be reached now.
type absent struct {
	inspector *Inspector
	queue     string
	// unreached are all shards that the store can't reach, nil before the first failure. met are
	// those of them that have named entries.
	unreached, met []core.Shard
}

func (b *absent) has(shard core.Shard) bool {
	if !slices.Contains(b.unreached, shard) {
		return false
	}
	b.met = append(b.met, shard)
	return true
}

// are reports whether a step on a shard has failed with err because the shard can't be reached now.
func (b *absent) are(ctx context.Context, shard core.Shard, err error) bool {
	if refused(err) || ctx.Err() != nil {
		return false
	}
	stats, err := b.inspector.queueStats(ctx, b.queue)
	if err != nil || !slices.Contains(stats.Unreached, shard) {
		return false
	}
	b.unreached = stats.Unreached
	return b.has(shard)
}

// onChunk repeats a step with the entries that the previous step did not reach.
func onChunk[E any](
	ctx context.Context, i *Inspector, a *action, chunk []E, step func(Store, []E) (ports.StepReply, error),
) error {
	for unfinished := 0; len(chunk) > 0; unfinished++ {
		if unfinished == partSteps {
			return fmt.Errorf("%d steps have not finished %d large entries; call the action again", unfinished, len(chunk))
		}
		reply, err := persist(ctx, i, func(s Store) (ports.StepReply, error) { return step(s, chunk) })
		if err != nil {
			return err
		}
		a.met += reply.Handled
		a.pass(reply.Reached, reply.Handled)
		chunk = chunk[min(reply.Reached, len(chunk)):]
		if reply.Reached > 0 {
			unfinished = -1
		}
	}
	return nil
}

// byShard returns the entries of each shard, by the index of the shard.
func byShard[E any](entries []E, shards int, id func(E) string) [][]E {
	groups := make([][]E, max(1, shards))
	for _, e := range entries {
		at := core.ShardOf(id(e), shards)
		groups[at] = append(groups[at], e)
	}
	return groups
}

// shards returns the shard count of a queue.
func (i *Inspector) shards(ctx context.Context, queue string) (int, error) {
	record, err := i.record(ctx, queue)
	return record.Shards, err
}

// wholeSteps returns a function that divides entries into steps of at most ports.MaxStep entries,
// and of at most the payloads and bytes that a step moves. A larger entry has a step for itself. No
// id occurs twice in a step.
func wholeSteps[E any](of func(*E) (id string, payloads []core.Payload)) func([]E) iter.Seq[[]E] {
	return func(entries []E) iter.Seq[[]E] {
		return func(yield func([]E) bool) {
			for len(entries) > 0 {
				n := wholeStep(entries, of)
				if !yield(entries[:n]) {
					return
				}
				entries = entries[n:]
			}
		}
	}
}

// wholeStep returns the number of entries in the first of these steps.
func wholeStep[E any](entries []E, of func(*E) (id string, payloads []core.Payload)) (n int) {
	var bound core.Bound
	there := make(map[string]bool)
	for n < min(len(entries), ports.MaxStep) {
		id, payloads := of(&entries[n])
		if there[id] || !bound.TakeWhole(payloads) {
			break
		}
		there[id] = true
		n++
	}
	return n
}

func validateIDs(ids []string) error {
	for at, id := range ids {
		if err := core.ValidateID(id); err != nil {
			return fmt.Errorf("id %d of %d: %w", at+1, len(ids), err)
		}
	}
	return nil
}
