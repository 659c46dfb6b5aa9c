package guard

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

// Place returns where a panic happened, as file:line, or "" if its trace does not show it. It is no
// method, since users have the type.
func Place(e *PanicError) string {
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

// errFuncGoexit is the error of a user's function, other than a handler, that ended its
// goroutine.
var errFuncGoexit = errors.New("the function called runtime.Goexit, as t.FailNow does")

// Call calls f and turns a panic into a *PanicError.
func Call(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return f()
}

// Goroutine is Call for a function that must not end the caller's goroutine either: it
// calls f in a goroutine of its own, and waits for it.
func Goroutine(f func() error) error {
	err := errFuncGoexit
	over := make(chan struct{})
	go func() {
		defer close(over)
		err = Call(f)
	}()
	<-over
	return err
}
