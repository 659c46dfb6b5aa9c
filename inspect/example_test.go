package inspect_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"net/url"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// stocked returns a store with three queued mails. It is 10 minutes past nine there,
// and the first mail has been due for that long.
func stocked(ctx context.Context) *memory.Store {
	nine := time.Date(2030, 1, 2, 9, 0, 0, 0, time.UTC)
	now := nine
	store := memory.New(memory.Options{Clock: func() time.Time { return now }})
	client := skein.NewClient(store, skein.ClientOptions{})
	mails := skein.NewQueue[string]("mails", skein.QueueOptions[string]{})
	for n, id := range []string{"ada", "ben", "cyd"} {
		due := nine.Add(time.Duration(n) * time.Hour)
		if err := mails.Push(ctx, client, id, "hello "+id, skein.At(due)); err != nil {
			log.Fatal(err)
		}
	}
	now = nine.Add(10 * time.Minute)
	return store
}

// An inspector needs a store and nothing else: not the queue's type, and neither
// client nor server.
func ExampleInspector() {
	ctx := context.Background()
	inspector := inspect.New(stocked(ctx), inspect.Options{})

	stats, err := inspector.Stats(ctx) // of all queues
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range stats {
		fmt.Printf("%s: %d queued, %d dead, lag %v\n", s.Queue.Name, s.Length(), s.Dead, s.Lag)
	}
	for job, err := range inspector.Jobs(ctx, "mails", inspect.ListOptions{Payloads: 1}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s at %s: %s\n", job.ID, job.PerformAt.Format(time.TimeOnly), job.Payloads[0].Data)
	}
	// Output:
	// mails: 3 queued, 0 dead, lag 10m0s
	// ada at 09:00:00: "hello ada"
	// ben at 10:00:00: "hello ben"
	// cyd at 11:00:00: "hello cyd"
}

// A page of a list ends with a cursor, and the link to the next page carries it.
func ExampleInspector_Jobs() {
	ctx := context.Background()
	inspector := inspect.New(stocked(ctx), inspect.Options{})

	page := func(query url.Values) (next url.Values) {
		after, err := inspect.ParseCursor(query.Get("after"))
		if err != nil {
			log.Fatal(err)
		}
		for job, err := range inspector.Jobs(ctx, "mails", inspect.ListOptions{After: after, Limit: 2}) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(job.ID)
			next = url.Values{"after": {job.Cursor.String()}}
		}
		return next
	}

	next := page(nil)
	fmt.Println("/jobs?" + next.Encode())
	page(next)

	// Output:
	// ada
	// ben
	// /jobs?after=gNCLn7HGrgNiZW4
	// cyd
}

// A job that waits can be run now, and one that is not wanted deleted.
func ExampleInspector_RunNow() {
	ctx := context.Background()
	inspector := inspect.New(stocked(ctx), inspect.Options{})

	ran, err := inspector.RunNow(ctx, "mails", inspect.JobIDs("cyd"))
	if err != nil {
		log.Fatal(err)
	}
	deleted, err := inspector.Delete(ctx, "mails", inspect.JobIDs("ben", "nobody"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ran.Handled, "made due,", deleted.Handled, "deleted")
	for job, err := range inspector.Jobs(ctx, "mails", inspect.ListOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(job.ID, job.PerformAt.Format(time.TimeOnly))
	}
	// Output:
	// 1 made due, 1 deleted
	// ada 09:00:00
	// cyd 09:10:00
}

// Payloads that can't be handled as they are can be edited in the morgue and then revived. The
// actions report their progress, and end when ctx does.
func ExampleInspector_Revive_all() {
	ctx := context.Background()
	inspector := inspect.New(stocked(ctx), inspect.Options{})
	if _, err := inspector.Bury(ctx, "mails", inspect.JobIDs("ada", "ben", "cyd")); err != nil {
		log.Fatal(err)
	}

	mend := func(id string, p core.Payload) ([]byte, bool, error) {
		return bytes.ReplaceAll(p.Data, []byte("hello"), []byte("dear")), id != "ben", nil
	}
	edited, err := inspector.Edit(ctx, "mails", inspect.AllDead(nil, inspect.BulkOptions{}), mend)
	if err != nil {
		log.Fatal(err)
	}
	mended := func(d inspect.DeadLetter) bool { return bytes.Contains(d.Payloads[0].Data, []byte("dear")) }
	var last inspect.Progress
	revived, err := inspector.Revive(ctx, "mails", inspect.AllDead(mended, inspect.BulkOptions{
		Progress: func(p inspect.Progress) { last = p },
	}))

	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(edited.Handled, "edited,", revived.Handled, "revived,", last.Done, "of", last.Total, "looked at")
	for dead, err := range inspector.Morgue(ctx, "mails", inspect.ListOptions{Payloads: 1}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s stays, %s: %s\n", dead.ID, dead.LastError, dead.Payloads[0].Data)
	}
	// Output:
	// 2 edited, 2 revived, 3 of 3 looked at
	// ben stays, buried by hand: "hello ben"
}

// A server is drained from outside before its machine is serviced: it gives its shards up, and
// works again on request.
func ExampleInspector_Drain() {
	ctx, stop := context.WithCancel(context.Background())
	store := stocked(ctx)
	inspector := inspect.New(store, inspect.Options{})
	mails := skein.NewQueue[string]("mails", skein.QueueOptions[string]{})
	server := skein.NewServer(store, skein.ServerOptions{Name: "blue", Version: "1.4"}, mails.Handler(
		func(context.Context, string, []string) error { return nil }))
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()

	for {
		err := inspector.Drain(ctx, "blue", true)
		if err == nil {
			break
		}
		if !errors.Is(err, inspect.ErrUnknownNode) { // it has not started yet
			log.Fatal(err)
		}
		time.Sleep(time.Millisecond) // a slow machine polls more often
	}
	nodes, err := inspector.Nodes(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, n := range nodes {
		fmt.Println(n.Name, n.Version, n.Queues, n.State)
	}
	if err := inspector.Drain(ctx, "blue", false); err != nil {
		log.Fatal(err)
	}
	stop()
	fmt.Println(<-ended)
	// Output:
	// blue 1.4 [mails] draining
	// <nil>
}
