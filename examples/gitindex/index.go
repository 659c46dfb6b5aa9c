package main

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"
)

// handler is a queue's handler: it handles the events of one id, in order.
type handler func(ctx context.Context, id string, events []Event) error

// stripes is the number of locks of an index, so that lanes rarely wait for one another.
const stripes = 64

// index has what each path holds, according to the handled events. It is safe for concurrent use.
type index struct {
	seed    maphash.Seed
	stripes [stripes]stripe
	broken  examples
}

type stripe struct {
	mu    sync.Mutex
	files map[string]*file
	// applied counts events.
	applied int64
}

// file is a path's state: its version and the last event that made it.
type file struct {
	Version
	position int64
	commit   string
}

func newIndex() *index {
	x := &index{seed: maphash.MakeSeed()}
	for i := range x.stripes {
		x.stripes[i].files = map[string]*file{}
	}
	return x
}

// handle applies events to the index. A job may run again after a part of it was
// applied, so events at or below the last applied position are skipped: that
// makes it idempotent.
//
// Each event has what the path held before. If the index holds something else, an event was lost,
// doubled or overtaken: the link is broken, which is counted here and fails the run at its end. The
// event is applied nevertheless, so that one fault is not reported twice.
func (x *index) handle(_ context.Context, id string, events []Event) error {
	for _, e := range events {
		path, err := eventPath(id, e)
		if err != nil {
			return err
		}
		x.apply(path, e)
	}
	return nil
}

func (x *index) apply(path string, e Event) {
	s := &x.stripes[maphash.String(x.seed, path)%stripes]
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[path]
	if f == nil {
		f = &file{}
		s.files[path] = f
	}
	if e.Position <= f.position {
		return
	}
	if f.Version != e.Old {
		x.broken.add(fmt.Sprintf("%q: event %d, %s in commit %s, goes from %v; the index holds %v since event %d, commit %q",
			path, e.Position, e.Kind, e.Commit, e.Old, f.Version, f.position, f.commit))
	}
	*f = file{Version: e.New, position: e.Position, commit: e.Commit}
	s.applied++
}

// files returns the paths that hold something, in a map of the caller's, and
// the number of events that made them.
func (x *index) files() (files map[string]Version, applied int64) {
	files = map[string]Version{}
	for i := range x.stripes {
		s := &x.stripes[i]
		s.mu.Lock()
		for path, f := range s.files {
			if f.Version != (Version{}) {
				files[path] = f.Version
			}
		}
		applied += s.applied
		s.mu.Unlock()
	}
	return files, applied
}

// maxExamples is how many faults of a kind are kept to be printed.
const maxExamples = 20

// examples counts faults and keeps the first few. The zero value has none.
type examples struct {
	mu    sync.Mutex
	count int64
	first []string
}

func (e *examples) add(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count++
	if len(e.first) < maxExamples {
		e.first = append(e.first, text)
	}
}

// list returns how many there were, and the first few.
func (e *examples) list() (count int64, first []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.count, e.first
}
