// Package turn has the cases of the engine: leases, and the turns that settle and claim, also those
// of a paused queue or with cancelled jobs.
//
//   - lease.go is about acquiring, renewing and releasing a lease.
//   - recovery.go is about the jobs that an earlier lease left claimed: how they are handed over,
//     and how those that were recovered run.
//   - turn.go is about a turn as a whole and its number, and repeat.go about a turn that is
//     repeated.
//   - settle.go is about settlements, and about those that a turn must skip. slot.go is about the
//     slots of jobs that a settlement puts back. past.go is about the records of jobs that are done,
//     mark.go about the highest scores that were done, and importpast.go about records and marks of
//     another queue.
//   - claim.go is about what a turn claims, begin.go about the mark of a job that has begun,
//     parts.go about payloads that end one by one, and head.go about the time of the next job.
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
		{Name: "failures", Cases: failuresCases()},
		{Name: "slot", Cases: slotCases()},
		{Name: "past", Cases: pastCases()},
		{Name: "mark", Cases: markCases()},
		{Name: "import past", Cases: importPastCases()},
		{Name: "claim", Cases: claimCases()},
		{Name: "recovered", Cases: recoveredCases()},
		{Name: "begin", Cases: beginCases()},
		{Name: "part", Cases: partCases()},
		{Name: "head", Cases: headCases()},
		{Name: "pause", Cases: pauseCases()},
		{Name: "cancel", Cases: cancelCases()},
	}

	if _, ok := store.(ports.TurnLimiter); ok {
		all = append(all, env.Group{Name: "limiter", Cases: limiterCases()})
	}

	return all
}

// Rules that the cases of several files quote.
const (
	ruleEmpty = "Turn: one that has nothing to settle or begin, finds nothing to claim and hands over no orphan " +
		"writes nothing, does not renew and does not use up its number"
	ruleSkip = "Turn: a settlement whose (ID, Receipt) is not claimed is skipped, not counted, and reported; " +
		"so is the second one of an id in a turn"
	ruleReturn = "RULES 2: a failed, untouched or recovered job put back: " +
		"PerformAt, RetryCount and error are the returning job's; Recoveries is the larger; FirstPush is the smaller"
	ruleBudget = "RULES 1: a claim takes lowest scores first, within a byte budget over all payloads, at least one; " +
		"it takes no job after one that it split"
	ruleBegin    = "Turn: each claimed job that Begin names is marked as begun until it is settled"
	ruleHead     = "TurnReply: Head is when the shard's next job could be claimed, if nothing were pushed or settled"
	ruleStepBack = "Acquire: a lease whose expiry is further away than its own TTL, " +
		"because the clock stepped back, expires that TTL from now"
)
