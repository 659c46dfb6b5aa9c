package harness

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein/ports"
)

// Retries counts the calls on a backend that were made again.
type Retries struct {
	// All are those of any method.
	All atomic.Int64
	// Lossy are those whose repeat reports less than their first call: what a turn
	// skipped, what an operator's step handled, what was there before.
	Lossy atomic.Int64
}

// retrying is a handle that repeats calls of unknown outcome.
type retrying struct {
	*Relay
	backend *Retries
	own     atomic.Int64
}

// Retrying returns a handle that repeats each call of unknown outcome until it is
// known, and counts that in backend, which all handles of a backend share. It
// notifies and settles if the store does.
func Retrying(store ports.ShardStore, backend *Retries) ports.ShardStore {
	r := &retrying{backend: backend}
	r.Relay = &Relay{ShardStore: store, Around: r.retry, Resends: true}
	n, notifies := store.(ports.Notifier)
	settler, settles := store.(ports.Settler)
	switch {
	case notifies && settles:
		return struct {
			*retrying
			notifier
			ports.Settler
		}{r, notifier{n}, settler}
	case notifies:
		return struct {
			*retrying
			notifier
		}{r, notifier{n}}
	case settles:
		return struct {
			*retrying
			ports.Settler
		}{r, settler}
	}
	return r
}

func (r *retrying) backendRetries() *Retries { return r.backend }
func (r *retrying) ownRetries() int64        { return r.own.Load() }

// BackendRetries returns what all handles on the backend of a handle have repeated.
// It stays empty for a handle that repeats nothing.
func BackendRetries(store ports.ShardStore) *Retries {
	if r, ok := store.(interface{ backendRetries() *Retries }); ok {
		return r.backendRetries()
	}
	return &Retries{}
}

// HandleRetries returns how many calls the handle has repeated.
func HandleRetries(store ports.ShardStore) int64 {
	if r, ok := store.(interface{ ownRetries() int64 }); ok {
		return r.ownRetries()
	}
	return 0
}

// How often a call is repeated, and how long to wait before, doubling. A store that
// never replies is found out within a second or two.
const (
	maxRetries = 40
	firstPause = time.Millisecond
	maxPause   = 50 * time.Millisecond
)

// retry makes the call until its outcome is known, or the caller has no time left.
func (r *retrying) retry(method string, call func() error) error {
	return retry(call, func() {
		r.own.Add(1)
		r.backend.All.Add(1)
		if lossy(method) {
			r.backend.Lossy.Add(1)
		}
	})
}

// lossy reports whether a repeat of the method reports less than its first call.
func lossy(method string) bool {
	switch method {
	case "Turn", "Expedite", "Bury", "Delete", "Cancel", "Revive", "Purge", "Edit", "Forget", "Recount":
		return true
	}
	return false
}

// retry makes the call until its outcome is known, and calls again before each
// repeat.
func retry(call func() error, again func()) error {
	err := call()
	pause := firstPause
	for n := 0; n < maxRetries && unknown(err); n++ {
		time.Sleep(pause)
		pause = min(2*pause, maxPause)
		again()
		err = call()
	}
	return err
}

// unknown reports an error that leaves the outcome open, and is not that of the
// caller's context.
func unknown(err error) bool {
	return ClassOf(err).Unknown && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}
