// Lowkiq is the dummy application that comes with Lowkiq, in Go: two queues, each
// with a thousand ids to work, due within the next ten seconds.
//
//	go run ./examples/lowkiq -for 30s
//
// A handler takes up to a second, and every fifth call fails. Two retries are
// allowed, so about one id in 125 fails three times and goes to the morgue. One
// middleware logs the start of each batch, and its end if it succeeds; another
// logs the errors, and OnBuried logs what went to the morgue.
//
// With five lanes about ten jobs run each second: two hundred seconds of "started"
// and "finished", a fifth of them "error" instead, then the retries, with the
// first "gave up" after about four minutes. After six it is quiet.
//
// Jobs are kept in memory unless -store names another store. The program runs until it is
// interrupted, or for the time of -for. Then it lets the handlers finish, and prints for each queue
// how many jobs are done and how many are left.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/command"
	"github.com/skeinq/skein/ports"
)

// payload is the payload that is pushed for an id.
type payload struct {
	ID int `json:"id"`
}

// The two workers.
var (
	aTest  = skein.NewQueue("ATestWorker", skein.QueueOptions[payload]{MaxRetries: 2})
	aTest2 = skein.NewQueue("ATest2Worker", skein.QueueOptions[payload]{MaxRetries: 2})
)

// failEvery is how often a call of the handler fails.
const failEvery = 5

var errDummy = errors.New("error")

// dummy is the application.
type dummy struct {
	log *log.Logger
	// ids is the number of ids that are pushed to each queue, due within delay.
	ids   int
	delay time.Duration
	// busy is the longest time that a handler takes.
	busy  time.Duration
	calls atomic.Int64
}

func main() {
	ctx, stop := command.Context(context.Background())
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "lowkiq:", err)
		os.Exit(1)
	}
}

// run is the whole command.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	d := &dummy{log: log.New(stdout, "", log.Ltime|log.Lmicroseconds)}

	flags := flag.NewFlagSet("lowkiq", flag.ContinueOnError)
	storeURL := flags.String("store", "memory://", "where the jobs are kept: "+backends.Usage)
	limit := flags.Duration("for", 0, "how `long` to run; 0 is until interrupted")
	flags.IntVar(&d.ids, "ids", 1000, "how many ids to push to each queue")
	flags.DurationVar(&d.delay, "delay", 10*time.Second, "by how `long` a job is delayed at most")
	flags.DurationVar(&d.busy, "busy", time.Second, "how `long` a handler takes at most")

	if err := flags.Parse(args); err != nil {
		return err
	}

	if *limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *limit)
		defer cancel()
	}

	store, closeStore, err := backends.Open(ctx, *storeURL)
	if err != nil {
		return err
	}
	return errors.Join(d.work(ctx, store), closeStore())
}

// work pushes the jobs, runs them and reports.
func (d *dummy) work(ctx context.Context, store ports.ShardStore) error {
	if err := d.push(ctx, skein.NewClient(store, skein.ClientOptions{})); err != nil {
		return err
	}
	if err := skein.NewServer(store, d.options(), d.handlers()...).Run(ctx); err != nil {
		return err
	}
	return d.report(context.WithoutCancel(ctx), inspect.New(store, inspect.Options{}))
}

// push pushes each id to both queues.
func (d *dummy) push(ctx context.Context, client *skein.Client) error {
	for _, queue := range []*skein.Queue[payload]{aTest, aTest2} {
		entries := make([]skein.Entry[payload], d.ids)
		for id := range entries {
			entries[id] = skein.Entry[payload]{
				ID: strconv.Itoa(id), Payload: payload{id}, Options: []skein.PushOption{skein.In(upTo(d.delay))},
			}
		}
		if err := queue.PushMany(ctx, client, entries); err != nil {
			return err
		}
	}
	return nil
}

func upTo(limit time.Duration) time.Duration { return rand.N(limit + 1) }

func (d *dummy) handlers() []skein.Handler {
	return []skein.Handler{aTest.Handler(d.perform), aTest2.Handler(d.perform)}
}

func (d *dummy) perform(ctx context.Context, _ string, _ []payload) error {
	select {
	case <-time.After(upTo(d.busy)):
	case <-ctx.Done():
		return ctx.Err()
	}
	if d.calls.Add(1)%failEvery == 0 {
		return errDummy
	}
	return nil
}

func (d *dummy) options() skein.ServerOptions {
	return skein.ServerOptions{
		Lanes:      5,
		Splitter:   skein.LaneSplitter{}, // a shard on one lane, one batch at a time
		Middleware: []skein.Middleware{d.logStartAndFinish, d.logErrors},
		OnBuried: func(_ context.Context, b skein.Buried) error {
			d.log.Printf("gave up on %s %s %s: %s", b.Queue, b.ID, b.Payloads[0].Data, b.Error)
			return nil
		},
		OnFatal: func(err error) { d.log.Print("last words: ", err) },
	}
}

func (d *dummy) logStartAndFinish(next skein.RunFunc) skein.RunFunc {
	return func(ctx context.Context, batch *skein.RawBatch) error {
		d.log.Printf("started %s", describe(batch))
		if err := next(ctx, batch); err != nil {
			return err
		}
		d.log.Printf("finished %s", describe(batch))
		return nil
	}
}

func (d *dummy) logErrors(next skein.RunFunc) skein.RunFunc {
	return func(ctx context.Context, batch *skein.RawBatch) error {
		err := next(ctx, batch)
		if err != nil {
			d.log.Printf("%v %s", err, describe(batch))
		}
		return err
	}
}

// describe returns a batch as the log shows it.
func describe(batch *skein.RawBatch) string {
	var b strings.Builder
	b.WriteString(batch.Queue)
	for _, job := range batch.Jobs {
		fmt.Fprintf(&b, " %s", job.ID)
		for _, p := range job.Payloads {
			fmt.Fprintf(&b, " %s", p.Data)
		}
	}
	return b.String()
}

// report prints the results, queue by queue.
func (d *dummy) report(ctx context.Context, inspector *inspect.Inspector) error {
	stats, err := inspector.Stats(ctx, aTest.Name(), aTest2.Name())
	for _, s := range stats {
		d.log.Printf("%s: %d done, %d failures, %d to do, %d to retry, %d in the morgue",
			s.Queue.Name, s.Processed, s.Failed, s.Fresh, s.Retrying, s.Dead)
	}
	return err
}
