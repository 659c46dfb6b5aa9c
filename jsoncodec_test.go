package skein_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
)

type label struct {
	Text   string
	Number int64
	Fields map[string]int `json:",omitempty"`
}

func TestCanonicalJSONIsWritten(t *testing.T) {
	for _, c := range []struct {
		payload          label
		plain, canonical string
	}{
		{
			label{Text: "<é>", Number: 7, Fields: map[string]int{"\ufb33": 1, "😀": 2}},
			"{\"Text\":\"\\u003cé\\u003e\",\"Number\":7,\"Fields\":{\"\ufb33\":1,\"😀\":2}}",
			"{\"Fields\":{\"😀\":2,\"\ufb33\":1},\"Number\":7,\"Text\":\"<é>\"}",
		},
		{label{Number: 1 << 53}, `{"Text":"","Number":9007199254740992}`, `{"Number":9007199254740992,"Text":""}`},
		{label{Number: 1<<53 + 1}, `{"Text":"","Number":9007199254740993}`, ``},
	} {
		for codec, want := range map[skein.JSONCodec[label]]string{{}: c.plain, {Canonical: true}: c.canonical} {
			got, err := codec.Encode(c.payload)
			if string(got) != want || (err == nil) != (want != "") {
				t.Errorf("%+v: %+v: %s, %v; want %s", codec, c.payload, got, err, want)
			}
		}
	}
}

// A push whose payload has no canonical form is refused with the cure.
func TestCanonicalJSONRefusesInexactNumbers(t *testing.T) {
	ids := skein.NewQueue("ids", skein.QueueOptions[int64]{Codec: skein.JSONCodec[int64]{Canonical: true}})
	client := skein.NewClient(memory.New(memory.Options{}), skein.ClientOptions{})
	err := ids.Push(t.Context(), client, "a", 1<<53+1)
	if !errors.Is(err, skein.ErrInvalidPayload) || !strings.Contains(err.Error(), "write it as a string") {
		t.Error(err)
	}
	if err := ids.Push(t.Context(), client, "a", 1<<53-1); err != nil {
		t.Error(err)
	}
}

func TestStrictJSONRefusesWhatTheTypeLacks(t *testing.T) {
	for _, c := range []struct {
		data            string
		lenient, strict string // errors
	}{
		{`{"Text":"a","Number":7}`, "", ""},
		{` {"text":"a"} ` + "\n", "", ""},
		{`{"Text":"a","No":7}`, "", `unknown field "No", and the codec is strict; deploy a type that has the field`},
		{`{"Text":"a"} {"Text":"b"}`, "after top-level value", "after top-level value"},
		{`{"Text":"a"} }`, "after top-level value", "after top-level value"},
		{`{"Text":"a"`, "unexpected end", "unexpected EOF"},
		{`{"Text":7}`, "cannot unmarshal number", "cannot unmarshal number"},
		{``, "unexpected end", "EOF"},
	} {
		for codec, want := range map[skein.JSONCodec[label]]string{{}: c.lenient, {Strict: true}: c.strict} {
			_, err := codec.Decode([]byte(c.data))
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %s: %v; want %q", codec, c.data, err, want)
			}
		}
	}
}

// A payload of a renamed field is lost without Strict, and kept in the morgue with it.
func TestStrictJSONKeepsARenamedField(t *testing.T) {
	type before struct{ No int }
	type after struct{ Number int }
	former := skein.NewQueue("orders", skein.QueueOptions[before]{})
	for strict, want := range map[bool]int64{false: 0, true: 1} {
		store := memory.New(memory.Options{})
		if err := former.Push(t.Context(), skein.NewClient(store, skein.ClientOptions{}), "a", before{7}); err != nil {
			t.Fatal(err)
		}

		orders := skein.NewQueue("orders", skein.QueueOptions[after]{Codec: skein.JSONCodec[after]{Strict: strict}})
		handler := orders.Each(func(context.Context, string, after) error { return nil })
		if _, err := skein.NewServer(store, skein.ServerOptions{}, handler).RunDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		stats, err := inspect.New(store, inspect.Options{}).Stats(t.Context(), "orders")
		if err != nil || stats[0].Dead != want {
			t.Errorf("strict %v: %+v, %v; want %d dead letters", strict, stats, err, want)
		}
	}
}
