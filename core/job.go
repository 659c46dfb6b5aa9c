package core

import "slices"

// FreshRetryCount is the RetryCount of a job that has not failed (RULES 1).
const FreshRetryCount = -1

// State is all of a job but its id and payloads: what the merge rules decide.
type State struct {
	// PerformAt is when the job may run, by the store's clock.
	PerformAt Instant
	// RetryCount is FreshRetryCount for a fresh job and 0 after the first
	// failure: it counts the retries that are planned, not those made.
	RetryCount int
	// Recoveries is how often the job was recovered from a dead owner since it
	// last settled.
	Recoveries int
	// FirstPush is when the oldest push that merged into the job came.
	FirstPush Instant
	// Error is the text of the last failure, at most MaxErrorBytes, kept until
	// the job succeeds.
	Error string
}

// Fresh reports whether the job has not failed since it was last fresh.
func (s State) Fresh() bool { return s.RetryCount < 0 }

// AloneRecoveries is the number of Recoveries from which a job is claimed only
// when nothing else of its shard is, and alone (RULES 4).
const AloneRecoveries = 2

// Alone reports whether the job must be claimed alone in its shard.
func (s State) Alone() bool { return s.Recoveries >= AloneRecoveries }

// Job is an entity's work: an id and what was pushed for it (RULES 1).
type Job struct {
	// ID is the entity the job is about.
	ID string
	// Payloads are in order of Payload.Compare, each Data once.
	Payloads []Payload
	State
}

// Receipt says which turn of which lease claimed a job. A settlement carries it, so
// that one from the past can't touch a later claim.
type Receipt struct {
	// Token is the fencing token of the lease.
	Token int64
	// Number is the number of the turn within the lease.
	Number int64
}

// Claim is a job that a lease holder has taken, with its receipt.
type Claim struct {
	Job
	Receipt Receipt
	// Begun reports that a turn has marked the job as begun, which recovered
	// jobs are before their handler runs (RULES 4). It is false for all others.
	Begun bool
}

// Ref is the claim's id and receipt.
func (c *Claim) Ref() ClaimRef { return ClaimRef{ID: c.ID, Receipt: c.Receipt} }

// ClaimRef names one claim of a job.
type ClaimRef struct {
	// ID is the entity.
	ID      string
	Receipt Receipt
}

// DeadLetter is a morgue entry (RULES 5).
type DeadLetter struct {
	// ID is the entity.
	ID string
	// Payloads are in order of Payload.Compare, each Data once.
	Payloads []Payload
	// ChangedAt is when a payload last came in or was edited.
	ChangedAt Instant
	// Error is why the newest payload was buried, and Group the group of dead letters that died of the like of it:
	// see [ErrorGroup]. It is never empty.
	Error string
	Group string
}

// BuriedByHand is the group of a dead letter that an operator made of a queued job, and its error if the
// job has none.
const BuriedByHand = "buried by hand"

// MergeImported returns the dead letter of an id after one that another store had was added to it (RULES 5), and
// whether that changed anything: the payloads merge, and the time, the error and the group are those of the one
// that changed later, of the one that was there if they changed at once.
func MergeImported(there, coming DeadLetter) (merged DeadLetter, changed bool) {
	payloads := MergePayloads(there.Payloads, coming.Payloads)
	changed = !slices.EqualFunc(payloads, there.Payloads, func(a, b Payload) bool { return a.Compare(b) == 0 })
	if coming.ChangedAt > there.ChangedAt {
		there, changed = coming, true
	}
	there.Payloads = payloads
	return there, changed
}

// MergeDeadLetters returns the dead letter of an id after another one was added to
// it (RULES 2, last line): the payloads merge, and the time, the error and the group are
// those of the one that was added.
func MergeDeadLetters(there, coming DeadLetter) DeadLetter {
	coming.Payloads = MergePayloads(there.Payloads, coming.Payloads)
	return coming
}
