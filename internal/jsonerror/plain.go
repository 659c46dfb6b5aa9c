// Package jsonerror describes errors of package json in the words of the JSON: by the names of
// fields, without the names of Go types.
package jsonerror

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// Plain returns an error of package json in plain English. It returns other errors unchanged.
func Plain(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind) && kind.Type != nil:
		subject := "it is"
		if field := path(kind.Field); field != "" {
			subject = "the field " + field + " is"
		}
		return fmt.Errorf("%s %s; give %s", subject, given(kind.Value), wanted(kind.Type))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errors.New("the JSON ends too early")
	}

	if text, unknown := strings.CutPrefix(err.Error(), "json: "); unknown {
		return errors.New(text)
	}
	return err
}

// path returns the path of a field without the names of embedded structs, which the JSON lacks. The
// names of our fields begin with small letters.
func path(field string) string {
	names := slices.DeleteFunc(strings.Split(field, "."), func(name string) bool {
		return name != "" && unicode.IsUpper([]rune(name)[0])
	})
	return strings.Join(names, ".")
}

// given describes a JSON value by the word that package json has for it.
func given(value string) string {
	if number, found := strings.CutPrefix(value, "number "); found {
		return number
	}

	switch value {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "string":
		return "a text"
	case "bool":
		return "true or false"
	}
	return "a " + value
}

// wanted describes the JSON values that a Go type accepts.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem())
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return "a text in Base64"
		}
		return "a list"
	}
	return "a whole number in its range"
}
