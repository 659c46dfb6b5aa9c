package conformance

import "github.com/skeinq/skein/ports"

const ruleLimiter = "MaxTurns: it is never negative, does not change and asks no server"

func limiterCases() []namedCase {
	return []namedCase{
		{"is 0 or more, and stays", ruleLimiter, limiterStays},
	}
}

func limiterStays(e *env) {
	limiter := e.store.(ports.TurnLimiter)
	before := limiter.MaxTurns()
	if before < 0 {
		e.tb.Errorf("MaxTurns = %d\nthe rule: %s", before, e.rule)
	}
	e.pushIDs("a", "b")
	e.acquire("n1").claim(2)
	e.same("MaxTurns after a turn", limiter.MaxTurns(), before)
}
