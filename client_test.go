package skein_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/skeintest"
)

var plain = skein.NewQueue("plain", skein.QueueOptions[string]{Shards: 3})

func queued(t *testing.T, store ports.ShardStore, queue, id string) core.Job {
	t.Helper()
	found, err := store.Find(t.Context(), ports.FindRequest{Queue: queue, ID: id, Payloads: 1000})
	if err != nil || found.Queued == nil {
		t.Fatalf("Find(%q) = %+v, %v; want it queued", id, found, err)
	}
	return found.Queued.Job
}

func TestPushOptions(t *testing.T) {
	now := time.UnixMicro(1_800_000_000_123_456)
	cases := []struct {
		name    string
		options []skein.PushOption
		want    core.Payload
		at      time.Duration
	}{
		{"a score", []skein.PushOption{skein.Score(7)}, core.Payload{Score: 7}, 0},
		{"minus zero is zero", []skein.PushOption{skein.Score(math.Copysign(0, -1))}, core.Payload{}, 0},
		{
			"meta",
			[]skein.PushOption{skein.Score(1), skein.Meta([]byte("trace"))},
			core.Payload{Score: 1, Meta: []byte("trace")},
			0,
		},
		{
			"at a time",
			[]skein.PushOption{skein.Score(1), skein.At(now.Add(time.Hour))},
			core.Payload{Score: 1},
			time.Hour,
		},
		{"at no time is now", []skein.PushOption{skein.Score(1), skein.At(time.Time{})}, core.Payload{Score: 1}, 0},
		{"in a while", []skein.PushOption{skein.Score(1), skein.In(time.Minute)}, core.Payload{Score: 1}, time.Minute},
		{
			"the last wins",
			[]skein.PushOption{skein.Score(1), skein.Score(2), skein.In(1), skein.At(now)},
			core.Payload{Score: 2},
			0,
		},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			store := memory.New(memory.Options{Clock: func() time.Time { return now }})
			push(t, store, plain, "a", "x", c.options...)
			job := queued(t, store, "plain", "a")
			c.want.Data = []byte(`"x"`)
			equal(t, "payload", job.Payloads, []core.Payload{c.want})
			if math.Signbit(job.Payloads[0].Score) {
				t.Error("the score is below zero")
			}
			equal(t, "time", job.PerformAt.Sub(core.InstantOf(now)), c.at)
		})
	}
}

func TestBadInputIsRefusedAndNothingOfItIsStored(t *testing.T) {
	cases := []struct {
		name  string
		entry skein.Entry[string]
		want  error
	}{
		{"no id", skein.Entry[string]{}, skein.ErrInvalidID},
		{"a control character", skein.Entry[string]{ID: "a\n"}, skein.ErrInvalidID},
		{"not UTF-8", skein.Entry[string]{ID: "\xff"}, skein.ErrInvalidID},
		{"a long id", skein.Entry[string]{ID: strings.Repeat("a", 513)}, skein.ErrInvalidID},
		{
			"not a number",
			skein.Entry[string]{ID: "a", Options: []skein.PushOption{skein.Score(math.NaN())}},
			skein.ErrInvalidScore,
		},
		{
			"infinity",
			skein.Entry[string]{ID: "a", Options: []skein.PushOption{skein.Score(math.Inf(1))}},
			skein.ErrInvalidScore,
		},
		{
			"before the epoch",
			skein.Entry[string]{ID: "a", Options: []skein.PushOption{skein.At(time.Unix(-1, 0))}},
			skein.ErrInvalidTime,
		},
		{
			"far away",
			skein.Entry[string]{ID: "a", Options: []skein.PushOption{skein.At(time.Unix(1<<34, 0))}},
			skein.ErrInvalidTime,
		},
		{
			"long meta",
			skein.Entry[string]{ID: "a", Options: []skein.PushOption{skein.Meta(make([]byte, 257))}},
			skein.ErrInvalidPayload,
		},
		{
			"a large payload",
			skein.Entry[string]{ID: "a", Payload: strings.Repeat("a", 512<<10)},
			skein.ErrInvalidPayload,
		},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			store := memory.New(memory.Options{})
			client := skein.NewClient(store, skein.ClientOptions{})
			push(t, store, plain, "before", "x")
			err := plain.PushMany(t.Context(), client, []skein.Entry[string]{{ID: "good"}, c.entry})
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "push 2 of 2") {
				t.Errorf("PushMany = %v, want %v that names the entry", err, c.want)
			}

			stats, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"plain"}})
			if err != nil || stats[0].Fresh != 1 {
				t.Errorf("Stats = %+v, %v; want only the job from before", stats, err)
			}
		})
	}
}

func TestAnUnencodablePayloadIsRefused(t *testing.T) {
	q := skein.NewQueue("floats", skein.QueueOptions[float64]{})
	err := q.Push(t.Context(), skein.NewClient(memory.New(memory.Options{}), skein.ClientOptions{}), "a", math.NaN())
	if !errors.Is(err, skein.ErrInvalidPayload) {
		t.Errorf("Push = %v, want ErrInvalidPayload", err)
	}
}

func TestDefaultScoresOfAClientRise(t *testing.T) {
	synctest.Test(t, defaultScoresOfAClientRise)
}

func defaultScoresOfAClientRise(t *testing.T) {
	store := memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	start := float64(time.Now().UnixMicro()) / 1e6

	var entries []skein.Entry[string]
	for i := range 400 {
		entries = append(entries, skein.Entry[string]{ID: "a", Payload: fmt.Sprint(i)})
	}
	for chunk := range slices.Chunk(entries, 7) {
		if err := plain.PushMany(t.Context(), client.Via(store), chunk); err != nil {
			t.Fatal(err)
		}
	}

	last := math.Nextafter(start, 0)
	for i, p := range queued(t, store, "plain", "a").Payloads {
		if string(p.Data) != fmt.Sprintf("%q", fmt.Sprint(i)) {
			t.Fatalf("payload %d is %s: not in the order of pushing", i, p.Data)
		}
		if p.Score-last < 0.9e-6 && i > 0 {
			t.Errorf("score %d rises by %v s, want at least a microsecond", i, p.Score-last)
		}
		last = p.Score
	}

	if now := float64(time.Now().UnixMicro())/1e6 + 400e-6; last < start || last > now {
		t.Errorf("last score %v, want the time in seconds, %v to %v", last, start, now)
	}
}

func TestClientMiddlewareSeesAndChangesEntries(t *testing.T) {
	store := memory.New(memory.Options{})
	var notes []string
	refused := errors.New("refused")
	note := func(name string) skein.PushMiddleware {
		return func(next skein.PushFunc) skein.PushFunc {
			return func(ctx context.Context, p *skein.RawPush) error {
				notes = append(notes, fmt.Sprintf("%s %s %s %s", name, p.Queue, p.Entries[0].ID, p.Entries[0].Data))
				if p.Entries[0].ID == "secret" {
					return refused
				}
				p.Entries[0].Meta = append(p.Entries[0].Meta, name...)
				return next(ctx, p)
			}
		}
	}

	seen := &watcher{}
	client := skein.NewClient(store, skein.ClientOptions{
		Middleware: []skein.PushMiddleware{note("outer"), note("inner")},
		Observer:   seen,
	})

	if err := plain.Push(t.Context(), client, "a", "x"); err != nil {
		t.Fatal(err)
	}
	if err := plain.Push(t.Context(), client, "secret", "x"); !errors.Is(err, refused) {
		t.Errorf("Push = %v, want what the middleware returned", err)
	}

	equal(t, "notes", notes, []string{`outer plain a "x"`, `inner plain a "x"`, `outer plain secret "x"`})
	equal(t, "meta", string(queued(t, store, "plain", "a").Payloads[0].Meta), "outerinner")
	equal(t, "pushed", seen.counts, map[string]int{"pushed": 1})
}

// flaky refuses pushes as its function decides.
type flaky struct {
	ports.Producer
	pushes int
	refuse func(n int, r ports.PushRequest) error
}

func (f *flaky) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	f.pushes++
	if err := f.refuse(f.pushes, r); err != nil {
		return ports.PushReply{}, err
	}
	return f.Producer.Push(ctx, r)
}

func TestAPushToAStoreThatLostTheQueueDeclaresItAnew(t *testing.T) {
	for name, lost := range map[string]error{
		"all entries":  ports.ErrUnknownQueue,
		"some entries": &ports.PushError{Entries: []int{0, 2}, Err: ports.ErrShardCountMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			store := memory.New(memory.Options{})
			var sizes []int
			f := &flaky{Producer: store, refuse: func(n int, r ports.PushRequest) error {
				sizes = append(sizes, len(r.Entries))
				if n == 2 {
					return lost
				}
				return nil
			}}

			client := skein.NewClient(f, skein.ClientOptions{})
			push := func() error {
				return plain.PushMany(t.Context(), client, []skein.Entry[string]{{ID: "a"}, {ID: "b"}, {ID: "c"}})
			}

			if err := errors.Join(push(), push()); err != nil {
				t.Fatal(err)
			}

			again := 3
			if name == "some entries" {
				again = 2
			}
			equal(t, "entries of each push", sizes, []int{3, 3, again})
		})
	}
}

// If a push's context had ended before, the error states that nothing is stored, and the store is
// not called.
func TestAPushThatIsNotBegunSaysThatNothingIsStored(t *testing.T) {
	f := &flaky{Producer: memory.New(memory.Options{}), refuse: func(int, ports.PushRequest) error { return nil }}
	client := skein.NewClient(f, skein.ClientOptions{})
	ended, end := context.WithCancel(t.Context())
	end()
	err := plain.Push(ended, client, "a", "x")
	if !errors.Is(err, skein.ErrNotBegun) || !errors.Is(err, context.Canceled) {
		t.Errorf("Push = %v, want ErrNotBegun and the context's error", err)
	}
	equal(t, "text", err.Error(), `push to queue "plain": the call was not begun, nothing is stored: context canceled`)
	equal(t, "calls of the store", f.pushes, 0)
}

func TestAPartlyFailedPushNamesItsEntries(t *testing.T) {
	down := errors.New("connection refused")
	f := &flaky{Producer: memory.New(memory.Options{}), refuse: func(n int, _ ports.PushRequest) error {
		switch n {
		case 2:
			return &ports.PushError{Entries: []int{1, 3}, Err: ports.ErrUnknownQueue}
		case 3:
			return &ports.PushError{Entries: []int{1}, Err: down}
		}
		return nil
	}}

	client := skein.NewClient(f, skein.ClientOptions{})
	entries := []skein.Entry[string]{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}
	if err := plain.PushMany(t.Context(), client, entries); err != nil {
		t.Fatal(err)
	}

	err := plain.PushMany(t.Context(), client, entries)
	var partly *skein.PushError
	if !errors.As(err, &partly) || !errors.Is(err, down) {
		t.Fatalf("PushMany = %v, want a PushError around the cause", err)
	}
	equal(t, "entries not known to be stored", partly.Entries, []int{3})
}

// The stored entries of a push are not among the failed ones, whatever keeps the client from
// sending the rest again.
func TestARestThatCannotBeSentAgainIsNamed(t *testing.T) {
	for name, cause := range map[string]error{
		"of unknown outcome": errors.New("connection refused"),
		"refused":            ports.ErrUnusable,
	} {
		for _, method := range []string{"Push", "Declare"} {
			t.Run(method+" "+name, func(t *testing.T) {
				store := skeintest.NewFailingStore(memory.New(memory.Options{}))
				client := skein.NewClient(store, skein.ClientOptions{})
				entries := []skein.Entry[string]{{ID: "a"}, {ID: "b"}, {ID: "c"}}
				if err := plain.PushMany(t.Context(), client, entries); err != nil {
					t.Fatal(err)
				}

				store.Fail(skeintest.Fault{
					Method: "Push",
					Times:  1,
					Err:    &ports.PushError{Entries: []int{1, 2}, Err: ports.ErrUnknownQueue},
				})
				store.Fail(skeintest.Fault{Method: method, Err: cause})

				err := plain.PushMany(t.Context(), client, entries)
				var partly *skein.PushError
				if !errors.As(err, &partly) || !errors.Is(err, cause) {
					t.Fatalf("PushMany = %v, want a PushError around the cause", err)
				}
				equal(t, "entries not known to be stored", partly.Entries, []int{1, 2})
			})
		}
	}
}

func TestPushingNothingIsNoError(t *testing.T) {
	if err := plain.PushMany(t.Context(), skein.NewClient(nil, skein.ClientOptions{}), nil); err != nil {
		t.Errorf("PushMany of nothing = %v", err)
	}
}

func TestViaPushesThroughTheOtherProducer(t *testing.T) {
	store, other := memory.New(memory.Options{}), memory.New(memory.Options{})
	calls := 0
	client := skein.NewClient(store, skein.ClientOptions{Middleware: []skein.PushMiddleware{
		func(next skein.PushFunc) skein.PushFunc {
			return func(ctx context.Context, p *skein.RawPush) error {
				calls++
				return next(ctx, p)
			}
		},
	}})

	if err := plain.Push(t.Context(), client.Via(other), "a", "x"); err != nil {
		t.Fatal(err)
	}
	queued(t, other, "plain", "a")
	if _, err := store.Find(
		t.Context(), ports.FindRequest{Queue: "plain", ID: "a", Payloads: 1000},
	); !errors.Is(err, ports.ErrUnknownQueue) {
		t.Errorf("Find in the client's own store = %v, want ErrUnknownQueue", err)
	}
	equal(t, "middleware calls", calls, 1)
}

func TestAClientNoticesAnotherIndexOfAQueueItKnows(t *testing.T) {
	client := skein.NewClient(memory.New(memory.Options{}), skein.ClientOptions{})
	push := func(o skein.QueueOptions[string]) error {
		return skein.NewQueue("orders", o).Push(t.Context(), client, "order-1", "placed")
	}
	if err := push(skein.QueueOptions[string]{}); err != nil {
		t.Fatal(err)
	}
	if err := push(skein.QueueOptions[string]{IndexIDs: true}); !errors.Is(err, skein.ErrQueueMismatch) {
		t.Errorf("a push with IndexIDs: %v, want ErrQueueMismatch", err)
	}
}

// badObserver panics at each push.
type badObserver struct{ skein.NopObserver }

func (badObserver) Pushed(context.Context, skein.PushEvent) { panic("observed") }

func TestAPanicOfTheObserverHarmsNoPush(t *testing.T) {
	store := memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{Observer: badObserver{}})
	if err := plain.Push(t.Context(), client, "a", "x"); err != nil {
		t.Errorf("the push failed: %v", err)
	}
	queued(t, store, "plain", "a")
}
