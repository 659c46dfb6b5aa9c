package ports

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
)

// JobEnd is the way in which an execution of a job ended.
type JobEnd uint8

const (
	// EndDone is a job that is done. Its handler may have buried some of the payloads.
	EndDone JobEnd = iota
	// EndFailed is a job that failed and is retried.
	EndFailed
	// EndSnoozed is a job that its handler snoozed.
	EndSnoozed
	// EndBuried is a job with payloads that went to the morgue, because its handler buried them, or
	// because its retries or recoveries were used up and its queue does not hold such jobs. Its
	// other payloads may be queued again.
	EndBuried
	// EndPutBack is a job that was requeued untouched: the server stopped, its shard moved, or the
	// handler of its batch did not begin it.
	EndPutBack
	// EndCancelled is a job that an operator cancelled while it ran.
	EndCancelled
	// EndLost is a job whose end the store may not have recorded: the lease was lost before that,
	// or another owner settled the job. If the end was not recorded, the job runs again.
	EndLost
	// EndAwaiting is a job that its handler requeued to wait for the next push.
	EndAwaiting
	// EndHeld is a job that has used up its retries or recoveries, in a queue that holds such jobs.
	// The handler may have buried some of its payloads.
	EndHeld
)

// String returns the end in one word, for example for logs.
func (e JobEnd) String() string {
	words := [...]string{"done", "failed", "snoozed", "buried", "putback", "cancelled", "lost", "awaiting", "held"}
	if int(e) < len(words) {
		return words[e]
	}
	return fmt.Sprintf("JobEnd(%d)", uint8(e))
}

// EndedJob is one execution of a job that has ended.
type EndedJob struct {
	ID  string
	End JobEnd
	// Attempt is the number of the execution, from 1. Executions that ended as EndSnoozed,
	// EndAwaiting, EndPutBack, EndCancelled or EndLost don't count. After an EndAwaiting the number
	// begins at 1 again. If an execution settled the job's first payload and then failed, its
	// number is 1, because it counts as the first execution of the payload that is now first
	// (docs/rules.md 3).
	Attempt int
	// Buried is the number of payloads that went to the morgue.
	Buried int
}

// EndEvent is the end of executions of jobs of a shard. It does not include jobs that were requeued
// before a handler got them.
type EndEvent struct {
	Shard core.Shard
	// Jobs are the ended executions. They are read-only, and the Observer must not keep the slice.
	Jobs []EndedJob
}

// TickEvent is the firing of schedules of a shard (docs/rules.md 10).
type TickEvent struct {
	Shard core.Shard
	// Fired, Missed and Skipped are the numbers of ticks with that outcome: see core.TickFired.
	Fired, Missed, Skipped int
	// Broken is the number of schedules whose spec the server could not read.
	Broken int
	// Late has, for each tick that was fired or skipped, the time since it was due.
	Late []time.Duration
}

// ExpiryEvent is the removal of dead letters of a shard, because their queue keeps only some
// (docs/rules.md 5).
type ExpiryEvent struct {
	Shard core.Shard
	// Expired is the number of dead letters that were removed.
	Expired int
}

// SlotEvent is the answer to a server that has asked for slots of the rate of a queue, or of the rates
// of the keys of some jobs: for Want starts at most, of which the store has granted some
// (docs/rules.md 12). A server asks again for the others when they come, if it still has work for
// them.
type SlotEvent struct {
	Queue         string
	Want, Granted int
}

// SlowEvent is a stop of the rate of a queue for a time, because a handler has returned SlowDown.
type SlowEvent struct {
	Queue string
	// Key is the key whose rate is stopped, and empty for the rate of the whole queue.
	Key string
	For time.Duration
}

// OverrunCause is the reason why the context of a handler had ended.
type OverrunCause uint8

const (
	// OverrunTimeout is the timeout of the queue, or of a job.
	OverrunTimeout OverrunCause = iota
	// OverrunCancel is a cancellation by an operator.
	OverrunCancel
	// OverrunLease is the loss of the lease: another server may run the same jobs.
	OverrunLease
	// OverrunShutdown is the end of the server's ShutdownTimeout, after which the handler should
	// have stopped.
	OverrunShutdown
)

// String returns the cause in one word, for example for logs.
func (c OverrunCause) String() string {
	words := [...]string{"timeout", "cancel", "lease", "shutdown"}
	if int(c) < len(words) {
		return words[c]
	}
	return fmt.Sprintf("OverrunCause(%d)", uint8(c))
}

// OverrunEvent is a handler that ignores the end of its context.
type OverrunEvent struct {
	Shard core.Shard
	// IDs are the ids of the job that the handler has begun, or of all jobs of its batch. They are
	// read-only.
	IDs   []string
	Cause OverrunCause
	// For is how long ago the context ended.
	For time.Duration
}

// FailureKind is the kind of failure of a call to the store.
type FailureKind uint8

const (
	// FailureUnknown is any other failure, such as a timeout: the call may have taken effect.
	FailureUnknown FailureKind = iota
	// FailureRefused is an error of this package or of core: the store answered and refused the
	// call.
	FailureRefused
	// FailureFull is [ErrFull].
	FailureFull
	// FailureUnreachable is a failed or broken connection to the store's server.
	FailureUnreachable
)

// String returns the kind in one word, for example for logs.
func (k FailureKind) String() string {
	words := [...]string{"unknown", "refused", "full", "unreachable"}
	if int(k) < len(words) {
		return words[k]
	}
	return fmt.Sprintf("FailureKind(%d)", uint8(k))
}

// NoEffect reports whether a call with this kind of failure has had no effect. It is true for
// [FailureRefused] and [FailureFull]. A call that failed in another way may have had its effect.
func (k FailureKind) NoEffect() bool { return k == FailureRefused || k == FailureFull }

// FailureEvent is a failed call of a server to the store.
type FailureEvent struct {
	// Call is the purpose of the call: acquire, turn, renew, release, declare, announce, record,
	// permits, orphans (to recover jobs of queues that no server serves), poll (to read the heads
	// of shards), or listen (to subscribe to wake-ups).
	Call string
	// Shard is the shard of an acquire, turn, renew or release. It is zero for other calls.
	Shard core.Shard
	Kind  FailureKind
	Err   error
}
