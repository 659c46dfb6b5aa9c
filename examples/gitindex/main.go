// Gitindex replays the history of a git repository through Skein and checks the result, which
// proves that the events of one id are handled in order:
//
//	go run ./examples/gitindex -fail 0.05
//	go run ./examples/gitindex -repo DIR -fail 0.05 -store redis://localhost:6379
//
// It pushes one event for each file that a commit of the first-parent history changed. The id is
// the path, and the score is the event's place in the history. The handler keeps an index of what
// each path holds, and -fail makes a share of its calls fail halfway. Each event has what its path
// held before, which must be what the index holds. At the end the index must equal git ls-tree -r
// HEAD, or the exit status is 1.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/command"
)

func main() {
	ctx, stop := command.Context(context.Background())
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run is the whole command. It returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("gitindex", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("repo", ".", "a directory in a git repository, or a bare one")
	store := flags.String("store", "memory://", "where the jobs are kept: "+backends.Usage)
	lanes := flags.Int("lanes", 8, "how many handlers run at once")
	fail := flags.Float64("fail", 0, "the share of handler calls that fail, below 1")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0 || *lanes < 1 || !(*fail >= 0 && *fail < 1):
		fmt.Fprintln(stderr, "gitindex: give -lanes of at least 1, -fail from 0 to below 1, and no further argument")
		return 2
	}

	repo, err := openRepository(ctx, *dir)
	if err == nil {
		r := &replay{repo: repo, index: newIndex(*fail)}
		started := time.Now()
		err = r.run(ctx, *store, *lanes)
		r.index.report(stdout, r.pushed.Load(), time.Since(started))
		if err == nil {
			err = r.check(ctx, stdout)
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "gitindex: %v\n", err)
		return 1
	}
	return 0
}

// newQueue returns a queue whose ids are paths. Retries come soon and never end, since an event in
// the morgue would break its path's chain. The name is new, so that a run does not meet the jobs of
// an earlier one in a shared store.
func newQueue() *skein.Queue[Event] {
	return skein.NewQueue("gitindex-"+rand.Text()[:8], skein.QueueOptions[Event]{
		Shards:     24,
		BatchSize:  50,
		MaxRetries: 1_000_000,
		Backoff:    func(int) time.Duration { return 5 * time.Millisecond },
	})
}
