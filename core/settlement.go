package core

import (
	"slices"
	"time"
)

// Disposition is what happens to one claimed payload.
type Disposition uint8

const (
	// Discard removes the payload: it is done, or its job was dropped.
	Discard Disposition = iota
	// Requeue returns the payload to the queue.
	Requeue
	// Bury moves the payload to the morgue.
	Bury
)

// PayloadDisposition is the disposition of the payload at one position of the claimed job.
type PayloadDisposition struct {
	Position    int
	Disposition Disposition
}

// PutBack describes the state in which the payloads of a settlement are requeued.
type PutBack struct {
	// SameTime is true if the PerformAt stays with which the job was claimed. Delay is then
	// ignored.
	SameTime bool
	// Delay is the time from the store's now to the new PerformAt. [Forever] with a RetryCount of 0
	// or more holds the job: see [State.Held].
	Delay time.Duration
	// Awaits is true if the job waits for the next push, at most for Delay. A push since the claim
	// counts too; see [PutBack.Merge].
	Awaits bool
	// RetryCount, Recoveries and Failures are the requeued job's. Stores keep [Failures.Stored].
	RetryCount int
	Recoveries int
	Failures   Failures
	// Slot is the requeued job's: see [State]. It is at most 512 bytes of text.
	Slot string
}

// Settlement describes the end of one claimed job. Package core computes it and a store commits it.
// It names payloads by their positions, so their bytes are not sent back to the store. It has
// delays instead of instants, so only the store's clock matters.
type Settlement struct {
	ID      string
	Receipt Receipt
	// Rest is the disposition of every payload that Except does not list.
	Rest Disposition
	// Except are the dispositions of single payloads, in ascending order of position, each position
	// once.
	Except []PayloadDisposition
	// PutBack applies to the payloads that are requeued.
	PutBack PutBack
	// Letter is the dead letter of the payloads that are buried, if there are any, without what it has
	// from the claimed job: ID, Payloads, ChangedAt and Tags are ignored. Stores keep
	// [DeadLetter.Stored].
	Letter DeadLetter
	// Processed and Failed are true if the counter of the queue with that name increases by one
	// (docs/rules.md 7).
	Processed bool
	Failed    bool
	// Past is the record of the job, if it ended as done and the queue keeps records; see
	// [Settlement.Record]. Otherwise it is nil. The settlement is Plain then. Stores keep
	// [Past.Stored].
	Past *Past
	// Mark raises the mark of the id, if it is OK; see [Settlement.MarkDone]. Stale is the number of
	// payloads that are discarded because they were stale, which the queue counts.
	Mark  Mark
	Stale int
}

// Plain reports whether the settlement discards all payloads of the job, whatever their number.
// Stores can carry out such a settlement at a lower cost.
func (s *Settlement) Plain() bool {
	kept := func(e PayloadDisposition) bool { return e.Disposition != Discard }
	return s.Rest == Discard && !slices.ContainsFunc(s.Except, kept)
}

// Buries reports whether the settlement buries a payload. A position in Except counts even if the
// job has no such payload.
func (s *Settlement) Buries() bool {
	buried := func(e PayloadDisposition) bool { return e.Disposition == Bury }
	return s.Rest == Bury || slices.ContainsFunc(s.Except, buried)
}

// Apply returns the result of the settlement for the claimed job at the store's now: the job to
// requeue and the dead letter for the morgue. If no payload is requeued, back has no payloads. If
// no payload is buried, dead has no payloads. Positions that the job does not have are ignored.
func (s *Settlement) Apply(claimed Job, now Instant) (back Job, dead DeadLetter) {
	if s.Plain() {
		return Job{}, DeadLetter{}
	}
	back = Job{ID: claimed.ID, State: s.PutBack.state(claimed.State, now)}
	dead = claimed.deadLetter(s.Letter.Stored(), now)

	except := s.Except
	for i, p := range claimed.Payloads {
		d := s.Rest
		for len(except) > 0 && except[0].Position < i {
			except = except[1:]
		}
		if len(except) > 0 && except[0].Position == i {
			d = except[0].Disposition
		}

		switch d {
		case Requeue:
			back.Payloads = append(back.Payloads, p)
		case Bury:
			dead.Payloads = append(dead.Payloads, p)
		}
	}

	return back, dead
}

func (b PutBack) state(claimed State, now Instant) State {
	back := claimed
	back.RetryCount, back.Recoveries, back.Slot = b.RetryCount, b.Recoveries, b.Slot
	back.Failures = b.Failures.Stored()
	if !b.SameTime {
		back.PerformAt = now.Add(b.Delay)
	}
	return back
}

// PayloadSettlement ends one payload of a claimed job as done. The job stays claimed with its other
// payloads (docs/rules.md 3). [Claim.SettlePayload] computes it and a store commits it.
type PayloadSettlement struct {
	ID string
	// Receipt is the receipt of the claim before this settlement. Afterwards the claim has the
	// receipt that [Receipt.NextPart] returns, so a settlement with the earlier receipt is skipped.
	Receipt Receipt
	// Position is the payload's position in the claimed job.
	Position int
	// RetryCount and Recoveries are those of the claim after this settlement.
	RetryCount int
	Recoveries int
	// Mark raises the mark of the id, if it is OK: see [Mark].
	Mark Mark
}

// SettlePayload returns the settlement that ends the payload at a position of the claimed job as
// done. If that is the first payload, RetryCount and Recoveries are those of [State.Rest], and the
// claim loses its slot.
func (c *Claim) SettlePayload(position int) PayloadSettlement {
	after := c.State
	if position == 0 {
		after = c.Rest()
	}
	return PayloadSettlement{
		ID:         c.ID,
		Receipt:    c.Receipt,
		Position:   position,
		RetryCount: after.RetryCount,
		Recoveries: after.Recoveries,
	}
}

// Apply returns the claim after the settlement. ok is false if the claim has no payload at this
// position, or no other payload. The payloads of claimed are not changed.
func (s *PayloadSettlement) Apply(claimed Claim) (left Claim, ok bool) {
	at := s.Position
	if at < 0 || at >= len(claimed.Payloads) || len(claimed.Payloads) == 1 {
		return Claim{}, false
	}
	left = claimed
	left.Payloads = slices.Concat(claimed.Payloads[:at], claimed.Payloads[at+1:])
	left.Receipt, left.RetryCount, left.Recoveries = claimed.Receipt.NextPart(), s.RetryCount, s.Recoveries
	if at == 0 {
		left.Slot = ""
	}
	return left, true
}
