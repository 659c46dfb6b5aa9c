package conformance

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/virtual"
	"github.com/skeinq/skein/ports"
)

// env is a case's equipment: a backend, its clock, and one handle.
type env struct {
	tb    testing.TB
	ctx   context.Context
	rule  string
	clock *virtual.Clock
	open  func() ports.ShardStore
	store ports.ShardStore
	// another makes a second backend and opens it.
	another func() ports.ShardStore
	// repeats counts the calls that were repeated. undecided is set if the case can have no verdict
	// because of them.
	repeats   *harness.Repeats
	undecided bool
	// warm are the leases whose first turn was made by warmUp. nil means a cold case, without
	// warmUp.
	warm map[ports.Lease]bool

	// shard is the one shard of the queue orders, which most cases work on.
	shard    core.Shard
	declared map[string]ports.Queue
	attempts int64
}

// start is where the clock of every case begins.
const start = harness.Start

// orders is the queue that every case has.
const orders = "orders"

func newEnv(ctx context.Context, tb testing.TB, f Factory, rule string) *env {
	tb.Helper()
	ctx, repeats := harness.CountRepeats(ctx)
	clock := harness.NewClock()
	open := f(tb, clock.Now)
	e := &env{
		tb: tb, ctx: ctx, rule: rule, repeats: repeats, clock: clock, open: open, store: open(),
		another:  func() ports.ShardStore { return f(tb, clock.Now)() },
		shard:    core.Shard{Queue: orders},
		declared: map[string]ports.Queue{},
	}
	e.declare(orders, 1)
	return e
}

// now returns the store's time.
func (e *env) now() core.Instant { return core.InstantOf(e.clock.Now()) }

// errorf reports a failure with the rule that it breaks.
func (e *env) errorf(format string, args ...any) {
	e.tb.Helper()
	e.tb.Errorf(format+"\nthe rule: %s", append(args, e.rule)...)
}

// reportPanic turns a panic into a failure. The store may have panicked, or the case, because the
// store returned less than the contract promises.
func (e *env) reportPanic() {
	e.tb.Helper()
	if p := recover(); p != nil {
		e.errorf("the case can't continue: %v\n%s", p, debug.Stack())
	}
}

// must ends the case if a call failed that must succeed.
func (e *env) must(err error, call string) {
	e.tb.Helper()
	if err != nil {
		e.tb.Fatalf("%s: %v\nthe rule: %s", call, err, e.rule)
	}
}

// same reports a failure if got differs from want. Nil and empty slices are equal, and so are nil
// and empty Data; a want of nil is an empty slice.
func (e *env) same(what string, got, want any) {
	e.tb.Helper()
	if want == nil {
		want = reflect.Zero(reflect.TypeOf(got)).Interface()
	}
	if diff := harness.StrictDiff(want, got); diff != "" {
		e.errorf("%s (-want +got):\n%s", what, diff)
	}
}

// reported is same for results that a repeated call does not report again. If got differs and a
// call was repeated, the case has no verdict.
func (e *env) reported(what string, got, want any) {
	e.tb.Helper()
	if e.repeats.Lossy.Load() > 0 && harness.Diff(want, got) != "" {
		e.giveUp()
	}
	e.same(what, got, want)
}

// countedOnce is same for counts that a repeated call increases again: a repeated push supersedes
// its payloads again. If got differs and a call was repeated, the case has no verdict.
func (e *env) countedOnce(what string, got, want any) {
	e.tb.Helper()
	if e.repeats.All.Load() > 0 && harness.Diff(want, got) != "" {
		e.giveUp()
	}
	e.same(what, got, want)
}

// giveUpIfRepeated gives up if Repeats.Lossy has increased since it had the given value. Then a
// repeated call may have had another effect than a single one: a step over all dead letters
// continues where its first call ended, and a resent turn that finds nothing uses up its number.
func (e *env) giveUpIfRepeated(since int64) {
	if e.repeats.Lossy.Load() > since {
		e.giveUp()
	}
}

// giveUp ends the case without a verdict, since a call was repeated.
func (e *env) giveUp() {
	e.undecided = true
	runtime.Goexit()
}

// refused reports a failure if err does not wrap the sentinel.
func (e *env) refused(call string, err, sentinel error) {
	e.tb.Helper()
	if !errors.Is(err, sentinel) {
		e.errorf("%s returned error %v, want %q", call, err, sentinel)
	}
}

// unchanged reports a failure if do changes something in the queue orders.
func (e *env) unchanged(call string, do func()) {
	e.tb.Helper()
	before := e.snapshot(orders)
	do()
	e.same("what "+call+" changed", e.snapshot(orders), before)
}

// check reports a failure if err is not nil, and returns whether it is nil. Unlike must, it may be
// called from any goroutine.
func (e *env) check(err error, call string) bool {
	if err != nil {
		e.errorf("%s: %v", call, err)
	}
	return err == nil
}

// with returns a copy of the env with another handle.
func (e *env) with(store ports.ShardStore) *env {
	other := *e
	other.store = store
	return &other
}

// racers is the number of goroutines in a race.
const racers = 8

// race runs one goroutine for each racer, with a handle of its own.
func (e *env) race(run func(racer int, store ports.ShardStore)) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range racers {
		store := e.open()
		wg.Go(func() {
			<-begin
			run(i, store)
		})
	}
	close(begin)
	wg.Wait()
}
