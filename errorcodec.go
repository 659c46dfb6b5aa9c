package skein

import (
	"strings"

	"github.com/skeinq/skein/core"
)

// ErrorCodec changes how error texts are stored, such as compressed. Both
// functions must be safe for concurrent use; nil leaves a text as it is.
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

func (c ErrorCodec) encode(text string) string {
	if c.Encode == nil {
		return core.ErrorText(text)
	}
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
	return c.Decode(stored)
}
