package skeintest_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/conformance"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/skeintest"
)

func TestAFailingStoreWithoutFaultsIsAStore(t *testing.T) {
	conformance.Run(t, func(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
		backend := memory.New(memory.Options{Clock: clock})
		return func() ports.ShardStore { return skeintest.NewFailingStore(backend.Open()) }
	})
}

// callMethod calls a method of the port with empty arguments, and gives its error.
func callMethod(store ports.ShardStore, method string) error {
	f := reflect.ValueOf(store).MethodByName(method)
	args := []reflect.Value{reflect.ValueOf(context.Background())}
	for i := 1; i < f.Type().NumIn(); i++ {
		args = append(args, reflect.Zero(f.Type().In(i)))
	}
	results := f.Call(args)
	err, _ := results[len(results)-1].Interface().(error)
	return err
}

func TestEveryMethodFailsOnDemand(t *testing.T) {
	port := reflect.TypeFor[ports.ShardStore]()
	for i := range port.NumMethod() {
		method := port.Method(i).Name
		t.Run(method, func(t *testing.T) {
			s := skeintest.NewFailingStore(memory.New(memory.Options{}))
			healthy := callMethod(s, method)

			s.Fail(skeintest.Fault{Method: method, Err: errBoom})
			if err := callMethod(s, method); !errors.Is(err, errBoom) {
				t.Errorf("it returned %v", err)
			}

			s.Heal()
			if err := callMethod(s, method); !errors.Is(err, healthy) && err.Error() != healthy.Error() {
				t.Errorf("healed it returned %v, before %v", err, healthy)
			}

			if n := s.Calls(method); n != 3 {
				t.Errorf("it counted %d calls, want 3", n)
			}
		})
	}
}

func TestAFaultMeetsTheCallsItNames(t *testing.T) {
	const up, down = true, false
	tests := []struct {
		name   string
		faults []skeintest.Fault
		want   []bool
	}{
		{"none", nil, []bool{up, up, up}},
		{"all", []skeintest.Fault{{Method: "Queues"}}, []bool{down, down, down}},
		{"of every method", []skeintest.Fault{{}}, []bool{down, down, down}},
		{"of another method", []skeintest.Fault{{Method: "Nodes"}}, []bool{up, up, up}},
		{"after some", []skeintest.Fault{{Method: "Queues", After: 2}}, []bool{up, up, down, down}},
		{"some", []skeintest.Fault{{Method: "Queues", Times: 2}}, []bool{down, down, up, up}},
		{"the second", []skeintest.Fault{{Method: "Queues", After: 1, Times: 1}}, []bool{up, down, up, up}},
		{"one after the other", []skeintest.Fault{{Times: 1}, {Times: 1}}, []bool{down, down, up}},
		{"a method that is misspelt", []skeintest.Fault{{Method: "Pusj", After: 5, Times: 1}}, []bool{down, down}},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := skeintest.NewFailingStore(memory.New(memory.Options{}))
			for _, f := range tt.faults {
				s.Fail(f)
			}

			var got []bool
			for range tt.want {
				_, err := s.Queues(t.Context())
				got = append(got, err == nil)
			}

			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("calls that went through (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAMisspeltMethodIsNamed(t *testing.T) {
	s := skeintest.New()
	s.Fail(skeintest.Fault{Method: "Pusj"})
	if _, err := s.Queues(t.Context()); err == nil || !strings.Contains(err.Error(), `"Pusj"`) {
		t.Errorf("it returned %v", err)
	}
}

func TestAPushFails(t *testing.T) {
	tests := []struct {
		name   string
		fault  skeintest.Fault
		lost   []int
		stored []string
	}{
		{"whole", skeintest.Fault{Method: "Push"}, []int{0, 1, 2}, nil},
		{"for a known reason", skeintest.Fault{Method: "Push", Err: skein.ErrFull}, []int{0, 1, 2}, nil},
		{
			"with its reply lost",
			skeintest.Fault{Method: "Push", ReplyLost: true},
			[]int{0, 1, 2},
			[]string{"a", "b", "c"},
		},
		{
			"partly", skeintest.Fault{Method: "Push", Err: &skein.PushError{Entries: []int{1}, Err: errBoom}},
			[]int{1}, []string{"a", "c"},
		},
		{
			"partly, of unknown outcome",
			skeintest.Fault{Method: "Push", Err: &skein.PushError{Entries: []int{1}, Err: errBoom}, ReplyLost: true},
			[]int{1}, []string{"a", "b", "c"},
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, q := skeintest.New(), plain("q", skein.QueueOptions[[]byte]{})
			s.Fail(tt.fault)

			var entries []skein.Entry[[]byte]
			for _, id := range []string{"a", "b", "c"} {
				entries = append(entries, skein.Entry[[]byte]{ID: id, Payload: []byte("p")})
			}

			err := q.PushMany(t.Context(), s.Client, entries)
			var failed *skein.PushError
			if !errors.As(err, &failed) {
				t.Fatalf("the push returned %v", err)
			}

			if tt.fault.Err != nil && !errors.Is(err, tt.fault.Err) {
				t.Errorf("%v is not %v", err, tt.fault.Err)
			}
			if diff := cmp.Diff(tt.lost, failed.Entries); diff != "" {
				t.Errorf("not known to be stored (-want +got):\n%s", diff)
			}

			var want []skeintest.Job[[]byte]
			for _, id := range tt.stored {
				want = append(want, skeintest.Job[[]byte]{ID: id, Payloads: [][]byte{[]byte("p")}})
			}
			skeintest.AssertPushed(t, s, q, want...)
		})
	}
}

func TestALostReplyHasTakenEffect(t *testing.T) {
	s := skeintest.New()
	s.Fail(skeintest.Fault{Method: "Declare", ReplyLost: true, Times: 1})
	r := ports.DeclareRequest{Queue: "q", Shards: 3}
	if _, err := s.Declare(t.Context(), r); !errors.Is(err, skeintest.ErrInjected) {
		t.Errorf("Declare returned %v", err)
	}
	if queues, err := s.Queues(t.Context()); err != nil || len(queues) != 1 {
		t.Errorf("Queues = %v, %v", queues, err)
	}
}

// A call that a fault lets through can fail by itself, and then that error is returned.
func TestAStoreBehindAFaultMayFailToo(t *testing.T) {
	inner := skeintest.NewFailingStore(memory.New(memory.Options{}))
	s := skeintest.NewFailingStore(inner)
	r := ports.DeclareRequest{Queue: "q", Shards: 1}
	if _, err := s.Declare(t.Context(), r); err != nil {
		t.Fatal(err)
	}

	inner.Fail(skeintest.Fault{Err: errBoom})
	partly := &ports.PushError{Entries: []int{1}, Err: ports.ErrFull}
	s.Fail(skeintest.Fault{ReplyLost: true, Err: partly})
	if _, err := s.Declare(t.Context(), r); !errors.Is(err, errBoom) {
		t.Errorf("Declare returned %v, want %v", err, errBoom)
	}

	for _, lost := range []bool{true, false} {
		s.Heal()
		s.Fail(skeintest.Fault{ReplyLost: lost, Err: partly})
		_, err := s.Push(t.Context(), ports.PushRequest{
			Queue:      "q",
			Shards:     1,
			Generation: 1,
			Entries:    []core.Entry{{ID: "a"}, {ID: "b"}},
		})

		var failed *ports.PushError
		if !errors.As(err, &failed) || !errors.Is(err, errBoom) || len(failed.Entries) != 2 {
			t.Errorf("with its reply lost (%t) Push returned %v, want %v for both entries", lost, err, errBoom)
		}
	}
}

// A handler's failing push is a failure of its job, which is retried.
func TestAHandlersPushIsRetried(t *testing.T) {
	s := skeintest.New()
	in, out := plain("in", skein.QueueOptions[[]byte]{}), plain("out", skein.QueueOptions[[]byte]{})
	push(t, s, in, "id", "p")
	s.Fail(skeintest.Fault{Method: "Push", Times: 1, Err: ports.ErrFull})
	events := s.Drain(t, time.Minute, in.Handler(func(ctx context.Context, id string, payloads [][]byte) error {
		return out.Push(ctx, s.Client, id, payloads[0])
	}))
	skeintest.AssertEvents(t, events,
		"0s in id [p] failed: 1 pushed entry is not stored: store is full",
		"15s in id [p] done",
	)
	skeintest.AssertPushed(t, s, out, skeintest.Job[[]byte]{ID: "id", Payloads: [][]byte{[]byte("p")}})
}
