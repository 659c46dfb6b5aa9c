package httpapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"strings"

	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/internal/shown"
)

// unambiguous refuses JSON that package json may read differently from what the client meant: a
// repeated field, since the last one would count; a field spelt with other letters, such as IDS;
// and null, which would count as an absent field. A match whose text a client has lost would then
// match all. The JSON is known to be well-formed. The values of fields of a type that takes any JSON
// are not looked at.
func unambiguous(data []byte, anyJSON map[string]bool) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	var open []*scope
	for {
		token, err := decoder.Token()
		if err != nil {
			return nil // its end
		}

		var in *scope
		if len(open) > 0 {
			in = open[len(open)-1]
		}

		if name, ok := token.(string); ok && in != nil && in.nameNext {
			if err := in.name(name); err != nil {
				return err
			}
			if anyJSON[name] {
				var skipped json.RawMessage
				_ = decoder.Decode(&skipped)
				in.nameNext = true
			}
			continue
		}

		if token == nil {
			return service.ProblemBadRequest.With("the body has null; omit the field")
		}

		switch token {
		case json.Delim('{'):
			open = append(open, &scope{object: true, nameNext: true, seen: map[string]bool{}})
			continue
		case json.Delim('['):
			open = append(open, &scope{})
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			if len(open) == 0 {
				return nil
			}
			in = open[len(open)-1]
		}

		// A value is complete, so the next string of an object is a name.
		if in != nil {
			in.nameNext = in.object
		}
	}
}

// scope is an object or a list that is read.
type scope struct {
	object, nameNext bool
	seen             map[string]bool
}

// name reads the name of a field.
func (s *scope) name(name string) error {
	s.nameNext = false
	if strings.Trim(name, fieldLetters) != "" {
		return service.ProblemBadRequest.With("the body can't be read: unknown field %q", name)
	}
	if s.seen[name] {
		return service.ProblemBadRequest.With("the body has %q twice in one object", name)
	}
	s.seen[name] = true
	return nil
}

// fieldLetters are those of the names of fields and of settings.
const fieldLetters = "abcdefghijklmnopqrstuvwxyz0123456789_-"

// anyJSONFields returns the names of the fields of a request that take any JSON. No other field of
// the request has such a name.
func anyJSONFields(t reflect.Type) map[string]bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}

	names := map[string]bool{}
	for _, f := range shown.Fields(t) {
		if f.Type == reflect.TypeFor[service.AnyJSON]() {
			names[f.Name] = true
		} else {
			maps.Copy(names, anyJSONFields(f.Type))
		}
	}
	return names
}
