package core

import "slices"

// FreshRetryCount is the RetryCount of a job that has not failed (docs/rules.md 1).
const FreshRetryCount = -1

// State is a job without its id and payloads. docs/rules.md 2 describes how the fields merge.
type State struct {
	// PerformAt is when the job may run, by the store's clock.
	PerformAt Instant
	// RetryCount is FreshRetryCount for a fresh job and 0 after the first failure. It counts
	// planned retries, not executed ones, and belongs to the job's first payload.
	RetryCount int
	// Recoveries is the number of counted recoveries of the job from dead owners, as
	// [RetryPolicy.Recover] counts them, since it last ended. If the job is put back untouched, the
	// number stays. Like RetryCount it belongs to the job's first payload; see [State.Rest].
	Recoveries int
	// FirstPush is the time of the oldest push that merged into the job.
	FirstPush Instant
	// Failures are the last failures, kept until the job succeeds, awaits a push, or is revived from
	// the morgue.
	Failures Failures
	// Tags are the tags of all pushes that merged into the job. They are gone once the job is done.
	Tags Tags
	// Slot is the key of the rate whose slot PerformAt is: a push then leaves PerformAt. It is empty
	// if the job does not wait for a slot (docs/rules.md 12).
	Slot string
}

// Fresh reports whether no failure counts for the job: RetryCount is FreshRetryCount.
func (s State) Fresh() bool { return s.RetryCount < 0 }

// WaitsFrom returns the instant from which the job waits for a server: PerformAt, or FirstPush if
// that is later, as it is for an urgent job (docs/rules.md 6).
func (s State) WaitsFrom() Instant { return max(s.PerformAt, s.FirstPush) }

// Held reports whether the job is held: it has failed and its PerformAt is [MaxInstant], so it
// never runs by itself (docs/rules.md 3).
func (s State) Held() bool { return !s.Fresh() && s.PerformAt == MaxInstant }

// Expedited returns the state of a queued job after an operator made it due. ok is false if the job
// is due already. A held job is released: it becomes fresh, and its Recoveries are 0. A job that
// waits for a slot loses it, and asks for another one when it is claimed.
func (s State) Expedited(now Instant) (due State, ok bool) {
	if s.PerformAt <= now {
		return s, false
	}
	if s.Held() {
		s.RetryCount, s.Recoveries = FreshRetryCount, 0
	}
	s.PerformAt, s.Slot = now, ""
	return s, true
}

// WithoutFirst returns the state of a queued job after an operator has removed its first payload. A
// job that has failed becomes fresh and due, and its Recoveries become 0, since its retries, its
// time and its recoveries belong to that payload. A fresh job changes only if it waits for a slot,
// which is that payload's as well: it becomes due.
func (s State) WithoutFirst(now Instant) State {
	if s.Slot != "" {
		s.PerformAt, s.Slot = min(s.PerformAt, now), ""
	}
	if !s.Fresh() {
		s.RetryCount, s.Recoveries, s.PerformAt = FreshRetryCount, 0, min(s.PerformAt, now)
	}
	return s
}

// Rest returns the state of a job's payloads without its first one: of those that stay queued if
// only the first payloads are claimed, and of those that stay claimed when the first one has ended
// by itself. RetryCount, the slot and all Recoveries but one belong to the first payload. So the
// rest is fresh, has no slot and at most one recovery. All other fields stay the same (docs/rules.md
// 1, 4 and 12).
func (s State) Rest() State {
	s.RetryCount, s.Recoveries, s.Slot = FreshRetryCount, min(s.Recoveries, 1), ""
	return s
}

// AloneRecoveries is a number of Recoveries. A job with this number or more is claimed alone, and
// only when no other job of its shard is claimed (docs/rules.md 4).
const AloneRecoveries = 2

// Alone reports whether the job must be claimed alone in its shard.
func (s State) Alone() bool { return s.Recoveries >= AloneRecoveries }

// Job is the work for one id: the payloads that were pushed for it, and its state (docs/rules.md
// 1).
type Job struct {
	// ID is the id that the payloads were pushed for.
	ID string
	// Payloads are in order of Payload.Compare, each Data once.
	Payloads []Payload
	State
}

// Buried returns the dead letter of a queued job that an operator buries at now. Its payloads are
// those of the job.
func (j *Job) Buried(now Instant) DeadLetter {
	dead := j.deadLetter(DeadLetter{Failures: j.Failures, Group: BuriedByHand}, now)
	dead.Payloads = j.Payloads
	if len(dead.Failures) == 0 {
		dead.Failures = Failures{{Text: BuriedByHand}}
	}
	return dead
}

// deadLetter returns a dead letter with the fields that every burial of the job takes from it, and
// without payloads.
func (j *Job) deadLetter(letter DeadLetter, now Instant) DeadLetter {
	letter.ID, letter.Payloads, letter.ChangedAt, letter.Tags = j.ID, nil, now, j.Tags
	return letter
}

// Receipt names the lease and the turn that claimed a job. A settlement carries it, so a late
// settlement can't change a later claim.
type Receipt struct {
	// Token is the fencing token of the lease.
	Token int64
	// Number is the number of the turn within the lease, below 2^40. The bits above that count the
	// payloads of the claim that were settled by themselves; see [Receipt.NextPart].
	Number int64
}

// partBits is the number of bits of a Receipt's Number that count turns. The bits above them count
// parts.
const partBits = 40

// NextPart returns the receipt that a claim has after one of its payloads was settled by itself,
// see [PayloadSettlement].
func (r Receipt) NextPart() Receipt {
	r.Number += 1 << partBits
	return r
}

// Part returns the number of payloads of the claim that were settled by themselves.
func (r Receipt) Part() int { return int(r.Number >> partBits) }

// Whole returns the receipt that the claim had first, before payloads were settled by themselves.
func (r Receipt) Whole() Receipt {
	r.Number &= 1<<partBits - 1
	return r
}

// Claim is a job that the owner of a lease has claimed, with its receipt.
type Claim struct {
	Job
	Receipt Receipt
	// Begun is true if a turn has marked the job as begun. That happens only to recovered jobs,
	// before their handler runs (docs/rules.md 4).
	Begun bool
	// Mark is the mark of the id, if the turn that claimed the job has asked for it. The store knows of
	// no payload with a higher score that was done.
	Mark Mark
}

// Ref returns the claim's id and receipt.
func (c *Claim) Ref() ClaimRef { return ClaimRef{ID: c.ID, Receipt: c.Receipt} }

// ClaimRef names one claim of a job.
type ClaimRef struct {
	// ID is the id of the job.
	ID      string
	Receipt Receipt
}

// DeadLetter is an entry of the morgue: the buried payloads of one id (docs/rules.md 5).
type DeadLetter struct {
	// ID is the id that the payloads were pushed for.
	ID string
	// Payloads are in order of Payload.Compare, each Data once.
	Payloads []Payload
	// ChangedAt is when a payload was last added or edited.
	ChangedAt Instant
	// Failures are those of the job whose payload was buried last. The newest of them is the reason
	// of that burial. Group is the name of the group of dead letters with the same kind of error; see
	// [GroupName]. It is never empty.
	Failures Failures
	Group    string
	// Tags are those of the buried jobs.
	Tags Tags
}

// Stored returns the dead letter as stores keep it: with [Failures.Stored], and with the name of its
// group as [GroupName] returns it.
func (d DeadLetter) Stored() DeadLetter {
	d.Failures, d.Group = d.Failures.Stored(), GroupName(d.Group)
	return d
}

// BuriedByHand is the group of dead letters that an operator made of queued jobs. It is also the
// text of their failure if the job has none.
const BuriedByHand = "buried by hand"

// MergeImported returns the dead letter of an id after a dead letter of another store was added to
// it (docs/rules.md 5), whether that changed it, and the number of payloads that the rule
// superseded. The payloads merge by the rule, and the tags unite. ChangedAt, Failures and Group are
// those of the dead letter that changed later, or on a tie the existing ones.
func MergeImported(existing, incoming DeadLetter, rule MergeRule) (merged DeadLetter, changed bool, superseded int) {
	payloads, superseded := rule.Merge(existing.Payloads, incoming.Payloads)
	changed = !slices.EqualFunc(payloads, existing.Payloads, func(a, b Payload) bool { return a.Compare(b) == 0 })
	tags := existing.Tags.Union(incoming.Tags)
	changed = changed || tags != existing.Tags
	if incoming.ChangedAt > existing.ChangedAt {
		existing, changed = incoming, true
	}
	existing.Payloads, existing.Tags = payloads, tags
	return existing, changed, superseded
}

// MergeDeadLetters returns the dead letter of an id after another one was added to it
// (docs/rules.md 2, last paragraph), and the number of payloads that the rule superseded. The
// payloads merge by the rule, and the tags unite. ChangedAt, Failures and Group are the incoming
// ones.
func MergeDeadLetters(existing, incoming DeadLetter, rule MergeRule) (merged DeadLetter, superseded int) {
	incoming.Payloads, superseded = rule.Merge(existing.Payloads, incoming.Payloads)
	incoming.Tags = incoming.Tags.Union(existing.Tags)
	return incoming, superseded
}
