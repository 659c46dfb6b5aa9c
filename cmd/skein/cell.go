package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"github.com/skeinq/skein/internal/figures"
)

// dueTime is when a job may run. A held job has a time that never comes, which only programs see.
type dueTime struct {
	at   time.Time
	held bool
}

// nextTime is when the next tick of a schedule is. People see instead that the schedule is paused,
// or for how long the tick has been due.
type nextTime struct {
	at     time.Time
	paused bool
	late   time.Duration
}

// zoned is a time that is shown in its own time zone.
type zoned struct{ time.Time }

// chosenBy is what has chosen the entries of an action. Programs get the filter alone, since the
// prefix and the group are fields of their own.
type chosenBy struct{ all, filter string }

// forPeople returns a value as a table's cell shows it.
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
	case zoned:
		return v.Format("Mon 2006-01-02 15:04:05 MST")
	case dueTime:
		if v.held {
			return figures.Never
		}
		return forPeople(v.at)
	case chosenBy:
		return quoted(v.all)
	case nextTime:
		switch {
		case v.paused:
			return "paused"
		case v.late > 0:
			return "has been due for " + figures.Span(v.late)
		}
		return forPeople(v.at)
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

// number formats a number without an exponent, unless the number is very large or very small.
func number(v float64) string {
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e18) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// inCell returns a nested value as JSON for a cell, or - if none is true.
func inCell(v any, none bool) string {
	text, err := json.Marshal(v)
	if none || err != nil {
		return "-"
	}
	return escaped(string(text))
}

// span formats a duration, rounded to the precision that people need.
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

// quoted returns a text unchanged, or quoted in Go's syntax if the text could be misread in a
// table.
func quoted(text string) string {
	if text == "" {
		return "-"
	}
	if text == "-" || text[0] == '"' || text != strings.TrimSpace(text) || strings.ContainsFunc(text, odd) {
		return strconv.QuoteToGraphic(text)
	}
	return text
}

// odd reports whether a terminal does not show a character as it is: control characters, those that
// change the direction of text, and marks that are drawn over the previous character.
func odd(r rune) bool {
	return !unicode.IsGraphic(r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Me, r) || r == utf8.RuneError ||
		unicode.IsSpace(r) && r != ' '
}

// escaped returns a text with its odd characters escaped, without quotes.
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

// multiline returns an error text for a terminal. It keeps line ends and escapes other odd
// characters.
func multiline(text string) string {
	lines := strings.Split(text, "\n")
	for at := range lines {
		lines[at] = escaped(strings.ReplaceAll(lines[at], "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// columnsOfText returns how many columns of a terminal a text takes: two for wide characters in
// Unicode's terms, such as those of East Asian scripts and emoji, and none for marks that are drawn
// over the previous character.
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
