package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
)

// How often progress is shown: where somebody looks on, and where it is kept.
const (
	progressSeen = 200 * time.Millisecond
	progressKept = 5 * time.Second
)

// progress shows on standard error how far an action is.
type progress struct {
	app        *app
	verb, done string
	began      time.Time
	last       time.Time
	shown      bool
	told       bool
	// of is the fraction of its input that an action has read; nil if it has no input, or its size is
	// not known.
	of func() string
}

func newProgress(a *app, verb, done string) *progress {
	return &progress{app: a, verb: verb, done: done, began: time.Now(), last: time.Now()}
}

// checkpoint prints at the start how to continue if this process is killed: an older checkpoint is
// as good as a newer one.
func (p *progress) checkpoint(c inspect.Checkpoint) {
	if !p.told {
		_, _ = fmt.Fprintf(p.app.stderr, "if this command is interrupted, give the same arguments and --continue %s\n", c)
	}
	p.told = true
}

func (p *progress) progress(at inspect.Progress) {
	every, begin, end := progressKept, "", "\n"
	if terminal(p.app.stderr) {
		every, begin, end = progressSeen, "\r", "\x1b[K" // over the line before, and clear the rest of it
	}
	if time.Since(p.last) < every {
		return
	}
	p.last, p.shown = time.Now(), true
	_, _ = fmt.Fprint(p.app.stderr, begin, p.line(at), end)
}

// line returns the progress of an action. The total of an action that reads its input is only what
// it has read.
func (p *progress) line(at inspect.Progress) string {
	looked := fmt.Sprintf("%s of %s checked", figures.Exact(int64(at.Done)), figures.Exact(int64(at.Total)))
	if p.of != nil {
		looked = fmt.Sprintf("%s read%s", figures.Exact(int64(at.Done)), p.of())
	}
	return fmt.Sprintf("%s: %s, %s %s, %.0f/s", p.verb, looked, figures.Exact(int64(at.Handled)), p.done, float64(at.Done)/time.Since(p.began).Seconds())
}

// input counts the bytes read from a file.
type input struct {
	io.Reader
	// size is that of the file, 0 if it is not known.
	size, read int64
}

// inputOf returns a file or a stream as input.
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

// share returns how much of the file was read.
func (i *input) share() string {
	if i.size == 0 {
		return ""
	}
	return fmt.Sprintf(", %d %% of the file", min(100, 100*i.read/i.size))
}

// end leaves the line.
func (p *progress) end() {
	if p.shown && terminal(p.app.stderr) {
		_, _ = fmt.Fprintln(p.app.stderr)
	}
}
