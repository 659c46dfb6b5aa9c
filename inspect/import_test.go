package inspect_test

import (
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// An import sends letters as it reads them. If one of its steps fails, it fails.
func TestAnImportSendsAsItReads(t *testing.T) {
	s := newFixture(t)
	h := s.intercept()
	sent := 0
	h.before = func(method string) error {
		if method == "Import" {
			sent++
		}
		return nil
	}

	most, kept, was := 0, 0, 0
	reading := iter.Seq2[core.DeadLetter, error](func(yield func(core.DeadLetter, error) bool) {
		for _, d := range lettersOf(numbered("d", 60), 100) {
			if kept++; sent > was {
				was, kept = sent, 1
			}
			if most = max(most, kept); !yield(d, nil) {
				return
			}
		}
	})

	if _, err := s.Import(t.Context(), "orders", reading, nil); err != nil || sent < 6 || most > 10 {
		t.Errorf("%v; %d steps, of up to %d letters of 100 payloads each", err, sent, most)
	}

	for failing := range 2 {
		sent = 0
		h.before = func(method string) error {
			if method == "Import" {
				if sent++; sent == failing+1 {
					return ports.ErrUnusable
				}
			}
			return nil
		}
		if r, err := s.Import(t.Context(), "orders",
			sequence(lettersOf(numbered("e", 30), 100), nil), nil); !errors.Is(err, ports.ErrUnusable) {
			t.Errorf("step %d failed: %+v, %v", failing, r, err)
		}
	}
}

// If a list ends with an error, its elements before the error are written, and the caller gets the
// error.
func TestAnExportThatBreaksOffIsNotWhole(t *testing.T) {
	broken := errors.New("the store is gone")
	var file strings.Builder
	n, err := inspect.WriteDeadLetters(&file, sequence(lettersOf([]string{"a", "b"}, 1), broken))
	if n != 2 || !errors.Is(err, broken) || strings.Count(file.String(), "\n") != 2 {
		t.Errorf("%d, %v: %q", n, err, file.String())
	}
	n, err = inspect.WriteDeadLetters(failingWriter{broken}, sequence(lettersOf(numbered("d", 500), 1), nil))
	if n == 500 && err == nil || !errors.Is(err, broken) {
		t.Errorf("%d, %v into what can't be written to", n, err)
	}
}

// failingWriter is a file on a full disk.
type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// A file that can't be read to its end leads to an error.
func TestAFileThatBreaksOffIsNotWhole(t *testing.T) {
	broken := errors.New("the disk is gone")
	const line = `{"id":"a","payloads":[{"score":1,"data":"p"}]}`
	for _, text := range []string{line + "\n", line + "\n" + line, ""} {
		var last error
		for _, err := range inspect.ReadDeadLetters(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))) {
			last = err
		}
		if !errors.Is(last, broken) {
			t.Errorf("after %q: %v", text, last)
		}
	}
}
