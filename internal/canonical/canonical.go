// Package canonical puts JSON into the one form in which equal values have equal bytes, whatever
// language has written them: that of RFC 8785.
//
// Members of objects are in the order of their names as UTF-16, there is no white space, texts have
// only the escapes that they need, and numbers are written as JavaScript writes them. JSON with two
// readings has no such form and is refused: numbers that are not exact as a double, members that an
// object has twice, and texts that are not Unicode (docs/rules.md 13).
package canonical

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Errors of JSON without a canonical form. Each is returned wrapped, with the details.
var (
	// ErrSyntax reports bytes that are not one JSON value, or one that is nested too deeply.
	ErrSyntax = errors.New("not JSON")
	// ErrNumber reports a number that a double does not hold exactly.
	ErrNumber = errors.New("inexact number")
	// ErrMember reports an object that has a member twice.
	ErrMember = errors.New("repeated member")
	// ErrText reports bytes that are not UTF-8, or half of a surrogate pair.
	ErrText = errors.New("not Unicode")
)

// JSON returns a JSON value in its canonical form, as new bytes. Its work and its memory are
// proportional to the size of data, however the value is nested.
func JSON(data []byte) ([]byte, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%w: the JSON is not UTF-8; encode it as UTF-8, and bytes that are no text as Base64", ErrText)
	}
	if err := wellFormed(data); err != nil {
		return nil, err
	}

	var all pieces
	r := reader{data: data}
	if err := r.value(&all); err != nil {
		return nil, err
	}
	return all.appendTo(make([]byte, 0, len(data))), nil
}

// wellFormed returns an error unless data is one JSON value.
func wellFormed(data []byte) error {
	if json.Valid(data) {
		return nil
	}

	var into json.RawMessage
	err := json.Unmarshal(data, &into)
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) && len(bytes.TrimSpace(data)) > 0 {
		return fmt.Errorf("%w: %w, at byte %d; give one JSON value", ErrSyntax, err, syntax.Offset)
	}
	return fmt.Errorf("%w: it is empty; give one JSON value", ErrSyntax)
}

// pieces are a JSON value in its canonical form: text, and objects whose members are in their order.
// Lists and scalars are text, so that a list of many numbers takes no more memory than its text.
type pieces []piece

// piece is text, or the members of an object, which are then not empty.
type piece struct {
	text    []byte
	members []member
}

type member struct {
	// name is the name of the member, and quoted the same in quotes.
	name   string
	quoted []byte
	value  pieces
}

// add appends text.
func (p *pieces) add(text ...byte) {
	if n := len(*p); n > 0 && (*p)[n-1].members == nil {
		(*p)[n-1].text = append((*p)[n-1].text, text...)
		return
	}
	*p = append(*p, piece{text: text[:len(text):len(text)]}) // not to append to the data that was read
}

func (p pieces) appendTo(to []byte) []byte {
	for i := range p {
		if p[i].members == nil {
			to = append(to, p[i].text...)
			continue
		}

		to = append(to, '{')
		for at := range p[i].members {
			m := &p[i].members[at]
			if at > 0 {
				to = append(to, ',')
			}
			to = append(to, m.quoted...)
			to = append(to, ':')
			to = m.value.appendTo(to)
		}
		to = append(to, '}')
	}
	return to
}

// reader reads well-formed JSON, so it checks no syntax.
type reader struct {
	data []byte
	at   int
}

// next moves to the next character that is no white space, and returns it.
func (r *reader) next() byte {
	for {
		switch c := r.data[r.at]; c {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return c
		}
	}
}

// value reads a value, and appends it in its canonical form.
func (r *reader) value(to *pieces) (err error) {
	var scalar []byte
	switch r.next() {
	case '{':
		return r.object(to)
	case '[':
		return r.list(to)
	case '"':
		scalar, _, err = r.text()
	case 't', 'f', 'n':
		scalar = r.until(",]} \t\n\r")
	default:
		scalar, err = number(r.until(",]} \t\n\r"))
	}

	if err == nil {
		to.add(scalar...)
	}
	return err
}

// until returns the bytes before the next character of a set, or before the end.
func (r *reader) until(set string) []byte {
	from := r.at
	if n := bytes.IndexAny(r.data[from:], set); n >= 0 {
		r.at = from + n
	} else {
		r.at = len(r.data)
	}
	return r.data[from:r.at]
}

// list reads a list, from its opening bracket to its closing one.
func (r *reader) list(to *pieces) error {
	for separator := byte('['); ; separator = ',' {
		r.at++ // the bracket or the comma
		to.add(separator)
		if separator != '[' || r.next() != ']' {
			if err := r.value(to); err != nil {
				return err
			}
		}
		if r.next() == ']' {
			r.at++
			to.add(']')
			return nil
		}
	}
}

// object reads an object, from its opening bracket to its closing one.
func (r *reader) object(to *pieces) (err error) {
	r.at++
	if r.next() == '}' {
		r.at++
		to.add('{', '}')
		return nil
	}

	var members []member
	for closed := false; !closed; r.at++ { // the comma, and at last the bracket
		var m member
		r.next()
		if m.quoted, m.name, err = r.text(); err != nil {
			return err
		}
		r.next()
		r.at++ // the colon
		if err := r.value(&m.value); err != nil {
			return err
		}
		members = append(members, m)
		closed = r.next() == '}'
	}

	slices.SortFunc(members, func(a, b member) int { return compareUTF16(a.name, b.name) })
	for i := 1; i < len(members); i++ {
		if name := members[i].name; name == members[i-1].name {
			return fmt.Errorf("%w: an object has the member %q twice; send each member once", ErrMember, shortened(name))
		}
	}
	*to = append(*to, piece{members: members})
	return nil
}

// text reads a text, and returns it in its canonical form with quotes, and as its characters.
func (r *reader) text() (quoted []byte, plain string, err error) {
	from := r.at
	escaped := false
	for r.at++; r.data[r.at] != '"'; r.at++ {
		if r.data[r.at] == '\\' {
			escaped = true
			r.at++
		}
	}
	r.at++

	quoted = r.data[from:r.at]
	if !escaped { // then it needs no escape either
		return quoted, string(quoted[1 : len(quoted)-1]), nil
	}

	if HalfSurrogate(quoted) {
		return nil, "", fmt.Errorf("%w: a text has half of a surrogate pair; send whole characters, and bytes that are "+
			"no text as Base64", ErrText)
	}
	if err := json.Unmarshal(quoted, &plain); err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	return appendQuoted(nil, plain), plain, nil
}

// appendQuoted appends a text with quotes and with the escapes that it needs.
func appendQuoted(to []byte, text string) []byte {
	const short = "\b\t\n\f\r\"\\"
	const letters = `btnfr"\`
	const hex = "0123456789abcdef"

	to = append(to, '"')
	for i := range len(text) {
		c := text[i]
		switch at := strings.IndexByte(short, c); {
		case at >= 0:
			to = append(to, '\\', letters[at])
		case c < ' ':
			to = append(to, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		default:
			to = append(to, c)
		}
	}
	return append(to, '"')
}

// number returns a number as JavaScript writes the double that is nearest to it. It refuses a
// number that is not equal to what it would return.
func number(text []byte) ([]byte, error) {
	double, err := strconv.ParseFloat(string(text), 64)
	if err != nil { // out of range
		return nil, fmt.Errorf("%w: %s is out of the range of a double; %s", ErrNumber, shortened(string(text)), numberCure)
	}
	if double == 0 {
		double = 0 // of -0, too
	}

	written := appendDouble(nil, double)
	if !equalDecimals(text, written) {
		return nil, fmt.Errorf("%w: %s would be read as %s by programs that read doubles, such as JavaScript; %s",
			ErrNumber, shortened(string(text)), written, numberCure)
	}
	return written, nil
}

const numberCure = `write it as a string, such as "12345678901234567890"`

// appendDouble appends a double as JavaScript writes it: with the fewest digits that distinguish it.
func appendDouble(to []byte, double float64) []byte {
	magnitude := max(double, -double)
	if double == 0 || magnitude >= 1e-6 && magnitude < 1e21 {
		return strconv.AppendFloat(to, double, 'f', -1, 64)
	}

	from := len(to)
	to = strconv.AppendFloat(to, double, 'e', -1, 64)
	if e := bytes.IndexByte(to[from:], 'e') + from; to[e+2] == '0' { // Go writes 1e-07
		to = slices.Delete(to, e+2, e+3)
	}
	return to
}

// equalDecimals reports whether two numbers are the same, digit by digit.
func equalDecimals(a, b []byte) bool {
	aDigits, aExponent, aOK := decimal(a)
	bDigits, bExponent, bOK := decimal(b)
	return aOK && bOK && bytes.Equal(aDigits, bDigits) && aExponent == bExponent
}

// decimal returns a number as its sign and its digits, without zeros at either end, and the power of
// ten of the last digit. ok is false if that power is too large for an int.
func decimal(text []byte) (digits []byte, exponent int, ok bool) {
	mantissa, power, scientific := bytes.Cut(text, []byte("e"))
	if !scientific {
		mantissa, power, scientific = bytes.Cut(text, []byte("E"))
	}
	unsigned, negative := bytes.CutPrefix(mantissa, []byte("-"))
	whole, fraction, _ := bytes.Cut(unsigned, []byte("."))

	significant := bytes.TrimLeft(slices.Concat(whole, fraction), "0")
	digits = bytes.TrimRight(significant, "0")
	if len(digits) == 0 {
		return nil, 0, true
	}

	exponent = len(significant) - len(digits) - len(fraction)
	if scientific {
		n, err := strconv.Atoi(string(power))
		if err != nil {
			return nil, 0, false
		}
		exponent += n
	}
	if negative {
		digits = append([]byte("-"), digits...)
	}
	return digits, exponent, true
}

// shortened returns a text for an error.
func shortened(text string) string {
	const most = 64
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
