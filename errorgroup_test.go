package skein_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// noOrder is an error with a type of its own.
type noOrder struct{ id int }

func (e noOrder) Error() string { return fmt.Sprintf("no order %d", e.id) }

// mute is an error whose text panics.
type mute struct{}

func (mute) Error() string { panic("mute") }

// bottomless is an error whose Unwrap panics.
type bottomless struct{}

func (bottomless) Error() string { return "bottomless" }
func (bottomless) Unwrap() error { panic("bottomless") }

// hollow is an error that wraps an empty list of errors.
type hollow struct{}

func (hollow) Error() string   { return "hollow" }
func (hollow) Unwrap() []error { return []error{nil} }

func panicsHere(id string) { panic("no order " + id) }

// TestDeadLettersHaveTheGroupOfTheirError buries a job for each error, by its own outcome.
func TestDeadLettersHaveTheGroupOfTheirError(t *testing.T) {
	encrypted := skein.ErrorCodec{Encode: func(string) string { return "xxx" }}
	cases := []struct {
		name    string
		options skein.ServerOptions
		err     error
		want    string
	}{
		{name: "a text", err: errors.New("order 17 is gone"), want: "order # is gone"},
		{
			name: "a type",
			err:  fmt.Errorf("load %q: %w", "x", noOrder{17}),
			want: "skein_test.noOrder: load #: no order #",
		},
		{name: "an outcome", err: skein.Bury(noOrder{17}), want: "skein_test.noOrder: no order #"},
		{
			name: "a wrapped outcome",
			err:  fmt.Errorf("late: %w", skein.RetryIn(0, noOrder{1})),
			want: "skein_test.noOrder: late: retry in #s: no order #",
		},
		{name: "several errors", err: errors.Join(noOrder{1}, errBoom), want: "skein_test.noOrder: no order #"},
		{
			name: "a system call",
			err:  &fs.PathError{Op: "open", Path: "/a/17", Err: os.ErrNotExist},
			want: "open #: file does not exist",
		},
		{name: "a nil pointer", err: (*selfish)(nil), want: "panic in skein_test.(*selfish).As"},
		{
			name: "a text that panics",
			err:  mute{},
			want: "skein_test.mute: skein_test.mute, whose text can't be made: pani",
		},
		{name: "an Unwrap that panics", err: bottomless{}, want: "panic in skein_test.bottomless.Unwrap"},
		{
			name: "a wrapped error of a join of a join",
			err:  fmt.Errorf("a: %w", errors.Join(nil, errors.Join(fmt.Errorf("b: %w", noOrder{1}), errBoom))),
			want: "skein_test.noOrder: a: b: no order #",
		},
		{name: "a join of nothing", err: hollow{}, want: "skein_test.hollow: hollow"},
		{name: "a megabyte", err: errors.New(strings.Repeat("x1 ", 1<<20/3)), want: strings.Repeat("x# ", 22)[:64]},
		{name: "a megabyte that is quoted", err: fmt.Errorf("decode %q", strings.Repeat("x", 1<<20)), want: "decode #"},
		{name: "no UTF-8", err: errors.New("caf\xff\xfe \x00 late\n\nstack"), want: "caf late"},
		{name: "no text", err: skein.Bury(nil), want: "no reason given"},
		{name: "a panic", want: "panic in skein_test.panicsHere"},
		{
			name:    "FormatError",
			options: skein.ServerOptions{FormatError: func(error) string { return "secret" }},
			err:     noOrder{1},
			want:    "skein_test.noOrder: secret",
		},
		{
			name:    "ErrorCodec",
			options: skein.ServerOptions{ErrorCodec: encrypted},
			err:     noOrder{1},
			want:    "skein_test.noOrder",
		},
		{
			name:    "ErrorCodec and a plain error",
			options: skein.ServerOptions{ErrorCodec: encrypted},
			err:     errBoom,
			want:    core.OtherGroup,
		},
		{
			name:    "a hook",
			options: skein.ServerOptions{ErrorGroup: func(err error) string { return "orders\n" + err.Error() }},
			err:     noOrder{1},
			want:    "ordersno order 1",
		},
		{
			name:    "a long name",
			options: skein.ServerOptions{ErrorGroup: func(error) string { return strings.Repeat("é", 40) }},
			err:     errBoom,
			want:    strings.Repeat("é", 32),
		},
		{
			name:    "a hook that leaves it",
			options: skein.ServerOptions{ErrorGroup: func(error) string { return "" }},
			err:     noOrder{1},
			want:    "skein_test.noOrder: no order #",
		},
		{
			name:    "a hook that panics",
			options: skein.ServerOptions{ErrorGroup: func(error) string { panic("boom") }},
			err:     noOrder{1},
			want:    "skein_test.noOrder: no order #",
		},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			store := memory.New(memory.Options{})
			q := skein.NewQueue("q", skein.QueueOptions[int]{MaxRetries: skein.NoRetries})
			push(t, store, q, "a", 1)
			hook := make(chan string, 1)
			c.options.OnBuried = func(_ context.Context, b skein.Buried) error { hook <- b.Group; return nil }

			log := logged(t, store, c.options, q.Handler(func(_ context.Context, id string, _ []int) error {
				if c.err == nil {
					panicsHere(id)
				}
				return c.err
			}))

			reply, err := store.Groups(t.Context(), ports.GroupsRequest{Queue: "q"})
			if err != nil || len(reply.Groups) != 1 || reply.Groups[0].Name != c.want {
				t.Errorf("groups %+v, %v; want %q alone", reply.Groups, err, c.want)
			}
			equal(t, "the group of OnBuried", <-hook, c.want)
			if panics := c.name == "a hook that panics"; strings.Contains(log, "ErrorGroup panicked") != panics {
				t.Errorf("the log says:\n%s", log)
			}
		})
	}
}

// TestAPayloadHasTheGroupOfItsOwnError buries some payloads of a job, one since its codec refuses
// it.
func TestAPayloadHasTheGroupOfItsOwnError(t *testing.T) {
	store := memory.New(memory.Options{})
	q := skein.NewQueue("q", skein.QueueOptions[int]{})
	push(t, store, q, "a", 1)
	push(t, store, skein.NewQueue("q", skein.QueueOptions[string]{}), "b", "no number")

	logged(t, store, skein.ServerOptions{}, q.JobHandler(func(_ context.Context, j *skein.Job[int]) error {
		for i := range j.Payloads {
			j.Payloads[i].Bury(noOrder{17})
		}
		return nil
	}))

	got := map[string]string{}
	for _, id := range []string{"a", "b"} {
		found, err := store.Find(t.Context(), ports.FindRequest{Queue: "q", ID: id, Payloads: 1000})
		if err != nil || found.DeadLetter == nil {
			t.Fatalf("Find = %+v, %v; want a dead letter", found, err)
		}
		got[id] = found.DeadLetter.Group
	}
	equal(t, "groups", got, map[string]string{
		"a": "skein_test.noOrder: no order #",
		"b": "*json.UnmarshalTypeError: decode payload: json: cannot unmarshal",
	})
}
