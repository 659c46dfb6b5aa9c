package inspect

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// SortBy is the order of a list.
type SortBy uint8

const (
	// ByTime lists jobs by (PerformAt, id), claimed jobs by (Since, id) and dead letters by
	// (ChangedAt, id). Every list supports it.
	ByTime SortBy = SortBy(ports.ByTime)
	// ByID lists by id: dead letters, and the queued jobs of a queue that was declared with
	// IndexIDs.
	ByID SortBy = SortBy(ports.ByID)
	// RetryingByTime lists the jobs with a failure by (PerformAt, id).
	RetryingByTime SortBy = SortBy(ports.RetryingByTime)
	// RetryingByID lists the jobs with a failure by id.
	RetryingByID SortBy = SortBy(ports.RetryingByID)
	// RetryingByCount lists the jobs with a failure by (Retries, id).
	RetryingByCount SortBy = SortBy(ports.RetryingByCount)
)

// String returns the name of the constant.
func (s SortBy) String() string { return ports.SortBy(s).String() }

// ErrInvalidCursor reports a text that is not the text of a [Cursor] or a [PayloadCursor].
var ErrInvalidCursor = errors.New("invalid cursor")

// Cursor is a position in a list of an [Inspector]: directly behind the element whose field it is.
// A list with the Cursor as ListOptions.After starts there, in either direction, even if that
// element is gone. It is valid only for lists of the same queue in the same order.
//
// Its text has only letters, digits, - and _, so it needs no escaping in a URL or in JSON. The zero
// value is the start of a list, and its text is empty. Cursors are comparable.
type Cursor struct {
	key int64
	id  string
}

// ParseCursor returns the cursor whose String is text. It returns [ErrInvalidCursor] if text is not
// one. It doesn't check whether the element exists.
func ParseCursor(text string) (Cursor, error) {
	if text == "" {
		return Cursor{}, nil
	}
	c, err := decodeCursor(text)
	if err != nil {
		// Not %w: a damaged cursor may contain an invalid id, which is not the id of a request.
		return Cursor{}, fmt.Errorf("%w: %v; use a cursor that a list returned, unchanged", ErrInvalidCursor, err)
	}
	return c, nil
}

func decodeCursor(text string) (Cursor, error) {
	if len(text) > base64.RawURLEncoding.EncodedLen(binary.MaxVarintLen64+core.MaxIDBytes) {
		return Cursor{}, errors.New("it is too long")
	}

	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return Cursor{}, err
	}

	key, n := binary.Uvarint(data)
	if n <= 0 || key > uint64(core.MaxInstant) {
		return Cursor{}, errors.New("its place is out of range")
	}

	c := Cursor{key: int64(key), id: string(data[n:])}
	if err := core.ValidateID(c.id); err != nil {
		return Cursor{}, err
	}
	if c.String() != text {
		return Cursor{}, errors.New("it is written in an unusual way")
	}
	return c, nil
}

// String returns the cursor as text for URLs; see [ParseCursor].
func (c Cursor) String() string {
	if c == (Cursor{}) {
		return ""
	}
	data := binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64+len(c.id)), uint64(c.key))
	return base64.RawURLEncoding.EncodeToString(append(data, c.id...))
}

// MarshalText implements [encoding.TextMarshaler] with String.
func (c Cursor) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler] with [ParseCursor].
func (c *Cursor) UnmarshalText(text []byte) error {
	parsed, err := ParseCursor(string(text))
	if err != nil {
		return err
	}
	*c = parsed
	return nil
}

// port returns the cursor in the form of package ports.
func (c Cursor) port() ports.Cursor { return ports.Cursor{Key: c.key, ID: c.id} }
