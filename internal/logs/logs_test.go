package logs

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestSumsPassTheFirstAndCountTheRest(t *testing.T) {
	s := NewSums[int](time.Minute, 2)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	add := func(seconds int, space, key string, event int, as string, first bool) {
		t.Helper()
		if gotAs, gotFirst := s.Add(at(seconds), space, key, event); gotAs != as || gotFirst != first {
			t.Errorf("Add of %s/%s is %q, %v, want %q, %v", space, key, gotAs, gotFirst, as, first)
		}
	}

	due := func(got []Sum[int], want ...Sum[int]) {
		t.Helper()
		slices.SortFunc(got, func(a, b Sum[int]) int { return strings.Compare(a.Space+a.Key, b.Space+b.Key) })
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}

	add(0, "q", "a", 1, "a", true)
	add(1, "q", "a", 2, "a", false)
	add(2, "q", "a", 3, "a", false)
	add(2, "other", "a", 4, "a", true) // a space of its own
	add(3, "q", "b", 5, "b", true)
	add(4, "q", "c", 6, "", true) // one key too many
	add(5, "q", "d", 7, "", false)
	due(s.Due(at(59)))
	due(s.Due(at(60)), Sum[int]{"q", "a", 2, 3})
	due(s.Due(at(64)), Sum[int]{"q", "", 1, 7}) // and b and other/a, which were quiet, are gone

	add(65, "q", "b", 8, "b", true)
	add(65, "other", "a", 9, "a", true)
	due(s.Due(at(119)))
	add(120, "q", "a", 10, "a", false) // still in its window when it came
	due(s.Due(at(120)), Sum[int]{"q", "a", 1, 10})
	add(121, "q", "a", 11, "a", false)
	due(s.Due(at(200)), Sum[int]{"q", "a", 1, 11})
	due(s.Due(at(260)))

	if len(s.sums)+len(s.keys) > 0 {
		t.Errorf("after quiet windows it keeps %v, %v", s.sums, s.keys)
	}
}

// What a Sums keeps is bounded, whatever comes, and nothing that came is uncounted.
func TestSumsAreBoundedAndLoseNothing(t *testing.T) {
	s := NewSums[int](time.Minute, 16)
	written, now := 0, start
	for i := range 100_000 {
		now = now.Add(10 * time.Millisecond)
		if _, first := s.Add(now, "q", fmt.Sprint(i), i); first {
			written++
		}
		for _, sum := range s.Due(now) {
			written += sum.Count
		}
		if len(s.sums) > 17 {
			t.Fatalf("%d keys after %d events, want 17 at most", len(s.sums), i)
		}
	}
	for _, sum := range s.Due(now.Add(time.Minute)) {
		written += sum.Count
	}
	if written != 100_000 {
		t.Errorf("%d events are in the log or counted, want all 100000", written)
	}
}

func TestARateHoldsBackWhatIsTooMuch(t *testing.T) {
	r := NewRate(time.Second, 10)
	now, passed, held := start, 0, 0

	for range 1000 { // a hundred a second, ten seconds
		now = now.Add(10 * time.Millisecond)
		if r.Pass(now, "q") {
			passed++
		}
		for _, h := range r.Due(now) {
			held += h.Count
		}
	}
	for _, h := range r.Due(now.Add(time.Second)) {
		held += h.Count
	}

	if passed < 100 || passed > 110 || passed+held != 1000 {
		t.Errorf("%d passed and %d were held back, want 10 a second of 1000", passed, held)
	}

	if !r.Pass(now, "q") || !r.Pass(now, "other") {
		t.Error("after a rest a key is held back")
	}
	if len(r.Due(now.Add(time.Second))) != 0 || len(r.keys) != 0 {
		t.Errorf("a quiet rate keeps %v", r.keys)
	}
}

func TestOncePassesEachKeyOnceAndFewKeys(t *testing.T) {
	o := NewOnce(time.Hour, 3)
	passed := 0
	for second := range 3600 {
		if o.Pass(start.Add(time.Duration(second)*time.Second), fmt.Sprint(second%7)) {
			passed++
		}
	}
	if passed != 3 {
		t.Errorf("%d passed in an hour, want 3 of 7 keys", passed)
	}
	if !o.Pass(start.Add(2*time.Hour), "new") || len(o.keys) != 1 {
		t.Errorf("after the hour %v are kept", o.keys)
	}
}

// angry panics in each of its methods from the moment on.
type angry struct {
	slog.Handler
	now *bool
}

func (a angry) may() {
	if *a.now {
		panic("the handler's mistake")
	}
}
func (a angry) Enabled(context.Context, slog.Level) bool { a.may(); return true }
func (a angry) Handle(ctx context.Context, r slog.Record) error {
	a.may()
	return a.Handler.Handle(ctx, r)
}
func (a angry) WithAttrs(attrs []slog.Attr) slog.Handler {
	a.may()
	return angry{a.Handler.WithAttrs(attrs), a.now}
}
func (a angry) WithGroup(name string) slog.Handler {
	a.may()
	return angry{a.Handler.WithGroup(name), a.now}
}

func TestAHandlersPanicLosesItsRecordAlone(t *testing.T) {
	var log, stderr bytes.Buffer
	mad := false
	l := New(slog.New(angry{slog.NewTextHandler(&log, nil), &mad}))
	l.Handler().(guard).said.to = &stderr
	l.Info("before")
	mad = true
	l.Info("lost")
	l.With("k", "v").WithGroup("g").Info("lost too")
	mad = false
	l.Info("after")
	text := log.String()
	if !strings.Contains(text, "msg=before lib=skein") || strings.Contains(text, "lost") ||
		!strings.Contains(text, "msg=after lib=skein") {
		t.Errorf("the log is %q", text)
	}
	if strings.Count(stderr.String(), "the handler's mistake") != 1 {
		t.Errorf("the standard error has %q, want the panic once", stderr.String())
	}
}

func TestALoggerIsGuardedOnce(t *testing.T) {
	var log bytes.Buffer
	l := New(New(slog.New(slog.NewTextHandler(&log, nil))))
	l.Info("x")
	if strings.Count(log.String(), "lib=skein") != 1 {
		t.Errorf("the log is %q", log.String())
	}
	if New(nil) == nil {
		t.Error("no default")
	}
}
