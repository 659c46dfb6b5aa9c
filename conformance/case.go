package conformance

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// namedCase holds a fresh backend to one rule.
type namedCase struct {
	// Name says the rule, so that the list of failures is a list of rules.
	Name string
	// Rule is what a store that fails breaks, with where it stands.
	Rule string
	// Check drives the store and reports to the env.
	Check func(e *env)
}

// group is the cases of one subject; its name is the first part of theirs.
type group struct {
	Name  string
	Cases []namedCase
}

// patience is how long a case may take in all. It only ends a store that hangs.
const patience = time.Minute

// tries is how often a case may end without a verdict.
const tries = 50

// run makes the case until it has a verdict, which is at once unless calls are
// repeated.
func (c namedCase) run(tb testing.TB, f Factory) { c.runAfter(func(*env) {}, tb, f) }

// runAfter is run on a backend that has been prepared.
func (c namedCase) runAfter(prepare func(e *env), tb testing.TB, f Factory) {
	for range tries {
		if c.try(prepare, tb, f) {
			return
		}
	}
	tb.Errorf("no verdict in %d tries: each time a call was repeated whose first reply the case needs\nthe rule: %s", tries, c.Rule)
}

// try gives the case a fresh backend in which the queue orders has one shard, and
// reports whether it has a verdict.
func (c namedCase) try(prepare func(e *env), tb testing.TB, f Factory) (verdict bool) {
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	ended := make(chan struct{})
	go func() { // which a case that gives up ends
		defer close(ended)
		verdict = true
		e := newEnv(ctx, tb, f, c.Rule)
		defer func() { verdict = !e.undecided }()
		defer e.reportPanic()
		prepare(e)
		c.Check(e)
	}()
	<-ended
	return verdict
}

// env is what a case works with: a backend, its clock, and one handle.
type env struct {
	tb    testing.TB
	ctx   context.Context
	rule  string
	clock *clock
	open  func() ports.ShardStore
	store ports.ShardStore
	// another makes a second backend and opens it.
	another func() ports.ShardStore
	// made counts the calls that were repeated, and undecided says that the case
	// can have no verdict because of them.
	made      *repeats
	undecided bool
	// worked are the leases that have begun with a turn that wrote; nil if none has to.
	worked map[ports.Lease]bool

	// shard is the one shard of the queue orders, which most cases work on.
	shard    core.Shard
	declared map[string]ports.Queue
	attempts int64
}

const orders = "orders"

func newEnv(ctx context.Context, tb testing.TB, f Factory, rule string) *env {
	tb.Helper()
	c := newClock()
	open := f(tb, c.Now)
	e := &env{
		tb: tb, ctx: ctx, rule: rule, clock: c, open: open, store: open(),
		another:  func() ports.ShardStore { return f(tb, c.Now)() },
		shard:    core.Shard{Queue: orders},
		declared: map[string]ports.Queue{},
	}
	e.made = repeatsOf(e.store)
	e.declare(orders, 1)
	return e
}

// now is the store's clock.
func (e *env) now() core.Instant { return core.InstantOf(e.clock.Now()) }

// errorf reports a failure with the rule that it breaks.
func (e *env) errorf(format string, args ...any) {
	e.tb.Helper()
	e.tb.Errorf(format+"\nthe rule: %s", append(args, e.rule)...)
}

// reportPanic turns a panic into a failure: of a store, or of a case that was
// given less than the contract promises.
func (e *env) reportPanic() {
	e.tb.Helper()
	if p := recover(); p != nil {
		e.errorf("the case can't go on: %v\n%s", p, debug.Stack())
	}
}

// must ends the case if a call fails that the rule needs to succeed.
func (e *env) must(err error, call string) {
	e.tb.Helper()
	if err != nil {
		e.tb.Fatalf("%s: %v\nthe rule: %s", call, err, e.rule)
	}
}

// same reports how got differs from want. Nil and empty slices are equal, and so
// are nil and empty Data; a want of nil is an empty slice.
func (e *env) same(what string, got, want any) {
	e.tb.Helper()
	if want == nil {
		want = reflect.Zero(reflect.TypeOf(got)).Interface()
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		e.errorf("%s (-want +got):\n%s", what, diff)
	}
}

// told is same for what a repeated call does not tell again.
func (e *env) told(what string, got, want any) {
	e.tb.Helper()
	if e.made.untold.Load() > 0 && differ(want, got) != "" {
		e.giveUp()
	}
	e.same(what, got, want)
}

// giveUp ends the case without a verdict, since a call was repeated.
func (e *env) giveUp() {
	e.undecided = true
	runtime.Goexit()
}

// refused reports an error that is not the sentinel.
func (e *env) refused(call string, err, sentinel error) {
	e.tb.Helper()
	if !errors.Is(err, sentinel) {
		e.errorf("%s gave error %v, want %q", call, err, sentinel)
	}
}

// unchanged reports what a call that must write nothing has changed of orders.
func (e *env) unchanged(call string, do func()) {
	e.tb.Helper()
	before := e.snapshot(orders)
	do()
	e.same("what "+call+" changed", e.snapshot(orders), before)
}
