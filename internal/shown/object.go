package shown

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/skeinq/skein/core"
)

// Object is a record as JSON and tables show it: the values of its named fields.
type Object struct {
	Fields []Field
	// Values are strings, bools, numbers, times, durations, objects, and lists of them. nil is a
	// value that is not shown.
	Values []any
}

// MarshalJSON implements json.Marshaler.
func (o *Object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for at, v := range o.Values {
		f := &o.Fields[at]
		if v == nil || f.Optional && empty(v) {
			continue
		}

		name, err := json.Marshal(f.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(ForJSON(v))
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}

		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// empty reports whether a value is left out if its field is optional.
func empty(v any) bool {
	of := reflect.ValueOf(v)
	return of.IsZero() || of.Kind() == reflect.Slice && of.Len() == 0
}

// ForJSON returns a value of an [Object] as package json is to write it: times in UTC, durations in
// seconds, and a list without elements as []. A time that JSON can't have is nil: one of a damaged
// record must not hide the other rows of a reply.
func ForJSON(v any) any {
	switch v := v.(type) {
	case time.Time:
		if v = v.UTC(); v.Year() < 0 || v.Year() > 9999 {
			return nil
		}
		return v
	case time.Duration:
		return v.Seconds()
	}
	if of := reflect.ValueOf(v); of.Kind() == reflect.Slice && of.IsNil() {
		return []any{}
	}
	return v
}

// plain returns a public value as an [Object] has it.
func plain(v reflect.Value) any {
	switch of := v.Interface().(type) {
	case time.Time, time.Duration:
		return of
	case core.Instant:
		return of.Time()
	case fmt.Stringer:
		if v.Kind() != reflect.String {
			return of.String()
		}
	}

	if v.Kind() == reflect.String {
		return v.String()
	}
	return v.Interface()
}

// PayloadRecord is a payload as a record of its own.
type PayloadRecord struct {
	Score float64 `json:"score" class:"public" doc:"its place in the order: lowest first"`
	Data  []byte  `json:"data" class:"payload" doc:"the bytes, if they are UTF-8" base64:"the bytes in standard Base64, if they are not UTF-8"`
	Meta  []byte  `json:"meta,omitempty" class:"meta" wide:"true" doc:"the Meta of the push, if it is UTF-8" base64:"the Meta in standard Base64, if it is not UTF-8"`
}

// Octets are bytes in the JSON of a request: in data as a string if they are UTF-8, and else in
// data_base64. A request may use either.
type Octets struct {
	Data   *string `json:"data,omitempty" doc:"the bytes, if they are UTF-8"`
	Base64 *string `json:"data_base64,omitempty" doc:"the bytes in standard Base64, if they are not UTF-8"`
}

// OctetsOf returns bytes in their JSON form.
func OctetsOf(data []byte) Octets {
	text := new(inText(data))
	if utf8.Valid(data) {
		return Octets{Data: text}
	}
	return Octets{Base64: text}
}

// inText returns bytes that are UTF-8 as they are, and others in Base64.
func inText(data []byte) string {
	if utf8.Valid(data) {
		return string(data)
	}
	return base64.StdEncoding.EncodeToString(data)
}

// Bytes returns the bytes that a request gives.
func (o *Octets) Bytes() ([]byte, error) {
	switch {
	case (o.Data == nil) == (o.Base64 == nil):
		return nil, errors.New("a payload has either data or data_base64")
	case o.Data != nil:
		return []byte(*o.Data), nil
	}
	data, err := base64.StdEncoding.DecodeString(*o.Base64)
	if err != nil {
		return nil, fmt.Errorf("data_base64 can't be read: %w", err)
	}
	return data, nil
}
