package inspect_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// An action on all dead letters reports how many it has skipped because they are later than the
// action, such as those that were imported with a time in the future. Actions on named ids handle
// them.
func TestAnActionSaysWhatIsLater(t *testing.T) {
	for name, c := range map[string]struct {
		o              inspect.BulkOptions
		handled, later int
		match          func(inspect.DeadLetter) bool
	}{
		"all":                  {inspect.BulkOptions{}, 30, 100, nil},
		"a dry run":            {inspect.BulkOptions{DryRun: true}, 30, 100, nil},
		"by id":                {inspect.BulkOptions{Prefix: "a2"}, 0, 30, nil},
		"before some":          {inspect.BulkOptions{Before: epoch.Add(-15 * time.Second)}, 15, 100, nil},
		"a part":               {inspect.BulkOptions{Limit: 1}, 1, 0, nil},
		"what match refuses":   {inspect.BulkOptions{}, 0, 100, func(inspect.DeadLetter) bool { return false }},
		"of a group":           {inspect.BulkOptions{Group: "odd"}, 15, 100, nil},
		"of a group of others": {inspect.BulkOptions{Group: "none"}, 0, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			var letters []core.DeadLetter
			for n := range 230 {
				at := epoch.Add(time.Duration(n-30) * time.Second)
				if n >= 30 {
					at = at.Add(time.Hour)
				}
				letters = append(letters, core.DeadLetter{
					ID:        fmt.Sprintf("a%03d", n),
					ChangedAt: core.InstantOf(at),
					Failures:  core.Failures{{Text: "e"}},
					Group:     [...]string{"even", "odd"}[n%2],
					Payloads:  []core.Payload{{Data: []byte("p")}},
				})
			}

			if r, err := s.Import(t.Context(), "orders", sequence(letters, nil), nil); err != nil ||
				r.Handled != len(letters) {
				t.Fatal(r, err)
			}

			r, err := s.Revive(t.Context(), "orders", inspect.AllDead(c.match, c.o))
			if err != nil || r.Handled != c.handled || r.Later != c.later {
				t.Errorf("%+v, %v; want %d handled and %d that are later", r, err, c.handled, c.later)
			}

			r, err = s.Revive(t.Context(), "orders", inspect.DeadIDs("a229"))
			if err != nil || r.Handled != 1 || r.Later != 0 {
				t.Errorf("a named one: %+v, %v", r, err)
			}
		})
	}
}

// Letters that do not match are not later, and letters that arrive while all are handled are not
// reported.
func TestWhatIsNotLater(t *testing.T) {
	for name, refused := range map[string]string{"all match": "", "one does not": nth("a", 0)} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.dead(numbered("a", 20)...)
			s.advance(time.Second)
			first := true
			r, err := s.Purge(t.Context(), "orders", inspect.AllDead(func(d inspect.DeadLetter) bool {
				if first && refused == "" {
					s.advance(time.Second)
					s.dead("new")
				}
				first = false
				return refused == "" || d.ID != refused
			}, inspect.BulkOptions{}))

			if err != nil || r.Done != 20 || refused != "" && r.Handled == 20 || r.Later != 0 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}
