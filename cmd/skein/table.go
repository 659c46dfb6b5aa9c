package main

import (
	"cmp"
	"io"
	"iter"
	"strings"
	"time"
)

// tableRows is the number of rows that are written at a time. So a long list is not kept in memory;
// a later part of it may have wider columns.
const tableRows = 1000

// tableWriter writes rows in aligned columns, without tabs, colours or lines, so that the output
// can be piped.
type tableWriter struct {
	w     io.Writer
	heads []head
	// short truncates values that may be long.
	short   bool
	widths  []int
	right   []bool
	pending [][]string
	begun   bool
}

// headWords are the headings of columns whose names are not readable headings.
var headWords = map[string]string{
	"morgue_length":          "MORGUE",
	"payload_count":          "PAYLOADS",
	"payloads":               "FIRST PAYLOADS",
	"late_seconds":           "LATE",
	"first_late_seconds":     "FIRST LATE",
	"jitter_seconds":         "JITTER",
	"catchup_within_seconds": "CATCHUP WITHIN",
	"words":                  "WHEN",
	"first_words":            "FIRST WHEN",
	"took_seconds":           "TOOK",
	"done_per_second":        "DONE/S",
	"failed_per_second":      "FAILED/S",
}

// longest is the largest width of some columns in a short table. Without it, the stack of a panic
// or a long id would make the table unreadable.
var longest = map[string]int{"id": 40, "last_error": 60, "note": 40, "filter": 60, "blocked": 60}

// shortened returns a value in at most the given number of columns. It returns only the first line
// of a text.
func shortened(v any, most int) string {
	text, ok := v.(string)
	if !ok {
		return cut(forPeople(v), most)
	}
	first, rest, more := strings.Cut(strings.TrimSpace(text), "\n")
	if more && strings.TrimSpace(rest) != "" {
		first = strings.TrimSpace(first) + string(cutSign)
	}
	return cut(quoted(first), most)
}

func writeTable(w io.Writer, heads []head, rows iter.Seq2[*object, error], short bool) error {
	t := &tableWriter{
		w:      w,
		heads:  heads,
		short:  short,
		widths: make([]int, len(heads)),
		right:  make([]bool, len(heads)),
	}

	for row, err := range rows {
		if err != nil {
			if !t.begun && len(t.pending) == 0 {
				return err
			}
			if failed := t.flush(); failed != nil {
				return failed
			}
			return err
		}

		t.add(row)
		if len(t.pending) == tableRows {
			if err := t.flush(); err != nil {
				return err
			}
		}
	}

	return t.flush()
}

// add appends a row to the pending rows, with the values of the shown columns.
func (t *tableWriter) add(row *object) {
	line := make([]string, 0, len(t.heads))
	for at, h := range row.heads {
		to := len(line)
		if to == len(t.heads) || t.heads[to] != h {
			continue
		}

		switch row.values[at].(type) {
		case int, int64, uint64, float64, time.Duration:
			t.right[to] = true
		}

		text := forPeople(row.values[at])
		if most := longest[h.name]; t.short && most > 0 {
			text = shortened(row.values[at], most)
		}
		line = append(line, text)
	}
	t.pending = append(t.pending, line)
}

// flush writes the pending rows, after the headings if it is the first call.
func (t *tableWriter) flush() error {
	lines := t.pending
	if !t.begun {
		first := make([]string, len(t.heads))
		for at, h := range t.heads {
			first[at] = cmp.Or(headWords[h.name], strings.ToUpper(strings.ReplaceAll(h.name, "_", " ")))
		}
		lines = append([][]string{first}, lines...)
	}

	t.begun, t.pending = true, nil
	for _, line := range lines {
		for at, text := range line {
			t.widths[at] = max(t.widths[at], columnsOfText(text))
		}
	}

	var b strings.Builder
	for _, line := range lines {
		b.WriteString(t.line(line))
	}
	_, err := io.WriteString(t.w, b.String())
	return err
}

func (t *tableWriter) line(cells []string) string {
	var b strings.Builder
	for at, text := range cells {
		gap := strings.Repeat(" ", t.widths[at]-columnsOfText(text))
		if at > 0 {
			b.WriteString("  ")
		}
		if t.right[at] {
			b.WriteString(gap + text)
		} else {
			b.WriteString(text + gap)
		}
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}
