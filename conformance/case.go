package conformance

import (
	"context"
	"testing"
	"time"
)

// namedCase holds a fresh backend to one rule.
type namedCase struct {
	// Name names the rule, so that the list of failures is a list of rules.
	Name string
	// Rule is the sentence that a failing store breaks, with its place.
	Rule string
	// Check drives the store and reports to the env.
	Check func(e *env)
}

// group is the cases of one subject. Its name is the first part of their names.
type group struct {
	Name  string
	Cases []namedCase
}

// run runs a case of the group on a cold shard and on a warm one. The vectors run once: each file
// has dozens or hundreds of jobs for one queue, so most of the turns are warm.
func (g group) run(c namedCase, tb testing.TB, f Factory) {
	tb.Helper()
	if g.Name == "vectors" {
		c.run(tb, f)
		return
	}
	c.runColdAndWarm(tb, f)
}

// runColdAndWarm runs the case on a new shard, and again on a shard that has worked before. A store
// may carry out the turns of a busy shard in a shorter way, and both ways must keep the rule.
func (c namedCase) runColdAndWarm(tb testing.TB, f Factory) {
	tb.Helper()
	c.run(tb, f)
	c.Rule += " (here on a shard that has worked before)"
	c.runAfter((*env).warmUp, tb, f)
}

// run runs the case until it has a verdict. That takes more than one try only if calls were
// repeated.
func (c namedCase) run(tb testing.TB, f Factory) { c.runAfter(func(*env) {}, tb, f) }

// maxTries is the number of tries in which a case must reach a verdict.
const maxTries = 50

// runAfter is like run, but calls prepare on each fresh backend before the case.
func (c namedCase) runAfter(prepare func(e *env), tb testing.TB, f Factory) {
	for range maxTries {
		if c.try(prepare, tb, f) {
			return
		}
	}
	tb.Errorf("no verdict in %d tries: in each of them a call was repeated, and the case needs the reply to the first call\nthe rule: %s", maxTries, c.Rule)
}

// caseTimeout is the maximum duration of a case. It only ends a store that hangs: the largest cases
// take more than a minute on a busy machine. A -timeout of go test that is shorter, as its default
// of 10 minutes is, ends the process without naming the case.
const caseTimeout = time.Hour

// try runs the case once, on a fresh backend in which the queue orders has one shard,
// and reports whether it has a verdict.
func (c namedCase) try(prepare func(e *env), tb testing.TB, f Factory) (verdict bool) {
	ctx, cancel := context.WithTimeout(tb.Context(), caseTimeout)
	defer cancel()
	ended := make(chan struct{})
	go func() { // a goroutine of its own, which giveUp ends
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

// Rules that the cases of several subjects quote.
const (
	rulePayloads  = "RULES 2: payloads are united; for equal bytes the smaller score stays, whichever side it is on"
	ruleEmpty     = "Turn: one that has nothing to settle or begin, finds nothing to claim and hands over no orphan writes nothing, does not renew and does not use up its number"
	ruleSkip      = "Turn: a settlement whose (ID, Receipt) is not claimed is skipped, not counted, and reported; so is the second one of an id in a turn"
	ruleReturn    = "RULES 2: a failed, untouched or recovered job put back: PerformAt, RetryCount and error are the returning job's; Recoveries is the larger; FirstPush is the smaller"
	ruleMorgue    = "RULES 2: a payload that enters the morgue when its id has a dead letter: united the same way, newest error and time"
	ruleBudget    = "RULES 1: a claim takes lowest scores first, within a byte budget over all payloads, at least one; it takes no job after one that it split"
	ruleBegin     = "Turn: each claimed job that Begin names is marked as begun until it is settled"
	ruleHead      = "TurnReply: Head is when the shard's next job could be claimed, if nothing were pushed or settled"
	ruleStepBack  = "Acquire: a lease whose expiry is further away than its own TTL, because the clock stepped back, expires that TTL from now"
	ruleCommitted = "Push, Settle: what has committed before a later call of the same id is never overtaken by it (payloads are handed over oldest first, RULES 1)"
)
