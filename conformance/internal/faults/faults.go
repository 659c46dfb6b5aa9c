// Package faults runs one scenario repeatedly, each time with one of its calls disturbed in one
// way.
package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/virtual"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Test runs one scenario repeatedly, each time with one of its calls disturbed in one way.
// The callers repeat calls of unknown outcome, as the contract allows. The scenario must always end
// in the same state: nothing is lost, done twice or counted twice.
func Test(t *testing.T, f env.Factory) {
	none := &fault{}
	want := runScenario(t, f, none)

	for k, kind := range faultKinds() {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			for at := 1; at <= none.calls; at++ {
				if testing.Short() && (at+k)%6 != 0 {
					continue
				}
				t.Run(fmt.Sprintf("call %d", at), func(t *testing.T) {
					disturbed := &fault{kind: kind, at: at}
					got := runScenario(t, f, disturbed)
					if diff := harness.Diff(want, got); diff != "" {
						t.Errorf("%s %s: the scenario ends differently (-undisturbed +disturbed):\n%s",
							disturbed.method, kind.name, diff)
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

func faultKinds() []faultKind {
	return []faultKind{
		{name: "fails", disturb: func(*virtual.Clock, func() error) error {
			return harness.ErrNoReply
		}},
		{name: "loses its reply", disturb: func(_ *virtual.Clock, call func() error) error {
			_ = call()
			return harness.ErrNoReply
		}},
		{name: "loses its reply for a second", disturb: func(c *virtual.Clock, call func() error) error {
			_ = call()
			c.Advance(time.Second)
			return harness.ErrNoReply
		}},
		{name: "is sent twice", disturb: func(_ *virtual.Clock, call func() error) error {
			_ = call()
			return call()
		}},
		{name: "comes late again", again: true, disturb: func(_ *virtual.Clock, call func() error) error {
			return call()
		}},
		{name: "comes after its repeat", again: true, disturb: func(*virtual.Clock, func() error) error {
			return harness.ErrNoReply
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
func runScenario(t *testing.T, f env.Factory, disturbed *fault) finalState {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), env.CaseTimeout)
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

	e := env.New(ctx, tb, f, rule)
	defer e.ReportPanic()
	store := e.Store
	e.Repeats = &harness.Repeats{} // none of its verdicts needs a first reply
	e.Store = storekit.Intercept(storekit.Intercept(store, disturbed.around(e.Clock)), repeatCall(e.Clock))
	s := finalState{Done: map[string]int{}}
	scenario(e, &s)

	e.Store = store
	s.read(e)
	return s
}

// scenario is the work that Test disturbs. It makes each call of ports.ShardStore
// that writes, except Forget, Recount, Audit, Track, Take, Stop and Discard. The clock advances by a
// second after each stage.
func scenario(e *env.Env, s *finalState) {
	e.TB.Helper()
	for _, stage := range []func(*env.Env, *finalState){
		scenarioPush, scenarioWork, scenarioPermits, scenarioCrash, scenarioOperate, scenarioEnd,
	} {
		stage(e, s)
		e.Clock.Advance(time.Second)
	}
}

// scenarioPush declares, announces and pushes.
func scenarioPush(e *env.Env, _ *finalState) {
	e.TB.Helper()
	e.Declare("mail", 2)

	for _, owner := range []string{"n1", "n2"} {
		_, err := e.Store.Announce(e.Ctx, ports.AnnounceRequest{
			Node: ports.Node{Owner: owner, Name: owner},
			TTL:  time.Hour,
		})
		e.Must(err, "Announce")
	}

	e.Retire("n2")
	e.Drain("n1", true)

	e.PushTo("mail", env.Entry("a", "p", 1), env.Entry("b", "p", 1), env.Entry("c", "p", 1), env.Entry("a", "q", 0))
	e.Push(env.Entry("a", "p", 2), env.Entry("a", "q", 1),
		env.Entry("b", "p", 1), env.Entry("c", "p", 1), env.Entry("a", "p", 1))
	e.Push(env.Entry("d", "p", 1), env.Entry("e", "p", 1), env.EntryAt("f", "p", 1, e.Now().Add(time.Hour)))
	e.PushBy(core.PushRule{Kind: core.Debounce}, env.EntryAt("d", "q", 1, e.Now().Add(time.Second)))
	e.PushBy(core.PushRule{Kind: core.Earliest}, env.EntryAt("f", "q", 1, e.Now().Add(time.Minute)))
}

// scenarioWork ends jobs as done, failed, buried, snoozed, untouched and dropped. In between it
// pushes, pauses, and makes a turn that has nothing to do.
func scenarioWork(e *env.Env, s *finalState) {
	e.TB.Helper()
	h := e.Acquire("n1")
	first := h.Claim(3)

	e.Push(env.Entry("a", "r", 3))
	e.Clock.Advance(time.Second)
	r := h.Request(2, s.finish(first[0]), env.Failed(first[1], "boom", time.Second), env.Buried(first[2], "bad"))
	second := h.Send(r).Claims

	for n := range uint64(3) {
		e.Record("n1", e.Recorded(env.Measured(n+1)))
		e.Record("n2", e.Recorded(env.Measured(2*n+1)))
	}

	h.Renew()
	h.Settle(env.Snoozed(second[0], time.Minute), env.Untouched(second[1]))
	h.Settle()

	e.Must(e.Store.Pause(e.Ctx, env.Orders), "Pause")
	h.Claim(1)
	e.Must(e.Store.Resume(e.Ctx, env.Orders), "Resume")

	c := h.One()
	e.Cancel(true, c.ID)
	h.Settle(env.Dropped(c))
	h.Release()
}

// scenarioPermits takes permits, keeps fewer of them, and gives them back.
func scenarioPermits(e *env.Env, _ *finalState) {
	e.TB.Helper()
	for _, ask := range []struct {
		owner      string
		hold, want int
	}{{"n1", 5, 5}, {"n2", 2, 3}, {"n3", 0, 1}, {"n1", 3, 4}, {"n2", 2, 3}, {"n3", 0, 0}} {
		r := e.PermitRequest(ask.owner, ask.hold, ask.want)
		r.TTL = time.Hour
		e.PermitWith(r)
	}
}

// scenarioCrash leaves jobs claimed twice: for another owner, and for a new attempt of the same
// owner.
func scenarioCrash(e *env.Env, s *finalState) {
	e.TB.Helper()

	e.Push(env.Entry("g", "p", 1), env.Entry("h", "p", 1), env.Entry("i", "p", 1))
	old := e.Acquire("n1")
	old.Claim(2)
	e.Clock.Advance(2 * env.TTL)

	next := e.Acquire("n2")
	next.Settle(env.SettleAll(next.Orphans(), env.Recovered)...)
	old.Refused("a turn of the lost lease", old.Request(1), ports.ErrLeaseLost)
	next.One()
	again := e.Acquire("n2")
	again.Settle(env.SettleAll(again.Orphans(), env.Recovered)...)

	for {
		claims := again.Claim(1)
		if len(claims) == 0 {
			break
		}
		again.Settle(s.finish(claims[0]))
	}
	again.Release()
}

// scenarioOperate makes the steps of ports.Operator on jobs and dead letters.
func scenarioOperate(e *env.Env, _ *finalState) {
	e.TB.Helper()
	begun := e.Now()

	for version := range int64(2) {
		e.Must(e.Store.Configure(e.Ctx, ports.ConfigureRequest{Queue: env.Orders, Settings: core.Settings{
			Version: version + 1,
			Set:     []core.Setting{{Name: core.SettingMaxLanes, Value: fmt.Sprint(version), By: "ann", At: begun}},
		}}), "Configure")
	}

	e.FailAll("j", "k", "l")
	e.ByIDs(e.Store.Expedite, "j", "k", "l")
	e.ByIDs(e.Store.Bury, "j", "k")
	e.ByIDs(e.Store.Delete, "l")

	e.BuryAll("m", "n", "o")
	e.Push(env.Entry("m", "p", 3))
	e.ByRefs(e.Store.Revive, env.Parts("m", "p"), env.Whole("j"))
	_, err := e.Store.Edit(e.Ctx, ports.EditRequest{Shard: e.Shard, ID: "n", Old: []byte("p"), New: []byte("z")})
	e.Must(err, "Edit")
	e.ByRefs(e.Store.Purge, env.Parts("n", "q"))

	e.ByAge(e.Store.Purge, begun, 0)
	e.ByAge(e.Store.Revive, e.Now(), 0)
	e.BringIn(env.Letter("o", 1, env.Pay("q", 1), env.Pay("r", 2)), env.Letter("x", 2, env.TwoPayloads()...))
}

// scenarioEnd leaves something in each place: queued jobs, some of them failed or recovered, jobs
// that are claimed under a lease that is over, and dead letters.
func scenarioEnd(e *env.Env, s *finalState) {
	e.TB.Helper()
	e.Push(env.Entry("s", "p", 1), env.Entry("t", "p", 1))
	h := e.Acquire("n1")
	c := h.Claim(core.MaxTurnJobs)
	h.Settle(s.finish(c[0]), env.Failed(c[1], "boom", time.Hour), env.Buried(c[2], "bad"), env.Snoozed(c[3], time.Hour))
	e.Clock.Advance(2 * env.TTL)
	next := e.Acquire("n2")
	next.Settle(env.Recovered(next.Orphans()[0]))
}

// finalState is the visible state at the end of a scenario.
type finalState struct {
	Orders, Mail env.Snapshot
	History      ports.HistoryReply
	Nodes        []ports.Node
	Permits      []core.PermitHolder
	// Done counts the times that each payload was settled as done.
	Done map[string]int
}

func (s *finalState) read(e *env.Env) {
	e.TB.Helper()

	s.Orders, s.Mail = e.Snapshot(env.Orders), e.Snapshot("mail")
	var err error
	s.History, err = e.Store.History(e.Ctx, ports.HistoryRequest{Queue: env.Orders})
	e.Must(err, "History")
	s.Nodes = e.Nodes()
	s.Permits = e.Permit("reader", 0, 0).Holders

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
	return env.Done(c)
}
