package main

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/inspect"
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
}

func newProgress(a *app, verb, done string) *progress {
	return &progress{app: a, verb: verb, done: done, began: time.Now(), last: time.Now()}
}

// checkpoint says at the start how to go on if this process is killed: an older checkpoint is as good as a newer one.
func (p *progress) checkpoint(c inspect.Checkpoint) {
	if !p.told {
		_, _ = fmt.Fprintf(p.app.stderr, "if this is cut off, give the same arguments and --continue %s\n", c)
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
	_, _ = fmt.Fprintf(p.app.stderr, "%s%s: %d of %d looked at, %d %s, %.0f/s%s", begin, p.verb, at.Done, at.Total, at.Handled, p.done,
		float64(at.Done)/time.Since(p.began).Seconds(), end)
}

// end leaves the line.
func (p *progress) end() {
	if p.shown && terminal(p.app.stderr) {
		_, _ = fmt.Fprintln(p.app.stderr)
	}
}
