package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// A watch that begins while a part of the store can't be reached continues, like one that began
// before. If it reaches nothing, it reports that.
func TestAWatchGoesOnWhereAPartIsSeen(t *testing.T) {
	away := errors.New("nobody answers")
	for _, tt := range []struct {
		name  string
		first error
		looks int
		want  error
	}{
		{"all is seen", nil, 3, nil},
		{"a part of a queue is away", &inspect.PartialError{Unreached: []core.Shard{{Queue: "orders"}}}, 3, nil},
		{"the list of servers is away", errors.Join(errPart, away), 3, nil},
		{"the store is away", away, 1, away},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
				defer stop()
				var stderr bytes.Buffer
				a := &app{process: process{stdout: &bytes.Buffer{}, stderr: &stderr}, output: "table"}

				looks := 0
				err := a.watch(ctx, 2*time.Second, func() func() error {
					looks++
					return func() error { return tt.first }
				})

				if looks != tt.looks || !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
					t.Errorf("%d looks and %v, want %d and %v", looks, err, tt.looks, tt.want)
				}
				if tt.first != nil && tt.want == nil && strings.Count(stderr.String(), "skein: ") != looks {
					t.Errorf("not each of %d looks says what is missing: %s", looks, stderr.String())
				}
			})
		})
	}
}

// While a look takes long, the frame of the look before shows how old it is.
func TestAFrameSaysItsAgeWhileTheStoreIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var screen bytes.Buffer
		shown := errors.New("shown")
		slow := func() func() error {
			time.Sleep(3500 * time.Millisecond)
			return func() error { return shown }
		}

		if aging(nil, time.Time{}, slow)() != shown || screen.Len() > 0 {
			t.Errorf("without a frame it wrote %q", screen.String())
		}

		seen := time.Now().Add(-2 * time.Second)
		if aging(&screen, seen, slow)() != shown {
			t.Error("the look was lost")
		}

		for _, age := range []string{"3s", "4s", "5s"} {
			if want := asOf(seen) + ", " + age +
				" ago: the store is slow to answer"; strings.Count(screen.String(), want) != 1 {
				t.Errorf("%q is not on the screen once: %q", want, screen.String())
			}
		}
	})
}
