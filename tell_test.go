package skein_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	}{
		{"a", 1, skein.Met{New: 1}},
		{"b", 2, skein.Met{Merged: 1}},
		{"b", 3, skein.Met{Duplicate: 1}},
		{"c", 4, skein.Met{Merged: 1}},
		{"d", 0, skein.Met{Superseded: 1}},
	} {
		met := skein.Met{Later: 7} // of an earlier call
		if err := queue.Push(
			t.Context(), client, "42", tt.payload, skein.Score(tt.score), skein.Tell(&met),
		); err != nil {
			t.Fatal(err)
		}
		if met != tt.want {
			t.Errorf("%s at %v met %+v, want %+v", tt.payload, tt.score, met, tt.want)
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

	if met, err := push(nil); err != nil || met != (skein.Met{Later: 1}) {
		t.Errorf("a push that is decided later met %+v, %v", met, err)
	}
	if met, err := push(errors.New("lost")); err == nil || met != (skein.Met{}) {
		t.Errorf("a push of unknown outcome met %+v, %v", met, err)
	}

	twice := func(next skein.PushFunc) skein.PushFunc {
		return func(ctx context.Context, p *skein.RawPush) error {
			p.Entries = append(p.Entries, p.Entries[0])
			return next(ctx, p)
		}
	}
	if met, err := push(nil, twice); err != nil || met != (skein.Met{Later: 2}) {
		t.Errorf("a push to which middleware added an entry met %+v, %v", met, err)
	}
}

func TestTellIsForAWholePush(t *testing.T) {
	store := memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	queue := skein.NewQueue("orders", skein.QueueOptions[string]{})
	var met skein.Met
	tell := []skein.PushOption{skein.Tell(&met)}
	err := queue.PushMany(t.Context(), client,
		[]skein.Entry[string]{{ID: "a", Payload: "p"}, {ID: "b", Payload: "p", Options: tell}})
	if !errors.Is(err, skein.ErrInvalidOptions) || !strings.Contains(err.Error(), "push 2 of 2") {
		t.Errorf("PushMany of two returned %v", err)
	}
	if queues, err := store.Queues(t.Context()); err != nil || len(queues) > 0 {
		t.Errorf("the refused push declared %v, %v", queues, err)
	}
	if err := queue.PushMany(
		t.Context(), client, []skein.Entry[string]{{ID: "a", Payload: "p", Options: tell}},
	); err != nil || met != (skein.Met{New: 1}) {
		t.Errorf("PushMany of one met %+v, %v", met, err)
	}
	if err := queue.Then(t.Context(), client, "a", "p", tell...); !errors.Is(err, skein.ErrInvalidOptions) ||
		!strings.Contains(err.Error(), "Tell") {
		t.Errorf("Then returned %v", err)
	}
}

// Tell counts each entry of a push once, also if the store lost the queue in between.
func TestTellCountsWhatEachEntryMet(t *testing.T) {
	store := &forgetful{Store: memory.New(memory.Options{})}
	client := skein.NewClient(store, skein.ClientOptions{})
	queue := skein.NewQueue("orders", skein.QueueOptions[string]{Merge: skein.Latest(2)})

	entry := func(id, payload string, score float64) skein.Entry[string] {
		return skein.Entry[string]{ID: id, Payload: payload, Options: []skein.PushOption{skein.Score(score)}}
	}
	counts := skein.Met{Later: 7} // of an earlier call
	for _, tt := range []struct {
		entries []skein.Entry[string]
		want    skein.Met
	}{
		{[]skein.Entry[string]{entry("a", "p", 1)}, skein.Met{New: 1}},
		{[]skein.Entry[string]{
			entry("b", "p", 1), entry("c", "p", 1), // new
			entry("a", "p", 2),                     // a duplicate
			entry("a", "q", 3), entry("a", "r", 4), // merged
			entry("a", "s", 0), // superseded
		}, skein.Met{New: 2, Merged: 2, Duplicate: 1, Superseded: 1}},
		{nil, skein.Met{}},
	} {
		if err := queue.PushMany(t.Context(), client, tt.entries, skein.Tell(&counts)); err != nil {
			t.Fatal(err)
		}
		equal(t, fmt.Sprintf("what %d entries met", len(tt.entries)), counts, tt.want)
	}

	if !store.said {
		t.Error("no part of a push was sent again; the test needs one")
	}
}

func TestTellOfManyWithoutAnAnswer(t *testing.T) {
	queue := skein.NewQueue("orders", skein.QueueOptions[string]{})
	entries := []skein.Entry[string]{{ID: "a", Payload: "p"}, {ID: "b", Payload: "p"}}
	push := func(store skein.Store, options ...skein.PushManyOption) (counts skein.Met, err error) {
		counts.New = 7 // of an earlier call
		err = queue.PushMany(t.Context(), skein.NewClient(store, skein.ClientOptions{}), entries,
			append(options, skein.Tell(&counts))...)
		return counts, err
	}
	if counts, err := push(uncounted{memory.New(memory.Options{}), nil}); err != nil ||
		counts != (skein.Met{Later: 2}) {
		t.Errorf("a push that is decided later met %+v, %v", counts, err)
	}
	if counts, err := push(uncounted{memory.New(memory.Options{}), errors.New("lost")}); err == nil ||
		counts != (skein.Met{}) {
		t.Errorf("a push of unknown outcome met %+v, %v", counts, err)
	}
	if counts, err := push(&halved{memory.New(memory.Options{})}); err == nil || counts != (skein.Met{New: 1}) {
		t.Errorf("a push that was stored in part met %+v, %v", counts, err)
	}
	if _, err := push(memory.New(memory.Options{}), nil); !errors.Is(err, skein.ErrInvalidOptions) {
		t.Errorf("a nil option: %v", err)
	}
}

// halved is a store that stores the first entry of a push, and fails for the others.
type halved struct{ skein.Store }

func (s *halved) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	var rest []int
	for i := 1; i < len(r.Entries); i++ {
		rest = append(rest, i)
	}
	r.Entries = r.Entries[:1]
	reply, err := s.Store.Push(ctx, r)
	return reply, errors.Join(err, &skein.PushError{Entries: rest, Err: errors.New("lost")})
}

func TestQueuesRefuseInvalidMergeRules(t *testing.T) {
	client := skein.NewClient(memory.New(memory.Options{}), skein.ClientOptions{})
	const all = "; to keep all payloads use union, newest or every"
	for _, tt := range []struct {
		rule skein.MergeRule
		says string
	}{
		{skein.Latest(-1), "latest(-1): give 1 to 1000" + all},
		{skein.Latest(0), "latest(0): give 1 to 1000" + all},
		{skein.Every().Last(0), "every.last(0): give 1 to 1000" + all},
		{skein.Latest(1001), "latest(1001): give 1 to 1000"},
		{skein.Latest(math.MinInt), ": give 1 to 1000"},
		{skein.MergeRule{Keep: 1}, "Keep 1 with the smaller score"},
	} {
		queue := skein.NewQueue("orders", skein.QueueOptions[string]{Merge: tt.rule})
		if err := queue.Push(t.Context(), client, "42", "a"); !errors.Is(err, skein.ErrInvalidQueue) ||
			!strings.Contains(err.Error(), tt.says) {
			t.Errorf("a queue with %v: %v, want ErrInvalidQueue with %q", tt.rule, err, tt.says)
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
	if err := push(skein.Union()); !errors.Is(err, skein.ErrQueueMismatch) ||
		!strings.Contains(err.Error(), "newest, not union; declare it with newest") {
		t.Errorf("another rule: %v", err)
	}
	if err := push(skein.Newest()); err != nil {
		t.Error(err)
	}
}
