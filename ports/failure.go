package ports

import (
	"errors"
	"io"
	"net"
	"slices"
	"syscall"

	"github.com/skeinq/skein/core"
)

// refusals are the sentinels of calls that had no effect.
func refusals() []error {
	return []error{
		ErrUnknownQueue, ErrUnknownNode, ErrShardCountMismatch, ErrQueueMismatch,
		ErrLeaseHeld, ErrLeaseLost, ErrStaleTurn, ErrStaleAttempt,
		ErrInvalidRequest, ErrUnusable, ErrNotEmpty, ErrNotPaused,
		ErrTooManyTracked, ErrNotBegun, ErrReadOnly, ErrSettingsConflict,
		core.ErrInvalidID, core.ErrInvalidPayload, core.ErrInvalidScore, core.ErrInvalidTag, core.ErrInvalidTime,
		core.ErrInvalidRule, core.ErrInvalidSchedule, core.ErrInvalidOptions, core.ErrInvalidQueue,
		core.ErrInvalidSetting,
	}
}

// FailureOf returns the kind of failure for an error that a method of a store returned. err must
// not be nil.
func FailureOf(err error) FailureKind {
	switch {
	case errors.Is(err, ErrFull):
		return FailureFull
	case slices.ContainsFunc(refusals(), func(sentinel error) bool { return errors.Is(err, sentinel) }):
		return FailureRefused
	case broken(err), dialed(err):
		return FailureUnreachable
	}
	return FailureUnknown
}

// broken reports whether a connection broke, or could not be made. The error of a file, such as one
// on a full disk or of a closed pipe, has only a [syscall.Errno]. That is a [net.Error] too, but
// package net returns it inside a [net.OpError].
func broken(err error) bool {
	var network net.Error
	if errors.As(err, &network) && !network.Timeout() {
		if _, ofFile := network.(syscall.Errno); !ofFile {
			return true
		}
	}
	for _, cause := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// dialed reports whether no connection could be made. A timeout of the attempt counts too.
func dialed(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
