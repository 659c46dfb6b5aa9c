// Package shown describes the fields of records by the tags of their structs, and shows records
// with each field redacted by its class.
//
// A field of a record has these tags:
//
//   - json is its name in the HTTP API, in CSV and in the columns of the command, with the options
//     of package json. A field with the name - is only for pages.
//   - doc describes it, with its unit.
//   - class is its class of redaction, a constant of this package. A field without a class is
//     hidden.
//   - wide is "true" for a column that the command leaves out of narrow tables. If the field has
//     two names, wide may be the one of them that is left out.
//
// Two kinds of fields have two names. Bytes that are not UTF-8 are in Base64 under the name with
// the suffix _base64, which the tag base64 describes. The index of a shard has the name index if
// the field has a tag index, which describes it.
package shown

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
)

// The classes of fields. A [Redactor] decides how the values of a class are shown.
const (
	// Public values are shown to everybody. A public struct is a record of its own.
	Public = "public"
	// Queue is public, and the queue of the record's ids: a name or a shard.
	Queue = "queue"
	// ID is an id of the record's queue. The first one is that of the record.
	ID = "id"
	// Target is an id of the record's queue, or the name of a server if the record has no queue.
	Target = "target"
	// Tags are tags of jobs.
	Tags = "tags"
	// Error is the text of an error of the record.
	Error = "error"
	// Quoting is a text about many entries, which may quote their ids.
	Quoting = "quoting"
	// Note is a text of an operator about the record.
	Note = "note"
	// Payload is bytes that were pushed or stored, or a list of payloads.
	Payload = "payload"
	// Meta is the Meta of a payload.
	Meta = "meta"
	// Group is the name of a group of errors.
	Group = "group"
	// Sealed is a text that contains ids and that clients only give back, such as a cursor.
	Sealed = "sealed"
)

// Classes returns all classes.
func Classes() []string {
	return []string{Public, Queue, ID, Target, Tags, Error, Quoting, Note, Payload, Meta, Group, Sealed}
}

// Field is a field of a record, as JSON, CSV and tables show it.
type Field struct {
	Name, Doc, Class string
	// Optional fields are left out of JSON if they are empty.
	Optional bool
	// Wide is true for a column that only wide tables have.
	Wide bool
	// Type is the type of its value in JSON.
	Type reflect.Type

	index []int
	// second is true for the second name of bytes, under which they are if they are not UTF-8, and
	// for the index of a shard.
	second bool
	// record has the fields of a struct, or of the structs of a list.
	record []Field
}

// Fields returns the fields of a struct that have a name in JSON. The fields of embedded structs
// are in their place. The struct may be a record or an input, whose fields have no class.
func Fields(t reflect.Type) (named []Field) {
	for _, f := range fields(t) {
		if f.Name != "-" {
			named = append(named, f)
		}
	}
	return named
}

// fields returns the fields of a struct, also those without a name in JSON.
func fields(t reflect.Type) (list []Field) {
	for _, s := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(s.Tag.Get("json"), ",")
		if name == "" || !s.IsExported() {
			continue
		}

		f := Field{
			Name:     name,
			Doc:      s.Tag.Get("doc"),
			Class:    s.Tag.Get("class"),
			Optional: strings.Contains(options, "omit"),
			Type:     s.Type,
			index:    s.Index,
		}
		if f.Class == "" {
			list = append(list, f)
			continue
		}

		f.Type, f.record = typeInJSON(s.Type), recordIn(s.Type)
		for _, f := range f.names(s.Tag) {
			f.Wide = s.Tag.Get("wide") == "true" || s.Tag.Get("wide") == f.Name
			list = append(list, f)
		}
	}
	return list
}

// names returns the field under its one or two names.
func (f Field) names(tag reflect.StructTag) []Field {
	second := f
	second.second = true
	switch {
	case f.Type == reflect.TypeFor[[]byte]():
		f.Optional, f.Type = true, reflect.TypeFor[*string]()
		second.Optional, second.Type = f.Optional, f.Type
		second.Name, second.Doc = f.Name+"_base64", tag.Get("base64")
	case tag.Get("index") != "":
		second.Name, second.Doc, second.Type = "index", tag.Get("index"), reflect.TypeFor[int]()
	default:
		return []Field{f}
	}
	return []Field{f, second}
}

// recordIn returns the fields of the record in a struct, a pointer or a list.
func recordIn(t reflect.Type) []Field {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return recordIn(t.Elem())
	case reflect.Struct:
		if isRecord(t) {
			return fields(t)
		}
	}
	return nil
}

// isRecord reports whether a struct has fields with a class.
func isRecord(t reflect.Type) bool {
	for _, s := range reflect.VisibleFields(t) {
		if s.Tag.Get("class") != "" {
			return true
		}
	}
	return false
}

// typeInJSON returns the type of the value that JSON has for a value of the type t.
func typeInJSON(t reflect.Type) reflect.Type {
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[[]byte]():
		return t
	case reflect.TypeFor[time.Duration]():
		return reflect.TypeFor[float64]()
	case reflect.TypeFor[core.Instant]():
		return reflect.TypeFor[time.Time]()
	case reflect.TypeFor[core.Payload]():
		return reflect.TypeFor[PayloadRecord]()
	}

	switch {
	case t.Kind() == reflect.String, t.Implements(reflect.TypeFor[fmt.Stringer]()):
		return reflect.TypeFor[string]()
	case t.Kind() == reflect.Pointer:
		return reflect.PointerTo(typeInJSON(t.Elem()))
	case t.Kind() == reflect.Slice:
		return reflect.SliceOf(typeInJSON(t.Elem()))
	}
	return t
}
