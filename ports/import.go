package ports

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/skeinq/skein/core"
)

// ImportRequest is what another queue had, to be put into one shard: dead letters, jobs, records of
// what became of ids, or marks. Only one of these four lists has entries.
// Shards and Generation are the layout of the queue as the caller knows it, as in [PushRequest].
type ImportRequest struct {
	Shard      core.Shard
	Shards     int
	Generation int64
	// OnlyPaused refuses the call with ErrNotPaused unless the shard is paused at the moment of the
	// step. A move sets it, since a copy must not run before its original is deleted.
	OnlyPaused bool
	// DeadLetters are at most [MaxStep] dead letters of ids of this shard, each id once. Each has
	// at least one payload, and all together have no more payloads and bytes than a step moves. A
	// dead letter with more comes in parts, in several calls, each part with its ChangedAt,
	// Failures, Group and Tags. StepReply.Reached is how far the step came.
	DeadLetters []core.DeadLetter
	// Jobs are jobs as another queue had them, within the same limits. A job with more payloads
	// comes in parts too, each part with its State.
	Jobs []core.Job
	// Past are at most [MaxStep] records of ids of this shard, each id once, with their Results, which
	// have at most core.MaxStepBytes together. They are stored as core.Past.Stored returns them for
	// their DoneAt.
	Past []core.Past
	// Marks are at most [MaxStep] marks that another queue kept beside its records, each id once, as
	// [Inspector].Past lists them with Marks. Only ID, DoneAt and Score are read.
	Marks []core.Past
}

// Entries returns the number of entries of the request.
func (r *ImportRequest) Entries() int {
	return len(r.DeadLetters) + len(r.Jobs) + len(r.Past) + len(r.Marks)
}

// Validate returns [ErrInvalidRequest] for too many entries, payloads or bytes, for entries of two
// kinds, an id that occurs twice or belongs to another shard, an entry without payloads, payloads that
// are out of order or equal, an error or a group that no entry can have, because core.ErrorText or
// core.GroupName would change it, a RetryCount or Recoveries out of range, and a result of more than
// core.MaxResultBytes. It returns core's error for a queue, an id, a payload, a score, a time or a tag
// that docs/rules.md refuses. If the mistake is in an entry, the error names its position.
func (r *ImportRequest) Validate() error {
	entries := r.Entries()
	if err := validateStep(r.Shard, entries); err != nil {
		return err
	}
	if entries != max(len(r.DeadLetters), len(r.Jobs), len(r.Past), len(r.Marks)) {
		return fmt.Errorf("%w: the request has %d dead letters, %d jobs, %d records and %d marks; "+
			"import each kind by a call of its own",
			ErrInvalidRequest, len(r.DeadLetters), len(r.Jobs), len(r.Past), len(r.Marks))
	}

	if err := core.ValidateQueue(r.Shard.Queue, r.Shards); err != nil {
		return err
	}
	if r.Shard.Index >= r.Shards {
		return fmt.Errorf("%w: shard %v of a queue of %d", ErrInvalidRequest, r.Shard, r.Shards)
	}

	b := importBounds{request: r, ids: make(map[string]bool, entries)}
	for i := range r.DeadLetters {
		d := &r.DeadLetters[i]
		if err := errors.Join(validateDead(d), b.take(d.ID, d.Payloads)); err != nil {
			return fmt.Errorf("dead letter %d: %w", i, err)
		}
	}

	for i := range r.Jobs {
		j := &r.Jobs[i]
		if err := errors.Join(validateState(j), b.take(j.ID, j.Payloads)); err != nil {
			return fmt.Errorf("job %d: %w", i, err)
		}
	}

	for i := range r.Past {
		if err := b.takePast(&r.Past[i]); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
	}
	for i := range r.Marks {
		m := r.Marks[i]
		m.Result = nil
		if err := b.takePast(&m); err != nil {
			return fmt.Errorf("mark %d: %w", i, err)
		}
	}

	return nil
}

// importBounds are the ids and the payloads of the first entries of a request.
type importBounds struct {
	request *ImportRequest
	ids     map[string]bool
	bound   core.Bound
	results int // bytes
}

// takeID checks the id of one entry.
func (b *importBounds) takeID(id string) error {
	if err := core.ValidateID(id); err != nil {
		return err
	}
	if at := core.ShardOf(id, b.request.Shards); at != b.request.Shard.Index {
		return fmt.Errorf("%w: id %q belongs to shard %d, not to %v", ErrInvalidRequest, id, at, b.request.Shard)
	}
	if b.ids[id] {
		return fmt.Errorf("%w: id %q occurs twice; unite its payloads, or import them by another call",
			ErrInvalidRequest, id)
	}
	b.ids[id] = true
	return nil
}

// takePast checks one record, and that its result fits into the step.
func (b *importBounds) takePast(p *core.Past) error {
	entry := core.Entry{ID: p.ID, Payload: core.Payload{Score: p.Score}}
	if err := errors.Join(b.takeID(p.ID), validateInstant("DoneAt", p.ID, p.DoneAt), entry.Validate()); err != nil {
		return err
	}

	b.results += len(p.Result)
	if len(p.Result) > core.MaxResultBytes || b.results > core.MaxStepBytes {
		return fmt.Errorf("%w: the result of id %q has %d bytes, and %d with those before it; "+
			"a result has at most %d bytes, and those of a step %d",
			ErrInvalidRequest, p.ID, len(p.Result), b.results, core.MaxResultBytes, core.MaxStepBytes)
	}
	return nil
}

// take checks the id and the payloads of one entry, and that it fits into the step.
func (b *importBounds) take(id string, payloads []core.Payload) error {
	if err := b.takeID(id); err != nil {
		return err
	}

	if len(payloads) == 0 {
		return fmt.Errorf("%w: id %q has no payload", ErrInvalidRequest, id)
	}
	if err := validatePayloads(id, payloads); err != nil {
		return err
	}

	if b.bound.Take(payloads) < len(payloads) {
		return fmt.Errorf("%w: id %q exceeds the %d payloads or %d bytes of a step; import the rest by another call",
			ErrInvalidRequest, id, core.MaxTurnPayloads, core.MaxStepBytes)
	}
	return nil
}

// validateDead checks the fields of a dead letter beside its id and its payloads.
func validateDead(d *core.DeadLetter) error {
	if core.GroupName(d.Group) != d.Group {
		return fmt.Errorf("%w: %q is not the name of a group; pass it through core.GroupName",
			ErrInvalidRequest, d.Group)
	}
	return errors.Join(validateInstant("ChangedAt", d.ID, d.ChangedAt),
		validateFailures(d.ID, d.Failures), d.Tags.Validate())
}

// validateState checks the fields of a job beside its id and its payloads.
func validateState(j *core.Job) error {
	if j.RetryCount < core.FreshRetryCount || j.RetryCount > math.MaxInt32 || j.Recoveries < 0 ||
		j.Recoveries > math.MaxInt32 {
		return fmt.Errorf("%w: job %q with RetryCount %d and %d Recoveries; give %d to %d, and 0 to %d",
			ErrInvalidRequest, j.ID, j.RetryCount, j.Recoveries, core.FreshRetryCount, math.MaxInt32, math.MaxInt32)
	}
	return errors.Join(validateInstant("PerformAt", j.ID, j.PerformAt),
		validateInstant("FirstPush", j.ID, j.FirstPush), validateFailures(j.ID, j.Failures), j.Tags.Validate())
}

func validateInstant(what, id string, at core.Instant) error {
	if at < 0 || at > core.MaxInstant {
		return fmt.Errorf("%w: %s of id %q is %d µs; give 0 to %d", core.ErrInvalidTime, what, id, at, core.MaxInstant)
	}
	return nil
}

func validateFailures(id string, l core.Failures) error {
	if !slices.Equal(l, l.Stored()) {
		return fmt.Errorf("%w: the failures of id %q are not as a store keeps them; pass them through core.Failures.Stored",
			ErrInvalidRequest, id)
	}
	return nil
}

// validatePayloads checks the payloads of an entry, and their order.
func validatePayloads(id string, payloads []core.Payload) error {
	existing := make(map[string]bool, len(payloads))

	for i, p := range payloads {
		entry := core.Entry{ID: id, Payload: p}
		if err := entry.Validate(); err != nil {
			return fmt.Errorf("payload %d of id %q: %w", i, id, err)
		}

		if existing[string(p.Data)] || i > 0 && payloads[i-1].Compare(p) > 0 {
			return fmt.Errorf(
				"%w: payload %d of id %q occurs twice or is out of order; pass them through core.NewPayloadSet",
				ErrInvalidRequest, i, id)
		}
		existing[string(p.Data)] = true
	}
	return nil
}
