package inspect

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"iter"
	"math"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Place is where a queue holds payloads of an id.
type Place uint8

const (
	// PlaceQueued is the queued job.
	PlaceQueued Place = Place(ports.PlaceQueued)
	// PlaceClaimed is the claimed job.
	PlaceClaimed Place = Place(ports.PlaceClaimed)
	// PlaceDead is the dead letter.
	PlaceDead Place = Place(ports.PlaceDead)
)

// String returns "queued", "claimed" or "dead".
func (p Place) String() string { return ports.Place(p).String() }

// PayloadOptions select the payloads to list. The zero value lists all payloads of the queued job.
type PayloadOptions struct {
	// Place is the place to list. The zero value is [PlaceQueued].
	Place Place
	// After starts the list behind this payload. The zero value is the start.
	After PayloadCursor
	// Limit is the maximum number of payloads of the list. 0 means no limit.
	Limit int
}

// StoredPayload is a payload of an id. It is read-only.
type StoredPayload struct {
	core.Payload
	// Cursor is the payload's position in the list.
	Cursor PayloadCursor
}

// PayloadCursor is a position in the payloads of an id: directly behind the [StoredPayload] whose
// field it is. It is valid only for the same id and [Place].
//
// Its text has only letters, digits, - and _. The zero value is the start, and its text is empty.
// Cursors are comparable.
type PayloadCursor struct {
	score float64
	skip  int
}

// ParsePayloadCursor returns the cursor whose String is text. It returns [ErrInvalidCursor] if text
// is not one. It doesn't check whether the payload exists.
func ParsePayloadCursor(text string) (PayloadCursor, error) {
	if text == "" {
		return PayloadCursor{}, nil
	}

	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil && len(data) > 8 && len(data) <= 8+binary.MaxVarintLen64 {
		skip, n := binary.Uvarint(data[8:])
		c := PayloadCursor{math.Float64frombits(binary.BigEndian.Uint64(data)), int(skip)}
		finite := !math.IsNaN(c.score) && !math.IsInf(c.score, 0)
		if n > 0 && skip > 0 && skip <= math.MaxInt32 && finite && c.String() == text {
			return c, nil
		}
	}
	return PayloadCursor{}, fmt.Errorf("%w: use a cursor that the list of payloads returned, unchanged",
		ErrInvalidCursor)
}

// String returns the cursor as text for URLs; see [ParsePayloadCursor].
func (c PayloadCursor) String() string {
	if c.skip == 0 {
		return ""
	}
	data := binary.BigEndian.AppendUint64(nil, math.Float64bits(c.score))
	return base64.RawURLEncoding.EncodeToString(binary.AppendUvarint(data, uint64(c.skip)))
}

// MarshalText implements [encoding.TextMarshaler] with String.
func (c PayloadCursor) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler] with [ParsePayloadCursor].
func (c *PayloadCursor) UnmarshalText(text []byte) error {
	parsed, err := ParsePayloadCursor(string(text))
	if err != nil {
		return err
	}
	*c = parsed
	return nil
}

// Payloads lists the payloads of an id in one place of a queue, lowest score first. It fetches at
// most 1,000 payloads and 8 MiB at a time. If the place has no payload of the id, the list is
// empty.
//
// The list is not a snapshot. A payload that stays is listed once, with one exception: if payloads
// with the same score are added or removed meanwhile, it may be listed twice or not at all. Errors
// are those of [Inspector.Find], and [ErrInvalidOptions] for an unknown Place or a negative Limit.
func (i *Inspector) Payloads(ctx context.Context, queue, id string, o PayloadOptions) iter.Seq2[StoredPayload, error] {
	return func(yield func(StoredPayload, error) bool) {
		if o.Place > PlaceDead || o.Limit < 0 {
			yield(StoredPayload{}, fmt.Errorf(
				"%w: %d payloads of %v; give 0 or more, 0 means no limit, "+
					"and one of the places queued, claimed and dead",
				ErrInvalidOptions, o.Limit, o.Place))
			return
		}

		rules := i.ruler(queue)
		at, left := ports.PayloadCursor{
			Place: ports.Place(o.Place),
			Score: o.After.score,
			Skip:  o.After.skip,
		}, o.Limit
		for {
			r := ports.FindRequest{
				Queue:    queue,
				ID:       id,
				Payloads: core.MaxTurnPayloads,
				After:    &at,
				MaxCount: -1,
			}
			if o.Limit > 0 {
				r.Payloads = left
			}

			found, err := ask(i, func(s Store) (ports.Found, error) { return s.Find(ctx, r) })
			if err != nil {
				yield(StoredPayload{}, err)
				return
			}

			page := payloadsIn(&found, at.Place)
			merge, err := rules.rule(ctx, page)
			if err != nil {
				yield(StoredPayload{}, err)
				return
			}

			for k := range page {
				at = at.Next(page[k : k+1])
				if !yield(StoredPayload{merge.Pushed(page[k]), PayloadCursor{at.Score, at.Skip}}, nil) {
					return
				}
			}

			left -= len(page)
			if len(found.Next) == 0 || len(page) == 0 || o.Limit > 0 && left <= 0 {
				return
			}
			at = found.Next[0]
		}
	}
}

// payloadsIn returns the payloads that were found in a place.
func payloadsIn(found *ports.Found, place ports.Place) []core.Payload {
	switch {
	case place == ports.PlaceQueued && found.Queued != nil:
		return found.Queued.Payloads
	case place == ports.PlaceClaimed && found.Claim != nil:
		return found.Claim.Payloads
	case place == ports.PlaceDead && found.DeadLetter != nil:
		return found.DeadLetter.Payloads
	}
	return nil
}

// whole finds an id with all its payloads of one place, page by page. The other values of the place
// are those of the last page. steady reports whether the pages fit together: each has the same time
// (PerformAt or ChangedAt), and together they have as many payloads as the first page counted.
// Later pages count no payloads. So changes between the pages stay unnoticed if they change neither
// the time nor, in total, the number of payloads.
func (i *Inspector) whole(
	ctx context.Context,
	queue, id string,
	place ports.Place,
) (found ports.Found, steady bool, err error) {
	r := ports.FindRequest{
		Queue:    queue,
		ID:       id,
		Payloads: core.MaxTurnPayloads,
		After:    &ports.PayloadCursor{Place: place},
	}
	var all []core.Payload
	var first core.Instant
	var total int

	for steady = true; ; {
		if found, err = persist(ctx, i, func(s Store) (ports.Found, error) { return s.Find(ctx, r) }); err != nil {
			return ports.Found{}, false, err
		}

		var now core.Instant
		var count *int
		var payloads *[]core.Payload
		switch {
		case place == ports.PlaceQueued && found.Queued != nil:
			now, count, payloads = found.Queued.PerformAt, &found.Queued.Count, &found.Queued.Payloads
		case place == ports.PlaceDead && found.DeadLetter != nil:
			now, count, payloads = found.DeadLetter.ChangedAt, &found.DeadLetter.Count, &found.DeadLetter.Payloads
		default:
			return found, true, nil
		}

		if r.MaxCount == 0 {
			first, total = now, *count
		}
		*count = total

		last := len(found.Next) == 0 || len(*payloads) == 0
		all, steady = append(all, *payloads...), steady && now == first
		if last {
			*payloads = all
			return found, steady && len(all) == total, nil
		}

		r.After, r.MaxCount = &found.Next[0], -1
	}
}

// mostRereads is how often a dead letter is read if it changes while its pages are read.
const mostRereads = 10

// wholeLetter finds the dead letter of an id with all its payloads. A dead letter that changes
// between the pages is read again, at most mostRereads times in total. After that it is returned
// with the payloads of the last read pages.
func (i *Inspector) wholeLetter(ctx context.Context, queue, id string) (found ports.Found, err error) {
	for range mostRereads {
		var steady bool
		if found, steady, err = i.whole(ctx, queue, id, ports.PlaceDead); err != nil || steady {
			break
		}
	}
	return found, err
}
