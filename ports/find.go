package ports

import (
	"fmt"
	"math"

	"github.com/skeinq/skein/core"
)

// FindRequest is a request for everything that a queue holds for an id.
type FindRequest struct {
	Queue string
	ID    string
	// Payloads is the maximum number of payloads to return of each place, lowest first. Below 1, no
	// payload is returned. All places together return at most core.MaxTurnPayloads payloads and
	// core.MaxStepBytes of their Data. core.Bound counts the payloads of the queued job, of the
	// claim and of the dead letter, in this order. The very first payload is returned however large
	// it is.
	Payloads int
	// After requests the payloads of one place that follow those of an earlier reply. It is one of
	// the cursors in the Next of that reply. The other places are then returned without payloads.
	// nil requests the first payloads of each place.
	After *PayloadCursor
	// MaxCount is the maximum number of payloads of each place to count: the Count of each view is
	// at most MaxCount. 0 counts all payloads, a value below 0 counts none. Some stores read the
	// payloads that they count, so a caller that follows cursors should count only in its first
	// call.
	MaxCount int
}

// Counted returns the Count of a place with the given number of payloads, limited by MaxCount.
func (r *FindRequest) Counted(payloads int) int { return counted(payloads, r.MaxCount) }

// PayloadCursor is a position in the payloads of an id, which are in order of (Score, Data). It is
// behind all payloads with a lower Score and the first Skip payloads with this Score. If Skip is 0,
// it is the start, whatever Score is.
//
// Payloads may be added and removed between two calls. Each payload that stays is returned once,
// with one exception: if payloads with the same Score as the cursor are added or removed, some
// payloads with that score may be left out or returned again.
type PayloadCursor struct {
	Place Place
	Score float64
	Skip  int
}

// Next returns the cursor behind the given payloads, which must be those that follow c, in order.
func (c PayloadCursor) Next(payloads []core.Payload) PayloadCursor {
	for i := range payloads {
		if score := payloads[i].Score; c.Skip > 0 && score == c.Score {
			c.Skip++
		} else {
			c.Score, c.Skip = score, 1
		}
	}
	return c
}

// Validate returns [core.ErrInvalidID] for an ID that no job can have. It returns
// [ErrInvalidRequest] for an After whose Place is unknown, whose Skip is below 0, or whose Score no
// payload can have.
func (r *FindRequest) Validate() error {
	if err := core.ValidateID(r.ID); err != nil {
		return err
	}
	switch c := r.After; {
	case c == nil:
		return nil
	case c.Place > PlaceDead:
		return fmt.Errorf("%w: payloads of %v; use a constant of ports.Place", ErrInvalidRequest, c.Place)
	case c.Skip < 0 || math.IsNaN(c.Score) || math.IsInf(c.Score, 0):
		return fmt.Errorf("%w: payloads after %d of score %v; use a cursor of Found.Next",
			ErrInvalidRequest, c.Skip, c.Score)
	}
	return nil
}

// Most returns the maximum number of payloads to return of a place: Payloads, limited to 0 …
// core.MaxTurnPayloads. If After is set, it is 0 for all other places.
func (r *FindRequest) Most(p Place) int {
	if r.After != nil && r.After.Place != p {
		return 0
	}
	return min(max(0, r.Payloads), core.MaxTurnPayloads)
}

// Start returns the cursor behind which the payloads to return of a place begin.
func (r *FindRequest) Start(p Place) PayloadCursor {
	if r.After != nil && r.After.Place == p {
		return *r.After
	}
	return PayloadCursor{Place: p}
}

// Found is everything that a queue holds for an id. A nil field means that this place has nothing
// of the id.
type Found struct {
	Shard      core.Shard
	Queued     *JobView
	Claim      *ClaimView
	DeadLetter *DeadLetterView
	// Past is the record of the last run of the id that ended as done, with its result. It is nil
	// if there is no such record, or if the store can't read it.
	Past *core.Past
	// Mark is the mark of the id: the highest score of its payloads that were done, as far as the store
	// has kept it (docs/rules.md 16).
	Mark core.Mark
	// Next are the cursors of the places that have more payloads than were returned, in the order
	// of the places. A reply to a request with After has at most the cursor of that place.
	Next []PayloadCursor
	// Damaged are the places, in their order, where the store has something of the id that it can't
	// read. The field of such a place is nil. The next call that would change or take the record
	// moves it to the [Quarantine].
	Damaged []Place
	// Standing is the state of the shard that decides when the queued job runs.
	Standing Standing
}

// AddNext adds to Next the cursor behind the payloads that were returned of a place, if more is
// true and the request asks for payloads of that place.
func (f *Found) AddNext(r *FindRequest, p Place, returned []core.Payload, more bool) {
	if more && (r.After == nil || r.After.Place == p) {
		f.Next = append(f.Next, r.Start(p).Next(returned))
	}
}
