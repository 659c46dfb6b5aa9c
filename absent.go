package skein

import "reflect"

// absent reports whether a store, or what else is given as an interface, is nil or a
// nil pointer.
func absent(v any) bool {
	if v == nil {
		return true
	}
	value := reflect.ValueOf(v)
	return value.Kind() == reflect.Pointer && value.IsNil()
}
