package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// testFaults runs one scenario repeatedly, each time with one of its calls disturbed in one way,
// by callers that do what the contract lets them do. It must always end in the same state: nothing
// is lost, done twice or counted twice.
func testFaults(t *testing.T, f Factory) {
	none := &fault{}
	want := runScenario(t, f, none)
	for _, kind := range faultKinds() {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			for at := 1; at <= none.calls; at++ {
				t.Run(fmt.Sprintf("call %d", at), func(t *testing.T) { // ends the backend with it
					disturbed := &fault{kind: kind, at: at}
					got := runScenario(t, f, disturbed)
					if diff := harness.Diff(want, got); diff != "" {
						t.Errorf("%s %s: the scenario ends otherwise (-undisturbed +disturbed):\n%s", disturbed.method, kind.name, diff)
					}
				})
			}
		})
	}
}

// faultKind is a way to disturb a call.
type faultKind struct {
	name string
	// disturb makes the call, or does not, and returns the error that the caller sees.
	disturb func(c *harness.Clock, call func() error) error
	// again makes the call once more after the next one, if it is a turn: other
	// calls may do something then. Where disturb does not make it, that is the
	// first time, after its own repeat.
	again bool
}

// errNoReply is an error of unknown outcome.
var errNoReply = errors.New("the connection broke")

func faultKinds() []faultKind {
	return []faultKind{
		{name: "fails", disturb: func(*harness.Clock, func() error) error {
			return errNoReply
		}},
		{name: "loses its reply", disturb: func(_ *harness.Clock, call func() error) error {
			_ = call()
			return errNoReply
		}},
		{name: "loses its reply for a second", disturb: func(c *harness.Clock, call func() error) error {
			_ = call()
			c.Advance(time.Second)
			return errNoReply
		}},
		{name: "is sent twice", disturb: func(_ *harness.Clock, call func() error) error {
			_ = call()
			return call()
		}},
		{name: "comes late again", again: true, disturb: func(_ *harness.Clock, call func() error) error {
			return call()
		}},
		{name: "comes after its repeat", again: true, disturb: func(*harness.Clock, func() error) error {
			return errNoReply
		}},
	}
}

// fault disturbs one call of a scenario, the one numbered at. The zero value disturbs
// none, and counts.
type fault struct {
	kind  faultKind
	at    int
	calls int
	// method is that of the disturbed call, and late the call to make once more.
	method string
	late   func() error
}

// around counts the calls of a store and disturbs the one.
func (f *fault) around(c *harness.Clock) storekit.Interceptor {
	return func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
		f.calls++
		if f.calls == f.at {
			f.method = call.Method
			if f.kind.again && call.Method == "Turn" {
				f.late = func() error { return next(ctx) }
			}
			return f.kind.disturb(c, func() error { return next(ctx) })
		}
		err := next(ctx)
		if f.late != nil {
			_ = f.late()
			f.late = nil
		}
		return err
	}
}

// repeatCall is a caller that repeats calls of unknown outcome. The clock is then set
// back to where the undisturbed scenario is.
func repeatCall(c *harness.Clock) storekit.Interceptor {
	return func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
		now := c.Now()
		err := next(ctx)
		for tries := 0; harness.ClassOf(err).Unknown && tries < 3; tries++ {
			harness.MarkResent(call)
			err = next(ctx)
		}
		c.Set(core.InstantOf(now))
		if call.Method == "Release" && errors.Is(err, ports.ErrLeaseLost) {
			return nil // its first call has released it
		}
		return err
	}
}

// runScenario runs the scenario on a fresh backend and returns the state it ends in.
func runScenario(t *testing.T, f Factory, disturbed *fault) finalState {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), caseTimeout)
	defer cancel()
	rule := "each method says what a repeated call does"
	if disturbed.at > 0 {
		rule += fmt.Sprintf("; here call %d %s", disturbed.at, disturbed.kind.name)
	}
	var cleanups []func()
	tb := harness.CleanupTB(t, func(f func()) { cleanups = append(cleanups, f) })
	defer func() {
		for _, f := range slices.Backward(cleanups) {
			f()
		}
	}()
	e := newEnv(ctx, tb, f, rule)
	defer e.reportPanic()
	store := e.store
	e.repeats = &harness.Repeats{} // none of its verdicts needs a first reply
	e.store = storekit.Intercept(storekit.Intercept(store, disturbed.around(e.clock)), repeatCall(e.clock))
	s := finalState{Done: map[string]int{}}
	e.scenario(&s)
	e.store = store
	s.read(e)
	return s
}
