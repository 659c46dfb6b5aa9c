package canonical

import (
	"cmp"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// compareUTF16 compares two texts by their UTF-16 code units. That differs from the order of their
// bytes for characters above U+FFFF, whose first unit is below U+E000.
func compareUTF16(a, b string) int {
	for a != "" && b != "" {
		ra, na := utf8.DecodeRuneInString(a)
		rb, nb := utf8.DecodeRuneInString(b)
		if ra != rb {
			return cmp.Or(cmp.Compare(firstUnit(ra), firstUnit(rb)), cmp.Compare(ra, rb))
		}
		a, b = a[na:], b[nb:]
	}
	return cmp.Compare(len(a), len(b))
}

// firstUnit returns the first UTF-16 code unit of a character.
func firstUnit(r rune) rune {
	if high, _ := utf16.EncodeRune(r); high != utf8.RuneError {
		return high
	}
	return r
}

// HalfSurrogate reports whether JSON has an escape \uD800 to \uDFFF that is not part of a pair.
// Package json would read it as another character.
func HalfSurrogate(data []byte) bool {
	for at := 0; at < len(data); at++ {
		if data[at] != '\\' {
			continue
		}

		first, escaped := escapedAt(data, at)
		if !escaped {
			at++ // the escaped character may be a backslash
			continue
		}
		at += escapeLen - 1
		if !utf16.IsSurrogate(first) {
			continue
		}

		second, escaped := escapedAt(data, at+1)
		if !escaped || utf16.DecodeRune(first, second) == utf8.RuneError {
			return true
		}
		at += escapeLen
	}

	return false
}

// escapeLen is the length of \uXXXX.
const escapeLen = 6

// escapedAt returns the code unit of the escape at a place.
func escapedAt(data []byte, at int) (rune, bool) {
	if len(data) < at+escapeLen || data[at] != '\\' || data[at+1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(data[at+2:at+escapeLen]), 16, 16)
	return rune(unit), err == nil
}
