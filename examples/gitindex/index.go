package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"
)

// index has what each path holds, according to the handled events. It is safe for concurrent use.
type index struct {
	fail float64 // The share of calls that fail.

	mu                              sync.Mutex
	files                           map[string]*file
	calls, failed, applied, overlap int64
	// broken are the events that do not follow what their path holds.
	broken []error
}

// file is the state of one path.
type file struct {
	version  string
	position int64
	running  bool
}

func newIndex(fail float64) *index { return &index{fail: fail, files: map[string]*file{}} }

// handle is the queue's handler. A share of its calls fails after some of the events, as a crash
// would.
func (x *index) handle(_ context.Context, id string, events []Event) error {
	x.begin(id)
	part := events
	fails := rand.Float64() < x.fail
	if fails {
		part = events[:rand.IntN(len(events)+1)]
	}
	x.end(id, part, fails)

	if fails {
		return fmt.Errorf("injected failure after %d of %d events", len(part), len(events))
	}
	return nil
}

func (x *index) begin(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()

	f := x.files[id]
	if f == nil {
		f = &file{}
		x.files[id] = f
	}
	if f.running {
		x.overlap++
	}
	f.running = true
	x.calls++
}

func (x *index) end(id string, events []Event, failed bool) {
	x.mu.Lock()
	defer x.mu.Unlock()

	f := x.files[id]
	for _, e := range events {
		x.apply(id, f, e)
	}
	f.running = false
	if failed {
		x.failed++
	}
}

// apply skips an event that a failed call has applied before, which makes the handler idempotent.
// If an event does not follow what the path holds, it was overtaken, or the one before it was lost.
func (x *index) apply(id string, f *file, e Event) {
	if e.Position <= f.position {
		return
	}
	if f.version != e.Old {
		x.broken = append(x.broken, fmt.Errorf(
			"%q: event %d of commit %s expects %q, and the index holds %q since event %d",
			id, e.Position, e.Commit, e.Old, f.version, f.position,
		))
	}
	f.version, f.position = e.New, e.Position
	x.applied++
}

// handled returns the number of applied events.
func (x *index) handled() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.applied
}

// compare returns an error unless the index holds these files, by id, each event was in order, and
// no two calls for one id overlapped.
func (x *index) compare(files map[string]string) error {
	x.mu.Lock()
	defer x.mu.Unlock()

	faults := x.broken
	for id, f := range x.files {
		if f.version != files[id] {
			faults = append(faults, fmt.Errorf("%q: HEAD has %q, the index %q", id, files[id], f.version))
		}
	}
	for id, version := range files {
		if x.files[id] == nil {
			faults = append(faults, fmt.Errorf("%q: HEAD has %q, the index nothing", id, version))
		}
	}
	if x.overlap > 0 {
		faults = append(faults, fmt.Errorf("%d calls began while another one for their id ran", x.overlap))
	}
	return errors.Join(faults...)
}

// report writes the figures of a run.
func (x *index) report(w io.Writer, pushed int64, elapsed time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()

	jobs := x.calls - x.failed
	fmt.Fprintf(w, "events        %d pushed, %d applied by %d jobs\n", pushed, x.applied, jobs)
	fmt.Fprintf(w, "calls         %d of the handler, %d failed\n", x.calls, x.failed)
	fmt.Fprintf(w, "broken links  %d, overlaps %d\n", len(x.broken), x.overlap)
	fmt.Fprintf(w, "elapsed       %v, %.0f events/s\n",
		elapsed.Round(time.Millisecond), float64(x.applied)/elapsed.Seconds())
}
