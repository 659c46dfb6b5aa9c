// Package errorgroup names the groups of dead letters: similar errors have the same name. Its
// functions are pure.
package errorgroup

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/skeinq/skein/core"
)

// maxGroupText is the number of bytes of a text that are read.
const maxGroupText = 1 << 10

// groupSign stands in the name of a group for the parts that differ between similar errors.
const groupSign = '#'

// Of returns the group of an error: the name of its type, as %T prints it, and the first line of
// its text, in which # stands for numbers, long hexadecimal ones too, for quoted parts, and for
// paths and URLs. A type that many different errors have, such as that of [errors.New], is left
// out. The name is in the form that [core.GroupName] returns.
func Of(kind, text string) string {
	var n groupNamer
	if !saysNothing(kind) {
		n.size = copy(n.name[:], core.CutText(kind, core.MaxGroupBytes))
	}

	typed := n.size
	if typed > 0 {
		n.write(':')
		n.write(' ')
	}

	start := n.size
	n.add(text)

	// Without anything of the text, the name is the type alone, without its colon.
	kept := bytes.TrimRight(n.name[:n.size], " ")
	if len(kept) <= start {
		kept = n.name[:typed]
	}
	return core.GroupName(string(kept))
}

// OfPanic returns the group of a panic, given the name of the function that panicked, as a stack
// trace has it, without its arguments; "" if it is not known.
func OfPanic(function string) string {
	path, _, _ := strings.Cut(function, "[") // the types of a generic function may have paths too
	function = function[strings.LastIndexByte(path, '/')+1:]
	if function == "" {
		return "panic"
	}
	return core.GroupName("panic in " + function)
}

// saysNothing reports whether an error's type is too general to identify it.
func saysNothing(kind string) bool {
	switch kind {
	case "", "*errors.errorString", "*errors.joinError", "*fmt.wrapError", "*fmt.wrapErrors":
		return true
	}
	return false
}

// groupNamer makes the name of a group.
type groupNamer struct {
	name [core.MaxGroupBytes]byte
	size int
}

// write appends a character. It reports whether the name is full, so that the character does not
// fit. It appends no second sign or space in a row.
func (n *groupNamer) write(r rune) (full bool) {
	if n.size > 0 && (r == groupSign || r == ' ') && n.name[n.size-1] == byte(r) {
		return false
	}
	if n.size+utf8.RuneLen(r) > len(n.name) {
		return true
	}
	n.size += utf8.EncodeRune(n.name[n.size:], r)
	return false
}

// add appends the first line of a text.
func (n *groupNamer) add(text string) {
	whole := len(text)
	text = core.CutText(text, maxGroupText)
	cut := len(text) < whole
	text = strings.TrimLeftFunc(text, unicode.IsSpace)
	if end := strings.IndexAny(text, "\r\n"); end >= 0 {
		text, cut = text[:end], false
	}

	before := rune(' ')
	for i := 0; i < len(text); {
		if skip := variable(text[i:], before, cut); skip > 0 {
			if n.write(groupSign) {
				return
			}
			before, _ = utf8.DecodeLastRuneInString(text[:i+skip])
			i += skip
			continue
		}

		r, size := utf8.DecodeRuneInString(text[i:])
		before = r
		i += size

		switch {
		case r == utf8.RuneError:
			continue
		case unicode.IsSpace(r) || unicode.IsControl(r):
			r = ' '
		}
		if n.write(r) {
			return
		}
	}
}

// variable returns the length of the part at the beginning of a text that differs between similar
// errors: a quoted part, a path, or a number. It returns 0 if the text begins with no such part.
// before is the character before the text, a space for the beginning, and cut reports whether more
// of the text is cut off.
func variable(text string, before rune, cut bool) int {
	if c := text[0]; c == '"' || c == '`' || c == '\'' {
		return quoted(text, before, cut)
	}
	if isWordRune(before) {
		return number(text)
	}
	if n := path(text); n > 0 {
		return n
	}
	if n := hex(text); n > 0 {
		return n
	}
	return number(text)
}

// quoted returns the length of the quoted part that a text begins with. A ' within a word is an
// apostrophe. If more of the text is cut off, a quoted part, such as a payload, may end behind the
// cut.
func quoted(text string, before rune, cut bool) int {
	quote := text[0]
	if quote == '\'' && isWordRune(before) {
		return 0
	}

	for i := 1; i < len(text); i++ {
		if text[i] == '\\' && quote == '"' {
			i++
			continue
		}
		if text[i] == quote && (quote != '\'' || i+1 == len(text) || !isWordByte(text[i+1])) {
			return i + 1
		}
	}

	if cut && quote != '\'' {
		return len(text)
	}
	return 0
}

// path returns the length of the path or URL that a text begins with: /a, ./a, ~/a, c:\a, s://a,
// or a word with two separators. A word with one separator is kept, as in i/o.
func path(text string) int {
	end := strings.IndexAny(text, " \t\"'`<>()[]{}|,;")
	if end < 0 {
		end = len(text)
	}
	token := strings.TrimRight(text[:end], ".:!?")
	separators := strings.Count(token, "/") + strings.Count(token, `\`)
	rooted := strings.HasPrefix(token, "/") || strings.HasPrefix(token, "./") ||
		strings.HasPrefix(token, "~/") || strings.Contains(token, `:\`)
	if separators >= 2 || rooted && len(token) > 1 {
		return len(token)
	}
	return 0
}

// minHex is the smallest length of a word of hexadecimal digits that counts as a number. The word
// must have a decimal digit too.
const minHex = 8

// hex returns the length of the hexadecimal number that a text begins with: 0x and digits, or at
// least minHex digits, one of them decimal. The digits may be in groups, as in a UUID.
func hex(text string) int {
	prefixed := len(text) > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') && isHex(text[2])
	end, digits, decimal := 0, 0, prefixed
	if prefixed {
		end = 2
	}

	for ; end < len(text); end++ {
		c := text[end]
		if c == '-' && end+1 < len(text) && isHex(text[end+1]) {
			continue
		}
		if !isHex(c) {
			break
		}
		digits++
		decimal = decimal || isDigit(c)
	}

	if !decimal || end < len(text) && isWordByte(text[end]) || digits < minHex && !prefixed {
		return 0
	}
	return end
}

// number returns the length of the decimal number that a text begins with, which may be one of
// several parts, such as a time or an address.
func number(text string) int {
	end := 0
	for ; end < len(text); end++ {
		if isDigit(text[end]) {
			continue
		}
		if end == 0 || end+1 == len(text) || !strings.ContainsRune(".,:_-", rune(text[end])) || !isDigit(text[end+1]) {
			break
		}
	}
	return end
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func isWordByte(c byte) bool {
	return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c >= utf8.RuneSelf
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// Text returns the part of a group's name that [Of] has made of the text, without the type. cut
// reports whether the name is so long that the end of the text may be missing.
func Text(name string) (text string, cut bool) {
	text, cut = name, len(name) > core.MaxGroupBytes-utf8.UTFMax
	if kind, rest, found := strings.Cut(name, ": "); found && rest != "" && isType(kind) {
		text = rest
	}
	return text, cut
}

// isType reports whether a text is the name of a type of another package, as %T prints it.
func isType(kind string) bool {
	named := strings.TrimLeft(kind, "*")
	pkg, _, qualified := strings.Cut(named, ".")
	return qualified && pkg != "" && !strings.ContainsFunc(named, func(r rune) bool {
		return !isWordRune(r) && !strings.ContainsRune(".[]*,/-", r)
	})
}
