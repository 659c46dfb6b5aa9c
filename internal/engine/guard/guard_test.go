package guard_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"github.com/skeinq/skein/internal/engine/guard"
	"github.com/skeinq/skein/ports"
)

func TestAPanicIsAnErrorWithItsPlace(t *testing.T) {
	cause := errors.New("boom")
	for name, call := range map[string]func(func() error) error{"Call": guard.Call, "Goroutine": guard.Goroutine} {
		var caught *guard.PanicError
		if err := call(func() error { panic(cause) }); !errors.As(err, &caught) || !errors.Is(err, cause) {
			t.Fatalf("%s returns %v, want a PanicError of %v", name, err, cause)
		}
		if place, function := guard.Place(caught), caught.Function(); !strings.Contains(place, "guard_test.go:") ||
			!strings.Contains(function, "guard_test.") {
			t.Errorf("%s: the panic was in %q at %q, want this test", name, function, place)
		}
		if err := call(func() error { return cause }); !errors.Is(err, cause) {
			t.Errorf("%s returns %v, want the function's error", name, err)
		}
	}
	if err := guard.Goroutine(func() error { runtime.Goexit(); return nil }); err == nil ||
		!strings.Contains(err.Error(), "Goexit") {
		t.Errorf("a Goexit is %v, want an error that names it", err)
	}
}

// broken is an observer with a mistake.
type broken struct{ ports.NopObserver }

func (broken) BatchStart(context.Context, ports.BatchEvent) context.Context { panic("boom") }

func TestAnObserverThatPanicsIsLoggedOnce(t *testing.T) {
	var text strings.Builder
	log := slog.New(slog.NewTextHandler(&text, nil))
	if guard.Observer(nil, log) != nil {
		t.Error("no observer is guarded as one")
	}
	o := guard.Observer(broken{}, log)
	for range 2 {
		if got := o.BatchStart(t.Context(), ports.BatchEvent{}); got != t.Context() {
			t.Errorf("the batch has the context %v, want its own", got)
		}
	}
	if n := strings.Count(text.String(), "method=BatchStart"); n != 1 {
		t.Errorf("%d lines, want 1: %s", n, text.String())
	}
}
