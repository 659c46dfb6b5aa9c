package ports

import (
	"fmt"

	"github.com/skeinq/skein/core"
)

// ImportRequest is dead letters to put into the morgue of one shard. Shards and Generation are the
// layout of the queue as the caller knows it, as in [PushRequest].
type ImportRequest struct {
	Shard      core.Shard
	Shards     int
	Generation int64
	// DeadLetters are at most [MaxStep] dead letters of ids of this shard, each id once. Each has
	// at least one payload, and all together have no more payloads and bytes than a step moves. A
	// dead letter with more comes in parts, in several calls, each part with its ChangedAt, Error
	// and Group. StepReply.Reached is how far the step came.
	DeadLetters []core.DeadLetter
}

// Validate returns [ErrInvalidRequest] for too many dead letters, payloads or bytes, an id that
// occurs twice or belongs to another shard, a dead letter without payloads, payloads that are out
// of order or equal, and an error or a group that no dead letter can have, because core.ErrorText
// or core.GroupName would change it. It returns core's error for a queue, an id, a payload, a score
// or a time that docs/rules.md refuses. If the mistake is in a dead letter, the error names its
// position.
func (r *ImportRequest) Validate() error {
	if err := validateStep(r.Shard, len(r.DeadLetters)); err != nil {
		return err
	}
	if err := core.ValidateQueue(r.Shard.Queue, r.Shards); err != nil {
		return err
	}
	if r.Shard.Index >= r.Shards {
		return fmt.Errorf("%w: shard %v of a queue of %d", ErrInvalidRequest, r.Shard, r.Shards)
	}
	var bound core.Bound
	ids := make(map[string]bool, len(r.DeadLetters))
	for i := range r.DeadLetters {
		d := &r.DeadLetters[i]
		err := r.validate(d, &bound)
		if err == nil && ids[d.ID] {
			err = fmt.Errorf("%w: id %q occurs twice; unite its payloads, or import them by another call", ErrInvalidRequest, d.ID)
		}
		if err != nil {
			return fmt.Errorf("dead letter %d: %w", i, err)
		}
		ids[d.ID] = true
	}
	return nil
}

// validate checks one dead letter, and that it fits into the step.
func (r *ImportRequest) validate(d *core.DeadLetter, bound *core.Bound) error {
	if err := core.ValidateID(d.ID); err != nil {
		return err
	}
	if at := core.ShardOf(d.ID, r.Shards); at != r.Shard.Index {
		return fmt.Errorf("%w: id %q belongs to shard %d, not to %v", ErrInvalidRequest, d.ID, at, r.Shard)
	}
	switch {
	case d.ChangedAt < 0 || d.ChangedAt > core.MaxInstant:
		return fmt.Errorf("%w: ChangedAt of id %q is %d µs; give 0 to %d", core.ErrInvalidTime, d.ID, d.ChangedAt, core.MaxInstant)
	case core.ErrorText(d.Error) != d.Error:
		return fmt.Errorf("%w: the error of id %q is not text that a store accepts; pass it through core.ErrorText", ErrInvalidRequest, d.ID)
	case core.GroupName(d.Group) != d.Group:
		return fmt.Errorf("%w: %q is not the name of a group; pass it through core.GroupName", ErrInvalidRequest, d.Group)
	case len(d.Payloads) == 0:
		return fmt.Errorf("%w: id %q has no payload", ErrInvalidRequest, d.ID)
	}
	if err := validatePayloads(d); err != nil {
		return err
	}
	if bound.Take(d.Payloads) < len(d.Payloads) {
		return fmt.Errorf("%w: id %q exceeds the %d payloads or %d bytes of a step; import the rest by another call",
			ErrInvalidRequest, d.ID, core.MaxTurnPayloads, core.MaxStepBytes)
	}
	return nil
}

// validatePayloads checks the payloads of a dead letter, and their order.
func validatePayloads(d *core.DeadLetter) error {
	there := make(map[string]bool, len(d.Payloads))
	for i, p := range d.Payloads {
		entry := core.Entry{ID: d.ID, Payload: p}
		if err := entry.Validate(); err != nil {
			return fmt.Errorf("payload %d of id %q: %w", i, d.ID, err)
		}
		if there[string(p.Data)] || i > 0 && d.Payloads[i-1].Compare(p) > 0 {
			return fmt.Errorf("%w: payload %d of id %q occurs twice or is out of order; pass them through core.NewPayloadSet", ErrInvalidRequest, i, d.ID)
		}
		there[string(p.Data)] = true
	}
	return nil
}
