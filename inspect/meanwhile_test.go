package inspect_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// If a dead letter was chosen, and then revived by another operator and buried again while match
// examined the next one, it stays.
func TestWhatIsBuriedMeanwhileStays(t *testing.T) {
	for _, name := range []string{"purge", "revive"} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			ids := append(sameShard("x", 1), "x") // other dies first, x then; same shard, one page
			s.dead(ids[0])
			s.advance(time.Second)
			s.dead(ids[1])
			s.advance(time.Second)

			other := inspect.New(s.store, inspect.Options{})
			match := func(d inspect.DeadLetter) bool {
				if d.ID == ids[1] { // ids[0] was chosen; now a colleague revives it, and it dies anew
					if r, err := other.Revive(t.Context(), "orders", inspect.DeadIDs(ids[0])); err != nil ||
						r.Handled != 1 {
						t.Fatal(r, err)
					}
					s.advance(time.Minute)
					s.bury()
				}
				return d.ID == ids[0]
			}

			o := inspect.BulkOptions{Filter: "f"}
			var r inspect.Result
			var err error
			if name == "purge" {
				r, err = s.Purge(t.Context(), "orders", inspect.AllDead(match, o))
			} else {
				r, err = s.Revive(t.Context(), "orders", inspect.AllDead(match, o))
			}
			if err != nil {
				t.Fatal(err)
			}

			found, err := s.Find(t.Context(), "orders", ids[0])
			if err != nil || found.DeadLetter == nil {
				t.Errorf("%s: %q was buried a minute after the action began, and did not stay: handled %d (%v)",
					name, ids[0], r.Handled, err)
			}
		})
	}
}

// A step that is repeated because its reply was lost does not handle it either.
func TestALostReplyRevivesNothingTwice(t *testing.T) {
	s := newFixture(t)
	s.dead("x")
	s.advance(time.Second)

	h := s.intercept()
	revived := 0
	h.after = func(method string) error {
		if method != "Revive" {
			return nil
		}
		if revived++; revived == 1 {
			s.advance(time.Second)
			s.bury() // a server is at work: it ran and died again
			return errors.New("reply lost")
		}
		return nil
	}

	if _, err := s.Revive(t.Context(), "orders",
		inspect.AllDead(anyLetter, inspect.BulkOptions{Filter: "f"})); err != nil {
		t.Fatal(err)
	}
	if c := s.counts(); c.Dead != 1 {
		t.Errorf("%+v: what died again a second after the action began was revived a second time", c)
	}
}

// If the store stalls, an action with a Rate does not catch up on the missed steps.
func TestRateIsHeldAfterAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t)
		s.dead(numbered("d", 200)...)
		s.advance(time.Second)
		var at []time.Time
		stalled := false
		_, err := s.Revive(t.Context(), "orders",
			inspect.AllDead(nil, inspect.BulkOptions{Rate: 10, Progress: func(p inspect.Progress) {
				for len(at) < p.Handled {
					at = append(at, time.Now())
				}
				if !stalled && p.Handled >= 10 {
					stalled = true
					time.Sleep(15 * time.Second)
				}
			}}))

		if err != nil {
			t.Fatal(err)
		}
		most := 0
		for i := range at {
			n := 0
			for _, x := range at[i:] {
				if x.Sub(at[i]) < time.Second {
					n++
				}
			}
			most = max(most, n)
		}
		if most > 20 { // two steps of a second's worth
			t.Errorf("%d letters were taken within one second, at Rate 10", most)
		}
	})
}

// The log has what was done before a caller's function panicked, and the panic.
func TestWhatWasDoneBeforeAPanicIsInTheLog(t *testing.T) {
	s := newFixture(t)
	s.dead(numbered("d", 500)...)
	s.advance(time.Second)
	var log bytes.Buffer
	i := inspect.New(s.store, inspect.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	n := 0
	func() {
		defer func() { _ = recover() }()
		_, _ = i.Purge(t.Context(), "orders", inspect.AllDead(func(inspect.DeadLetter) bool {
			if n++; n > 250 {
				panic("match")
			}
			return true
		}, inspect.BulkOptions{Filter: "f"}))

	}()
	gone := 500 - s.counts().Dead
	if text := log.String(); gone == 0 || strings.Contains(text, "handled=0") || text == "" {
		t.Errorf("%d letters were purged for good, and the log says %s", gone, text)
	}
}

func TestAnActionGoesOnWithTheSameOptions(t *testing.T) {
	s := newFixture(t)
	s.dead(numbered("d", 20)...)
	s.advance(time.Second)
	// The time is that of a clock that is ahead, or means "all until midnight".
	o := inspect.BulkOptions{Before: epoch.Add(time.Hour), Limit: 5}
	r, err := s.Revive(t.Context(), "orders", inspect.AllDead(nil, o))
	if err != nil {
		t.Fatal(err)
	}
	o.Continue = r.Checkpoint
	if _, err := s.Revive(t.Context(), "orders", inspect.AllDead(nil, o)); err != nil {
		t.Errorf("the same action with the same options is refused: %v", err)
	}
}

func TestTheLogTellsAPrefixFromAll(t *testing.T) {
	s := newFixture(t)
	s.dead("a-1", "b-1")
	s.advance(time.Second)

	logged := func(o inspect.BulkOptions) string {
		var log bytes.Buffer
		i := inspect.New(s.store, inspect.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if _, err := i.Purge(t.Context(), "orders", inspect.AllDead(nil, o)); err != nil {
			t.Fatal(err)
		}
		text, _, _ := strings.Cut(log.String()[len("time=2026-11-23T20:44:58.000Z "):], "took=")
		_, text, _ = strings.Cut(text, "level")
		return text
	}

	a := logged(inspect.BulkOptions{Prefix: "a-"})
	b := logged(inspect.BulkOptions{})
	if a == b {
		t.Errorf("a purge of those with a prefix and one of all are logged alike: %s", a)
	}
}

func TestEditAllShowsEachPayloadOnceByAStandingClock(t *testing.T) {
	// EditAll by prefix, many payloads, standing clock: each payload is shown to edit once.
	s := newFixture(t)
	var payloads []string
	for i := range 40 {
		payloads = append(payloads, fmt.Sprintf("p%02d", i))
	}
	s.push("a-1", 0, payloads...)
	s.push("a-2", 0, payloads...)
	s.bury()
	seen := map[string]int{}
	r, err := s.Edit(t.Context(), "orders", inspect.AllDead(nil,

		inspect.BulkOptions{Prefix: "a-"}), func(id string, p core.Payload) ([]byte, bool, error) {
		seen[id+string(p.Data)]++
		return append(p.Data, '!'), true, nil
	})

	if err != nil || len(seen) != 80 || r.Handled != 80 {
		t.Errorf("%d payloads seen, %+v, %v", len(seen), r, err)
	}
}

func TestAnIDThatIsNamedTwiceIsEditedOnce(t *testing.T) {
	s := newFixture(t)
	s.dead("x")
	_, err := s.Edit(t.Context(), "orders", inspect.DeadIDs("x", "x"), func(
		_ string,
		p core.Payload,
	) ([]byte, bool, error) {
		return append(p.Data, '!'), true, nil
	})
	if found, _ := s.Find(t.Context(), "orders", "x"); err != nil || string(found.DeadLetter.Payloads[0].Data) != "p!" {
		t.Errorf("%q (%v); want p!", found.DeadLetter.Payloads[0].Data, err)
	}
}
