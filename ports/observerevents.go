package ports

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
)

// JobEnd is how an execution of a job ended.
type JobEnd uint8

const (
	// EndDone is a job that its handler has done, all payloads but those that it buried by themselves.
	EndDone JobEnd = iota
	// EndFailed is a job that failed and is retried.
	EndFailed
	// EndSnoozed is a job whose handler put it off.
	EndSnoozed
	// EndBuried is a job of which payloads went to the morgue, by its handler, since its retries were used up, or
	// since it was recovered too often. The other payloads may be queued again.
	EndBuried
	// EndPutBack is a job that went back as it was: the server stopped, its shard moved, or the handler
	// of its batch did not begin it.
	EndPutBack
	// EndCancelled is a job that an operator cancelled while it ran.
	EndCancelled
	// EndLost is a job whose end is not known to be kept: the lease was lost before, or somebody else
	// settled the job. What the store has not kept of it runs again.
	EndLost
)

// String returns the end in a word, such as for logs.
func (e JobEnd) String() string {
	words := [...]string{"done", "failed", "snoozed", "buried", "putback", "cancelled", "lost"}
	if int(e) < len(words) {
		return words[e]
	}
	return fmt.Sprintf("JobEnd(%d)", uint8(e))
}

// EndedJob is one execution of a job that has ended.
type EndedJob struct {
	ID  string
	End JobEnd
	// Attempt is the number of the execution, from 1. Executions that were snoozed, put back or lost don't count.
	Attempt int
	// Buried is how many payloads went to the morgue.
	Buried int
}

// EndEvent is the end of jobs of a shard. Jobs that went back before a handler had them are in none.
type EndEvent struct {
	Shard core.Shard
	// Jobs are read-only, and may not be kept.
	Jobs []EndedJob
}

// OverrunCause is why the context of a handler had ended.
type OverrunCause uint8

const (
	// OverrunTimeout is the timeout of the queue, or that of a job.
	OverrunTimeout OverrunCause = iota
	// OverrunCancel is a cancel by an operator.
	OverrunCancel
	// OverrunLease is the loss of the lease: another server may run the same jobs.
	OverrunLease
	// OverrunShutdown is the end of the server's ShutdownTimeout.
	OverrunShutdown
)

// String returns the cause in a word, such as for logs.
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
	// IDs are the jobs that it works: that which it has begun, or all of its batch. They are read-only.
	IDs   []string
	Cause OverrunCause
	// For is how long the context has been over.
	For time.Duration
}

// FailureKind is what a failed call says of the store.
type FailureKind uint8

const (
	// FailureUnknown is any failure that is none of the others, such as a timeout: the call may have taken effect.
	FailureUnknown FailureKind = iota
	// FailureRefused is a store that answers and refuses, with an error of this package or of core.
	FailureRefused
	// FailureFull is [ErrFull].
	FailureFull
	// FailureUnreachable is a server that can't be connected to, or whose connection broke.
	FailureUnreachable
)

// String returns the kind in a word, such as for logs.
func (k FailureKind) String() string {
	words := [...]string{"unknown", "refused", "full", "unreachable"}
	if int(k) < len(words) {
		return words[k]
	}
	return fmt.Sprintf("FailureKind(%d)", uint8(k))
}

// NoEffect reports whether a call that has failed so has had no effect, as of [FailureRefused] and [FailureFull]. One of another kind may
// have had its effect.
func (k FailureKind) NoEffect() bool { return k == FailureRefused || k == FailureFull }

// FailureEvent is a call of a server to the store that failed.
type FailureEvent struct {
	// Call is what the server called the store for: acquire, turn, renew, release, declare, announce, record,
	// permits, orphans, poll, or listen, which is to subscribe to wake-ups.
	Call string
	// Shard is the shard that the call was about; that of calls about several is zero.
	Shard core.Shard
	Kind  FailureKind
	Err   error
}
