package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
)

// The time between two reports of progress: on a terminal, and in a file or a pipe.
const (
	progressSeen = 200 * time.Millisecond
	progressKept = 5 * time.Second
)

// progress shows the progress of an action on standard error.
type progress struct {
	app        *app
	verb, done string
	began      time.Time
	last       time.Time
	shown      bool
	told       bool
	// of returns the share of its input that an action has read, as text. It is nil if the action
	// reads no input.
	of func() string
}

func newProgress(a *app, verb, done string) *progress {
	return &progress{app: a, verb: verb, done: done, began: time.Now(), last: time.Now()}
}

// checkpoint prints the first checkpoint, in case this process is killed. It does not print later
// ones: continuing from the first is also safe.
func (p *progress) checkpoint(c inspect.Checkpoint) {
	if !p.told {
		_, _ = fmt.Fprintf(p.app.stderr,
			"if this command is interrupted, give the same arguments and --continue %s\n", c)
	}
	p.told = true
}

func (p *progress) progress(at inspect.Progress) {
	every, begin, end := progressKept, "", "\n"
	if terminal(p.app.stderr) {
		// Overwrite the previous line, and clear the rest of it.
		every, begin, end = progressSeen, "\r", "\x1b[K"
	}
	if time.Since(p.last) < every {
		return
	}
	p.last, p.shown = time.Now(), true
	_, _ = fmt.Fprint(p.app.stderr, begin, p.line(at), end)
}

// line returns a line of progress. An action that reads input shows the share of the input that it
// has read, because its total counts only the entries read so far.
func (p *progress) line(at inspect.Progress) string {
	looked := fmt.Sprintf("%s of %s checked", figures.Exact(int64(at.Done)), figures.Exact(int64(at.Total)))
	if p.of != nil {
		looked = fmt.Sprintf("%s read%s", figures.Exact(int64(at.Done)), p.of())
	}
	return fmt.Sprintf("%s: %s, %s %s, %.0f/s",
		p.verb, looked, figures.Exact(int64(at.Handled)), p.done, float64(at.Done)/time.Since(p.began).Seconds())
}

// input counts the bytes read from a file.
type input struct {
	io.Reader
	// size is the size of the file in bytes, or 0 if it is unknown.
	size, read int64
}

// inputOf returns a file or a stream as an input.
func inputOf(in io.Reader) *input {
	i := &input{Reader: in}
	if f, ok := in.(*os.File); ok {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			i.size = info.Size()
		}
	}
	return i
}

// Read implements io.Reader.
func (i *input) Read(p []byte) (int, error) {
	n, err := i.Reader.Read(p)
	i.read += int64(n)
	return n, err
}

// share returns the share of the file that was read, as text. It is empty if the size is unknown.
func (i *input) share() string {
	if i.size == 0 {
		return ""
	}
	return fmt.Sprintf(", %d %% of the file", min(100, 100*i.read/i.size))
}

// end ends the line of progress on a terminal.
func (p *progress) end() {
	if p.shown && terminal(p.app.stderr) {
		_, _ = fmt.Fprintln(p.app.stderr)
	}
}
