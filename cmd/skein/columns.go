package main

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/skeinq/skein/internal/shown"
)

// column is one shown value of a T: a column of the table, and a field of the JSON object.
type column[T any] struct {
	name string
	// wide leaves it out of tables unless -o wide asks for it.
	wide bool
	// of returns the value: a string, a bool, a number, a time.Time, a dueTime, a nextTime, a
	// chosenBy, a zoned, a time.Duration, a []string, an *object or a []*object. nil means that the
	// value is unknown.
	of func(*T) any
}

// columns are the values that a command shows, in every format. They are named like the fields of
// the HTTP API. The file of the command has them: those of a record by fieldColumns, and others by
// hand.
type columns[T any] []column[T]

// fieldColumns returns the columns of the fields of a record, as the tags of its struct describe
// them; see package internal/shown.
func fieldColumns[T any]() (cols columns[T]) {
	for _, f := range shown.Fields(reflect.TypeFor[T]()) {
		cols = append(cols, column[T]{f.Name, f.Wide, func(v *T) any { return valueOf(f.Read(v)) }})
	}
	return cols
}

// valueOf returns the value of a field as the value of a column.
func valueOf(v any) any {
	switch v := v.(type) {
	case *shown.Object:
		return objectOf(v)
	case []*shown.Object:
		rows := make([]*object, len(v))
		for at := range v {
			rows[at] = objectOf(v[at])
		}
		return rows
	}
	return v
}

// objectOf returns an object without its unknown values.
func objectOf(of *shown.Object) *object {
	if of == nil {
		return nil
	}
	o := &object{}
	for at := range of.Fields {
		if v := shown.Known(of.Values[at]); v != nil {
			o.heads = append(o.heads, head{name: of.Fields[at].Name})
			o.values = append(o.values, valueOf(v))
		}
	}
	return o
}

// with returns the columns with another value for a column.
func (cols columns[T]) with(name string, of func(*T) any) columns[T] {
	for at := range cols {
		if cols[at].name == name {
			cols[at].of = of
		}
	}
	return cols
}

// moved returns the columns with the named ones before another column, or at the end for "".
func (cols columns[T]) moved(before string, names ...string) columns[T] {
	named := func(c column[T]) bool { return slices.Contains(names, c.name) }
	rest := slices.DeleteFunc(slices.Clone(cols), named)
	moved := slices.DeleteFunc(slices.Clone(cols), func(c column[T]) bool { return !named(c) })

	at := slices.IndexFunc(rest, func(c column[T]) bool { return c.name == before })
	if at < 0 {
		at = len(rest)
	}
	return slices.Insert(rest, at, moved...)
}

// within returns the columns of a part of a T as columns of the T.
func within[T, P any](cols columns[P], part func(*T) *P) columns[T] {
	out := make(columns[T], len(cols))
	for at, c := range cols {
		out[at] = column[T]{c.name, c.wide, func(v *T) any { return c.of(part(v)) }}
	}
	return out
}

// heads returns the names of the columns.
func (cols columns[T]) heads() []head {
	out := make([]head, len(cols))
	for at, c := range cols {
		out[at] = head{c.name, c.wide}
	}
	return out
}

// row returns the shown values of v. It returns nil if v is nil.
func (cols columns[T]) row(v *T) *object {
	if v == nil {
		return nil
	}
	o := &object{heads: cols.heads(), values: make([]any, len(cols))}
	for at, c := range cols {
		o.values[at] = c.of(v)
	}
	return o
}

type head struct {
	name string
	wide bool
}

// object is one shown thing: named values, in order.
type object struct {
	heads  []head
	values []any
}

// MarshalJSON implements json.Marshaler.
func (o *object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for at, v := range o.values {
		name, err := json.Marshal(o.heads[at].name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(forPrograms(v))
		if err != nil {
			return nil, err
		}

		b.WriteString(map[bool]string{true: "{", false: ","}[at == 0])
		b.Write(name)
		b.WriteString(":")
		b.Write(value)
	}

	b.WriteString("}")
	return b.Bytes(), nil
}

// forPrograms returns a value as JSON and CSV show it, in the same form as the HTTP API: durations
// in seconds, and null for an unknown time.
func forPrograms(v any) any {
	switch v := v.(type) {
	case dueTime:
		return forPrograms(v.at)
	case nextTime:
		return forPrograms(v.at)
	case chosenBy:
		return v.filter
	case zoned:
		return v.Format(time.RFC3339Nano)
	case time.Time:
		if v.IsZero() {
			return nil
		}
		return v.UTC().Format(time.RFC3339Nano)
	case time.Duration:
		return v.Seconds()
	case []string:
		if v == nil {
			return []string{}
		}
	case *object:
		if v == nil {
			return nil
		}
	}
	return v
}
