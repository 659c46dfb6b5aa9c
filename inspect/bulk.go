package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect/internal/bulk"
	"github.com/skeinq/skein/ports"
)

// BulkOptions are the options of an action on all entries of a kind: a part of [AllJobs],
// [FailedJobs], [FreshJobs] and [AllDead]. Actions on named entries have no options. The zero value
// is ready.
type BulkOptions struct {
	// Progress is called after each step that has dealt with entries, from the caller's goroutine.
	// nil means no call.
	Progress func(Progress)
	// Before limits the action to jobs that were first pushed before it, or to dead letters that
	// last changed before it. The zero value, or a time in the future, means the time at which the
	// action begins, by the store's clock.
	Before time.Time
	// Prefix limits the action to the ids with that prefix. Empty means all ids. Release
	// refuses a Prefix.
	Prefix string
	// Group limits an action on dead letters to those of a group, a name that [Inspector.Groups]
	// has returned. It limits an action on jobs to those that have failed and whose error is of the
	// group of an ErrorPart of [Inspector.Errors]; the action then reads the text of each error.
	// Empty means all groups. It can't be combined with Prefix.
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
	// the store's clock stands still or steps back. Edit refuses a value other than 0.
	Payloads int
	// Filter identifies match in checkpoints. It is, for example, the text from which match was
	// made. A Checkpoint with another Filter is refused. An action with a match and without a
	// Filter has no checkpoints. Filter is ignored without a match.
	Filter string
	// Checkpoint is called at the start and after each step, before the wait for Rate, with the
	// position to continue from, from the caller's goroutine. It is not called if the queue has no
	// entry of the kind at the start. An Edit, a DryRun, and an action with a match and without a
	// Filter never call it. nil means no call.
	Checkpoint func(Checkpoint)
	// Continue continues an action from a Checkpoint. The method, the queue, Prefix, Group, match
	// and Filter must be the same as in the first call; the action keeps the Before of the first
	// call. Progress and Result count from the first call on. An Edit can't be continued: a dead
	// letter with some payloads already edited has changed, so the action would skip its other
	// payloads. A DryRun can't be continued either. A Checkpoint of another action is refused with
	// [ErrInvalidCheckpoint]. The Checkpoint of a move contains the Store of its [Target], which is
	// a name only, so give the same name and the same store.
	Continue Checkpoint
}

// action makes an action on all entries of a kind. keeps is true if it can be continued.
func (o *BulkOptions) action(verb, queue string, filtered, keeps bool) *action {
	a := newAction(verb, o.Progress)
	a.all = o
	at := bulk.Standing{
		Action: verb,
		Queue:  queue,
		Prefix: o.Prefix,
		Group:  o.Group,
		Part:   o.Prefix != "" || o.Group != "" || !o.Before.IsZero(),
	}
	if filtered {
		at.Filter = bulk.Digest(o.Filter)
	}

	limits := bulk.Options{
		Before: core.MaxInstant,
		Limit:  o.Limit,
		Rate:   o.Rate,
		Stop:   o.Stop,
		DryRun: o.DryRun,
		Keeps:  keeps && !o.DryRun && (!filtered || o.Filter != ""),
	}
	if !o.Before.IsZero() {
		limits.Before = core.InstantOf(o.Before)
	}
	if o.Checkpoint != nil {
		limits.Checkpoint = func(text string) { o.Checkpoint(Checkpoint(text)) }
	}

	a.run = bulk.New(at, limits, a.Tally)
	if a.invalid = o.check(); a.invalid == nil && o.Continue != "" {
		a.invalid = a.run.Continue(string(o.Continue))
	}
	return a
}

func (o *BulkOptions) check() error {
	if o.Limit < 0 || o.Rate < 0 {
		return fmt.Errorf("%w: Limit %d, Rate %d; neither may be negative, 0 means no limit",
			ErrInvalidOptions, o.Limit, o.Rate)
	}
	if o.Group != "" && o.Prefix != "" {
		return fmt.Errorf("%w: Group %q beside Prefix %q; give only one of them", ErrInvalidOptions, o.Group, o.Prefix)
	}
	return checkGroup(o.Group)
}

// pagePayloads is the usual maximum number of payloads of each entry of a page. Entries with more
// payloads are read one by one; most entries have only a few.
const pagePayloads = 16

// page returns the maximum number of entries of a page of a visit, and the maximum number of
// payloads of each entry. The second is the number that match gets or, if match gets all payloads,
// a number that suffices for most entries. The more payloads an entry may have, the fewer entries a
// page has.
func (o *BulkOptions) page() (entries, payloads int) {
	payloads = pagePayloads
	if o.Payloads != 0 {
		payloads = min(max(0, o.Payloads), core.MaxTurnPayloads)
	}
	return ports.DefaultPage * pagePayloads / max(payloads, pagePayloads), payloads
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
	// Gone is -1, which means unknown, if the action has not finished, for RunNow, and with
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
	// Stale is the number of dead letters that Revive has left in the morgue because they are stale.
	Stale int
	// Checkpoint is the position to continue from after Limit, Stop or an error of an action on all
	// entries of a kind, except Edit. It is empty if the action has finished or has not begun.
	Checkpoint Checkpoint
	// Samples are the first dead letters that a DryRun would handle, and Jobs the first jobs, at
	// most ten.
	Samples []DeadLetter
	Jobs    []QueuedJob
}

// ErrInvalidCheckpoint reports a text that is not a [Checkpoint], a Checkpoint of another version
// of this package, or the Checkpoint of another action: one with another kind, queue, shard count,
// Prefix, Group or Filter.
var ErrInvalidCheckpoint = bulk.ErrInvalidCheckpoint

// Checkpoint is the progress of an action on all entries of a kind, as a text of letters, digits, -
// and _. If BulkOptions.Continue is set to it, the action continues from there, in any process. The
// store keeps no state for it.
//
// An action may also be continued from an older Checkpoint: entries that were handled since are
// gone and are skipped. Only RunNow and Release may then make a job due twice. The empty text
// is no Checkpoint: a finished action has none. The content may change between versions of this
// package. A Checkpoint of another version is refused with [ErrInvalidCheckpoint].
type Checkpoint string

// action is the state of a bulk action.
type action struct {
	*bulk.Tally
	// verb is the beginning of its errors.
	verb string
	// inspector and queue are set by log.
	inspector *Inspector
	queue     string
	// merge is the queue's rule, by which an action reads stored payloads. It is set by onAll, and by
	// those actions on named entries that read payloads.
	merge core.MergeRule
	// ended is set once the action has a result.
	ended bool
	// invalid is why the action can't begin.
	invalid error
	// run and all, its options, are set for actions on all entries of a kind.
	run *bulk.Run
	all *BulkOptions
	// samples or sampleJobs are the first entries that a DryRun would handle.
	samples    []DeadLetter
	sampleJobs []QueuedJob
	// unreached are all shards that the store can't reach, nil before the first failure of an action
	// on named entries. skipped are those of them that have named entries.
	unreached, skipped []core.Shard
	// deed is the action in the audit.
	deed *deed
	// arrival is a move in the audit of its target, or nil.
	arrival *deed
}

// newAction makes an action on named entries. It has no options except report, which may be nil.
func newAction(verb string, report func(Progress)) *action {
	a := &action{verb: verb, Tally: new(bulk.Tally)}
	if report != nil {
		a.Report = func() { report(Progress{Done: a.Done, Total: a.Total, Handled: a.Handled}) }
	}
	return a
}

// end returns the action's result. An action without an error has finished with all entries, unless
// it was limited: those that it did not meet no longer exist.
func (a *action) end(err error) (Result, error) {
	last, missed := Checkpoint(""), a.skipped
	if a.run != nil {
		last = Checkpoint(a.run.Last)
		if err == nil && a.run.Limited {
			return a.result(last), nil
		}
		if errors.Is(err, ports.ErrInvalidRequest) {
			err = fmt.Errorf("%w: %w", ErrInvalidOptions, err)
		}
		missed = a.run.Missed
	}

	if err = cmp.Or(err, partial(missed)); err != nil {
		return a.result(last), fmt.Errorf("%s: %w", a.verb, err)
	}

	a.Pass(a.Total-a.Done, 0)
	r := a.result("")
	if a.run != nil && !a.run.At.Part {
		r.Gone = max(0, r.Total-a.Met)
	}
	return r, nil
}

func (a *action) result(c Checkpoint) Result {
	a.ended = true
	r := Result{Handled: a.Handled, Done: a.Done, Total: a.Total, Checkpoint: c}
	if a.run != nil {
		r.Samples, r.Jobs, r.Earlier = a.samples, a.sampleJobs, a.run.Earlier
		r.Gone = -1
	}
	return r
}

// onAll acts on all entries by carry, which gets the present state of the queue.
func (a *action) onAll(ctx context.Context, carry func(*ports.QueueStats) error) (Result, error) {
	if a.invalid != nil {
		return a.end(a.invalid)
	}
	stats, err := a.inspector.queueStats(ctx, a.queue)
	if err == nil {
		a.merge = stats.Queue.Merge
		err = carry(&stats)
	}
	return a.end(err)
}

// views returns the viewer of the queue's entries.
func (a *action) views() viewer { return a.inspector.views.of(a.merge) }

// sampled adds the views of chosen entries to the samples of a DryRun, up to maxSamples.
func sampled[V, E any](samples []E, chosen []V, show func(*V) E) []E {
	return append(samples, convert(chosen[:min(len(chosen), maxSamples-len(samples))], show)...)
}

// maxSamples is the maximum number of jobs or dead letters that a DryRun returns.
const maxSamples = 10

// onReached acts on named entries, shard by shard, in the steps into which chunks divides the
// entries of a shard. It skips the shards that can't be reached.
func onReached[E any](
	ctx context.Context,
	a *action,
	entries []E,
	id func(*E) string,
	chunks func([]E) iter.Seq[[]E],
	step func(Store, core.Shard, []E) (ports.StepReply, error),
) error {
	shards, err := a.inspector.shards(ctx, a.queue)
	if err != nil {
		return err
	}

	for at, entries := range bulk.ByShard(entries, shards, id) {
		shard := core.Shard{Queue: a.queue, Index: at}
		for chunk := range chunks(entries) {
			err := a.try(ctx, shard, func() error {
				return onChunk(ctx, a, chunk, func(s Store, chunk []E) (ports.StepReply, error) {
					return step(s, shard, chunk)
				})
			})
			if err != nil {
				return fmt.Errorf("shard %v: %w", shard, err)
			}
		}
	}
	return nil
}

// try makes a call on a shard. It skips the call if the shard can't be reached. If the call has
// failed because of that, it returns no error.
func (a *action) try(ctx context.Context, shard core.Shard, call func() error) error {
	if !slices.Contains(a.unreached, shard) {
		err := call()
		if err == nil || refused(err) || ctx.Err() != nil {
			return err
		}

		stats, failed := a.inspector.queueStats(ctx, a.queue)
		if failed != nil || !slices.Contains(stats.Unreached, shard) {
			return err
		}
		a.unreached = stats.Unreached
	}

	a.skipped = append(a.skipped, shard)
	return nil
}

// onChunk repeats a step with the entries that the previous step did not reach.
func onChunk[E any](ctx context.Context, a *action, chunk []E, step func(Store, []E) (ports.StepReply, error)) error {
	return bulk.Steps(a.Tally, chunk, func(chunk []E) (ports.StepReply, error) {
		return persist(ctx, a.inspector, func(s Store) (ports.StepReply, error) { return step(s, chunk) })
	})
}

func validateIDs(ids []string) error {
	for at, id := range ids {
		if err := core.ValidateID(id); err != nil {
			return fmt.Errorf("id %d of %d: %w", at+1, len(ids), err)
		}
	}
	return nil
}
