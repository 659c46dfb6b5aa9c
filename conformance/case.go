package conformance

import (
	"context"
	"testing"
	"time"
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

// run runs a case of the group on a cold shard and on a warm one. The vectors are run
// once: each is hundreds of jobs of one queue, so that most of their turns are warm.
func (g group) run(c namedCase, tb testing.TB, f Factory) {
	tb.Helper()
	if g.Name == "vectors" {
		c.run(tb, f)
		return
	}
	c.runColdAndWarm(tb, f)
}

// runColdAndWarm runs the case on a shard that is new, and again on one that has worked.
// A store may carry out the turns of a busy shard in a shorter way, and both ways must
// keep the rule.
func (c namedCase) runColdAndWarm(tb testing.TB, f Factory) {
	tb.Helper()
	c.run(tb, f)
	c.Rule += " (here on a shard that has worked before)"
	c.runAfter((*env).warmUp, tb, f)
}

// run runs the case until it has a verdict, which is at once unless calls are repeated.
func (c namedCase) run(tb testing.TB, f Factory) { c.runAfter(func(*env) {}, tb, f) }

// maxTries is how often a case may end without a verdict.
const maxTries = 50

// runAfter is run on a backend that has been prepared.
func (c namedCase) runAfter(prepare func(e *env), tb testing.TB, f Factory) {
	for range maxTries {
		if c.try(prepare, tb, f) {
			return
		}
	}
	tb.Errorf("no verdict in %d tries: each time a call was repeated whose first reply the case needs\nthe rule: %s", maxTries, c.Rule)
}

// caseTimeout is how long a case may take in all. It only ends a store that hangs: the largest
// cases take a minute and more where much else runs. A -timeout of go test that is shorter, as its
// default of 10 minutes is, ends the process without naming the case.
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
