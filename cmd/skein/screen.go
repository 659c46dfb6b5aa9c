package main

import (
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// screen writes to a terminal. It escapes control characters, and characters that reverse or hide
// text, as Go does, so that the terminal shows them and does not obey them. It is not used for
// pipes and files, which get everything unchanged.
type screen struct {
	to io.Writer
	// begun is the beginning of a character whose remaining bytes have not been written yet.
	begun []byte
}

// Write implements io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	text := append(s.begun, p...)
	var b strings.Builder
	for len(text) > 0 && utf8.FullRune(text) {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			b.WriteString(`\x` + strconv.FormatUint(uint64(text[0]), 16))
		case r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp):
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteRune(r)
		}
		text = text[n:]
	}

	s.begun = append([]byte(nil), text...)
	if _, err := io.WriteString(s.to, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}
