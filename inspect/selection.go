package inspect

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/ports"
)

// JobSelection selects the queued jobs on which an action acts: [JobIDs], [FirstPayloads],
// [AllJobs], [FailedJobs] or [FreshJobs]. Actions refuse the zero value, and a selection on which
// they don't act, with [ErrInvalidOptions].
type JobSelection struct {
	by      selector
	ids     []string
	first   []FirstPayload
	which   whichJobs
	match   func(QueuedJob) bool
	options BulkOptions
}

// selector is how a selection names entries.
type selector uint8

const (
	byNothing selector = iota
	byIDs
	// byPart names payloads.
	byPart
	byMatch
)

// JobIDs selects the queued jobs of these ids. Ids without a queued job are ignored.
func JobIDs(ids ...string) JobSelection { return JobSelection{by: byIDs, ids: ids} }

// FirstPayload names the first payload of a queued job, the one with the lowest score.
type FirstPayload struct {
	ID string
	// Data is the payload's bytes.
	Data []byte
}

// FirstPayloads selects the first payloads of queued jobs. If the first payload of a job is now
// another one than first names, the job is skipped, so an action changes no payload that the caller
// has not seen. A held job, or a job that waits for a retry, continues with its other payloads: it
// becomes due and has all its retries again. A job that has not failed keeps its time. If an id is
// named twice, the action changes nothing and returns [ErrInvalidRequest]. In a queue with
// skein.Every a second call acts on the next payload if that has the same bytes.
func FirstPayloads(first ...FirstPayload) JobSelection {
	return JobSelection{by: byPart, first: first}
}

// AllJobs selects all queued jobs for which match returns true, or all of them if match is nil. The
// action handles the shards one after another, and in each shard the job with the earliest time
// first, unless the action states another order. With a Prefix it handles the jobs of each shard in
// order of id, which needs a queue with IndexIDs (otherwise [ErrQueueMismatch]). It handles the
// jobs that were first pushed before it began, in the state that they have when it reaches them.
//
// match is called once for each job, from the caller's goroutine, with all payloads of the job or
// as many as o.Payloads allows.
func AllJobs(match func(QueuedJob) bool, o BulkOptions) JobSelection {
	return JobSelection{by: byMatch, which: allJobs, match: match, options: o}
}

// FailedJobs is [AllJobs] for the jobs with a failure, held ones too. A Prefix needs no index.
func FailedJobs(match func(QueuedJob) bool, o BulkOptions) JobSelection {
	return JobSelection{by: byMatch, which: failedJobs, match: match, options: o}
}

// FreshJobs is [AllJobs] for the jobs without a failure. A job that fails after the call of match
// is handled as well.
func FreshJobs(match func(QueuedJob) bool, o BulkOptions) JobSelection {
	return JobSelection{by: byMatch, which: freshJobs, match: match, options: o}
}

// DeadLetterSelection selects the dead letters on which an action acts: [DeadIDs], [DeadPayloads]
// or [AllDead]. Actions refuse the zero value with [ErrInvalidOptions].
type DeadLetterSelection struct {
	by       selector
	ids      []string
	payloads []DeadLetterPayloads
	match    func(DeadLetter) bool
	options  BulkOptions
	force    bool
	// named is true if each step of the action names its dead letters.
	named bool
}

// Force returns the selection for [Inspector.Revive] to revive stale payloads too. The store forgets
// what was done of their ids, in the same step: the record of the last run that was done, and the
// scores up to which payloads are stale. So the revived payloads run, and so does what is older and
// comes again. Other actions ignore Force.
func (d DeadLetterSelection) Force() DeadLetterSelection {
	d.force = true
	return d
}

// DeadIDs selects the dead letters of these ids, with all their payloads. Ids without a dead letter
// are ignored.
func DeadIDs(ids ...string) DeadLetterSelection { return DeadLetterSelection{by: byIDs, ids: ids} }

// DeadLetterPayloads names payloads of one dead letter.
type DeadLetterPayloads struct {
	ID string
	// Payloads are the Data of the payloads. Payloads that do not exist are ignored. A list that is
	// nil or empty means no payload. In a queue with skein.Every, Data means all payloads with
	// these bytes.
	Payloads [][]byte
}

// DeadPayloads selects single payloads. The other payloads of a dead letter stay as they are in the
// morgue.
func DeadPayloads(payloads ...DeadLetterPayloads) DeadLetterSelection {
	return DeadLetterSelection{by: byPart, payloads: payloads}
}

// AllDead selects all dead letters for which match returns true, or all of them if match is nil.
// The action handles the dead letters that last changed before it began. Jobs that are buried
// meanwhile stay in the morgue.
//
// match is called once for each dead letter, from the caller's goroutine, with all its payloads or
// as many as o.Payloads allows. If payloads are added to the dead letter after that, the action
// skips all its payloads.
func AllDead(match func(DeadLetter) bool, o BulkOptions) DeadLetterSelection {
	return DeadLetterSelection{by: byMatch, match: match, options: o}
}

// verbs are the names of an action in errors, checkpoints and the audit, by the kind of selection.
// An action without a name for a kind does not act on it.
type verbs struct {
	ids, part, all, failed, fresh string
}

// of returns the name for a selection of some jobs. It returns ErrInvalidOptions, with the usual
// name, if the action does not act on the selection. accepted names those on which it acts.
func (v verbs) of(by selector, which whichJobs, accepted string) (verb string, err error) {
	switch {
	case by == byNothing:
		return v.ids, fmt.Errorf("%w: the selection is empty; use %s", ErrInvalidOptions, accepted)
	case by == byIDs:
		verb = v.ids
	case by == byPart:
		verb = v.part
	case by == byMatch && which == failedJobs:
		verb = v.failed
	case by == byMatch && which == freshJobs:
		verb = v.fresh
	case by == byMatch:
		verb = v.all
	}

	if verb == "" {
		return v.ids, fmt.Errorf("%w: the action does not act on this selection; use %s", ErrInvalidOptions, accepted)
	}
	return verb, nil
}

// jobs names the selections of jobs on which the action acts.
func (v verbs) jobs() string {
	if v.part == "" {
		return "JobIDs or AllJobs"
	}
	return "JobIDs, FirstPayloads, AllJobs, FailedJobs or FreshJobs"
}

const deadSelections = "DeadIDs, DeadPayloads or AllDead"

// refuse logs and returns the error of an action that can't begin.
func (i *Inspector) refuse(ctx context.Context, verb, queue string, cause error) (r Result, err error) {
	a := newAction(verb, nil)
	defer a.log(ctx, i, queue, nil)(&err)
	return a.end(cause)
}

// onJobs makes steps on the selected jobs. all are the jobs that AllJobs means for the action.
func (i *Inspector) onJobs(
	ctx context.Context, queue string, jobs JobSelection, v verbs, all whichJobs, step jobStep,
) (Result, error) {
	verb, err := v.of(jobs.by, jobs.which, v.jobs())
	if err != nil {
		return i.refuse(ctx, verb, queue, err)
	}

	switch jobs.by {
	case byPart:
		return i.onFirst(ctx, newAction(verb, nil), queue, jobs.first, step)
	case byMatch:
		if jobs.which == allJobs {
			jobs.which = all
		}
		a := jobs.options.action(verb, queue, jobs.match != nil, true)
		return i.onAllJobs(ctx, a, queue, jobs.which, jobs.match, step)
	}
	return i.onJobIDs(ctx, newAction(verb, nil), queue, jobs.ids, step)
}

// onDead makes steps on the selected dead letters.
func (i *Inspector) onDead(
	ctx context.Context, queue string, dead DeadLetterSelection, v verbs, step deadLetterStep,
) (Result, error) {
	verb, err := v.of(dead.by, allJobs, deadSelections)
	if err != nil {
		return i.refuse(ctx, verb, queue, err)
	}

	if dead.by == byMatch {
		a := dead.options.action(verb, queue, dead.match != nil, true)
		return i.onAllDeadLetters(ctx, a, queue, &dead, step)
	}
	refs, err := dead.refs()
	return i.onRefs(ctx, newAction(verb, nil), queue, refs, err, step)
}

// refs returns references to the named dead letters or payloads. The error is that of the first
// invalid id.
func (d *DeadLetterSelection) refs() ([]ports.DeadLetterRef, error) {
	if d.by == byIDs {
		return wholeRefs(d.ids)
	}
	return payloadRefs(d.payloads)
}
