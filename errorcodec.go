package skein

import (
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
)

// ErrorCodec changes how error texts are stored, such as compressed. Both
// functions must be safe for concurrent use; nil leaves a text as it is, and so
// does a panic or a runtime.Goexit, which is noted in the text and logged if it was Encode's.
type ErrorCodec struct {
	// Encode makes UTF-8 text of at most 4 KiB of a longer one. What it makes
	// longer than that is made again of half the error's text.
	Encode func(text string) string
	// Decode is its inverse. It also gets texts that Encode did not make, of
	// recoveries and operators, and leaves these as they are.
	Decode func(stored string) string
}

// maxErrorText is how much of an error's text an Encode gets.
const maxErrorText = 64 << 10

// encode is the text to store. If Encode panics, that is the error, and the text is
// stored as it is, with the panic.
func (c ErrorCodec) encode(text string) (stored string, err error) {
	if c.Encode == nil {
		return core.ErrorText(text), nil
	}
	err = engine.GuardGoroutine(func() error {
		stored = c.shortened(text)
		return nil
	})
	if err != nil {
		const reserved = 1 << 10 // for the panic and the beginning of its stack
		stored = core.ErrorText(text[:min(len(text), core.MaxErrorBytes-reserved)] + "\n\nErrorCodec.Encode: " + err.Error())
	}
	return stored, err
}

func (c ErrorCodec) shortened(text string) string {
	for text = text[:min(len(text), maxErrorText)]; ; text = text[:len(text)/2] {
		stored := c.Encode(strings.ToValidUTF8(text, ""))
		if len(stored) <= core.MaxErrorBytes || text == "" {
			return core.ErrorText(stored)
		}
	}
}

func (c ErrorCodec) decode(stored string) string {
	if c.Decode == nil {
		return stored
	}
	text := stored
	if engine.GuardGoroutine(func() error { text = c.Decode(stored); return nil }) != nil {
		return stored
	}
	return text
}
