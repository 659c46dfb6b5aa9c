package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// octets adds bytes: as text if they are UTF-8, and else in Base64 under a name that shows it.
func (o *object) octets(name string, data []byte) {
	text := string(data)
	if !utf8.Valid(data) {
		name, text = name+"_base64", base64.StdEncoding.EncodeToString(data)
	}
	o.heads = append(o.heads, head{name: name})
	o.values = append(o.values, text)
}

// forPeople is a value in a table's cell.
func forPeople(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case string:
		return quoted(v)
	case []string:
		return quoted(strings.Join(v, ", "))
	case time.Time:
		if v.IsZero() {
			return "-"
		}
		return v.UTC().Format("2006-01-02T15:04:05.000Z")
	case time.Duration:
		return span(v)
	case float64:
		return number(v)
	case *object:
		return inCell(v, v == nil)
	case []*object:
		return inCell(v, len(v) == 0)
	}
	return fmt.Sprint(v)
}

// number is a number without an exponent, unless it would be longer than one wants to read.
func number(v float64) string {
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e18) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// inCell is something nested in a cell.
func inCell(v any, none bool) string {
	text, err := json.Marshal(v)
	if none || err != nil {
		return "-"
	}
	return escaped(string(text))
}

// span is a duration with as many digits as one wants to read.
func span(d time.Duration) string {
	switch {
	case d == 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Microsecond * 100).String()
	case d < time.Minute:
		return d.Round(time.Millisecond * 100).String()
	}
	return d.Round(time.Second).String()
}

// quoted is a text as it is, or quoted as Go does where a reader might take it for something else.
func quoted(text string) string {
	if text == "" {
		return "-"
	}
	if text == "-" || text[0] == '"' || text != strings.TrimSpace(text) || strings.ContainsFunc(text, odd) {
		return strconv.QuoteToGraphic(text)
	}
	return text
}

// odd matches characters that a terminal does not show as they are: control characters, those that
// change the direction of text, and those that are put on the character before.
func odd(r rune) bool {
	return !unicode.IsGraphic(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r) || r == utf8.RuneError ||
		unicode.IsSpace(r) && r != ' '
}

// escaped is a text whose odd characters are escaped, without quotes.
func escaped(text string) string {
	if !strings.ContainsFunc(text, odd) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if odd(r) {
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// multiline is an error text for a terminal, whose line ends stay.
func multiline(text string) string {
	lines := strings.Split(text, "\n")
	for at := range lines {
		lines[at] = escaped(strings.ReplaceAll(lines[at], "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// columnsOfText returns how many columns of a terminal a text takes: two for wide characters in
// Unicode's terms, such as those of East Asian scripts and emoji, and none for marks that are
// drawn over the character before.
func columnsOfText(text string) (n int) {
	for _, r := range text {
		n += columnsOfRune(r)
	}
	return n
}

func columnsOfRune(r rune) int {
	switch kind := width.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case kind == width.EastAsianWide, kind == width.EastAsianFullwidth:
		return 2
	}
	return 1
}
