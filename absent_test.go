package skein

import (
	"context"
	"errors"
	"reflect"
	"testing"
)

// noStore refuses every method that an inspector may call.
func TestNoStoreRefusesEverything(t *testing.T) {
	store := reflect.ValueOf(noStore{})
	methods := reflect.TypeFor[InspectorStore]()
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		t.Run(name, func(t *testing.T) {
			defer func() {
				if v := recover(); v != nil {
					t.Errorf("it panics; give noStore the method: %v", v)
				}
			}()
			method := store.MethodByName(name)
			arguments := []reflect.Value{reflect.ValueOf(context.Background())}
			for at := 1; at < method.Type().NumIn(); at++ {
				arguments = append(arguments, reflect.Zero(method.Type().In(at)))
			}
			results := method.Call(arguments)
			if err, _ := results[len(results)-1].Interface().(error); !errors.Is(err, ErrInvalidOptions) {
				t.Errorf("it returns %v, want ErrInvalidOptions", err)
			}
		})
	}
}
