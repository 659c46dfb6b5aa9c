// Package command handles signals in the same way for all of Skein's commands. The library itself
// handles no signal.
package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"sync"
	"syscall"
)

// Context returns a context for a command's work, made from parent, and handles signals until stop
// is called:
//
//   - the first INT or TERM cancels the context, so that the command finishes its work; its
//     cause, by context.Cause, names the signal
//   - the second ends the process at once, with status 128 + the signal's number
//   - each QUIT or TTIN, where the system has them, writes the stacks of all
//     goroutines to standard error, and the process continues
//
// Call stop when the command is done. It also cancels the context, and may be called more than
// once. A process should have one such Context at a time.
func Context(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	ends := notify(os.Interrupt, syscall.SIGTERM)
	dumps := notify(dumpSignals()...)
	done := make(chan struct{})

	go func() {
		for drained := false; ; {
			select {
			case s := <-ends:
				if drained {
					os.Exit(exitStatus(s))
				}
				drained = true
				fmt.Fprintf(os.Stderr,
					"received %v: finishing the running work; a second signal ends the process at once\n", s)
				cancel(fmt.Errorf("received %v", s))
			case <-dumps:
				dumpGoroutines(os.Stderr)
			case <-done:
				return
			}
		}
	}()

	return ctx, sync.OnceFunc(func() {
		signal.Stop(ends)
		signal.Stop(dumps)
		close(done)
		cancel(nil)
	})
}

// notify requests no signals if none are given, where signal.Notify would request all.
func notify(signals ...os.Signal) chan os.Signal {
	c := make(chan os.Signal, 2)
	if len(signals) > 0 {
		signal.Notify(c, signals...)
	}
	return c
}

func exitStatus(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return 1
}

// dumpGoroutines writes the stacks of all goroutines, in the format of a panic.
func dumpGoroutines(w io.Writer) {
	const asPanic = 2
	if err := pprof.Lookup("goroutine").WriteTo(w, asPanic); err != nil {
		fmt.Fprintf(os.Stderr, "dump goroutines: %v\n", err)
	}
}
