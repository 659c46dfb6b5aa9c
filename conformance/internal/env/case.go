package env

import (
	"context"
	"testing"
	"time"
)

// Case holds a fresh backend to one rule.
type Case struct {
	// Name names the rule, so that the list of failures is a list of rules.
	Name string
	// Rule is the sentence that a failing store breaks, with its place.
	Rule string
	// Check drives the store and reports to the env.
	Check func(e *Env)
}

// Group is the cases of one subject. Its name is the first part of their names.
type Group struct {
	Name  string
	Cases []Case
	// Once is true if no case needs a warm shard of its own.
	Once bool
}

// Run runs a case of the group on a cold shard and, unless Once is true, on a warm one.
func (g Group) Run(c Case, tb testing.TB, f Factory) {
	tb.Helper()
	if g.Once {
		c.Run(tb, f)
		return
	}
	c.RunColdAndWarm(tb, f)
}

// RunColdAndWarm runs the case on a new shard, and again on a shard that has worked before. A store
// may carry out the turns of a busy shard in a shorter way, and both ways must keep the rule.
func (c Case) RunColdAndWarm(tb testing.TB, f Factory) {
	tb.Helper()
	c.Run(tb, f)
	c.Rule += " (here on a shard that has worked before)"
	c.runAfter((*Env).warmUp, tb, f)
}

// Run runs the case until it has a verdict. That takes more than one try only if calls were
// repeated.
func (c Case) Run(tb testing.TB, f Factory) { c.runAfter(func(*Env) {}, tb, f) }

// maxTries is the number of tries in which a case must reach a verdict.
const maxTries = 50

// runAfter is like Run, but calls prepare on each fresh backend before the case.
func (c Case) runAfter(prepare func(e *Env), tb testing.TB, f Factory) {
	for range maxTries {
		if c.try(prepare, tb, f) {
			return
		}
	}
	tb.Errorf(
		"no verdict in %d tries: in each of them a call was repeated, "+
			"and the case needs the reply to the first call\nthe rule: %s",
		maxTries, c.Rule)
}

// CaseTimeout is the maximum duration of a case. It only ends a store that hangs: the largest cases
// take more than a minute on a busy machine. A -timeout of go test that is shorter, as its default
// of 10 minutes is, ends the process without naming the case.
const CaseTimeout = time.Hour

// try runs the case once, on a fresh backend in which the queue orders has one shard,
// and reports whether it has a verdict.
func (c Case) try(prepare func(e *Env), tb testing.TB, f Factory) (verdict bool) {
	ctx, cancel := context.WithTimeout(tb.Context(), CaseTimeout)
	defer cancel()

	ended := make(chan struct{})
	go func() { // a goroutine of its own, which giveUp ends
		defer close(ended)
		verdict = true
		e := New(ctx, tb, f, c.Rule)
		defer func() { verdict = !e.undecided }()
		defer e.ReportPanic()
		prepare(e)
		c.Check(e)
	}()

	<-ended
	return verdict
}
