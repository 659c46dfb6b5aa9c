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
	"github.com/skeinq/skein/internal/virtual"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// testFaults runs one scenario repeatedly, each time with one of its calls disturbed in one way.
// The callers repeat calls of unknown outcome, as the contract allows. The scenario must always end
// in the same state: nothing is lost, done twice or counted twice.
func testFaults(t *testing.T, f Factory) {
	none := &fault{}
	want := runScenario(t, f, none)
	for k, kind := range faultKinds() {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			for at := 1; at <= none.calls; at++ {
				if testing.Short() && (at+k)%3 != 0 {
					continue
				}
				t.Run(fmt.Sprintf("call %d", at), func(t *testing.T) {
					disturbed := &fault{kind: kind, at: at}
					got := runScenario(t, f, disturbed)
					if diff := harness.Diff(want, got); diff != "" {
						t.Errorf("%s %s: the scenario ends differently (-undisturbed +disturbed):\n%s", disturbed.method, kind.name, diff)
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
	disturb func(c *virtual.Clock, call func() error) error
	// again delivers the call once more after the caller's next call, if it is a turn. Only a turn
	// promises that it has no effect then. If disturb has not delivered the call, it arrives then
	// for the first time, after the caller has repeated it.
	again bool
}

// errNoReply is an error of unknown outcome.
var errNoReply = errors.New("the connection broke")

func faultKinds() []faultKind {
	return []faultKind{
		{name: "fails", disturb: func(*virtual.Clock, func() error) error {
			return errNoReply
		}},
		{name: "loses its reply", disturb: func(_ *virtual.Clock, call func() error) error {
			_ = call()
			return errNoReply
		}},
		{name: "loses its reply for a second", disturb: func(c *virtual.Clock, call func() error) error {
			_ = call()
			c.Advance(time.Second)
			return errNoReply
		}},
		{name: "is sent twice", disturb: func(_ *virtual.Clock, call func() error) error {
			_ = call()
			return call()
		}},
		{name: "comes late again", again: true, disturb: func(_ *virtual.Clock, call func() error) error {
			return call()
		}},
		{name: "comes after its repeat", again: true, disturb: func(*virtual.Clock, func() error) error {
			return errNoReply
		}},
	}
}

// fault counts the calls of a scenario and disturbs the call with the number at. The zero value
// disturbs no call.
type fault struct {
	kind  faultKind
	at    int
	calls int
	// method is the method of the disturbed call. late delivers that call once more.
	method string
	late   func() error
}

// around returns the interceptor that counts and disturbs the calls of a store.
func (f *fault) around(c *virtual.Clock) storekit.Interceptor {
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

// repeatCall is a caller that repeats a call of unknown outcome up to three times. Then it sets the
// clock to the time at which the undisturbed scenario has it.
func repeatCall(c *virtual.Clock) storekit.Interceptor {
	return func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
		now := c.Now()
		err := next(ctx)
		for tries := 0; harness.ClassOf(err).Unknown && tries < 3; tries++ {
			harness.MarkResent(call)
			err = next(ctx)
		}
		c.Set(now)
		if call.Method == "Release" && errors.Is(err, ports.ErrLeaseLost) {
			return nil // the first call has released the lease
		}
		return err
	}
}

// runScenario runs the scenario on a fresh backend and returns the state it ends in.
func runScenario(t *testing.T, f Factory, disturbed *fault) finalState {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), caseTimeout)
	defer cancel()
	rule := "the doc comment of each method states what a repeated call does"
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

// scenario is the work that testFaults disturbs. It makes each call of ports.ShardStore
// that writes, except Forget, Recount, Audit, Track and Discard. The clock advances by a second
// after each stage.
func (e *env) scenario(s *finalState) {
	e.tb.Helper()
	for _, stage := range []func(*finalState){
		e.scenarioPush, e.scenarioWork, e.scenarioPermits, e.scenarioCrash, e.scenarioOperate, e.scenarioEnd,
	} {
		stage(s)
		e.clock.Advance(time.Second)
	}
}

// scenarioPush declares, announces and pushes.
func (e *env) scenarioPush(*finalState) {
	e.tb.Helper()
	e.declare("mail", 2)
	for _, owner := range []string{"n1", "n2"} {
		_, err := e.store.Announce(e.ctx, ports.AnnounceRequest{Node: ports.Node{Owner: owner, Name: owner}, TTL: time.Hour})
		e.must(err, "Announce")
	}
	e.retire("n2")
	e.drain("n1", true)
	e.pushTo("mail", entry("a", "p", 1), entry("b", "p", 1), entry("c", "p", 1), entry("a", "q", 0))
	e.push(entry("a", "p", 2), entry("a", "q", 1), entry("b", "p", 1), entry("c", "p", 1), entry("a", "p", 1))
	e.push(entry("d", "p", 1), entry("e", "p", 1), entryAt("f", "p", 1, e.now().Add(time.Hour)))
	e.pushBy(core.PushRule{Kind: core.Debounce}, entryAt("d", "q", 1, e.now().Add(time.Second)))
	e.pushBy(core.PushRule{Kind: core.Earliest}, entryAt("f", "q", 1, e.now().Add(time.Minute)))
}

// scenarioWork ends jobs as done, failed, buried, snoozed, untouched and dropped. In between it
// pushes, pauses, and makes a turn that has nothing to do.
func (e *env) scenarioWork(s *finalState) {
	e.tb.Helper()
	h := e.acquire("n1")
	first := h.claim(3)
	e.push(entry("a", "r", 3))
	e.clock.Advance(time.Second)
	r := h.request(2, s.finish(first[0]), failed(first[1], "boom", time.Second), buried(first[2], "bad"))
	second := h.send(r).Claims
	for n := range uint64(3) {
		e.record("n1", e.recorded(measured(n+1)))
		e.record("n2", e.recorded(measured(2*n+1)))
	}
	h.renew()
	h.settle(snoozed(second[0], time.Minute), untouched(second[1]))
	h.settle()
	e.must(e.store.Pause(e.ctx, orders), "Pause")
	h.claim(1)
	e.must(e.store.Resume(e.ctx, orders), "Resume")
	c := h.one()
	e.cancel(true, c.ID)
	h.settle(dropped(c))
	h.release()
}

// scenarioPermits takes permits, keeps fewer of them, and gives them back.
func (e *env) scenarioPermits(*finalState) {
	e.tb.Helper()
	for _, ask := range []struct {
		owner      string
		hold, want int
	}{{"n1", 5, 5}, {"n2", 2, 3}, {"n3", 0, 1}, {"n1", 3, 4}, {"n2", 2, 3}, {"n3", 0, 0}} {
		r := e.permitRequest(ask.owner, ask.hold, ask.want)
		r.TTL = time.Hour
		e.permitWith(r)
	}
}

// scenarioCrash leaves jobs claimed twice: for another owner, and for a new attempt of the same
// owner.
func (e *env) scenarioCrash(s *finalState) {
	e.tb.Helper()
	e.push(entry("g", "p", 1), entry("h", "p", 1), entry("i", "p", 1))
	old := e.acquire("n1")
	old.claim(2)
	e.clock.Advance(2 * ttl)
	next := e.acquire("n2")
	next.settle(settleAll(next.orphans(), recovered)...)
	old.refused("a turn of the lost lease", old.request(1), ports.ErrLeaseLost)
	next.one()
	again := e.acquire("n2")
	again.settle(settleAll(again.orphans(), recovered)...)
	for {
		claims := again.claim(1)
		if len(claims) == 0 {
			break
		}
		again.settle(s.finish(claims[0]))
	}
	again.release()
}

// scenarioOperate makes the steps of ports.Operator on jobs and dead letters.
func (e *env) scenarioOperate(*finalState) {
	e.tb.Helper()
	begun := e.now()
	failAll(e, "j", "k", "l")
	e.byIDs(e.store.Expedite, "j", "k", "l")
	e.byIDs(e.store.Bury, "j", "k")
	e.byIDs(e.store.Delete, "l")
	buryAll(e, "m", "n", "o")
	e.push(entry("m", "p", 3))
	e.byRefs(e.store.Revive, parts("m", "p"), whole("j"))
	_, err := e.store.Edit(e.ctx, ports.EditRequest{Shard: e.shard, ID: "n", Old: []byte("p"), New: []byte("z")})
	e.must(err, "Edit")
	e.byRefs(e.store.Purge, parts("n", "q"))
	e.byAge(e.store.Purge, begun, 0)
	e.byAge(e.store.Revive, e.now(), 0)
	e.bringIn(letter("o", 1, pay("q", 1), pay("r", 2)), letter("x", 2, twoPayloads()...))
}

// scenarioEnd leaves something in each place: queued jobs, some of them failed or recovered, jobs
// that are claimed under a lease that is over, and dead letters.
func (e *env) scenarioEnd(s *finalState) {
	e.tb.Helper()
	e.push(entry("s", "p", 1), entry("t", "p", 1))
	h := e.acquire("n1")
	c := h.claim(core.MaxTurnJobs)
	h.settle(s.finish(c[0]), failed(c[1], "boom", time.Hour), buried(c[2], "bad"), snoozed(c[3], time.Hour))
	e.clock.Advance(2 * ttl)
	next := e.acquire("n2")
	next.settle(recovered(next.orphans()[0]))
}

// finalState is the visible state at the end of a scenario.
type finalState struct {
	Orders, Mail snapshot
	History      ports.HistoryReply
	Nodes        []ports.Node
	Permits      []core.PermitHolder
	// Done counts the times that each payload was settled as done.
	Done map[string]int
}

func (s *finalState) read(e *env) {
	e.tb.Helper()
	s.Orders, s.Mail = e.snapshot(orders), e.snapshot("mail")
	var err error
	s.History, err = e.store.History(e.ctx, ports.HistoryRequest{Queue: orders})
	e.must(err, "History")
	s.Nodes = e.nodes()
	s.Permits = e.permit("reader", 0, 0).Holders
	for i := range s.Nodes {
		s.Nodes[i].ExpiresAt = 0 // a repeated call may announce the node at a later time
	}
	for i := range s.Orders.Stats.Shards {
		s.Orders.Stats.Shards[i].ExpiresAt = 0
	}
}

// finish counts a claim's payloads as done and returns its settlement.
func (s *finalState) finish(c core.Claim) core.Settlement {
	for _, p := range c.Payloads {
		s.Done[fmt.Sprintf("%s %s", c.ID, p.Data)]++
	}
	return done(c)
}
