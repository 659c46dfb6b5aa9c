package engine

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
)

// PanicError is a handler's panic, with the stack of the goroutine at that place.
type PanicError struct {
	// Value is what was passed to panic.
	Value any
	// Stack is the trace, as runtime/debug.Stack formats it.
	Stack []byte
}

// Error returns the value and the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("panic: %v\n\n%s", e.Value, e.Stack)
}

// Unwrap returns the value if it is an error, else nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Function returns the name of the function that panicked, the first that is not the runtime's,
// with the path of its package, or "" if the trace does not show it.
func (e *PanicError) Function() string {
	name, _ := e.frame()
	if end := strings.LastIndexByte(name, '('); end > 0 {
		name = name[:end]
	}
	return name
}

// place returns where it panicked, as file:line, or "" if the trace does not show it.
func (e *PanicError) place() string {
	_, line := e.frame()
	place, _, _ := strings.Cut(strings.TrimSpace(line), " +0x")
	return place
}

// frame returns the two lines of the trace for the function that panicked.
func (e *PanicError) frame() (function, place string) {
	lines := strings.Split(string(e.Stack), "\n")
	at := -1
	for i, line := range lines {
		if strings.HasPrefix(line, "panic(") {
			at = i
		}
	}
	for i := at + 2; at >= 0 && i+1 < len(lines); i += 2 {
		if !strings.HasPrefix(lines[i], "runtime.") {
			return lines[i], lines[i+1]
		}
	}
	return "", ""
}

// errGoexit is the failure of a handler that ended its goroutine.
var errGoexit = errors.New("the handler called runtime.Goexit, as t.FailNow does; return an error instead")

// errFuncGoexit is the error of a user's function, other than a handler, that ended its
// goroutine.
var errFuncGoexit = errors.New("the function called runtime.Goexit, as t.FailNow does")

// Guard calls f and turns a panic into a *PanicError.
func Guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

// GuardGoroutine is Guard for a function that must not end the caller's goroutine either: it
// calls f in a goroutine of its own, and waits for it.
func GuardGoroutine(f func() error) error {
	err := errFuncGoexit
	over := make(chan struct{})
	go func() {
		defer close(over)
		err = Guard(f)
	}()
	<-over
	return err
}

// reportPanic is deferred by each of the engine's goroutines.
func (n *node) reportPanic() {
	if v := recover(); v != nil {
		n.callFatal(v)
		panic(v)
	}
}

// callFatal calls Config.Fatal with the first panic outside of handlers. A second panic waits
// until that call has returned, since the process ends with the panic.
func (n *node) callFatal(v any) {
	if n.cfg.Fatal != nil {
		n.fatal.Do(func() { n.cfg.Fatal(&PanicError{Value: v, Stack: debug.Stack()}) })
	}
}
