// Benchmark does the same work on Skein and on another queue, side by side, on one
// Redis, and prints a table in Markdown. docs/benchmarks.md says what each work
// measures.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
)

// options are the command's flags.
type options struct {
	works, rival, redis string
	jobs, runs          int
	json                bool
}

func main() {
	log.SetFlags(0)
	var o options
	flag.StringVar(&o.works, "work", "", "`NAME,…` of the works to do; default: all but "+hugeBacklog)
	flag.StringVar(&o.rival, "rival", asynqName, "the other side: asynq, or none")
	flag.StringVar(&o.redis, "redis", "", "`URL` of an empty Redis database, which is flushed; default: a redis-server of its own")
	flag.IntVar(&o.jobs, "jobs", 200_000, "how many jobs a measurement takes; fewer than the default only try the program out")
	flag.IntVar(&o.runs, "runs", 5, "how often each is measured")
	flag.BoolVar(&o.json, "json", false, "print one JSON object a line instead of a table")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		log.Fatal(err)
	}
}

// run does the works. What was measured before it failed or was stopped is
// printed all the same.
func run(ctx context.Context, o options, out, progress io.Writer) (err error) {
	if o.rival != asynqName && o.rival != "none" {
		return fmt.Errorf("there is no rival %q; give asynq or none", o.rival)
	}
	if o.jobs < 1 || o.runs < 1 {
		return fmt.Errorf("-jobs %d -runs %d: give at least one of each", o.jobs, o.runs)
	}
	works, err := choose(allWorks(o.rival), o.works)
	if err != nil {
		return err
	}
	if o.redis == "" {
		url, stop, failure := startRedis(ctx)
		if failure != nil {
			return failure
		}
		defer func() { err = errors.Join(err, stop()) }()
		o.redis = url
	}
	l, err := openLab(ctx, o.redis, o.jobs, progress)
	if err != nil {
		return err
	}
	measured, failure := l.measure(ctx, probesOf(works), o.runs)
	var rows []row
	for _, w := range works {
		rows = append(rows, rowsOf(w, measured)...)
	}
	write := writeTable
	if o.json {
		write = writeJSON
	}
	return errors.Join(failure, write(out, rows))
}
