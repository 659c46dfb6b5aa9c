package core

import (
	"slices"
	"time"
)

// Disposition is what becomes of one claimed payload.
type Disposition uint8

const (
	// Discard removes the payload: it is done, or its job was dropped.
	Discard Disposition = iota
	// Requeue puts it back into the queue.
	Requeue
	// Bury puts it into the morgue.
	Bury
)

// PayloadDisposition is what becomes of the payload at a position of the claimed
// job.
type PayloadDisposition struct {
	Position    int
	Disposition Disposition
}

// PutBack is how the requeued payloads of a settlement return.
type PutBack struct {
	// SameTime keeps the PerformAt the job was claimed with; Delay is ignored.
	SameTime bool
	// Delay is from the store's now to the new PerformAt.
	Delay time.Duration
	// RetryCount, Recoveries and Error, of which [ErrorText] is kept, are those of the returning job.
	RetryCount int
	Recoveries int
	Error      string
}

// Settlement says what becomes of one claimed job. Package core computes it and a
// store commits it. It names payloads by position, so that their bytes are not sent
// back, and carries delays, so that only the store's clock counts.
type Settlement struct {
	ID      string
	Receipt Receipt
	// Rest is what becomes of every payload that Except does not list.
	Rest Disposition
	// Except is in ascending order of position, each position once.
	Except []PayloadDisposition
	// PutBack applies to the payloads that are requeued.
	PutBack PutBack
	// BuryError is the error of the dead letter, if something is buried, of which [ErrorText] is kept, and Group the
	// group that it is counted in, of which [GroupName] is kept.
	BuryError string
	Group     string
	// Processed and Failed say whether the queue's counters rise (RULES 7).
	Processed bool
	Failed    bool
}

// Plain reports whether the settlement discards all payloads of the job, however many
// it has. Stores have a cheaper way to do that.
func (s *Settlement) Plain() bool {
	kept := func(e PayloadDisposition) bool { return e.Disposition != Discard }
	return s.Rest == Discard && !slices.ContainsFunc(s.Except, kept)
}

// Buries reports whether the settlement buries a payload, if the job has enough of them.
func (s *Settlement) Buries() bool {
	buried := func(e PayloadDisposition) bool { return e.Disposition == Bury }
	return s.Rest == Bury || slices.ContainsFunc(s.Except, buried)
}

// Apply returns what the settlement makes of the claimed job at the store's now: the
// job to put back and the dead letter for the morgue. Either has no payloads if there
// is nothing to put back or to bury. Positions that the job does not have are ignored.
func (s *Settlement) Apply(claimed Job, now Instant) (back Job, dead DeadLetter) {
	if s.Plain() {
		return Job{}, DeadLetter{}
	}
	back = Job{ID: claimed.ID, State: s.PutBack.state(claimed.State, now)}
	dead = DeadLetter{ID: claimed.ID, ChangedAt: now, Error: ErrorText(s.BuryError)}
	if s.Buries() {
		dead.Group = GroupName(s.Group)
	}
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
	s := State{
		PerformAt:  claimed.PerformAt,
		RetryCount: b.RetryCount,
		Recoveries: b.Recoveries,
		FirstPush:  claimed.FirstPush,
		Error:      ErrorText(b.Error),
	}
	if !b.SameTime {
		s.PerformAt = now.Add(b.Delay)
	}
	return s
}
