package core

import (
	"slices"
	"time"
)

// OutcomeKind is the way in which a claimed job ended (docs/rules.md 3).
type OutcomeKind uint8

const (
	// Undecided means that no outcome is known. The settlement then requeues the job untouched.
	Undecided OutcomeKind = iota
	// Done is success.
	Done
	// Failed is a failure: the job is retried, or it is exhausted (see [Exhaustion]).
	Failed
	// Buried sends every open payload to the morgue.
	Buried
	// Snoozed requeues the job for later and counts as neither success nor failure.
	Snoozed
	// Untouched requeues the job as it was claimed and counts as neither success nor failure.
	Untouched
	// Dropped removes a cancelled job and counts as neither success nor failure.
	Dropped
	// Awaiting requeues the job as fresh, to wait until the next push, at most for Delay. It counts
	// as neither success nor failure.
	Awaiting
)

// String returns the kind in one word, for example for metrics.
func (k OutcomeKind) String() string {
	switch k {
	case Done:
		return "done"
	case Failed:
		return "failed"
	case Buried:
		return "buried"
	case Snoozed:
		return "snoozed"
	case Untouched:
		return "untouched"
	case Dropped:
		return "dropped"
	case Awaiting:
		return "awaiting"
	}
	return "undecided"
}

// PayloadOutcome is the outcome of a single payload: done, or buried for a reason.
type PayloadOutcome struct {
	// Position is the payload's position in the claimed job.
	Position int
	// Bury is true if the payload is buried, and false if it is done.
	Bury bool
	// Error is the reason of the burial, and Group is the group of that error; see [Outcome].
	Error string
	Group string
}

// Outcome is the result of a handler for a claimed job. The zero value is [Undecided].
type Outcome struct {
	// Kind is the way in which the job ended.
	Kind OutcomeKind
	// OwnDelay makes a failure wait for Delay instead of its backoff.
	OwnDelay bool
	// Error is the text of a failure or a burial; see [ErrorText]. Group is the group of the dead
	// letter, if the outcome makes one; see [GroupName].
	Error string
	Group string
	// At is when the handler returned, by the store's clock, and Node is the name of the server that
	// ran it. A failure has both.
	At   Instant
	Node string
	// Delay is the delay of Snoozed and Awaiting, or that of a failure with OwnDelay.
	Delay time.Duration
	// SlowDown is how long the queue's rate is stopped from now. 0 does not stop it.
	SlowDown time.Duration
	// Payloads are the outcomes of single payloads, in ascending order of position, each position
	// once. Kind applies to all other payloads. Outcomes of single payloads also apply if Kind is
	// Untouched or Dropped: a payload that is done stays done.
	Payloads []PayloadOutcome
}

// Exhaustion is what happens to a job that has used up its retries or its recoveries (docs/rules.md
// 3 and 4).
type Exhaustion uint8

const (
	// BuryFirst sends the job's first payload to the morgue and continues with the others.
	BuryFirst Exhaustion = iota
	// Hold requeues the whole job as held: see [State.Held].
	Hold
)

// RetryPolicy has the retry settings of a queue. In the options of a queue 0 means the default, but
// here 0 means no retries.
type RetryPolicy struct {
	// MaxRetries is the number of retries of a job before it is exhausted. 0 means one execution.
	MaxRetries int
	// MaxRecoveries is the maximum number of counted recoveries of a job. One more exhausts it.
	MaxRecoveries int
	// Exhausted decides what happens to a job that is exhausted.
	Exhausted Exhaustion
	// Backoff returns the wait before a retry. nil means DefaultBackoff.
	Backoff Backoff
}

// Settlement returns the settlement of a claim that ended with the outcome (docs/rules.md 3).
// jitter is passed to the policy's [Backoff]: a random number from 0 to BackoffJitter-1.
func (p RetryPolicy) Settlement(c *Claim, o *Outcome, jitter int) Settlement {
	s := Settlement{ID: c.ID, Receipt: c.Receipt}
	for _, own := range o.Payloads {
		d := PayloadDisposition{Position: own.Position}
		if own.Bury {
			d.Disposition, s.Letter, s.Failed = Bury, o.letter(c, own.Error, own.Group), true
		}
		s.Except = append(s.Except, d)
	}

	switch o.Kind {
	case Done:
		s.Processed = true
	case Failed:
		p.fail(&s, c, o, jitter)
	case Buried:
		s.Rest, s.Failed = Bury, true
		if len(o.Payloads) < len(c.Payloads) {
			s.Letter = o.letter(c, o.Error, o.Group)
		}
	case Snoozed:
		s.Rest = Requeue
		s.PutBack = PutBack{Delay: o.Delay, RetryCount: left(c, o).RetryCount, Failures: c.Failures}
	case Awaiting:
		s.Rest = Requeue
		s.PutBack = PutBack{Delay: o.Delay, Awaits: true, RetryCount: FreshRetryCount}
	case Dropped:
	default:
		s.Rest = Requeue
		s.PutBack = untouched(left(c, o))
	}

	return s
}

// PutOff returns the settlement that puts a claimed job back untouched for a time, since its rate
// allows no start now. slot is the key of the rate if the job has a slot of it after that time, and
// empty if it has none (docs/rules.md 12).
func (c *Claim) PutOff(d time.Duration, slot string) Settlement {
	s := Settlement{ID: c.ID, Receipt: c.Receipt, Rest: Requeue, PutBack: untouched(c.State)}
	s.PutBack.SameTime, s.PutBack.Delay, s.PutBack.Slot = false, d, slot
	return s
}

// untouched returns the PutBack of a job that keeps its state.
func untouched(s State) PutBack {
	return PutBack{
		SameTime:   true,
		RetryCount: s.RetryCount,
		Recoveries: s.Recoveries,
		Failures:   s.Failures,
		Slot:       s.Slot,
	}
}

// failures returns the failures of a claim after this outcome, with the text of its failure.
func (o *Outcome) failures(c *Claim, text string) Failures {
	return c.Failures.With(Failure{At: o.At, Node: o.Node, Text: text})
}

// letter returns what this outcome records in the dead letter of a claim's payload.
func (o *Outcome) letter(c *Claim, text, group string) DeadLetter {
	return DeadLetter{Failures: o.failures(c, text), Group: group}
}

func (p RetryPolicy) fail(s *Settlement, c *Claim, o *Outcome, jitter int) {
	s.Failed = true
	s.Rest = Requeue

	retry, failures := p.Retry(c, o), o.failures(c, o.Error)
	if retry >= p.MaxRetries {
		if p.Exhausted == Hold {
			s.PutBack = held(retry, failures)
			return
		}
		if at, ok := p.Exhausts(c, o); ok {
			buryAt(s, at, o.letter(c, o.Error, o.Group))
		}
		s.PutBack = PutBack{RetryCount: FreshRetryCount, Failures: failures}
		return
	}

	delay := o.Delay
	if !o.OwnDelay {
		delay = p.Wait(retry, jitter)
	}
	s.PutBack = PutBack{Delay: delay, RetryCount: retry, Failures: failures}
}

// Retry returns the number of the retry that follows if the claim fails with this outcome, whether
// or not the policy allows that retry. The first retry is number 0. The count belongs to the job's
// first payload. So the number is 0 as well if that payload is done or buried by an outcome of its
// own (docs/rules.md 3).
func (p RetryPolicy) Retry(c *Claim, o *Outcome) int { return left(c, o).RetryCount + 1 }

// left returns the state, before this outcome, of the payloads that the outcome leaves open.
func left(c *Claim, o *Outcome) State {
	if len(o.Payloads) > 0 && o.Payloads[0].Position == 0 {
		return c.Rest()
	}
	return c.State
}

// BacksOff reports whether [RetryPolicy.Settlement] calls the policy's [Backoff] for this claim and
// outcome, because it plans a retry without a delay of its own.
func (p RetryPolicy) BacksOff(c *Claim, o *Outcome) bool {
	return o.Kind == Failed && !o.OwnDelay && p.Retry(c, o) < p.MaxRetries
}

// held returns the PutBack of a job that is exhausted and held.
func held(retry int, failures Failures) PutBack {
	return PutBack{Delay: Forever, RetryCount: retry, Failures: failures}
}

// Exhausts reports whether the outcome uses up the claim's retries, so that a payload is buried.
// position is the position of that payload, the first one without an outcome of its own. With
// [Hold] ok is false: see [RetryPolicy.Holds].
func (p RetryPolicy) Exhausts(c *Claim, o *Outcome) (position int, ok bool) {
	position, ok = p.exhausts(c, o)
	return position, ok && p.Exhausted == BuryFirst
}

// Holds reports whether the outcome uses up the claim's retries, so that the job is held.
func (p RetryPolicy) Holds(c *Claim, o *Outcome) bool {
	_, ok := p.exhausts(c, o)
	return ok && p.Exhausted == Hold
}

// exhausts reports whether the outcome uses up the claim's retries, and the position of the first
// payload without an outcome of its own. ok is false if there is no such payload.
func (p RetryPolicy) exhausts(c *Claim, o *Outcome) (position int, ok bool) {
	if o.Kind != Failed || p.Retry(c, o) < p.MaxRetries {
		return 0, false
	}
	for position < len(o.Payloads) && o.Payloads[position].Position == position {
		position++
	}
	return position, position < len(c.Payloads)
}

// LastChance reports whether the job was recovered before and one more counted recovery would
// exhaust it. At most one such job runs in a process at a time (docs/rules.md 4).
func (p RetryPolicy) LastChance(c *Claim) bool {
	return c.Recoveries > 0 && c.Recoveries >= p.MaxRecoveries
}

// RecoveredTooOften reports whether the job was recovered more often than the policy allows. That
// happens if it was recovered by a process without this policy. The job must not run: Recover
// buries its first payload or holds it.
func (p RetryPolicy) RecoveredTooOften(c *Claim) bool { return c.Recoveries > p.MaxRecoveries }

// RecoveriesWithNext returns the job's Recoveries after one more recovery (docs/rules.md 4). The
// first recovery counts whether or not the job had begun. Later recoveries count only if the job
// had begun.
func (c *Claim) RecoveriesWithNext() int {
	if c.Recoveries == 0 || c.Begun {
		return c.Recoveries + 1
	}
	return c.Recoveries
}

// Recover returns the settlement of a claim whose owner is gone (docs/rules.md 4). now is the time
// of the failure, if the job is exhausted.
func (p RetryPolicy) Recover(c *Claim, now Instant) Settlement {
	s := Settlement{ID: c.ID, Receipt: c.Receipt, Rest: Requeue}

	recoveries := c.RecoveriesWithNext()
	if recoveries > p.MaxRecoveries {
		tooOften := c.Failures.With(Failure{At: now, Text: recoveredTooOften(recoveries)})
		if p.Exhausted == Hold {
			s.PutBack = held(max(0, c.RetryCount), tooOften)
			s.Failed = true
			return s
		}

		if len(c.Payloads) > 0 {
			buryAt(&s, 0, DeadLetter{Failures: tooOften, Group: RecoveredGroup})
		}
		s.PutBack = PutBack{RetryCount: FreshRetryCount, Failures: c.Failures}
		s.Failed = true
		return s
	}

	s.PutBack = untouched(c.State)
	s.PutBack.Recoveries, s.PutBack.Slot = recoveries, ""
	return s
}

// buryAt sends the payload at a position to the morgue. All payloads before it have
// outcomes of their own.
func buryAt(s *Settlement, position int, letter DeadLetter) {
	s.Except = slices.Insert(s.Except, position, PayloadDisposition{Position: position, Disposition: Bury})
	s.Letter = letter
}
