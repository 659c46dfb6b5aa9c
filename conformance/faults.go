package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// testFaults lives one small life of a queue again and again, each time with one
// of its calls disturbed in one way, by callers that do what the contract tells
// them. What is left at the end is always what the undisturbed life leaves:
// nothing is lost, done twice or counted twice.
func testFaults(t *testing.T, f Factory) {
	none := &fault{}
	want := live(t, f, none)
	for _, kind := range faultKinds() {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			for at := 1; at <= none.calls; at++ {
				disturbed := &fault{kind: kind, at: at}
				got := live(t, f, disturbed)
				if diff := differ(want, got); diff != "" {
					t.Errorf("call %d, %s, %s: it leaves something else (-undisturbed +disturbed):\n%s",
						at, disturbed.method, kind.name, diff)
				}
			}
		})
	}
}

// faultKind is a way to disturb a call.
type faultKind struct {
	name string
	// disturb makes the call, or does not, and gives the error that the caller sees.
	disturb func(c *clock, call func() error) error
	// again makes the call once more after the next one, if it is a turn: other
	// calls may do something then. Where disturb does not make it, that is the
	// first time, after its own repeat.
	again bool
}

// errNoReply is an error of unknown outcome.
var errNoReply = errors.New("the connection broke")

func faultKinds() []faultKind {
	return []faultKind{
		{name: "fails", disturb: func(*clock, func() error) error {
			return errNoReply
		}},
		{name: "loses its reply", disturb: func(_ *clock, call func() error) error {
			_ = call()
			return errNoReply
		}},
		{name: "loses its reply for a second", disturb: func(c *clock, call func() error) error {
			_ = call()
			c.Advance(time.Second)
			return errNoReply
		}},
		{name: "is sent twice", disturb: func(_ *clock, call func() error) error {
			_ = call()
			return call()
		}},
		{name: "comes late again", again: true, disturb: func(_ *clock, call func() error) error {
			return call()
		}},
		{name: "comes after its repeat", again: true, disturb: func(*clock, func() error) error {
			return errNoReply
		}},
	}
}

// fault disturbs the call of a number. The zero value disturbs none, and counts.
type fault struct {
	kind  faultKind
	at    int
	calls int
	// method is what was disturbed.
	method string
	late   func() error
}

func (f *fault) around(c *clock, method string, call func() error) error {
	f.calls++
	if f.calls == f.at {
		f.method = method
		if f.kind.again && method == "Turn" {
			f.late = call
		}
		return f.kind.disturb(c, call)
	}
	err := call()
	if f.late != nil {
		_ = f.late()
		f.late = nil
	}
	return err
}

// insist is a caller that repeats what has an unknown outcome. The clock is then
// set back to where the undisturbed life is.
func insist(c *clock, method string, call func() error) error {
	now := c.Now()
	err := call()
	for tries := 0; classOf(err).Unknown && tries < 3; tries++ {
		err = call()
	}
	c.Set(core.InstantOf(now))
	if method == "Release" && errors.Is(err, ports.ErrLeaseLost) {
		return nil // it is over, which is what the caller wanted
	}
	return err
}

// live leads the life on a fresh backend and shows what it leaves.
func live(t *testing.T, f Factory, disturbed *fault) legacy {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	rule := "each method says what a repeated call does"
	if disturbed.at > 0 {
		rule += fmt.Sprintf("; here call %d %s", disturbed.at, disturbed.kind.name)
	}
	tb := &lifeTB{TB: t}
	defer tb.end()
	e := newEnv(ctx, tb, f, rule)
	defer e.reportPanic()
	store := e.store
	e.made = &repeats{} // none of its verdicts needs a first reply
	faulty := &relay{ShardStore: store, around: func(method string, call func() error) error {
		return disturbed.around(e.clock, method, call)
	}}
	e.store = &relay{ShardStore: faulty, resends: true, around: func(method string, call func() error) error {
		return insist(e.clock, method, call)
	}}
	l := legacy{Done: map[string]int{}}
	e.live(&l)
	e.store = store
	l.read(e)
	return l
}

// lifeTB gives a Factory's clean-up to the life instead of the whole test.
type lifeTB struct {
	testing.TB
	tidy []func()
}

func (tb *lifeTB) Cleanup(f func()) { tb.tidy = append(tb.tidy, f) }

func (tb *lifeTB) end() {
	for _, f := range slices.Backward(tb.tidy) {
		f()
	}
}

// legacy is what can be seen at the end of a life.
type legacy struct {
	Orders, Mail snapshot
	History      []ports.MinuteStats
	Nodes        []ports.Node
	// Done counts how often each payload was settled as done.
	Done map[string]int
}

func (l *legacy) read(e *env) {
	e.tb.Helper()
	l.Orders, l.Mail = e.snapshot(orders), e.snapshot("mail")
	var err error
	l.History, err = e.store.History(e.ctx, ports.HistoryRequest{Queue: orders})
	e.must(err, "History")
	l.Nodes, err = e.store.Nodes(e.ctx)
	e.must(err, "Nodes")
	for i := range l.Nodes {
		l.Nodes[i].ExpiresAt = 0 // what is repeated later lasts longer
	}
	for i := range l.Orders.Stats.Shards {
		l.Orders.Stats.Shards[i].ExpiresAt = 0
	}
}

// finish counts a claim's payloads as done and gives its settlement.
func (l *legacy) finish(c core.Claim) core.Settlement {
	for _, p := range c.Payloads {
		l.Done[fmt.Sprintf("%s %s", c.ID, p.Data)]++
	}
	return done(c)
}
