package storekit_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/conformance"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

var errRefused = errors.New("refused")

// method is a method of the port, bound to a store.
type method struct {
	name string
	f    reflect.Value
}

// methodsOf are all methods that the port and its extras have.
func methodsOf(store ports.ShardStore) []method {
	var list []method
	for _, port := range []reflect.Type{
		reflect.TypeFor[ports.ShardStore](), reflect.TypeFor[ports.Notifier](), reflect.TypeFor[ports.Settler](),
	} {
		for i := range port.NumMethod() {
			name := port.Method(i).Name
			list = append(list, method{name, reflect.ValueOf(store).MethodByName(name)})
		}
	}
	return list
}

// params are the types of the method's parameters after the context.
func (m method) params() []reflect.Type {
	var list []reflect.Type
	for i := 1; i < m.f.Type().NumIn(); i++ {
		list = append(list, m.f.Type().In(i))
	}
	return list
}

// call calls the method with values that are not zero, and returns its arguments and its results.
func (m method) call(ctx context.Context) (args []any, reply any, err error) {
	in := []reflect.Value{reflect.ValueOf(ctx)}
	for _, param := range m.params() {
		in = append(in, filled(param))
		args = append(args, in[len(in)-1].Interface())
	}
	out := m.f.Call(in)
	if len(out) == 2 {
		reply = out[0].Interface()
	}
	err, _ = out[len(out)-1].Interface().(error)
	return args, reply, err
}

// filled is a value of a type that is not the zero one.
func filled(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.String:
		v.SetString("filled")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 1, 1))
	case reflect.Chan:
		v.Set(reflect.MakeChan(reflect.ChanOf(reflect.BothDir, t.Elem()), 0).Convert(t))
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Struct:
		for i := range t.NumField() {
			if k := t.Field(i).Type.Kind(); k == reflect.String || k == reflect.Int || k == reflect.Int64 ||
				k == reflect.Slice || k == reflect.Struct {
				v.Field(i).Set(filled(t.Field(i).Type))
				break
			}
		}
	}
	return v
}

// answering is a store that carries nothing out. It reports each call to reach.
func answering(reach storekit.Interceptor) ports.ShardStore {
	return storekit.Intercept(memory.New(memory.Options{}), reach)
}

// Each method of the port passes through the interceptor under its own name and with its own
// request, reaches the same method of the store, and returns its results. The test finds the
// methods by reflection, so a new one can't be forgotten.
func TestEveryMethodIsIntercepted(t *testing.T) {
	var around, reached []storekit.Call
	var answer any
	inner := answering(func(_ context.Context, call storekit.Call, _ func(context.Context) error) error {
		reached = append(reached, call)
		if call.Reply != nil {
			reply := reflect.ValueOf(call.Reply).Elem()
			reply.Set(filled(reply.Type()))
			answer = reply.Interface()
		}
		return nil
	})

	outer := storekit.Intercept(inner,
		func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
			around = append(around, call)
			return next(ctx)
		})

	for _, m := range methodsOf(outer) {
		t.Run(m.name, func(t *testing.T) {
			around, reached, answer = nil, nil, nil
			args, reply, err := m.call(t.Context())
			if err != nil || len(around) != 1 || len(reached) != 1 {
				t.Fatalf("it returned %v, passed %d times and reached the store %d times, want once each",
					err, len(around), len(reached))
			}

			for _, call := range []storekit.Call{around[0], reached[0]} {
				if call.Method != m.name {
					t.Errorf("it passed as %s", call.Method)
				}
				if diff := cmp.Diff(args, requestOf(call)); diff != "" {
					t.Errorf("the request (-want +got):\n%s", diff)
				}
			}

			if !reflect.DeepEqual(answer, reply) {
				t.Errorf("it returned %v, want %v", reply, answer)
			}
			if (around[0].Reply == nil) != (reply == nil) {
				t.Errorf("Reply is %v for a method that returns %T", around[0].Reply, reply)
			}
		})
	}
}

// requestOf is the value that a call's Request points to, as the arguments of the method.
func requestOf(call storekit.Call) []any {
	switch r := call.Request.(type) {
	case nil:
		return nil
	case *storekit.DrainNodeRequest:
		return []any{r.Owner, r.Drain}
	case *storekit.SettleRequest:
		return []any{r.Shard, r.Settlements}
	case *storekit.SettlePayloadRequest:
		return []any{r.Shard, r.Settlement}
	}
	return []any{reflect.ValueOf(call.Request).Elem().Interface()}
}

func TestARefusedCallReachesNothing(t *testing.T) {
	reached := 0
	inner := answering(func(context.Context, storekit.Call, func(context.Context) error) error {
		reached++
		return nil
	})

	outer := storekit.Intercept(inner,
		func(_ context.Context, call storekit.Call, _ func(context.Context) error) error {
			if call.Reply != nil { // which must not come through
				reply := reflect.ValueOf(call.Reply).Elem()
				reply.Set(filled(reply.Type()))
			}
			return errRefused
		})

	for _, m := range methodsOf(outer) {
		_, reply, err := m.call(t.Context())
		if !errors.Is(err, errRefused) || reached != 0 {
			t.Errorf("%s returned %v and reached the store %d times", m.name, err, reached)
		}
		if reply != nil && !reflect.ValueOf(reply).IsZero() {
			t.Errorf("%s returned %v beside its error", m.name, reply)
		}
	}
}

func TestAnInterceptorRepeatsAndChangesCalls(t *testing.T) {
	var asked []string
	inner := answering(func(_ context.Context, call storekit.Call, _ func(context.Context) error) error {
		asked = append(asked, *call.Request.(*string))
		return nil
	})

	outer := storekit.Intercept(inner,
		func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
			if err := next(ctx); err != nil {
				return err
			}
			*call.Request.(*string) = "mails"
			return next(ctx)
		})

	if err := outer.Pause(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"orders", "mails"}, asked); diff != "" {
		t.Errorf("queues paused (-want +got):\n%s", diff)
	}
}

// A call that is repeated like a late packet does not change the reply that the caller already has.
func TestALateCallDoesNotTouchTheReply(t *testing.T) {
	late := make(chan error, 1)
	store := storekit.Intercept(memory.New(memory.Options{}),
		func(ctx context.Context, _ storekit.Call, next func(context.Context) error) error {
			err := next(ctx)
			go func() { late <- next(ctx) }()
			return err
		})

	for range 20 {
		reply, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
		if reply.Generation != 1 || err != nil {
			t.Fatalf("got %+v, %v; want generation 1", reply, err)
		}
		if err := <-late; err != nil {
			t.Fatal(err)
		}
	}
}

func TestACallGoesToAnotherStore(t *testing.T) {
	first, second := memory.New(memory.Options{}), memory.New(memory.Options{})
	store := storekit.Intercept(first,
		func(ctx context.Context, call storekit.Call, _ func(context.Context) error) error {
			return call.On(ctx, second)
		})

	reply, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	if err != nil || reply.Generation != 1 {
		t.Fatalf("Declare = %v, %v", reply, err)
	}

	here, _ := first.Queues(t.Context())
	there, _ := second.Queues(t.Context())
	if len(here) != 0 || len(there) != 1 {
		t.Errorf("the first store has %v, the second %v", here, there)
	}

	if wakeups, err := store.(ports.Notifier).Wakeups(t.Context(), core.Shards("orders", 1)); err != nil ||
		wakeups == nil {
		t.Errorf("Wakeups = %v, %v", wakeups, err)
	}
}

func TestACallOnAStoreWithoutTheExtraSaysSo(t *testing.T) {
	store := storekit.Intercept(memory.New(memory.Options{}),
		func(ctx context.Context, call storekit.Call, _ func(context.Context) error) error {
			return call.On(ctx, struct{ ports.ShardStore }{})
		})
	_, err := store.(ports.Notifier).Wakeups(t.Context(), nil)
	if !errors.Is(err, ports.ErrInvalidRequest) || !strings.Contains(err.Error(), "Notifier") {
		t.Errorf("Wakeups: %v", err)
	}
	err = store.(ports.Settler).Settle(t.Context(), core.Shard{}, nil)
	if !errors.Is(err, ports.ErrInvalidRequest) || !strings.Contains(err.Error(), "Settler") {
		t.Errorf("Settle: %v", err)
	}
}

func TestExtrasStayAsTheyAre(t *testing.T) {
	m := memory.New(memory.Options{})
	type plain = struct{ ports.ShardStore }
	pass := func(ctx context.Context, _ storekit.Call, next func(context.Context) error) error { return next(ctx) }

	for name, tt := range map[string]struct {
		store             ports.ShardStore
		notifies, settles bool
	}{
		"both": {m, true, true},
		"none": {plain{m}, false, false},
		"a notifier": {struct {
			plain
			ports.Notifier
		}{plain{m}, m}, true, false},
		"a settler": {struct {
			plain
			ports.Settler
		}{plain{m}, m}, false, true},
	} {
		store := storekit.Intercept(tt.store, pass)
		if _, is := store.(ports.Notifier); is != tt.notifies {
			t.Errorf("%s: a notifier: %t", name, is)
		}
		if _, is := store.(ports.Settler); is != tt.settles {
			t.Errorf("%s: a settler: %t", name, is)
		}
		if storekit.Intercept(tt.store, nil) != tt.store {
			t.Errorf("%s: without an interceptor it is another store", name)
		}
	}
}

// limited is a store whose MaxTurns returns the given number.
type limited struct {
	ports.ShardStore
	turns int
}

func (l limited) MaxTurns() int { return l.turns }

func TestTheLimitOfTurnsPassesThrough(t *testing.T) {
	m := memory.New(memory.Options{})
	pass := func(ctx context.Context, _ storekit.Call, next func(context.Context) error) error { return next(ctx) }
	for _, tt := range []struct {
		store ports.ShardStore
		want  int
	}{{m, 0}, {limited{m, 0}, 0}, {limited{m, 3}, 3}} {
		store := storekit.Intercept(storekit.Intercept(tt.store, pass), pass)
		if got := store.(ports.TurnLimiter).MaxTurns(); got != tt.want {
			t.Errorf("MaxTurns of %T = %d, want %d", tt.store, got, tt.want)
		}
	}
}

func TestAnInterceptedStoreIsAStore(t *testing.T) {
	pass := func(ctx context.Context, _ storekit.Call, next func(context.Context) error) error { return next(ctx) }
	conformance.Run(t, func(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
		backend := memory.New(memory.Options{Clock: clock})
		return func() ports.ShardStore { return storekit.Intercept(backend.Open(), pass) }
	})
}
