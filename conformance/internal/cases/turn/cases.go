// Package turn has the cases of the engine: leases, and the turns that settle and claim.
//
//   - lease.go is about acquiring, renewing and releasing a lease.
//   - recovery.go is about the jobs that an earlier lease left claimed: how they are handed over,
//     and how those that were recovered run.
//   - turn.go is about a turn as a whole and its number, and repeat.go about a turn that is
//     repeated.
//   - settle.go is about settlements, and about those that a turn must skip.
//   - claim.go is about what a turn claims, begin.go about the mark of a job that has begun, and
//     head.go about the time of the next job.
//   - control.go is about a paused queue and cancelled jobs.
//   - mixed.go is about the most frequent turns, and about several entries of one kind in a turn.
//   - large.go is about jobs with many payloads.
package turn

import (
	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/ports"
)

// Groups returns the cases of the room. The group limiter is for a [ports.TurnLimiter].
func Groups(store ports.ShardStore) []env.Group {
	all := []env.Group{
		{Name: "acquire", Cases: acquireCases()},
		{Name: "orphan", Cases: orphanCases()},
		{Name: "lease", Cases: leaseCases()},
		{Name: "turn", Cases: turnCases()},
		{Name: "usual", Cases: usualCases()},
		{Name: "large", Cases: largeCases()},
		{Name: "mixed", Cases: mixedCases()},
		{Name: "repeat", Cases: repeatCases()},
		{Name: "skip", Cases: skipCases()},
		{Name: "settle", Cases: settleCases()},
		{Name: "claim", Cases: claimCases()},
		{Name: "recovered", Cases: recoveredCases()},
		{Name: "begin", Cases: beginCases()},
		{Name: "head", Cases: headCases()},
		{Name: "pause", Cases: pauseCases()},
		{Name: "cancel", Cases: cancelCases()},
	}
	if _, ok := store.(ports.TurnLimiter); ok {
		all = append(all, env.Group{Name: "limiter", Cases: limiterCases()})
	}
	return all
}
