package skein_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/skeintest"
)

// The tags of all pushes for an id reach its handler and the middleware, and stay with a job that
// fails and with its dead letter.
func TestHandlersGetTheTagsOfTheirJob(t *testing.T) {
	store := skeintest.New()
	q := skein.NewQueue("q", skein.QueueOptions[string]{Shards: 1, MaxRetries: 1})
	var got []string
	handler := q.JobHandler(func(_ context.Context, j *skein.Job[string]) error {
		got = append(got, fmt.Sprint(j.ID, j.Retries, j.Tags))
		if j.ID == "none" {
			return nil
		}
		return errors.New("boom")
	})

	var seen [][]string
	o := skein.ServerOptions{Logger: quiet, Middleware: []skein.Middleware{func(next skein.RunFunc) skein.RunFunc {
		return func(ctx context.Context, b *skein.RawBatch) error {
			seen = append(seen, b.Jobs[0].Tags)
			return next(ctx, b)
		}
	}}}

	ctx := t.Context()
	for _, push := range []struct {
		id   string
		tags []skein.PushOption
	}{
		{"a", []skein.PushOption{skein.Tags("vip", "import-7"), skein.Tags("vip", "b")}},
		{"a", nil},
		{"a", []skein.PushOption{skein.Tags(), skein.Urgent(time.Second)}},
		{"a", []skein.PushOption{skein.Tags("A")}},
		{"none", []skein.PushOption{skein.Tags()}},
	} {
		if err := q.Push(ctx, store.Client, push.id, "p", push.tags...); err != nil {
			t.Fatal(err)
		}
	}

	server := skein.NewServer(store, o, handler)
	for range 2 {
		if _, err := server.RunDue(ctx); err != nil {
			t.Fatal(err)
		}
		store.Advance(24 * time.Hour)
	}

	want := []string{"a0 [A b import-7 vip]", "none0 []", "a1 [A b import-7 vip]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if len(seen) != 3 || len(seen[0]) != 4 || seen[1] != nil {
		t.Errorf("the middleware saw %q", seen)
	}

	found, err := inspect.New(store, inspect.Options{}).Find(ctx, "q", "a")
	if err != nil || found.DeadLetter == nil ||
		!slices.Equal(found.DeadLetter.Tags, []string{"A", "b", "import-7", "vip"}) {
		t.Errorf("the dead letter is %+v, %v", found.DeadLetter, err)
	}
}

func TestInvalidTagsAreRefused(t *testing.T) {
	store := memory.New(memory.Options{})
	q := skein.NewQueue("q", skein.QueueOptions[string]{})
	client := skein.NewClient(store, skein.ClientOptions{})

	for name, o := range map[string][]skein.PushOption{
		"empty":     {skein.Tags("a", "")},
		"long":      {skein.Tags(strings.Repeat("é", 33))},
		"not UTF-8": {skein.Tags("\xff")},
		"control":   {skein.Tags("a\nb")},
		"nine":      {skein.Tags("a", "b", "c", "d", "e"), skein.Tags("f", "g", "h", "i")},
	} {
		err := q.PushMany(t.Context(), client, []skein.Entry[string]{{ID: "a"}, {ID: "b", Options: o}})
		if !errors.Is(err, skein.ErrInvalidTag) || !strings.Contains(err.Error(), "push 2 of 2") {
			t.Errorf("%s: %v; want ErrInvalidTag", name, err)
		}
		if err := q.Then(t.Context(), client, "a", "p", o...); !errors.Is(err, skein.ErrInvalidTag) {
			t.Errorf("%s, by Then: %v; want ErrInvalidTag", name, err)
		}
	}

	queues, err := inspect.New(store, inspect.Options{}).Queues(t.Context())
	if err != nil || len(queues) > 0 {
		t.Errorf("a refused push has declared %v, %v", queues, err)
	}
	if err := q.Push(
		t.Context(), client, "a", "p", skein.Tags("a", "b", "c", "d", "e", "f", "g", strings.Repeat("é", 32), "a"),
	); err != nil {
		t.Errorf("8 tags, one of them twice: %v", err)
	}
}
