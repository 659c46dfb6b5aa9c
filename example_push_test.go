package skein_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"slices"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/skeintest"
)

// Payloads pushed for an id are merged into its job, in order of score. Equal payloads are one.
func ExampleQueue_Push() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{})
	client := skein.NewClient(store, skein.ClientOptions{})

	fmt.Println(orders.Push(ctx, client, "order-42", "paid", skein.Score(2)))
	fmt.Println(orders.Push(ctx, client, "order-42", "placed", skein.Score(1)))
	fmt.Println(orders.Push(ctx, client, "order-42", "paid", skein.Score(7)))
	fmt.Println(errors.Is(orders.Push(ctx, client, "", "paid"), skein.ErrInvalidID))

	show(ctx, store, "orders")
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// true
	// order-42: "placed" "paid"
}

// show prints a queue, job by job.
func show(ctx context.Context, store inspect.Store, queue string) {
	inspector := inspect.New(store, inspect.Options{})
	for job, err := range inspector.Jobs(ctx, queue, inspect.ListOptions{Payloads: 10}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s:", job.ID)
		for _, p := range job.Payloads {
			fmt.Printf(" %s", p.Data)
		}
		fmt.Println()
	}
}

// Operators find the jobs of an import, a tenant or a release by their tags.
func ExampleTags() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{})
	client := skein.NewClient(store, skein.ClientOptions{})
	for _, err := range []error{
		orders.Push(ctx, client, "order-1", "placed", skein.Tags("import-7")),
		orders.Push(ctx, client, "order-2", "placed"),
		orders.Push(ctx, client, "order-1", "paid", skein.Tags("vip")),
	} {
		if err != nil {
			log.Fatal(err)
		}
	}

	inspector := inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)})
	imported := func(j inspect.QueuedJob) bool { return slices.Contains(j.Tags, "import-7") }
	for job, err := range inspector.Jobs(ctx, "orders", inspect.ListOptions{}) {
		if err == nil && imported(job) {
			fmt.Println(job.ID, job.Tags)
		}
	}
	result, err := inspector.Delete(ctx, "orders", inspect.AllJobs(imported, inspect.BulkOptions{Payloads: -1}))
	fmt.Println(result.Handled, err)
	show(ctx, store, "orders")
	// Output:
	// order-1 [import-7 vip]
	// 1 <nil>
	// order-2: "placed"
}

// Where only some of the entries are known to be stored, a PushError names the
// others; pushing these again is safe.
func ExampleQueue_PushMany() {
	ctx, store := context.Background(), skeintest.New()
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{})
	entries := []skein.Entry[string]{
		{ID: "order-1", Payload: "paid"},
		{ID: "order-2", Payload: "paid"},
		{ID: "order-3", Payload: "paid", Options: []skein.PushOption{skein.In(time.Hour)}},
	}
	store.Fail(skeintest.Fault{ // the store of a test fails on demand
		Method: "Push", Times: 1, Err: &skein.PushError{Entries: []int{1}, Err: skein.ErrFull},
	})

	for len(entries) > 0 {
		err := orders.PushMany(ctx, store.Client, entries)
		fmt.Println(err)
		var partly *skein.PushError
		switch {
		case err == nil:
			entries = nil
		case errors.As(err, &partly):
			var again []skein.Entry[string]
			for _, at := range partly.Entries {
				again = append(again, entries[at])
			}
			entries = again
		default:
			log.Fatal(err)
		}
	}

	show(ctx, store, "orders")
	// Output:
	// 1 pushed entry is not stored: store is full
	// <nil>
	// order-1: "paid"
	// order-2: "paid"
	// order-3: "paid"
}

// Events that carry a number are handled in its order, whenever they arrive.
func ExampleScore() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{})
	client := skein.NewClient(store, skein.ClientOptions{})
	for number, event := range map[int]string{3: "shipped", 1: "placed", 2: "paid"} {
		if err := orders.Push(ctx, client, "order-42", event, skein.Score(float64(number))); err != nil {
			log.Fatal(err)
		}
	}
	show(ctx, store, "orders")
	// Output:
	// order-42: "placed" "paid" "shipped"
}

// The order is in the payload, so no push can forget it.
func ExampleQueueOptions_score() {
	type event struct {
		Version int
		What    string
	}

	ctx, store := context.Background(), memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[event]{
		Score: func(e event) float64 { return float64(e.Version) },
	})
	client := skein.NewClient(store, skein.ClientOptions{})

	for _, e := range []event{{2, "paid"}, {1, "placed"}} {
		if err := orders.Push(ctx, client, "order-42", e); err != nil {
			log.Fatal(err)
		}
	}

	show(ctx, store, "orders")
	// Output:
	// order-42: {"Version":1,"What":"placed"} {"Version":2,"What":"paid"}
}

// At and In set when a new job may run.
func ExampleAt() {
	ctx, nine := context.Background(), time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC)
	store := memory.New(memory.Options{Clock: func() time.Time { return nine }})
	mails := skein.NewQueue("mails", skein.QueueOptions[string]{})
	client := skein.NewClient(store, skein.ClientOptions{})

	err := mails.PushMany(ctx, client, []skein.Entry[string]{
		{ID: "ann", Payload: "hello", Options: []skein.PushOption{skein.At(nine.AddDate(0, 0, 1))}},
		{ID: "bob", Payload: "hello", Options: []skein.PushOption{skein.In(time.Hour)}},
		{ID: "cyd", Payload: "hello"},
	})
	if err != nil {
		log.Fatal(err)
	}

	for job, err := range inspect.New(store, inspect.Options{}).Jobs(ctx, "mails", inspect.ListOptions{}) {
		fmt.Println(job.ID, job.PerformAt.Format(time.DateTime), err)
	}
	// Output:
	// cyd 2030-01-01 09:00:00 <nil>
	// bob 2030-01-01 10:00:00 <nil>
	// ann 2030-01-02 09:00:00 <nil>
}

// due prints how long until each job of a queue may run.
func due(ctx context.Context, store *skeintest.Store, queue string) {
	for job, err := range store.Inspector.Jobs(ctx, queue, inspect.ListOptions{}) {
		fmt.Println(job.ID, "in", job.PerformAt.Sub(store.Now()), err)
	}
}

// By default a payload pushed onto a queued job waits for that job. With Earliest an urgent push
// takes the others along.
func ExampleEarliest() {
	ctx, store := context.Background(), skeintest.New()
	digests := skein.NewQueue("digests", skein.QueueOptions[string]{PushRule: skein.Earliest()})
	for _, in := range []time.Duration{24 * time.Hour, 5 * time.Minute, time.Hour} {
		if err := digests.Push(ctx, store.Client, "ann", in.String(), skein.In(in)); err != nil {
			log.Fatal(err)
		}
	}
	due(ctx, store, "digests")
	// Output:
	// ann in 5m0s <nil>
}

// An urgent job overtakes those that became due up to ten minutes earlier. It makes an id that
// waits for a later time due as well.
func ExampleUrgent() {
	ctx, store := context.Background(), skeintest.New()
	accounts := skein.NewQueue("accounts", skein.QueueOptions[string]{Shards: 1})
	for _, id := range []string{"ann", "bob", "eve"} {
		if err := accounts.Push(ctx, store.Client, id, "sync"); err != nil {
			log.Fatal(err)
		}
		store.Advance(time.Minute)
	}

	if err := accounts.Push(ctx, store.Client, "dan", "report", skein.In(24*time.Hour)); err != nil {
		log.Fatal(err)
	}
	if err := accounts.Push(ctx, store.Client, "dan", "password changed", skein.Urgent(10*time.Minute)); err != nil {
		log.Fatal(err)
	}

	handler := accounts.Handler(func(_ context.Context, id string, payloads []string) error {
		fmt.Println(id, payloads)
		return nil
	})

	if _, err := skein.NewServer(store, skein.ServerOptions{Lanes: 1}, handler).RunDue(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// dan [report password changed]
	// ann [sync]
	// bob [sync]
	// eve [sync]
}

// A document is indexed when it has been quiet for five seconds, and at the latest
// a minute after its first change.
func ExampleDebounce() {
	ctx, store := context.Background(), skeintest.New()
	index := skein.NewQueue("index", skein.QueueOptions[string]{PushRule: skein.Debounce(5*time.Second, time.Minute)})
	change := func() {
		if err := index.Push(ctx, store.Client, "doc-7", "changed"); err != nil {
			log.Fatal(err)
		}
	}
	change()
	store.Advance(4 * time.Second)
	change()
	due(ctx, store, "index")

	store.Advance(54 * time.Second) // 58 seconds after the first change
	change()
	due(ctx, store, "index")
	// Output:
	// doc-7 in 5s <nil>
	// doc-7 in 2s <nil>
}

// Meta goes along with a payload, and is no part of it.
func ExampleMeta() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{})
	client := skein.NewClient(store, skein.ClientOptions{})
	if err := orders.Push(ctx, client, "order-42", "paid", skein.Meta([]byte("request-9"))); err != nil {
		log.Fatal(err)
	}

	handler := orders.Each(func(ctx context.Context, _ string, what string) error {
		fmt.Printf("%s of %s\n", what, skein.Metas(ctx)[0])
		return nil
	})
	if _, err := skein.NewServer(store, skein.ServerOptions{}, handler).RunDue(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// paid of request-9
}

// Client middleware sees each push encoded: it may watch, change or refuse it.
func ExampleClientOptions_middleware() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{})
	trace := func(next skein.PushFunc) skein.PushFunc {
		return func(ctx context.Context, push *skein.RawPush) error {
			for i := range push.Entries {
				push.Entries[i].Meta = []byte("request-9")
			}
			err := next(ctx, push)
			fmt.Println("pushed", len(push.Entries), "to", push.Queue, err)
			return err
		}
	}

	refuse := func(next skein.PushFunc) skein.PushFunc {
		return func(ctx context.Context, push *skein.RawPush) error {
			if push.Entries[0].ID == "order-13" {
				return errors.New("not that one")
			}
			return next(ctx, push)
		}
	}

	client := skein.NewClient(store, skein.ClientOptions{Middleware: []skein.PushMiddleware{trace, refuse}})
	for _, id := range []string{"order-13", "order-42"} {
		if err := orders.Push(ctx, client, id, "paid"); err != nil {
			fmt.Println(id, "was refused:", err)
		}
	}
	// Output:
	// pushed 1 to orders not that one
	// order-13 was refused: not that one
	// pushed 1 to orders <nil>
}

// transaction stands for one on the store's database: entries pushed through it are stored when it
// commits.
type transaction struct {
	ports.Producer
	pending []ports.PushRequest
}

// Push implements ports.Producer.
func (tx *transaction) Push(_ context.Context, r ports.PushRequest) (ports.PushReply, error) {
	tx.pending = append(tx.pending, r)
	return ports.PushReply{}, nil
}

// Commit stores the pushed entries.
func (tx *transaction) Commit(ctx context.Context) error {
	for _, r := range tx.pending {
		if _, err := tx.Producer.Push(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// Via pushes through another producer, with the client's middleware and observer.
func ExampleClient_Via() {
	ctx, store := context.Background(), memory.New(memory.Options{})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{})
	client := skein.NewClient(store, skein.ClientOptions{})

	tx := &transaction{Producer: store}
	if err := orders.Push(ctx, client.Via(tx), "order-42", "paid"); err != nil {
		log.Fatal(err)
	}
	fmt.Println("before the commit:")
	show(ctx, store, "orders")
	if err := tx.Commit(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("after it:")
	show(ctx, store, "orders")
	// Output:
	// before the commit:
	// after it:
	// order-42: "paid"
}
