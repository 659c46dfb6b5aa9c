package inspect_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"log/slog"
	"strings"

	"github.com/skeinq/skein/inspect"
)

// slogNothing returns a logger that writes nothing: examples are quiet.
func slogNothing() *slog.Logger { return slog.New(slog.DiscardHandler) }

// A long action is previewed first and begun slowly. It may end midway, and continues from its
// checkpoint, also in another process.
func ExampleBulkOptions() {
	ctx := context.Background()
	store := died(ctx, 40)
	refused := func(d inspect.DeadLetter) bool { return strings.Contains(d.LastError, "refused") }

	inspector := inspect.New(store, inspect.Options{Logger: slogNothing()})
	would, err := inspector.Revive(ctx, "mails", inspect.AllDead(refused, inspect.BulkOptions{DryRun: true}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("would revive", would.Handled, "of", would.Total)

	var saved inspect.Checkpoint // in a file, for example
	o := inspect.BulkOptions{
		Filter:     "refused", // names the match, so that continuing with another one is refused
		Rate:       10_000,    // a second
		Limit:      10,
		Checkpoint: func(c inspect.Checkpoint) { saved = c },
	}
	first, err := inspector.Revive(ctx, "mails", inspect.AllDead(refused, o))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("revived", first.Handled)

	elsewhere := inspect.New(store, inspect.Options{Logger: slogNothing()})
	rest, err := elsewhere.Revive(ctx, "mails",
		inspect.AllDead(refused, inspect.BulkOptions{Filter: "refused", Continue: saved}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("revived %d in all, to go on from %q\n", rest.Handled, rest.Checkpoint)
	// Output:
	// would revive 26 of 40
	// revived 10
	// revived 26 in all, to go on from ""
}

// A morgue moves to another store, or into a file and back: as it was, and whatever the shard
// counts are.
func ExampleInspector_Export() {
	ctx := context.Background()
	from := inspect.New(died(ctx, 3), inspect.Options{})
	var file bytes.Buffer
	written, err := inspect.WriteDeadLetters(&file, from.Export(ctx, "mails", inspect.ListOptions{}))
	if err != nil {
		log.Fatal(err)
	}

	to := inspect.New(stocked(ctx), inspect.Options{Logger: slogNothing()}) // has a queue mails too
	letters := file.Bytes()
	for range 2 { // again changes nothing
		imported, err := to.Import(ctx, "mails", inspect.ReadDeadLetters(bytes.NewReader(letters)), nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(written, "written,", imported.Handled, "imported")
	}
	found, err := to.Find(ctx, "mails", "mail-01")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.DeadLetter.LastError)
	// Output:
	// 3 written, 3 imported
	// 3 written, 0 imported
	// dial tcp 10.0.0.1:25: connection refused
}

// The log has what an action did, and who did it.
func ExampleWithActor() {
	ctx := inspect.WithActor(context.Background(), inspect.Actor{
		Name:   "ada",
		From:   "10.0.0.7",
		Reason: "the customer asked",
	})

	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out,
		&slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "took" {
				return slog.Attr{}
			}
			return a
		}}))

	inspector := inspect.New(stocked(ctx), inspect.Options{Logger: logger})
	if _, err := inspector.Delete(ctx, "mails", inspect.JobIDs("ben")); err != nil {
		log.Fatal(err)
	}
	fmt.Print(out.String())
	// Output:
	// level=INFO msg="operator acted" lib=skein actor=ada from=10.0.0.7 reason="the customer asked" action=delete queue=mails named=1 ids=[ben] prefix="" group="" filter="" handled=1
}
