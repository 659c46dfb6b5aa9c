package conformance

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein/ports"
)

// RunDisturbed is Run for a backend whose connections break while the suite is
// at work: whoever started its servers cuts them, pauses them, or moves their
// data about. Each call of unknown outcome is repeated, as package ports tells
// callers to, and all that Run checks must hold as if nothing had happened.
//
// Some things a repeated call does not tell: which settlements a turn skipped and
// which jobs it began, how many entries an operator's step handled, whether a step
// with a limit came further than its first call, and what was there before. A named case or a race whose verdict hangs on one
// of them, after such a call was repeated, is made again from the start on a fresh
// backend, up to fifty times; nothing is left out. A random history goes on with
// every state that may be so, until what the store answers decides.
//
// A store that breaks fewer than some ten times a second passes within a few
// tries. Without any disturbance RunDisturbed is Run.
func RunDisturbed(t *testing.T, f Factory) {
	t.Helper()
	Run(t, insistently(f))
}

// insistently gives handles that repeat what has an unknown outcome.
func insistently(f Factory) Factory {
	return func(t testing.TB, clock func() time.Time) func() ports.ShardStore {
		open, backend := f(t, clock), &repeats{}
		return func() ports.ShardStore { return insisting(open(), backend) }
	}
}

// repeats counts the calls on a backend that were made again: untold those whose
// repeat tells less than they do.
type repeats struct{ all, untold atomic.Int64 }

// insistent is a handle that repeats calls of unknown outcome.
type insistent struct {
	*relay
	backend *repeats
	own     atomic.Int64
}

func (s *insistent) repeats() *repeats { return s.backend }
func (s *insistent) ownRepeats() int64 { return s.own.Load() }

// repeatsOf counts for all handles on a handle's backend. There are none where
// handles do not repeat.
func repeatsOf(store ports.ShardStore) *repeats {
	if s, ok := store.(interface{ repeats() *repeats }); ok {
		return s.repeats()
	}
	return &repeats{}
}

// repeatsBy counts for one handle.
func repeatsBy(store ports.ShardStore) int64 {
	if s, ok := store.(interface{ ownRepeats() int64 }); ok {
		return s.ownRepeats()
	}
	return 0
}

// insisting wraps a handle, with the extras that it has.
func insisting(store ports.ShardStore, backend *repeats) ports.ShardStore {
	s := &insistent{backend: backend}
	s.relay = &relay{ShardStore: store, around: s.insist, resends: true}
	n, notifies := store.(ports.Notifier)
	settler, settles := store.(ports.Settler)
	switch {
	case notifies && settles:
		return struct {
			*insistent
			listener
			ports.Settler
		}{s, listener{n}, settler}
	case notifies:
		return struct {
			*insistent
			listener
		}{s, listener{n}}
	case settles:
		return struct {
			*insistent
			ports.Settler
		}{s, settler}
	}
	return s
}

// How often a call is repeated, and how long to wait before, doubling. A store
// that never answers is found out within a second or two.
const (
	mostRepeats  = 40
	firstPause   = time.Millisecond
	longestPause = 50 * time.Millisecond
)

// untold are the calls whose repeat tells less than they do.
func untold(method string) bool {
	switch method {
	case "Turn", "Expedite", "Bury", "Delete", "Cancel", "Revive", "Purge", "Edit", "Forget", "Recount":
		return true
	}
	return false
}

// insist makes the call until its outcome is known, or the caller has no time
// left.
func (s *insistent) insist(method string, call func() error) error {
	err := call()
	pause := firstPause
	for n := 0; n < mostRepeats && unknown(err); n++ {
		time.Sleep(pause)
		pause = min(2*pause, longestPause)
		s.own.Add(1)
		s.backend.all.Add(1)
		if untold(method) {
			s.backend.untold.Add(1)
		}
		err = call()
	}
	return err
}

// unknown reports an error that leaves the outcome open, and was not the caller's
// wish.
func unknown(err error) bool {
	return classOf(err).Unknown && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}
