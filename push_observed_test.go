package skein_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/ports"
)

// pushes keeps the events of pushes.
type pushes struct {
	skein.NopObserver
	all []skein.PushEvent
}

func (o *pushes) Pushed(_ context.Context, e skein.PushEvent) { o.all = append(o.all, e) }

// forgetful is a store that stores a part of the first push, and then reports that it has lost the
// queue.
type forgetful struct {
	skein.Store
	said bool
}

func (s *forgetful) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	if s.said || len(r.Entries) < 2 {
		return s.Store.Push(ctx, r)
	}
	s.said = true
	rest := make([]int, 0, len(r.Entries)-1)
	for i := 1; i < len(r.Entries); i++ {
		rest = append(rest, i)
	}
	r.Entries = r.Entries[:1]
	reply, err := s.Store.Push(ctx, r)
	if err != nil {
		return reply, err
	}
	return reply, &skein.PushError{Entries: rest, Err: ports.ErrUnknownQueue}
}

func TestAnObserverSeesWhatAPushMet(t *testing.T) {
	o := &pushes{}
	store := &forgetful{Store: memory.New(memory.Options{})}
	client := skein.NewClient(store, skein.ClientOptions{Observer: o})
	queue := skein.NewQueue("orders", skein.QueueOptions[string]{})
	push := func(entries ...skein.Entry[string]) {
		t.Helper()
		if err := queue.PushMany(t.Context(), client, entries); err != nil {
			t.Fatal(err)
		}
	}

	push(skein.Entry[string]{ID: "a", Payload: "p"})
	push(skein.Entry[string]{ID: "b", Payload: "p"}, skein.Entry[string]{ID: "a", Payload: "q"},
		skein.Entry[string]{ID: "a", Payload: "p"})
	want := []skein.PushEvent{
		{Queue: "orders", Entries: 1, New: 1},
		{Queue: "orders", Entries: 3, New: 1, Merged: 1, Duplicate: 1},
	}

	if diff := cmp.Diff(want, o.all, cmpopts.IgnoreFields(skein.PushEvent{}, "Took")); diff != "" {
		t.Errorf("pushes (-want +got):\n%s", diff)
	}

	if !store.said {
		t.Error("no part of a push was sent again; the test needs one")
	}
}
