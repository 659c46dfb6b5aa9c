// Package env has what the cases of the suite work with. A [Case] drives a fresh backend through
// its [Env], whose methods make calls and check replies. A [Holder] is a lease of the Env and its
// turns.
//
//   - case.go runs a case until it has a verdict, on a cold and on a warm shard.
//   - env.go has the Env: a backend, its clock, and the reports of failures.
//   - factory.go has the types of package conformance that its users implement.
//   - push.go makes payloads, entries and jobs, and pushes them.
//   - lease.go has the Holder and the settlements of its claims.
//   - operate.go declares queues and makes the steps of operators.
//   - morgue.go buries in groups and imports.
//   - look.go reads lists and compares them with counts.
//   - registry.go records history and asks for permits.
//   - volume.go has more payloads or bytes than a call may carry.
//   - rules.go has the rules that cases of several rooms quote.
package env

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/virtual"
	"github.com/skeinq/skein/ports"
)

// Env is a case's equipment: a backend, its clock, and one handle.
type Env struct {
	TB    testing.TB
	Ctx   context.Context
	Rule  string
	Clock *virtual.Clock
	Open  func() ports.ShardStore
	Store ports.ShardStore
	// Another makes a second backend.
	Another func() (open func() ports.ShardStore)
	// Repeats counts the calls that were repeated. undecided is set if the case can have no verdict
	// because of them.
	Repeats   *harness.Repeats
	undecided bool
	// warm are the leases whose first turn was made by warmUp. nil means a cold case, without
	// warmUp.
	warm map[ports.Lease]bool

	// Shard is the one shard of the queue orders, which most cases work on.
	Shard    core.Shard
	Declared map[string]ports.Queue
	attempts int64
}

// Start is where the clock of every case begins.
const Start = harness.Start

// Orders is the queue that every case has.
const Orders = "orders"

// New makes a backend and opens it for a case of the rule.
func New(ctx context.Context, tb testing.TB, f Factory, rule string) *Env {
	tb.Helper()
	ctx, repeats := harness.CountRepeats(ctx)
	clock := harness.NewClock()
	open := f(tb, clock.Now)

	e := &Env{
		TB:       tb,
		Ctx:      ctx,
		Rule:     rule,
		Repeats:  repeats,
		Clock:    clock,
		Open:     open,
		Store:    open(),
		Another:  func() func() ports.ShardStore { return f(tb, clock.Now) },
		Shard:    core.Shard{Queue: Orders},
		Declared: map[string]ports.Queue{},
	}

	e.Declare(Orders, 1)
	return e
}

// Now returns the store's time.
func (e *Env) Now() core.Instant { return core.InstantOf(e.Clock.Now()) }

// Errorf reports a failure with the rule that it breaks.
func (e *Env) Errorf(format string, args ...any) {
	e.TB.Helper()
	e.TB.Errorf(format+"\nthe rule: %s", append(args, e.Rule)...)
}

// ReportPanic turns a panic into a failure. The store may have panicked, or the case, because the
// store returned less than the contract promises.
func (e *Env) ReportPanic() {
	e.TB.Helper()
	if p := recover(); p != nil {
		e.Errorf("the case can't continue: %v\n%s", p, debug.Stack())
	}
}

// Must ends the case if a call failed that must succeed.
func (e *Env) Must(err error, call string) {
	e.TB.Helper()
	if err != nil {
		e.TB.Fatalf("%s: %v\nthe rule: %s", call, err, e.Rule)
	}
}

// Same reports a failure if got differs from want. Nil and empty slices are equal, and so are nil
// and empty Data; a want of nil is an empty slice.
func (e *Env) Same(what string, got, want any) {
	e.TB.Helper()
	if want == nil {
		want = reflect.Zero(reflect.TypeOf(got)).Interface()
	}
	if diff := harness.StrictDiff(want, got); diff != "" {
		e.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Reported is Same for results that a repeated call does not report again. If got differs and a
// call was repeated, the case has no verdict.
func (e *Env) Reported(what string, got, want any) {
	e.TB.Helper()
	if e.Repeats.Lossy.Load() > 0 && harness.Diff(want, got) != "" {
		e.GiveUp()
	}
	e.Same(what, got, want)
}

// CountedOnce is Same for counts that a repeated call increases again: a repeated push supersedes
// its payloads again. If got differs and a call was repeated, the case has no verdict.
func (e *Env) CountedOnce(what string, got, want any) {
	e.TB.Helper()
	if e.Repeats.All.Load() > 0 && harness.Diff(want, got) != "" {
		e.GiveUp()
	}
	e.Same(what, got, want)
}

// GiveUpIfRepeated gives up if Repeats.Lossy has increased since it had the given value. Then a
// repeated call may have had another effect than a single one: a step over all dead letters
// continues where its first call ended, and a resent turn that finds nothing uses up its number.
func (e *Env) GiveUpIfRepeated(since int64) {
	if e.Repeats.Lossy.Load() > since {
		e.GiveUp()
	}
}

// GiveUp ends the case without a verdict, since a call was repeated.
func (e *Env) GiveUp() {
	e.undecided = true
	runtime.Goexit()
}

// Refused reports a failure if err does not wrap the sentinel.
func (e *Env) Refused(call string, err, sentinel error) {
	e.TB.Helper()
	if !errors.Is(err, sentinel) {
		e.Errorf("%s returned error %v, want %q", call, err, sentinel)
	}
}

// Unchanged reports a failure if do changes something in the queue orders.
func (e *Env) Unchanged(call string, do func()) {
	e.TB.Helper()
	before := e.Snapshot(Orders)
	do()
	e.Same("what "+call+" changed", e.Snapshot(Orders), before)
}

// Check reports a failure if err is not nil, and returns whether it is nil. Unlike Must, it may be
// called from any goroutine.
func (e *Env) Check(err error, call string) bool {
	if err != nil {
		e.Errorf("%s: %v", call, err)
	}
	return err == nil
}

// With returns a copy of the env with another handle.
func (e *Env) With(store ports.ShardStore) *Env {
	other := *e
	other.Store = store
	return &other
}

// Count returns 1 for true and 0 for false.
func Count(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}
