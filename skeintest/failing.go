package skeintest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// ErrInjected is the error of a [Fault] without an Err. Like the errors of a network it is not a
// sentinel of the store, so the outcome of the call is unknown.
var ErrInjected = errors.New("the store fails on demand")

// Fault selects the calls of a [FailingStore] that fail, and their error. The zero value fails
// every call with [ErrInjected].
type Fault struct {
	// Method is the name of a method of [ports.ShardStore], such as "Push", or "Settle" or
	// "SettlePayload" for a [Store]. Empty means every method.
	Method string
	// After is the number of such calls that the fault lets through first.
	After int
	// Times is the number of calls that fail. 0 means all calls until [FailingStore.Heal].
	Times int
	// Err is the error that they return. nil means ErrInjected. Push wraps the error in the
	// *[ports.PushError] that the port demands, which names every entry. If Err is a
	// *ports.PushError itself, only the entries that it names fail, and the others are stored.
	Err error
	// ReplyLost executes the call and then returns the error, as if the reply was lost. If the call
	// itself fails, that error is returned.
	ReplyLost bool
}

// FailingStore is a [ports.ShardStore] whose calls fail on demand. Make it with [NewFailingStore].
// It is safe for concurrent use. It hides whether the store is a [ports.Notifier], a
// [ports.Settler] or a [ports.TurnLimiter], so servers poll it.
type FailingStore struct {
	shardStore // calls go through inject

	mu     sync.Mutex
	faults []*Fault
	calls  map[string]int
}

// shardStore is ports.ShardStore under a name that hides the field.
type shardStore = ports.ShardStore

// NewFailingStore wraps any store. No call fails on demand until [FailingStore.Fail].
func NewFailingStore(store ports.ShardStore) *FailingStore {
	s := &FailingStore{calls: make(map[string]int)}
	s.shardStore = storekit.Intercept(store, s.inject)
	return s
}

// inject carries out a call, unless a fault applies to it.
func (s *FailingStore) inject(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
	f := s.match(call.Method)
	if f == nil {
		return next(ctx)
	}
	if push, ok := call.Request.(*ports.PushRequest); ok {
		return f.push(ctx, push, next)
	}
	if f.ReplyLost {
		if err := next(ctx); err != nil {
			return err
		}
	}
	return f.Err
}

// Fail adds a fault. If several faults apply to a call, the one that was added first counts. If f
// names a method that stores don't have, every call fails with an error that states this.
func (s *FailingStore) Fail(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Err == nil {
		f.Err = ErrInjected
	}
	if f.Method != "" && !hasMethod[ports.ShardStore](f.Method) && !hasMethod[ports.Settler](f.Method) {
		f = Fault{Err: fmt.Errorf("a Fault names the method %q, which a ports.ShardStore does not have; "+
			"a push calls Push, and a change of schedules calls ChangeSchedules", f.Method)}
	}
	s.faults = append(s.faults, &f)
}

func hasMethod[T any](name string) bool {
	_, ok := reflect.TypeFor[T]().MethodByName(name)
	return ok
}

// Heal removes all faults.
func (s *FailingStore) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Calls returns the number of calls of a method so far, including failed ones.
func (s *FailingStore) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// match counts a call and returns the fault that applies to it, or nil.
func (s *FailingStore) match(method string) *Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[method]++
	for _, f := range s.faults {
		if f.applies(method) {
			applied := *f
			return &applied
		}
	}
	return nil
}

// applies reports whether the fault applies to a call of a method, and counts the call.
// Times is below 0 once the fault is used up.
func (f *Fault) applies(method string) bool {
	switch {
	case f.Method != "" && f.Method != method, f.Times < 0:
		return false
	case f.After > 0:
		f.After--
		return false
	case f.Times == 1:
		f.Times = -1
	case f.Times > 1:
		f.Times--
	}
	return true
}

// push stores those entries of a push that the fault lets through, and returns the
// error for the others.
func (f *Fault) push(ctx context.Context, r *ports.PushRequest, next func(context.Context) error) error {
	all := len(r.Entries)
	var partly *ports.PushError

	switch named := errors.As(f.Err, &partly); {
	case f.ReplyLost:
	case named:
		r.Entries = without(r.Entries, partly.Entries)
	default:
		r.Entries = nil
	}

	if len(r.Entries) > 0 {
		if err := next(ctx); err != nil {
			return storekit.NothingStored(all, err)
		}
	}

	if partly != nil {
		return f.Err
	}
	return storekit.NothingStored(all, f.Err)
}

// without returns the entries except those at the positions.
func without(entries []core.Entry, positions []int) []core.Entry {
	failed := make(map[int]bool, len(positions))
	for _, at := range positions {
		failed[at] = true
	}
	var remaining []core.Entry
	for i := range entries {
		if !failed[i] {
			remaining = append(remaining, entries[i])
		}
	}
	return remaining
}
