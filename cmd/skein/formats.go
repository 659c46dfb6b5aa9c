package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
)

const formatNames = "table, wide, json, jsonl or csv"

// formatList returns the names of the formats.
func formatList() []string { return []string{"table", "wide", "json", "jsonl", "csv"} }

// formats write the rows of a list. Each writes the rows before an error, and returns the error.
var formats = map[string]func(w io.Writer, heads []head, rows iter.Seq2[*object, error]) error{
	"table": func(w io.Writer, heads []head, rows iter.Seq2[*object, error]) error {
		return writeTable(w, narrow(heads), rows, true)
	},
	"wide": func(w io.Writer, heads []head, rows iter.Seq2[*object, error]) error {
		return writeTable(w, heads, rows, false)
	},
	"json":  writeJSON,
	"jsonl": writeJSONLines,
	"csv":   writeCSV,
}

// narrow returns the columns without those that only -o wide shows.
func narrow(heads []head) (out []head) {
	return slices.DeleteFunc(slices.Clone(heads), func(h head) bool { return h.wide })
}

// tables reports whether the output is for people.
func (a *app) tables() bool { return a.output == "table" || a.output == "wide" }

// list shows a list in the requested format, row by row as it arrives.
func list[T any](a *app, cols columns[T], items iter.Seq2[T, error]) error {
	return formats[a.output](a.stdout, cols.heads(), func(yield func(*object, error) bool) {
		for v, err := range items {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(cols.row(&v), nil) {
				return
			}
		}
	})
}

// all yields the items of a slice, and then err if it is not nil.
func all[T any](items []T, err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range items {
			if !yield(v, nil) {
				return
			}
		}
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}

// one shows one thing: as a table with a line for each value, or as a JSON object.
func one[T any](a *app, cols columns[T], v *T) error {
	switch a.output {
	case "table", "wide":
		return writeDetails(a.stdout, cols.row(v), "", "")
	case "json":
		return indented(a.stdout, cols.row(v))
	}
	return list(a, cols, all([]T{*v}, nil))
}

func indented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func writeJSON(w io.Writer, _ []head, rows iter.Seq2[*object, error]) error {
	list := []*object{}
	var failed error
	for row, err := range rows {
		if failed = err; err == nil {
			list = append(list, row)
		}
	}

	if failed != nil && len(list) == 0 {
		return failed
	}
	if err := indented(w, list); err != nil {
		return err
	}
	return failed
}

func writeJSONLines(w io.Writer, _ []head, rows iter.Seq2[*object, error]) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for row, err := range rows {
		if err == nil {
			err = e.Encode(row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func writeCSV(w io.Writer, heads []head, rows iter.Seq2[*object, error]) error {
	out := csv.NewWriter(w)
	names := make([]string, len(heads))
	for at, h := range heads {
		names[at] = h.name
	}

	err := out.Write(names)
	for row, failed := range rows {
		if err = failed; err == nil {
			err = out.Write(csvLine(row))
		}
		if err != nil {
			break
		}
	}

	out.Flush()
	if err == nil {
		err = out.Error()
	}
	return err
}

func csvLine(row *object) []string {
	line := make([]string, len(row.values))
	for at, v := range row.values {
		switch v := forPrograms(v).(type) {
		case nil:
		case float64:
			line[at] = number(v)
		case []string, *object, []*object:
			text, _ := json.Marshal(v) // it can't fail: these values are strings and numbers
			line[at] = string(text)
		default:
			line[at] = fmt.Sprint(v)
		}
	}
	return line
}

// writeDetails writes one thing with all its values, one in a line, and indents nested things. The
// first line begins with first, the others with indent.
func writeDetails(w io.Writer, o *object, first, indent string) error {
	most := 0
	for _, h := range o.heads {
		most = max(most, len(h.name))
	}

	for at, v := range o.values {
		before := indent
		if at == 0 {
			before = first
		}

		nested, text := nestedIn(v), forPeople(v)
		if nested != nil {
			text = ""
		}
		line := strings.TrimRight(fmt.Sprintf("%s%-*s  %s", before, most, o.heads[at].name, text), " ")
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}

		for _, inner := range nested {
			if err := writeDetails(w, inner, indent+"  - ", indent+"    "); err != nil {
				return err
			}
		}
	}
	return nil
}

// nestedIn returns the things that are nested in a value.
func nestedIn(v any) []*object {
	switch v := v.(type) {
	case *object:
		if v != nil {
			return []*object{v}
		}
	case []*object:
		return v
	}
	return nil
}
