package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// Names that are no queue's must not pile up: anybody with a right to look could fill the memory.
func TestUnknownQueuesAreNotRemembered(t *testing.T) {
	s, err := New(inspect.New(memory.New(memory.Options{}), inspect.Options{}), Options{})
	if err != nil {
		t.Fatal(err)
	}

	for n := range 100 {
		queue := fmt.Sprintf("q%d", n)
		_, err := QueueStats.Do(context.Background(), &Caller{Service: s}, queue, &NoQuery{})
		if p := new(Problem); !errors.As(err, &p) || p.Name != "unknown-queue" {
			t.Fatalf("%s: %v", queue, err)
		}
	}

	if n := len(s.snapshots.byQueue); n > 0 {
		t.Errorf("%d snapshots of what is no queue", n)
	}
}

// A caller without the right is refused before any call of the store.
func TestTheRightsComeFirst(t *testing.T) {
	s, err := New(inspect.New(nil, inspect.Options{}), Options{}) // a call of the store would panic
	if err != nil {
		t.Fatal(err)
	}

	var asked []Action
	who := &Caller{Service: s, Authorize: func(a Action) error {
		if asked = append(asked, a); a.Bulk {
			return fmt.Errorf("who are you: %w", ErrUnauthenticated)
		}
		return errors.New("secret")
	}}

	_, refused := Revive.Do(context.Background(), who, "orders", &MorgueBody{BulkBody: BulkBody{IDs: []string{"a"}}})
	_, unknown := Revive.Do(context.Background(), who, "orders", &MorgueBody{BulkBody: BulkBody{Match: &Match{}}})
	for name, err := range map[string]error{"forbidden": refused, "unauthenticated": unknown} {
		if p := new(Problem); !errors.As(err, &p) || p.Name != name || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want the problem %s", err, name)
		}
	}

	if len(asked) != 2 || asked[0].Verb != "revive" || asked[0].Queue != "orders" || len(asked[0].IDs) != 1 ||
		!asked[1].Bulk {
		t.Errorf("asked for %+v", asked)
	}
}

// A read-only service refuses actions itself, regardless of its adapters' routes.
func TestReadOnlyRefusesActions(t *testing.T) {
	s, err := New(inspect.New(nil, inspect.Options{}), Options{ReadOnly: true}) // a call of the store would panic
	if err != nil {
		t.Fatal(err)
	}
	_, err = Pause.Do(context.Background(), &Caller{Service: s}, "orders", &NoBody{})
	if p := new(Problem); !errors.As(err, &p) || p.Name != "forbidden" {
		t.Errorf("%v, want the problem forbidden", err)
	}
}

// Whatever is given as a cursor, it is one that was given out or is refused; sealed ones can't be
// made up.
func FuzzCursor(f *testing.F) {
	open, err := New(inspect.New(nil, inspect.Options{}), Options{})
	if err != nil {
		f.Fatal(err)
	}
	o := Options{RedactID: func(_, id string) string { return id }, CursorKey: []byte(strings.Repeat("k", 32))}
	closed, err := New(inspect.New(nil, inspect.Options{}), o)
	if err != nil {
		f.Fatal(err)
	}

	f.Add("AGQwMDAwMg")
	f.Add(closed.sealed("AGQwMDAwMg"))
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range []*Service{open, closed} {
			c, err := s.cursor(text)
			if err != nil {
				if !errors.Is(err, inspect.ErrInvalidCursor) {
					t.Fatalf("%v of %q", err, text)
				}
				continue
			}
			if again := s.sealed(c.String()); again != text {
				t.Fatalf("%q became %q", text, again)
			}
		}
	})
}

// A preview changes nothing, so pollers of statistics keep what they share.
func TestAPreviewKeepsTheSharedStatistics(t *testing.T) {
	store := memory.New(memory.Options{})
	if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1}); err != nil {
		t.Fatal(err)
	}

	s, err := New(inspect.New(store, inspect.Options{}), Options{})
	if err != nil {
		t.Fatal(err)
	}

	who := &Caller{Service: s, Actor: func() inspect.Actor { return inspect.Actor{} }}
	if _, err := QueueStats.Do(t.Context(), who, "orders", &NoQuery{}); err != nil {
		t.Fatal(err)
	}

	for _, dry := range []bool{true, false} {
		if _, err := Purge.Do(t.Context(), who, "orders",
			&MorgueBody{BulkBody: BulkBody{Match: &Match{}, DryRun: dry}}); err != nil {
			t.Fatal(err)
		}
		if kept := len(s.snapshots.byQueue) > 0; kept != dry {
			t.Errorf("dry run %v: the statistics are kept: %v", dry, kept)
		}
	}
}

// A page by a tag ends after the bytes and the time that it may take, also if no element has the
// tag.
func TestAPageByTagEndsAlsoIfItFindsNothing(t *testing.T) {
	s, err := New(inspect.New(nil, inspect.Options{}), Options{}) // a call of the store would panic
	if err != nil {
		t.Fatal(err)
	}

	for name, size := range map[string]int{"bytes": maxPageBytes / 4, "time": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				read := 0
				elements := func(yield func(inspect.QueuedJob, error) bool) {
					for ok := true; ok && read < 100; read++ {
						if size == 0 {
							time.Sleep(tagTime / 4)
						}
						ok = yield(inspect.QueuedJob{}, nil)
					}
				}

				cursor, err := s.cursor("AGQwMDAwMg")
				if err != nil {
					t.Fatal(err)
				}

				filter := tagFilter[inspect.QueuedJob]{tag: "rare", most: 50, of: func(*inspect.QueuedJob) ([]string, entry) {
					return nil, entry{cursor, size}
				}}
				reply, err := page(&call{Service: s, ctx: t.Context()}, &PageQuery{Limit: 10}, filter, elements)
				if err != nil {
					t.Fatal(err)
				}

				if read != 4 || reply.Next != cursor.String() || len(reply.Items) > 0 {
					t.Errorf("%d elements were read; next %q, items %v; want 4 elements, then a next page",
						read, reply.Next, reply.Items)
				}
			})
		})
	}
}
