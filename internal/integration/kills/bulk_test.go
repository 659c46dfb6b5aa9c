package kills_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// bulkVariable names the action of a bulk worker, continueVariable the place where it continues,
// and apiVariable the server that it asks over HTTP.
const (
	bulkVariable     = "SKEIN_TEST_WORKER_BULK"
	continueVariable = "SKEIN_TEST_WORKER_CONTINUE"
	apiVariable      = "SKEIN_TEST_WORKER_API"
)

// bulkActs are the actions of bulk workers: a revive of the even half of the dead letters, and a
// delete of all failed jobs.
var bulkActs = map[string]func(context.Context, *inspect.Inspector, inspect.BulkOptions) (inspect.Result, error){
	"revive": func(ctx context.Context, i *inspect.Inspector, o inspect.BulkOptions) (inspect.Result, error) {
		o.Filter = "even"
		return i.Revive(ctx, "orders", inspect.AllDead(func(d inspect.DeadLetter) bool {
			return strings.ContainsRune("02468", rune(d.ID[len(d.ID)-1]))
		}, o))
	},
	"delete": func(ctx context.Context, i *inspect.Inspector, o inspect.BulkOptions) (inspect.Result, error) {
		return i.Delete(ctx, "orders", inspect.FailedJobs(nil, o))
	},
}

// bulkWorker carries out a bulk action. It writes each checkpoint to the journal, and a line when
// it has ended.
func bulkWorker() error {
	j := journal{os.Getenv(journalVariable)}
	defer j.write(journalLine{what: lineEnded, pid: os.Getpid()})
	if os.Getenv(apiVariable) != "" {
		return overHTTP(j)
	}
	ctx := context.Background()
	store, closeStore, err := backends.Open(ctx, os.Getenv(storeVariable))
	if err != nil {
		return err
	}
	defer func() { _ = closeStore() }()
	o := inspect.BulkOptions{
		Rate: 2000, Continue: inspect.Checkpoint(os.Getenv(continueVariable)),
		Checkpoint: func(c inspect.Checkpoint) {
			j.write(journalLine{what: lineReady, pid: os.Getpid(), id: string(c)})
		},
	}
	if _, err := bulkActs[os.Getenv(bulkVariable)](ctx, inspect.New(store, inspect.Options{}), o); err != nil {
		return err
	}
	return nil
}

// TestABulkActionGoesOnAfterKills kills the processes of an action after a random number of steps.
// The next process continues from the last checkpoint. The action leaves alone entries that arrive
// meanwhile.
func TestABulkActionGoesOnAfterKills(t *testing.T) {
	t.Parallel()
	for name, newURL := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := newURL(t)
			store := kit.Open(t, url)
			o := kit.Orders{T: t, Store: store, Shards: tier.Count(6, 20)}
			_, err := store.Declare(t.Context(),
				ports.DeclareRequest{Queue: "orders", Shards: o.Shards, IndexIDs: true})
			must(t, err)
			o.Push("dead", tier.Count(600, 2000))
			o.Bury()
			o.Push("order", tier.Count(900, 3000))
			o.Fail(50)
			before := o.Counts(t)
			comes := func(act string) func(int) { return func(kill int) { o.Push(fmt.Sprint(act, kill), 10) } }
			revived := killActing(t, url, "revive", comes("revive"))
			deleted := killActing(t, url, "delete", comes("delete"))
			after, half := o.Counts(t), before.Dead/2
			if late := int64(10 * (revived + deleted)); after.Dead != half || after.Retrying != 0 ||
				after.Fresh != before.Fresh+half+late {
				t.Errorf("from %+v to %+v beside %d pushes; want half of the letters revived and the failed deleted",
					before, after, late)
			}
			t.Logf("%d letters revived after %d kills, %d jobs deleted after %d",
				half, revived, before.Retrying, deleted)
		})
	}
}

// killActing starts one process after another, and kills each once it has written a random number
// of checkpoints, until one ends by itself. It returns the number of processes.
func killActing(t *testing.T, url, act string, meanwhile func(kill int), env ...string) (processes int) {
	t.Helper()
	var at string
	for ; ; processes++ {
		j := newJournal(t)
		p := startProgram(t, os.Args[0], "bulk", url, j, append(env, bulkVariable+"="+act, continueVariable+"="+at)...)
		j.await(t, lineReady, p.pid(), 1)
		meanwhile(processes)
		j.awaitOr(t, lineEnded, lineReady, p.pid(), 2+rand.IntN(3)) // the second follows a step
		_ = p.cmd.Process.Kill()                                    // it may have ended by itself
		killed := p.wasKilled(t)
		lines, _ := j.readFrom(t, 0)
		for _, line := range lines {
			if line.what == lineReady {
				at = line.id
			}
			// Under the race detector a process continues for a second after its work has ended.
			killed = killed && line.what != lineEnded
		}
		if !killed {
			return processes + 1
		}
	}
}
