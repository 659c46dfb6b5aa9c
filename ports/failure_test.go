package ports_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func TestFailuresHaveAKind(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	cases := map[string]struct {
		err  error
		want ports.FailureKind
	}{
		"a refusal":         {ports.ErrLeaseLost, ports.FailureRefused},
		"who holds a lease": {&ports.HeldError{}, ports.FailureRefused},
		"an end before the beginning": {
			fmt.Errorf("%w: %w", ports.ErrNotBegun, context.Canceled), ports.FailureRefused,
		},
		"bad input":                {core.ErrInvalidID, ports.FailureRefused},
		"a part of a push":         {&ports.PushError{Err: ports.ErrUnknownQueue}, ports.FailureRefused},
		"a server that only reads": {&ports.PushError{Err: ports.ErrReadOnly}, ports.FailureRefused},
		"no room":                  {fmt.Errorf("%w: OOM", ports.ErrFull), ports.FailureFull},
		"nobody listens":           {dial(syscall.ECONNREFUSED), ports.FailureUnreachable},
		"no connection in time":    {dial(os.ErrDeadlineExceeded), ports.FailureUnreachable},
		"no such host":             {&net.DNSError{IsNotFound: true}, ports.FailureUnreachable},
		"a connection that ended":  {io.EOF, ports.FailureUnreachable},
		"a connection that broke":  {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, ports.FailureUnreachable},
		"a full disk": {
			&os.PathError{Op: "write", Path: "dead.jsonl", Err: syscall.ENOSPC}, ports.FailureUnknown,
		},
		"a closed pipe": {&os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}, ports.FailureUnknown},
		"a connection that was closed": {
			&net.OpError{Op: "write", Err: os.NewSyscallError("write", syscall.EPIPE)}, ports.FailureUnreachable,
		},
		"no answer in time": {
			&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, ports.FailureUnknown,
		},
		"the end of the caller's": {
			fmt.Errorf("given up: %w", context.DeadlineExceeded), ports.FailureUnknown,
		},
		"an error of another kind":           {errors.New("syntax error"), ports.FailureUnknown},
		"several, of which one is a refusal": {errors.Join(errors.New("x"), ports.ErrUnusable), ports.FailureRefused},
	}

	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ports.FailureOf(fmt.Errorf("turn: %w", tt.err)); got != tt.want {
				t.Errorf("a failure of kind %v, want %v", got, tt.want)
			}
		})
	}
}
