package turn

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const ruleFailures = "RULES 1: failures: the last five, the newest first, kept until the job succeeds"

// failuresCases are about the list of the last failures of a job.
func failuresCases() []env.Case {
	return []env.Case{
		{Name: "keeps the last five failures of a job, the newest first", Rule: ruleFailures, Check: failuresFive},
		{
			Name:  "keeps the failures of a job that ends without one",
			Rule:  ruleFailures,
			Check: failuresOfUntouched,
		},
		{
			Name:  "buries the failures with their job",
			Rule:  "Settlement.Apply: the dead letter has those of Letter; core.Job.Buried: it has those of the job",
			Check: failuresBuried,
		},
		{
			Name:  "keeps failures within their bounds",
			Rule:  "Settlement: PutBack.Failures and Letter are stored as Failures.Stored returns them",
			Check: failuresBounded,
		},
		{
			Name:  "keeps the list of the returning job alone",
			Rule:  "RULES 2: where two jobs meet, one list of failures stays as it is, and the other is dropped",
			Check: failuresMeet,
		},
		{
			Name:  "keeps the list of the later burial alone",
			Rule:  "RULES 2: where two dead letters meet, the list of the newest stays as it is",
			Check: failuresMeetInMorgue,
		},
	}
}

// sameFailures checks the failures of a queued job where it can be seen.
func sameFailures(e *env.Env, id string, want core.Failures) {
	e.TB.Helper()
	e.Same("the failures of the job found", e.Queued(id).Failures, want)
	for _, j := range e.Jobs() {
		if j.ID == id {
			e.Same("the failures of the job listed", j.Failures, want)
		}
	}
}

func failuresFive(e *env.Env) {
	h, c := e.ClaimedJob()
	var want core.Failures
	for n := range core.MaxFailures + 2 {
		own := core.Failure{At: env.FailedAt + core.Instant(n), Node: fmt.Sprint("web-", n), Text: fmt.Sprint("boom ", n)}
		want = slices.Insert(want, 0, own)
		want = want[:min(len(want), core.MaxFailures)]

		o := core.Outcome{Kind: core.Failed, OwnDelay: true, At: own.At, Node: own.Node, Error: own.Text}
		h.Settle(env.Outcome(c, o))
		sameFailures(e, "a", want)

		c = h.One()
		e.Same("the failures of the claim", c.Failures, want)
		e.Same("the failures of the claim found", e.Claimed("a").Failures, want)
	}

	claimed, err := e.Store.Claimed(e.Ctx, ports.PageRequest{Queue: env.Orders})
	e.Must(err, "Claimed")
	e.Same("how many claims", len(claimed.Claims), 1)
	e.Same("the failures of the claim listed", claimed.Claims[0].Failures, want)
}

// failedThrice returns a claim of a job with three payloads and as many failures.
func failedThrice(e *env.Env) (*env.Holder, core.Claim, core.Failures) {
	e.TB.Helper()
	h, c := e.ClaimedJob()
	for _, text := range []string{"one", "two", "three"} {
		c = h.One(env.Failed(c, text, 0))
	}
	return h, c, env.Failures("three", "two", "one")
}

func failuresOfUntouched(e *env.Env) {
	h, c, want := failedThrice(e)
	c = h.One(env.Snoozed(c, 0))
	e.Same("the failures after a snooze", c.Failures, want)
	c = h.One(env.Recovered(c))
	e.Same("the failures after a recovery", c.Failures, want)
	h.Settle(env.Untouched(c))
	e.Push(env.Entry("a", "p4", 4))
	sameFailures(e, "a", want)

	c = h.Cut(1)
	e.Same("the failures of a part", c.Failures, want)
	sameFailures(e, "a", want)
	h.Settle(env.Awaiting(c, 0))
	sameFailures(e, "a", nil)
}

func failuresBuried(e *env.Env) {
	h, c, failures := failedThrice(e)
	s := env.Failed(c, "last", 0)
	s.Except = []core.PayloadDisposition{{Position: 0, Disposition: core.Bury}}
	s.Letter.Failures = s.PutBack.Failures

	want := append(env.Failures("last"), failures...)
	h.Settle(s)
	e.Same("the failures of the dead letter", e.DeadLetter("a").Failures, want)
	sameFailures(e, "a", want)

	e.ByRefs(e.Store.Purge, env.Whole("a"))
	e.ByIDs(e.Store.Bury, "a")
	e.Same("the failures of a dead letter by hand", e.DeadLetter("a").Failures, want)
	dead, err := e.Store.Morgue(e.Ctx, ports.MorgueRequest{PageRequest: ports.PageRequest{Queue: env.Orders}})
	e.Must(err, "Morgue")
	e.Same("how many dead letters", len(dead.DeadLetters), 1)
	e.Same("the failures of the dead letter listed", dead.DeadLetters[0].Failures, want)

	e.ByRefs(e.Store.Revive, env.Whole("a"))
	sameFailures(e, "a", nil)
}

func failuresBounded(e *env.Env) {
	h, c := e.ClaimedJob()
	for _, list := range []core.Failures{
		env.Failures("1", "2", "3", "4", "5", "6"),
		env.Failures(strings.Repeat("é", core.MaxErrorBytes/3), strings.Repeat("é", core.MaxErrorBytes/3), "x"),
		env.Failures(strings.Repeat("e", core.MaxErrorBytes), "x", "y"),
		{{}, env.Failure("2"), {}, {Text: "3"}},
		{{}, {}},
	} {
		s := env.Failed(c, "", 0)
		s.PutBack.Failures = list
		c = h.One(s)
		e.Same("the job's failures", c.Failures, list.Stored())

		s = env.Untouched(c)
		s.Except = []core.PayloadDisposition{{Position: 0, Disposition: core.Bury}}
		s.Letter.Failures = list
		h.Settle(s)
		e.Same("the failures of the dead letter", e.DeadLetter("a").Failures, list.Stored())
		e.ByRefs(e.Store.Purge, env.Whole("a"))
		e.Push(env.Entry("a", "p1", 1))
		c = h.One()
	}
}

// failuresMeet imports a job with failures of its own while another one of its id is claimed.
func failuresMeet(e *env.Env) {
	state := env.Retrying(e.Now(), 4)
	h, c, failures := failedThrice(e)
	for _, returned := range []struct {
		by   core.Settlement
		want core.Failures
	}{
		{env.Failed(c, "four", 0), append(env.Failures("four"), failures...)},
		{env.Untouched(c), failures},
		{env.Awaiting(c, 0), nil},
	} {
		e.BringInJobs(env.Job("a", state, env.Pay("other", 9)))
		returned.by.Receipt = e.Claimed("a").Receipt
		h.Settle(returned.by)
		sameFailures(e, "a", returned.want)
		h.One()
	}
}

func failuresMeetInMorgue(e *env.Env) {
	h, c, failures := failedThrice(e)
	h.Settle(env.Buried(c, "first"))
	e.Same("the failures", e.DeadLetter("a").Failures, append(env.Failures("first"), failures...))

	e.Clock.Advance(time.Minute)
	e.Push(env.Entry("a", "p4", 4))
	h.Settle(env.Buried(h.One(), "second"))
	e.Same("the failures after another burial", e.DeadLetter("a").Failures, env.Failures("second"))

	older, newer := env.Letter("a", 0, env.Pay("p5", 5)), env.Letter("a", 0, env.Pay("p6", 6))
	older.ChangedAt, older.Failures = e.Now()-1, env.Failures("older", "x")
	newer.ChangedAt, newer.Failures = e.Now()+1, env.Failures("newer", "y")
	e.BringIn(older)
	e.Same("the failures after an older import", e.DeadLetter("a").Failures, env.Failures("second"))
	e.BringIn(newer)
	e.Same("the failures after a newer import", e.DeadLetter("a").Failures, env.Failures("newer", "y"))
}
