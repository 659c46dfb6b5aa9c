package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/internal/backends"
)

// brokenOutput is a standard output that can't be written.
type brokenOutput struct{ err error }

func (b brokenOutput) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: b.err}
}

// A full disk of this machine and a closed pipe are failures of the command. The store answers.
func TestABrokenOutputIsNoSilentStore(t *testing.T) {
	store := memory.New(memory.Options{})
	declaredIn(t, store, "orders")
	for _, cause := range []error{syscall.ENOSPC, syscall.EPIPE} {
		for _, line := range []string{"stats", "queue ls -o jsonl"} {
			var said bytes.Buffer
			p := process{
				stdin:  strings.NewReader(""),
				stdout: brokenOutput{cause},
				stderr: &said,
				env:    func(string) string { return "" },
				connect: func(context.Context, string) (*backends.Backend, error) {
					return &backends.Backend{Store: store, Close: func() error { return nil }}, nil
				},
			}

			if code := p.run(t.Context(), append(strings.Fields(line), "--url", "memory://")); code != exitFailed {
				t.Errorf("%s: exit code %d, want %d: %s", line, code, exitFailed, said.String())
			}
		}
	}
}
