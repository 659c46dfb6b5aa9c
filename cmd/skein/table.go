package main

import (
	"cmp"
	"io"
	"iter"
	"strings"
	"time"
)

// tableRows is after how many rows the widths of columns are settled, so that a long list is not
// held in memory.
const tableRows = 1000

// tableWriter writes rows in columns, without tabs, colours or lines, so that it is fit to be
// piped.
type tableWriter struct {
	w     io.Writer
	heads []head
	// short cuts values that may be long.
	short   bool
	widths  []int
	right   []bool
	pending [][]string
	begun   bool
}

// headWords are the heads of columns whose names are for programs.
var headWords = map[string]string{
	"morgue_length": "MORGUE", "payload_count": "PAYLOADS", "payloads": "FIRST PAYLOADS",
	"done_per_second": "DONE/S", "failed_per_second": "FAILED/S",
}

// longest is how many columns a value may take in a short table: a stack of a panic or a long id
// leaves no table.
var longest = map[string]int{"id": 40, "last_error": 60}

// shortened is a value in at most the given number of columns: the first line of a text.
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
	t := &tableWriter{w: w, heads: heads, short: short, widths: make([]int, len(heads)), right: make([]bool, len(heads))}
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

// add takes the values of the columns that are shown.
func (t *tableWriter) add(row *object) {
	line := make([]string, 0, len(t.heads))
	for at, h := range row.heads {
		to := len(line)
		if to == len(t.heads) || t.heads[to] != h {
			continue
		}
		switch row.values[at].(type) {
		case int, int64, float64, time.Duration:
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

// flush writes the pending rows.
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
