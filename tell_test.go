package skein_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/ports"
)

func TestTellStoresWhatAPushMet(t *testing.T) {
	client := skein.NewClient(memory.New(memory.Options{}), skein.ClientOptions{})
	queue := skein.NewQueue("orders", skein.QueueOptions[string]{Merge: skein.Latest(2)})
	for _, tt := range []struct {
		payload string
		score   float64
		want    skein.Met
		text    string
	}{
		{"a", 1, skein.MetNew, "new"},
		{"b", 2, skein.MetMerged, "merged"},
		{"b", 3, skein.MetDuplicate, "duplicate"},
		{"c", 4, skein.MetMerged, "merged"},
		{"d", 0, skein.MetSuperseded, "superseded"},
	} {
		var met skein.Met
		if err := queue.Push(t.Context(), client, "42", tt.payload, skein.Score(tt.score), skein.Tell(&met)); err != nil {
			t.Fatal(err)
		}
		if met != tt.want || met.String() != tt.text {
			t.Errorf("%s at %v met %v, want %v", tt.payload, tt.score, met, tt.want)
		}
	}
}

// uncounted is a store that does not know what a push will meet, as in a transaction, or fails.
type uncounted struct {
	skein.Store
	err error
}

func (s uncounted) Push(context.Context, ports.PushRequest) (ports.PushReply, error) {
	return ports.PushReply{}, s.err
}

func TestTellWithoutAnAnswer(t *testing.T) {
	queue := skein.NewQueue("orders", skein.QueueOptions[string]{})
	push := func(err error, middleware ...skein.PushMiddleware) (met skein.Met, got error) {
		store := uncounted{memory.New(memory.Options{}), err}
		client := skein.NewClient(store, skein.ClientOptions{Middleware: middleware})
		got = queue.Push(t.Context(), client, "42", "a", skein.Tell(&met))
		return met, got
	}
	if met, err := push(nil); err != nil || met != skein.MetLater || met.String() != "later" {
		t.Errorf("a push that is decided later met %v, %v", met, err)
	}
	if met, err := push(errors.New("lost")); err == nil || met != skein.MetUnknown || met.String() != "unknown" {
		t.Errorf("a push of unknown outcome met %v, %v", met, err)
	}
	twice := func(next skein.PushFunc) skein.PushFunc {
		return func(ctx context.Context, p *skein.RawPush) error {
			p.Entries = append(p.Entries, p.Entries[0])
			return next(ctx, p)
		}
	}
	if met, err := push(nil, twice); err != nil || met != skein.MetUnknown {
		t.Errorf("a push to which middleware added an entry met %v, %v", met, err)
	}
}

func TestTellIsForOneEntry(t *testing.T) {
	store := memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	queue := skein.NewQueue("orders", skein.QueueOptions[string]{})
	var met skein.Met
	tell := []skein.PushOption{skein.Tell(&met)}
	err := queue.PushMany(t.Context(), client, []skein.Entry[string]{{ID: "a", Payload: "p"}, {ID: "b", Payload: "p", Options: tell}})
	if !errors.Is(err, skein.ErrInvalidOptions) || !strings.Contains(err.Error(), "push 2 of 2") {
		t.Errorf("PushMany of two returned %v", err)
	}
	if queues, err := store.Queues(t.Context()); err != nil || len(queues) > 0 {
		t.Errorf("the refused push declared %v, %v", queues, err)
	}
	if err := queue.PushMany(t.Context(), client, []skein.Entry[string]{{ID: "a", Payload: "p", Options: tell}}); err != nil || met != skein.MetNew {
		t.Errorf("PushMany of one met %v, %v", met, err)
	}
	if err := queue.Then(t.Context(), client, "a", "p", tell...); !errors.Is(err, skein.ErrInvalidOptions) || !strings.Contains(err.Error(), "Tell") {
		t.Errorf("Then returned %v", err)
	}
}

func TestQueuesRefuseInvalidMergeRules(t *testing.T) {
	client := skein.NewClient(memory.New(memory.Options{}), skein.ClientOptions{})
	for _, rule := range []skein.MergeRule{skein.Latest(-1), skein.Latest(0), skein.Latest(1001), {Keep: 1}} {
		queue := skein.NewQueue("orders", skein.QueueOptions[string]{Merge: rule})
		if err := queue.Push(t.Context(), client, "42", "a"); !errors.Is(err, skein.ErrInvalidQueue) {
			t.Errorf("a queue with %v: %v", rule, err)
		}
	}
}

// A program that declares a queue with another rule than the stored one gets an error that names
// the cure.
func TestAQueueKeepsItsMergeRule(t *testing.T) {
	client := skein.NewClient(memory.New(memory.Options{}), skein.ClientOptions{})
	push := func(rule skein.MergeRule) error {
		return skein.NewQueue("orders", skein.QueueOptions[string]{Merge: rule}).Push(t.Context(), client, "42", "a")
	}
	if err := push(skein.Newest()); err != nil {
		t.Fatal(err)
	}
	if err := push(skein.Union()); !errors.Is(err, skein.ErrQueueMismatch) || !strings.Contains(err.Error(), "newest, not union; declare it with newest") {
		t.Errorf("another rule: %v", err)
	}
	if err := push(skein.Newest()); err != nil {
		t.Error(err)
	}
}
