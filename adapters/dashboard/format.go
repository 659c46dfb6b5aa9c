package dashboard

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/skeinq/skein/internal/figures"
)

// funcs are the templates' functions for values.
var funcs = template.FuncMap{
	"asset":   asset,
	"count":   figures.Count,
	"exact":   figures.Exact,
	"bytes":   figures.Bytes,
	"span":    func(d time.Duration) string { return figures.Span(coarse(d)) },
	"rate":    rate,
	"rough":   figures.Rough,
	"percent": percent,
	"head8":   func(name string) string { return nameHead(name) },
	"tail8":   func(name string) string { return name[len(nameHead(name)):] },
	"shown":   shown,
	"line":    line,
	"score":   scoreText,
	"int64":   func(n int) int64 { return int64(n) },
	"num":     func(n int) string { return figures.Exact(int64(n)) },
	"bound":   bound,
	"href":    href,
	"heads":   heads,
	"add":     func(a, b int) int { return a + b },
	// the map has room for labels on the left
	"mapWidth":   func(d drawing) int { return d.Width + mapLeft + 1 },
	"mapHeight":  func(d drawing) int { return d.Height + 2 },
	"tickKeys":   tickKeys,
	"shardTable": shardTableOf,
	"linked":     func(linked bool, queue, id string) linkedID { return linkedID{linked, queue, id} },
	"button": func(b *idBody, op, text, class string) button {
		return button{b.Queue, b.ID, op, text, class, b.May.To(op)}
	},
	"primary": func(is bool) string { return map[bool]string{true: "p"}[is] },
	"payloadsOf": func(b *idBody, place string) payloadList {
		return payloadList{
			b.Queue,
			b.ID,
			b.Pages[place],
			place != "claimed" && b.Editable && b.May.To("edit"),
		}
	},
	"claims": func(b *busyBody, rows []busyRow, label string) claimTable {
		return claimTable{b, rows, label, len(rows) > 0 && rows[0].Taker != "", timeScale()}
	},
	"badge":   func(class, sign, word string) badge { return badge{class, sign, word} },
	"figList": func(label string, figs []fig) figList { return figList{label, figs} },
	"figure":  func(n int64, href string) linkedFigure { return linkedFigure{n, href} },
	"held":    func(c counted, n int64) held { return held{c.Queue, n} },
	"zero":    func(n float64) bool { return n == 0 },
	"text":    readable,
	"rfc3339": func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
	"list":    func(parts ...any) []any { return parts },
	"when":    func(at, now time.Time) when { return when{at, now} },
	"plural": func(n int64, one, many string) string {
		if n == 1 {
			return one
		}
		return many
	},
}

// coarse rounds a duration to a readable precision.
func coarse(d time.Duration) time.Duration {
	if d >= time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(time.Microsecond)
}

// when is a time beside now, to be shown as how long ago it was or in how long it will be.
type when struct{ At, Now time.Time }

// ISO returns the time for programs.
func (w when) ISO() string { return w.At.UTC().Format("2006-01-02T15:04:05.000Z") }

// UTC returns the time for people.
func (w when) UTC() string { return w.At.UTC().Format("2006-01-02 15:04:05 UTC") }

// Clock returns the time of the day, with the day unless that is today's.
func (w when) Clock() string {
	at, now := w.At.UTC(), w.Now.UTC()
	if at.Truncate(24 * time.Hour).Equal(now.Truncate(24 * time.Hour)) {
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04")
}

// Text returns the time as a span before or after now, such as "5 s ago" or "in 5 s".
func (w when) Text() string {
	d := w.Now.Sub(w.At)
	if d < 0 {
		return "in " + figures.Span(seconds(-d))
	}
	return figures.Span(seconds(d)) + " ago"
}

// Soon is Text of a time to come, and "now" once it has come.
func (w when) Soon() string {
	if seconds(w.At.Sub(w.Now)) <= 0 {
		return "now"
	}
	return w.Text()
}

// Ahead reports whether the time is after now.
func (w when) Ahead() bool { return w.At.After(w.Now) }

// For returns the span from the time until now.
func (w when) For() string { return figures.Span(seconds(max(0, w.Now.Sub(w.At)))) }

// nameTail is the number of last characters of a long name that are never cut, since names often
// differ there. Shorter names than nameWhole are never cut.
const nameTail, nameWhole = 8, 16

// nameHead returns the part of a name that may be cut where there is no room: all but the last
// characters, or nothing of a short name.
func nameHead(name string) string {
	n := utf8.RuneCountInString(name)
	if n < nameWhole {
		return ""
	}
	at := 0
	for i := range name {
		if at++; at > n-nameTail {
			return name[:i]
		}
	}
	return ""
}

// seconds rounds as scripts do: to whole seconds.
func seconds(d time.Duration) time.Duration { return d.Round(time.Second) }

// rate writes events a second, or that the rate is unknown.
func rate(perSecond float64) string {
	switch {
	case perSecond < 0:
		return "–"
	case perSecond == 0:
		return "0"
	case perSecond < 0.01:
		return "< 0.01"
	case perSecond < 1:
		return strconv.FormatFloat(perSecond, 'f', 2, 64)
	case perSecond < 10:
		return strconv.FormatFloat(perSecond, 'f', 1, 64)
	}
	return figures.Count(int64(math.Round(perSecond)))
}

// shown returns a text as it is shown: characters that are invisible, or would change the
// direction of the text around them, are escaped.
func shown(text string) string {
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden reports whether a character is invisible, or changes how others are shown: controls,
// marks of direction, spaces without width.
func hidden(r rune) bool {
	switch {
	case unicode.IsControl(r),
		r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069,
		r == 0x200e, r == 0x200f, r == 0x061c:
		return true
	case r == 0x200b, r == 0x2060, r == 0xfeff, r == 0x00ad, r == 0x2028, r == 0x2029,
		r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}

// readable returns a text of several lines as it is shown.
func readable(of string) string {
	lines := strings.Split(of, "\n")
	for at := range lines {
		lines[at] = shown(strings.ReplaceAll(lines[at], "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

// maxLine is the maximum number of characters of a text in a list.
const maxLine = 200

// line returns the first line of a text, cut.
func line(text string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	runes := []rune(strings.TrimSpace(first))
	if len(runes) > maxLine {
		return shown(string(runes[:maxLine])) + " …"
	}
	if strings.TrimSpace(rest) != "" {
		return shown(string(runes)) + " …"
	}
	return shown(string(runes))
}
