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

// JSON returns a JSON value in its canonical form. The result may share memory with data.
func JSON(data []byte) ([]byte, error) {
	if !utf8.Valid(data) {
		return nil, fmt.Errorf("%w: the JSON is not UTF-8; encode it as UTF-8, and bytes that are no text as Base64", ErrText)
	}
	if err := wellFormed(data); err != nil {
		return nil, err
	}

	r := reader{data: data}
	v, err := r.value()
	if err != nil {
		return nil, err
	}
	return v.appendTo(make([]byte, 0, len(data))), nil
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

// value is a JSON value in its canonical form: a scalar, or a list or an object of such values.
type value struct {
	// open is [ or {, or 0 for a scalar.
	open byte
	// scalar is the text of a scalar.
	scalar []byte
	// members are the values of a list, or the members of an object in their order.
	members []member
}

type member struct {
	// name is the name of an object's member, and quoted the same in quotes.
	name   string
	quoted []byte
	value  value
}

func (v *value) appendTo(to []byte) []byte {
	if v.open == 0 {
		return append(to, v.scalar...)
	}

	to = append(to, v.open)
	for i := range v.members {
		if i > 0 {
			to = append(to, ',')
		}
		if v.open == '{' {
			to = append(to, v.members[i].quoted...)
			to = append(to, ':')
		}
		to = v.members[i].value.appendTo(to)
	}
	return append(to, v.open+2) // the closing bracket comes two characters later
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

func (r *reader) value() (v value, err error) {
	switch c := r.next(); c {
	case '{', '[':
		return r.composite(c)
	case '"':
		v.scalar, _, err = r.text()
	case 't', 'f', 'n':
		v.scalar = r.until(",]} \t\n\r")
	default:
		v.scalar, err = number(r.until(",]} \t\n\r"))
	}
	return v, err
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

// composite reads an object or a list, from its opening bracket to its closing one.
func (r *reader) composite(open byte) (v value, err error) {
	v.open = open
	r.at++

	for r.next() != open+2 {
		var m member
		if r.data[r.at] == ',' {
			r.at++
			r.next()
		}

		if open == '{' {
			if m.quoted, m.name, err = r.text(); err != nil {
				return v, err
			}
			r.next()
			r.at++ // the colon
		}

		if m.value, err = r.value(); err != nil {
			return v, err
		}
		v.members = append(v.members, m)
	}
	r.at++

	if open == '{' {
		err = v.sort()
	}
	return v, err
}

// sort puts the members of an object into their order. It refuses a repeated one.
func (v *value) sort() error {
	slices.SortFunc(v.members, func(a, b member) int { return compareUTF16(a.name, b.name) })
	for i := 1; i < len(v.members); i++ {
		if name := v.members[i].name; name == v.members[i-1].name {
			return fmt.Errorf("%w: an object has the member %q twice; send each member once", ErrMember, shortened(name))
		}
	}
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
