package skein_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// TestWhatCannotBeIsAnErrorOfRun has mistakes in a server's configuration. Run must report them at
// once: its context has ended, so a server that starts returns nil.
func TestWhatCannotBeIsAnErrorOfRun(t *testing.T) {
	q := skein.NewQueue("q", skein.QueueOptions[string]{})
	store := memory.New(memory.Options{})
	ok := nop(q)
	type options = skein.ServerOptions

	cases := []struct {
		name    string
		server  *skein.Server
		want    error
		message string
	}{
		{"no store", skein.NewServer(nil, options{}, ok), skein.ErrInvalidOptions, "no store"},
		{"a nil store", skein.NewServer((*memory.Store)(nil), options{}, ok), skein.ErrInvalidOptions, "no store"},
		{
			"Handler(nil)",
			skein.NewServer(store, options{}, q.Handler(nil)),
			skein.ErrInvalidOptions,
			`queue "q": Handler(nil)`,
		},
		{
			"JobHandler(nil)",
			skein.NewServer(store, options{}, q.JobHandler(nil)),
			skein.ErrInvalidOptions,
			`queue "q": JobHandler(nil)`,
		},
		{
			"BatchHandler(nil)",
			skein.NewServer(store, options{}, q.BatchHandler(nil)),
			skein.ErrInvalidOptions,
			`queue "q": BatchHandler(nil)`,
		},
		{"Each(nil)", skein.NewServer(store, options{}, q.Each(nil)), skein.ErrInvalidOptions, `queue "q": Each(nil)`},
		{
			"a zero Handler",
			skein.NewServer(store, options{}, skein.Handler{}),
			skein.ErrInvalidOptions,
			"handler 1 of 1 is empty",
		},
		{
			"a zero Queue",
			skein.NewServer(store, options{}, nop(&skein.Queue[string]{})),
			skein.ErrInvalidQueue,
			"make it with NewQueue",
		},
		{"a nil Queue", skein.NewServer(store, options{}, nop(nil)), skein.ErrInvalidQueue, "make it with NewQueue"},
		{"an unknown rule",
			skein.NewServer(store, options{}, nop(skein.NewQueue("r", skein.QueueOptions[string]{Undecodable: 2}))),
			skein.ErrInvalidQueue, "Undecodable 2"},
		{"StrictBy a queue without a handler",
			skein.NewServer(store, options{Scheduler: skein.StrictBy("q", "typo")}, ok),
			skein.ErrInvalidOptions, `"typo", for which the server has no handler; it has one for each of ["q"]`},
		{"WeightedBy a queue without a handler",
			skein.NewServer(store, options{Scheduler: skein.WeightedBy(map[string]int{"typo": 2})}, ok),
			skein.ErrInvalidOptions, `"typo", for which the server has no handler`},
		{"a Scheduler that builds nil",
			skein.NewServer(store, options{Scheduler: func(skein.SchedulerConfig) skein.Scheduler { return nil }}, ok),
			skein.ErrInvalidOptions, "nil scheduler"},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ended, end := context.WithCancel(t.Context())
			end()
			if err := c.server.Run(ended); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.message) {
				t.Errorf("Run = %v, want %v that says %q", err, c.want, c.message)
			}
			if _, err := c.server.RunDue(t.Context()); !errors.Is(err, c.want) {
				t.Errorf("RunDue = %v, want %v", err, c.want)
			}
		})
	}

	if queues, err := store.Queues(t.Context()); err != nil || len(queues) != 0 {
		t.Errorf("Queues = %v, %v; want nothing declared", queues, err)
	}
}

func TestSchedulersMayNameTheQueuesThatAreServed(t *testing.T) {
	a, b := skein.NewQueue("a", skein.QueueOptions[string]{Shards: 1}),
		skein.NewQueue("b", skein.QueueOptions[string]{Shards: 1})
	for _, scheduler := range []skein.SchedulerFunc{
		skein.StrictBy("b", "a"), skein.WeightedBy(map[string]int{"a": 2}),
	} {
		ended, end := context.WithCancel(t.Context())
		end()
		// Each lane has a shard of one queue; the other is served all the same.
		o := skein.ServerOptions{Scheduler: scheduler, Lanes: 2, Logger: quiet}
		if err := skein.NewServer(memory.New(memory.Options{}), o, nop(a), nop(b)).Run(ended); err != nil {
			t.Errorf("Run = %v", err)
		}
	}
}

// TestWhatCannotBeIsAnErrorOfPush has mistakes of a push: nothing of it is stored.
func TestWhatCannotBeIsAnErrorOfPush(t *testing.T) {
	type middleware = []skein.PushMiddleware
	store := memory.New(memory.Options{})
	wrapped := func(m ...skein.PushMiddleware) *skein.Client {
		return skein.NewClient(store, skein.ClientOptions{Middleware: middleware(m)})
	}

	passing := func(change func(*skein.RawPush) *skein.RawPush) *skein.Client {
		return wrapped(func(next skein.PushFunc) skein.PushFunc {
			return func(ctx context.Context, p *skein.RawPush) error { return next(ctx, change(p)) }
		})
	}

	good := wrapped()
	q := skein.NewQueue("q", skein.QueueOptions[string]{})
	far := time.Unix(math.MaxInt64/1_000_000*30, 0) // its microseconds are no int64

	cases := []struct {
		name    string
		queue   *skein.Queue[string]
		client  *skein.Client
		options []skein.PushOption
		want    error
		message string
	}{
		{"a nil client", q, nil, nil, skein.ErrInvalidOptions, "no client"},
		{"a nil client's Via", q, (*skein.Client)(nil).Via(store), nil, skein.ErrInvalidOptions, "no client"},
		{"a zero client", q, &skein.Client{}, nil, skein.ErrInvalidOptions, "no client"},
		{
			"a client without a store",
			q,
			skein.NewClient(nil, skein.ClientOptions{}),
			nil,
			skein.ErrInvalidOptions,
			"no store",
		},
		{
			"a client with a nil store",
			q,
			skein.NewClient((*memory.Store)(nil), skein.ClientOptions{}),
			nil,
			skein.ErrInvalidOptions,
			"no store",
		},
		{"via nothing", q, good.Via(nil), nil, skein.ErrInvalidOptions, "no store"},
		{"a zero queue", &skein.Queue[string]{}, good, nil, skein.ErrInvalidQueue, "make it with NewQueue"},
		{"a nil queue", nil, good, nil, skein.ErrInvalidQueue, "make it with NewQueue"},
		{
			"a nil option",
			q,
			good,
			[]skein.PushOption{skein.Score(1), nil},
			skein.ErrInvalidOptions,
			"option 2 of the push is nil",
		},
		{"nil middleware", q, wrapped(nil), nil, skein.ErrInvalidOptions, "middleware 1 of 1 is nil"},
		{"middleware that builds nil", q, wrapped(func(skein.PushFunc) skein.PushFunc { return nil }), nil,
			skein.ErrInvalidOptions, "middleware 1 of 1 returned a nil PushFunc"},
		{"middleware that moves a push", q, passing(func(p *skein.RawPush) *skein.RawPush {
			p.Queue = "other"
			return p
		}), nil, skein.ErrInvalidOptions, `set the Queue of a push to "other" from "q"`},
		{"middleware that pushes something else", q, passing(func(p *skein.RawPush) *skein.RawPush {
			return &skein.RawPush{Queue: p.Queue, Entries: p.Entries}
		}), nil, skein.ErrInvalidOptions, "a RawPush of its own"},
		{"middleware that pushes nil", q, passing(func(*skein.RawPush) *skein.RawPush { return nil }), nil,
			skein.ErrInvalidOptions, "a RawPush of its own"},
		{
			"before 1970",
			q,
			good,
			[]skein.PushOption{skein.At(time.Unix(-1, 0))},
			skein.ErrInvalidTime,
			"1969-12-31 23:59:59",
		},
		{
			"after 2255",
			q,
			good,
			[]skein.PushOption{skein.At(time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC))},
			skein.ErrInvalidTime,
			"2300-01-01",
		},
		{
			"in 290 years",
			q,
			good,
			[]skein.PushOption{skein.In(290 * 365 * 24 * time.Hour)},
			skein.ErrInvalidTime,
			"to 2255-06-05",
		},
		{"a Score that panics",
			skein.NewQueue("q", skein.QueueOptions[string]{Score: func(string) float64 { panic("no such field") }}),
			good, nil, skein.ErrInvalidScore, "no such field"},
		{"very far in the future", q, good, []skein.PushOption{skein.At(far)}, skein.ErrInvalidTime, "to 2255-06-05"},
		{
			"very far in the past",
			q,
			good,
			[]skein.PushOption{skein.At(time.Unix(-far.Unix(), 0))},
			skein.ErrInvalidTime,
			"from 1970-01-01",
		},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := c.queue.PushMany(t.Context(), c.client,
				[]skein.Entry[string]{{ID: "a"}, {ID: "b", Options: c.options}})
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.message) {
				t.Errorf("PushMany = %v, want %v that says %q", err, c.want, c.message)
			}
		})
	}

	if queues, err := store.Queues(t.Context()); err != nil || len(queues) != 0 {
		t.Errorf("Queues = %v, %v; want nothing stored", queues, err)
	}
}

func TestClientMiddlewareIsBuiltOnce(t *testing.T) {
	built, calls := 0, 0
	client := skein.NewClient(memory.New(memory.Options{}), skein.ClientOptions{Middleware: []skein.PushMiddleware{
		func(next skein.PushFunc) skein.PushFunc {
			built++
			return func(ctx context.Context, p *skein.RawPush) error {
				calls++
				return next(ctx, p)
			}
		},
	}})
	for _, c := range []*skein.Client{client, client, client.Via(memory.New(memory.Options{}))} {
		if err := plain.Push(t.Context(), c, "a", "x"); err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "built, called", []int{built, calls}, []int{1, 3})
}
