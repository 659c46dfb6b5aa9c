package harness

import (
	"errors"
	"reflect"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Diff returns the difference of two replies for a caller, or "" if they are equal. Nil and empty
// slices and maps are equal, and so are two heads that are not OK.
func Diff(want, got any) string {
	return diff(want, got, cmp.Comparer(func(a, b core.Head) bool { return a == b || !a.OK && !b.OK }))
}

// StrictDiff is like Diff, but also compares the other fields of heads that are not OK.
func StrictDiff(want, got any) string { return diff(want, got) }

func diff(want, got any, more ...cmp.Option) string {
	if reflect.DeepEqual(want, got) {
		return "" // the usual case, in which DeepEqual is much faster than cmp
	}
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Options(more))
}

// ErrorClass has everything that a caller can learn from an error.
type ErrorClass struct {
	// Sentinels are the messages of the sentinel errors that the error wraps.
	Sentinels []string
	// Held is the *ports.HeldError of the error, if any.
	Held ports.HeldError
	// Conflict is the *ports.SettingsConflictError of the error, if any.
	Conflict ports.SettingsConflictError
	// Entries are those of the error's *ports.PushError, if any.
	Entries []int
	// Unknown is set for an error without a sentinel: the call may have taken effect.
	Unknown bool
}

// ClassOf returns the class of an error. The class of nil is the zero value.
func ClassOf(err error) ErrorClass {
	var c ErrorClass
	for _, sentinel := range []error{
		ports.ErrUnknownQueue, ports.ErrUnknownNode, ports.ErrShardCountMismatch, ports.ErrQueueMismatch,
		ports.ErrLeaseHeld, ports.ErrLeaseLost, ports.ErrStaleTurn, ports.ErrStaleAttempt,
		ports.ErrInvalidRequest, ports.ErrFull, ports.ErrNotEmpty, ports.ErrNotPaused, ports.ErrTooManyTracked,
		ports.ErrUnusable, ports.ErrSettingsConflict,
		core.ErrInvalidID, core.ErrInvalidPayload, core.ErrInvalidScore, core.ErrInvalidTag,
		core.ErrInvalidTime, core.ErrInvalidRule, core.ErrInvalidQueue, core.ErrInvalidSchedule,
	} {
		if errors.Is(err, sentinel) {
			c.Sentinels = append(c.Sentinels, sentinel.Error())
		}
	}

	c.Unknown = err != nil && len(c.Sentinels) == 0

	if held, ok := errors.AsType[*ports.HeldError](err); ok {
		c.Held = *held
	}
	if conflict, ok := errors.AsType[*ports.SettingsConflictError](err); ok {
		c.Conflict = *conflict
	}
	if push, ok := errors.AsType[*ports.PushError](err); ok {
		c.Entries = push.Entries
	}

	return c
}
