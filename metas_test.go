package skein_test

import (
	"context"
	"strings"
	"testing"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// Metas come in the order of the payloads that a handler gets, without those that its codec
// refuses.
func TestHandlersGetTheMetasOfTheirPayloads(t *testing.T) {
	list := func(metas [][]byte) string {
		var words []string
		for _, m := range metas {
			words = append(words, string(m))
		}
		return strings.Join(words, ",")
	}
	var got []string
	note := func(words ...string) { got = append(got, strings.Join(words, " ")) }
	cases := []struct {
		name    string
		rule    skein.UndecodableRule
		handler func(*skein.Queue[string]) skein.Handler
		want    []string
	}{
		{"Each", skein.BuryUndecodable, func(q *skein.Queue[string]) skein.Handler {
			return q.Each(func(ctx context.Context, _, payload string) error {
				note(payload, list(skein.Metas(ctx)))
				return nil
			})
		}, []string{"one m1", "three ", "four m4"}},
		{"Handler", skein.BuryUndecodable, func(q *skein.Queue[string]) skein.Handler {
			return q.Handler(func(ctx context.Context, _ string, payloads []string) error {
				note(strings.Join(payloads, ","), list(skein.Metas(ctx)))
				return nil
			})
		}, []string{"one,three,four m1,,m4"}},
		{"Handler that waits for a codec", skein.RetryUndecodable, func(q *skein.Queue[string]) skein.Handler {
			return q.Handler(func(ctx context.Context, _ string, payloads []string) error {
				note(strings.Join(payloads, ","), list(skein.Metas(ctx)))
				return nil
			})
		}, []string{"one m1"}},
		{"BatchHandler", skein.BuryUndecodable, func(q *skein.Queue[string]) skein.Handler {
			return q.BatchHandler(func(ctx context.Context, _ *skein.Batch[string]) error {
				note(list(skein.Metas(ctx)))
				return nil
			})
		}, []string{""}},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got = nil
			store := memory.New(memory.Options{})
			q := skein.NewQueue("q", skein.QueueOptions[string]{Codec: bracketed{}, Undecodable: c.rule})
			push(t, store, q, "a", "one", skein.Meta([]byte("m1")))
			push(t, store, q, "a", "bad", skein.Meta([]byte("m2")))
			push(t, store, q, "a", "three")
			push(t, store, q, "a", "four", skein.Meta([]byte("m4")))
			runDue(t, store, skein.ServerOptions{}, c.handler(q))
			equal(t, "seen", got, c.want)
		})
	}

	if skein.Metas(t.Context()) != nil {
		t.Error("there are Metas outside a handler")
	}
}

// A goroutine that outlives its job gets no Meta, least of all that of another job of the batch.
func TestMetasOfAJobThatHasEnded(t *testing.T) {
	store := memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	queue := skein.NewQueue("q", skein.QueueOptions[int]{BatchSize: 2, Shards: 1})

	for n, id := range []string{"a", "b", "b"} {
		if err := queue.Push(t.Context(), client, id, n, skein.Meta([]byte("m"))); err != nil {
			t.Fatal(err)
		}
	}

	var ended context.Context
	calls := 0
	runDue(t, store, skein.ServerOptions{}, queue.Each(func(ctx context.Context, id string, _ int) error {
		calls++
		if id == "a" {
			ended = ctx
			return nil
		}
		if metas := skein.Metas(ended); metas != nil {
			t.Errorf("the ended job has the Metas %q", metas)
		}
		return nil
	}))

	if calls != 3 {
		t.Errorf("%d calls, want 3", calls)
	}
}
