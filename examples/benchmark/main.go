// Benchmark does the same work on Skein and on another queue, side by side, on one Redis or one
// Postgres, and prints a table in Markdown. docs/contributing/benchmarks.md describes what each
// work measures.
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
	"slices"
	"strings"
	"syscall"
)

// options are the command's flags.
type options struct {
	works, rival, redis, postgres string
	jobs, runs                    int
	json                          bool
}

// rivals are the systems to compare with. With River, the works run on Postgres.
var rivals = []string{asynqName, riverName, "none"}

func main() {
	log.SetFlags(0)
	var o options

	flag.StringVar(&o.works, "work", "",
		"the works to do, `NAME,…`; default: all except those on demand, "+onDemand())
	flag.StringVar(&o.rival, "rival", asynqName,
		"the system to compare with: asynq or none on Redis, river on Postgres")
	flag.StringVar(&o.redis, "redis", "",
		"`URL` of an empty Redis database, which is flushed; default: a redis-server of its own")
	flag.StringVar(&o.postgres, "postgres", "",
		"`URL` of a Postgres database without tables, whose user may CHECKPOINT; default: a server of its own")
	flag.IntVar(&o.jobs, "jobs", 200_000,
		"how many jobs a measurement takes; fewer than the default are only for trying the program")
	flag.IntVar(&o.runs, "runs", 5, "how often each setting is measured")
	flag.BoolVar(&o.json, "json", false, "print one JSON object a line instead of a table")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		log.Fatal(err)
	}
}

// onDemand returns the names of the works that run only if they are named.
func onDemand() string {
	var names []string
	for _, w := range slices.Concat(redisWorks(""), postgresWorks()) {
		if w.onDemand {
			names = append(names, w.name)
		}
	}
	return strings.Join(names, ", ")
}

// check returns an error for invalid options.
func (o *options) check() error {
	if !slices.Contains(rivals, o.rival) {
		return fmt.Errorf("there is no rival %q; give one of %s", o.rival, strings.Join(rivals, ", "))
	}
	if o.rival == riverName && o.redis != "" || o.rival != riverName && o.postgres != "" {
		return fmt.Errorf("-rival %s: give -postgres with river, and -redis with the others", o.rival)
	}
	if o.jobs < 1 || o.runs < 1 {
		return fmt.Errorf("-jobs %d -runs %d: give at least one of each", o.jobs, o.runs)
	}
	return nil
}

// run does the works. It prints the results so far even if it fails or is stopped.
func run(ctx context.Context, o options, out, progress io.Writer) (err error) {
	if err := o.check(); err != nil {
		return err
	}

	works, err := choose(allWorks(o.rival), o.works)
	if err != nil {
		return err
	}

	l, err := openLab(ctx, o, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()

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
