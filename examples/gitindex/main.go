// Gitindex replays the history of a git repository through Skein and checks the
// result, which proves that events of one id are handled in order:
//
//	go run ./examples/gitindex -repo DIR -fail 0.05
//	go run ./examples/gitindex -repo DIR -fail 0.05 -store redis://localhost:6379
//	go run ./examples/gitindex -repo DIR -fail 0.05 -store redis://localhost:6379 -nodes 4
//
// It pushes one event for each file that a commit of the first-parent history changed; the id is
// the path. Handlers keep an index of what each path holds, while the flags make them fail, panic
// and be slow. Each event has what its path held before, which must be what the index holds; at the
// end the index must equal git ls-tree -r HEAD. It exits with 1 if it doesn't.
//
// With -nodes N, N processes run the handlers. Each of them is killed with SIGKILL and started
// again every few seconds (-kill), and the others take over its shards. The index stays in the
// first process. The handlers of the others call it for each event, so the work of a killed process
// is known.
//
// After the first TERM or INT the program finishes the running jobs and reports. The second one
// ends it at once. QUIT and TTIN print the stacks of all goroutines.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/command"
)

// The exit statuses, besides 0.
const (
	exitFailed = 1
	exitUsage  = 2
)

// options are the flags.
type options struct {
	dir, store         string
	lanes              int
	fail, panics, slow float64
	seed               uint64
	nodes              int
	kill               time.Duration
}

func main() {
	if os.Getenv(asNode) != "" {
		os.Exit(runNode(os.Stdin, os.Stdout, os.Stderr))
	}
	ctx, stop := command.Context(context.Background())
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run is the whole command. Progress goes to stderr, the report to stdout.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage
	}
	repo, err := openRepository(ctx, o.dir)
	switch {
	case errors.Is(err, errNoCommits):
		fmt.Fprintf(stdout, "%s has no commits yet: there is nothing to replay\n", o.dir)
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "gitindex: %v\n", err)
		return exitFailed
	}
	if repo.shallow {
		fmt.Fprintf(stderr, "gitindex: %s is a shallow clone: its history begins where it was cut off\n", o.dir)
	}
	return perform(ctx, newReplay(repo, o), stdout, stderr)
}

// perform runs a replay and reports on it.
func perform(ctx context.Context, r *replay, stdout, stderr io.Writer) int {
	report := execute(ctx, r, stderr)
	report.print(stdout)
	if !report.ok() {
		return exitFailed
	}
	return 0
}

// execute runs a replay, shows its progress and compares its index.
func execute(ctx context.Context, r *replay, progress io.Writer) *report {
	done := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() { showProgress(progress, r.repo.commits, r.tally.snapshot, done) })
	start := time.Now()
	err := r.run(ctx)
	out := &report{ended: err, elapsed: time.Since(start), broken: &r.index.broken}
	close(done)
	shown.Wait()
	out.counts, out.faults = r.tally.snapshot(), r.faults.counted()
	out.nodes, out.kills = r.nodes.count, r.nodes.kills.Load()
	files, applied := r.index.files()
	out.applied = applied
	if err == nil {
		out.compared, out.ended = compare(ctx, r.repo, files)
	}
	return out
}

func parseFlags(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("gitindex", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.dir, "repo", ".", "a directory in a git repository, or a bare one")
	flags.StringVar(&o.store, "store", "memory://", "where the jobs are kept: "+backends.Usage)
	flags.IntVar(&o.lanes, "lanes", 8, "how many handlers run at once, with -nodes in each of them")
	flags.Float64Var(&o.fail, "fail", 0, "the share of handler calls that fail")
	flags.Float64Var(&o.panics, "panic", 0, "the share of handler calls that panic")
	flags.Float64Var(&o.slow, "slow", 0, "the share of handler calls that sleep for "+slowness.String())
	flags.Uint64Var(&o.seed, "seed", 1, "seed of what fails, panics and sleeps")
	flags.IntVar(&o.nodes, "nodes", 0, "how many processes handle, on a store that they can share; 0: this one")
	flags.DurationVar(&o.kill, "kill", 5*time.Second, "with -nodes: how often each process is killed and started again, one after another; 0: never")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	err := o.validate()
	if flags.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q: name the repository with -repo", flags.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(stderr, "gitindex: %v\n", err)
	}
	return o, err
}

func (o options) validate() error {
	if o.lanes < 1 {
		return fmt.Errorf("-lanes %d: give at least 1", o.lanes)
	}
	if o.nodes < 0 || o.kill < 0 {
		return fmt.Errorf("-nodes %d or -kill %v: neither may be negative", o.nodes, o.kill)
	}
	if o.nodes > 0 && strings.HasPrefix(o.store, "memory:") {
		return fmt.Errorf("-nodes %d -store %s: processes share no memory; give another store", o.nodes, o.store)
	}
	for _, share := range []float64{o.fail, o.panics, o.slow} {
		if math.IsNaN(share) || share < 0 || share > 1 {
			return fmt.Errorf("-fail, -panic or -slow %v: give a share from 0 to 1", share)
		}
	}
	if o.fail+o.panics >= 1 {
		return fmt.Errorf("-fail %v and -panic %v: together below 1, or nothing is ever done", o.fail, o.panics)
	}
	return nil
}
