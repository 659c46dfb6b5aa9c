package skein

import (
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/guard"
)

// Codec encodes payloads as bytes and decodes them. It must be safe for concurrent use.
//
// Encode must be deterministic, because a payload's bytes are its identity. If Encode returns
// different bytes for equal payloads, they don't merge, and the handler gets both. Beware of maps
// in random order, of times with a monotonic clock, and of encoders that add ids.
//
// Decode may keep the bytes and must not change them. If Decode returns an error or panics, the
// queue's [UndecodableRule] applies.
type Codec[T any] interface {
	// Encode returns the bytes to store. If it returns an error or panics, the push is refused with
	// [ErrInvalidPayload].
	Encode(payload T) ([]byte, error)
	// Decode returns the payload that was encoded as data.
	Decode(data []byte) (T, error)
}

// RawCodec is the [Codec] of queues of []byte: payloads are stored as they are. Neither the pusher
// nor a handler may change the bytes after the push. Its zero value is ready.
type RawCodec struct{}

// Encode implements [Codec].
func (RawCodec) Encode(payload []byte) ([]byte, error) { return payload, nil }

// Decode implements [Codec].
func (RawCodec) Decode(data []byte) ([]byte, error) { return data, nil }

// ErrorCodec changes how error texts are stored, for example encrypted or compressed. Both
// functions must be safe for concurrent use. If a function is nil, panics or calls
// [runtime.Goexit], the text is left as it is. A panic of Encode is logged and appended to the
// stored text.
type ErrorCodec struct {
	// Encode returns the text to store: UTF-8, at most 3 KiB. If it returns more, it is called
	// again with half of the text.
	Encode func(text string) string
	// Decode is the inverse of Encode. It is also called with texts that Encode did not make, such
	// as those of recoveries and operators, and with texts of older failures that were truncated. It
	// must return them unchanged.
	Decode func(stored string) string
}

// maxStoredText is the maximum size in bytes of the text that is stored of an error. It leaves room
// for the texts of the job's earlier failures.
const maxStoredText = core.MaxErrorBytes * 3 / 4

// maxErrorText is the maximum number of bytes of an error's text that Encode is called with.
const maxErrorText = 64 << 10

// encode returns the text to store. If Encode panics, err is the panic, and stored is the text as
// it is with the panic appended.
func (c ErrorCodec) encode(text string) (stored string, err error) {
	if c.Encode == nil {
		return storedText(text), nil
	}
	err = guard.Goroutine(func() error {
		stored = c.shortened(text)
		return nil
	})
	if err != nil {
		const reserved = 1 << 10 // for the panic and the beginning of its stack
		stored = storedText(text[:min(len(text), maxStoredText-reserved)] +
			"\n\nErrorCodec.Encode: " + err.Error())
	}
	return stored, err
}

// storedText returns a text in the form in which stores keep it, truncated to maxStoredText.
func storedText(text string) string { return core.CutText(core.Text(text), maxStoredText) }

func (c ErrorCodec) shortened(text string) string {
	for text = text[:min(len(text), maxErrorText)]; ; text = text[:len(text)/2] {
		stored := c.Encode(strings.ToValidUTF8(text, ""))
		if len(stored) <= maxStoredText || text == "" {
			return storedText(stored)
		}
	}
}

func (c ErrorCodec) decode(stored string) string {
	if c.Decode == nil {
		return stored
	}
	text := stored
	if guard.Goroutine(func() error { text = c.Decode(stored); return nil }) != nil {
		return stored
	}
	return text
}
