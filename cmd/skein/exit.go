package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// Errors that decide the exit code.
var (
	errUsage    = errors.New("usage")
	errNotFound = errors.New("not found")
	errStopped  = errors.New("stopped")
	errAway     = errors.New("the store can't be reached")
	errNothing  = errors.New("nothing was changed")
	errFound    = errors.New("something is wrong")
	errPart     = errors.New("a part of the store can't be reached now; the rest is shown")
)

// exits are the exit codes. The first row with a matching error decides. If no row matches, the
// code is exitAway for an unreachable store, and exitFailed otherwise.
var exits = []struct {
	code    int
	meaning string
	errors  []error
}{
	{0, "all is done", nil},
	{
		exitFailed,
		"it failed, or a part of the store can't be reached and the rest is shown; standard error has the reason",
		[]error{errPart},
	},
	{
		2,
		"a mistake in the command's arguments or the store's URL, or the queue can't do that: " +
			"it has no index of ids, or another layout or merge rule",
		[]error{
			errUsage, inspect.ErrInvalidID, inspect.ErrInvalidOptions, inspect.ErrInvalidCheckpoint,
			inspect.ErrInvalidCursor, inspect.ErrInvalidRequest, core.ErrInvalidRule,
			core.ErrInvalidPayload, core.ErrInvalidScore, core.ErrInvalidTag, core.ErrInvalidTime,
			core.ErrInvalidQueue, inspect.ErrInvalidLine, inspect.ErrQueueMismatch, inspect.ErrInvalidSchedule,
			inspect.ErrInvalidSetting,
		},
	},
	{
		3,
		"there is no such queue, server, id or schedule",
		[]error{errNotFound, inspect.ErrUnknownQueue, inspect.ErrUnknownNode, inspect.ErrUnknownSchedule},
	},
	{
		4,
		"stopped midway by a signal or, for an action on all that match, by --timeout; " +
			"standard error then has the text to continue that action",
		[]error{errStopped, context.Canceled},
	},
	{
		exitAway,
		"the store, or the server that the command needs, does not answer, or not within --timeout; " +
			"for doctor and check: no server answers",
		[]error{errAway},
	},
	{
		6,
		"doctor: a check warns or fails; check: the store refuses pushes; wrong: something is wrong; " +
			"migrate status: the schema does not fit",
		[]error{errFound},
	},
	{
		7,
		"the question was not answered with yes, or a signal or --timeout ended the command before its first step; " +
			"nothing was changed",
		[]error{errNothing},
	},
}

const (
	exitFailed = 1
	exitAway   = 5
)

func exitCode(err error) int {
	if err == nil {
		return 0
	}

	for _, e := range exits {
		for _, is := range e.errors {
			if errors.Is(err, is) {
				return e.code
			}
		}
	}

	if ports.FailureOf(err) == ports.FailureUnreachable && !isPartial(err) {
		return exitAway
	}
	return exitFailed
}

// isPartial reports whether an error means that only a part of the store could not be reached. Then
// the rest of the store has answered.
func isPartial(err error) bool {
	var part *inspect.PartialError
	return errors.Is(err, errPart) || errors.As(err, &part)
}

// exitUsageText returns the part of the help that lists the exit codes.
func exitUsageText() string {
	var b strings.Builder
	b.WriteString("It exits with:")
	for _, e := range exits {
		fmt.Fprintf(&b, "\n  %d  %s", e.code, e.meaning)
	}
	return b.String()
}

// usage returns the error for a mistake in the call of a command.
func usage(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w: %w; see %s --help", errUsage, err, cmd.CommandPath())
}
