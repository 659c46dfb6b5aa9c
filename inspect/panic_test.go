package inspect_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports/storekit"
)

// A panic of the store is an error for the caller. Each panic is logged once a minute with its
// stack, and nothing is done twice.
func TestAPanicOfTheStoreIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		store := storekit.Intercept(memory.New(memory.Options{}), func(
			_ context.Context,
			call storekit.Call,
			_ func(context.Context) error,
		) error {
			if call.Method != "Audit" {
				asked++
			}
			panic("no " + call.Method)
		})

		var log bytes.Buffer
		i := inspect.New(store, inspect.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})

		for name, call := range map[string]func() error{
			"Nodes":  func() error { _, err := i.Nodes(t.Context()); return err },
			"Queues": func() error { _, err := i.Stats(t.Context()); return err },
			"Pause":  func() error { return i.Pause(t.Context(), "orders") },
		} {
			asked = 0
			for range 2 {
				if err := call(); err == nil || !strings.Contains(err.Error(), "the store panicked") ||
					!strings.Contains(err.Error(), "no "+name) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if asked != 2 {
				t.Errorf("%s is called %d times for two", name, asked)
			}

			said := func() int { return strings.Count(log.String(), `error="no `+name+`" stack=`) }
			if said() != 1 || !strings.Contains(log.String(), "panic_test.go") {
				t.Errorf("%s: %d records with a stack: %s", name, said(), log.String())
			}

			time.Sleep(time.Minute)
			if err := call(); err == nil || said() != 2 {
				t.Errorf("%s, a minute later: %v, %d records", name, err, said())
			}
		}
	})
}
