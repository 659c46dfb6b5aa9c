package kills_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// versionQueues are queues of versions, by the works of their servers. They drop stale versions.
var versionQueues = map[string]*skein.Queue[int]{
	"versions-latest": versionQueue(skein.Latest(1), skein.DropStale),
	"versions-newest": versionQueue(skein.Newest(), skein.DropStale),
}

func versionQueue(merge skein.MergeRule, stale skein.Stale) *skein.Queue[int] {
	return skein.NewQueue("versions", skein.QueueOptions[int]{
		Merge:         merge,
		Score:         func(version int) float64 { return float64(version) },
		Keep:          skein.Keep{Age: time.Hour},
		Stale:         stale,
		MaxRetries:    1 << 20,
		MaxRecoveries: 1 << 20,
		Backoff:       func(int) time.Duration { return time.Millisecond },
	})
}

// lineDone is of a test that has read the mark of an id; recoveries is the mark.
const lineDone = "done"

// versionWorker is a server of versions, which writes each version that it begins and ends to the
// journal as the recoveries of a line. One call in five fails.
func versionWorker() error {
	options := skein.ServerOptions{Lanes: 4, LeaseTTL: 2 * time.Second, PollInterval: 50 * time.Millisecond}
	queue := versionQueues[os.Getenv(workerVariable)]
	return serveWithJournal(options, func(j journal) skein.Handler {
		return queue.Each(func(ctx context.Context, id string, version int) error {
			token, _ := skein.Fence(ctx)
			line := journalLine{what: lineBegan, pid: os.Getpid(), id: id, token: token, recoveries: version}
			j.write(line)
			time.Sleep(rand.N(2 * time.Millisecond)) // a slow machine only has other overlaps
			if rand.N(5) == 0 {
				return errors.New("boom")
			}
			line.what = lineEnded
			j.write(line)
			return nil
		})
	})
}

// A consumer that remembers the highest version of an id that was done never gets a lower or an equal
// one, however often its process is killed, and the newest version of each id is handled.
func TestStaleVersionsAreNotHandledWhileServersAreKilled(t *testing.T) {
	t.Parallel()
	for name, newURL := range kit.StoreAndClusterURLs(t) {
		for work, queue := range versionQueues {
			t.Run(name+" "+work, func(t *testing.T) {
				t.Parallel()
				killVersions(t, newURL(t), work, queue, tier.Count(1, 30))
			})
		}
	}
}

const versionIDs = 20

// killVersions pushes versions of some ids, also older ones again, while servers work on them and are
// killed.
func killVersions(t *testing.T, url, work string, queue *skein.Queue[int], kills int) {
	store, j := kit.Open(t, url), newJournal(t)
	pusher := versionPusher{t: t, store: store, queues: []*skein.Queue[int]{queue}}
	if work == "versions-latest" {
		pusher.queues = append(pusher.queues, versionQueue(skein.Latest(1), skein.TakeStale))
	} else {
		pusher.queues = append(pusher.queues, versionQueue(skein.Newest(), skein.TakeStale))
	}
	pusher.push(versionIDs)

	stop := make(chan struct{})
	var background sync.WaitGroup
	background.Go(func() { watchMarks(t, store, j, stop) })
	for range kills {
		p := startProcess(t, work, url, j)
		j.await(t, lineReady, p.pid(), 1)
		for range 5 {
			pusher.push(60)
			j.await(t, lineBegan, p.pid(), 1)
		}
		p.kill(t)
		pusher.push(20)
	}

	p := startProcess(t, work, url, j)
	awaitProgress(t, func() (have int, done bool) {
		stats, err := inspect.New(store, inspect.Options{}).Stats(t.Context(), queue.Name())
		must(t, err)
		c := stats[0].Counts
		return int(c.Processed + c.Failed + c.Stale), c.Length()+c.Claimed == 0
	})
	p.interrupt(t)
	close(stop)
	background.Wait()
	checkVersions(t, j.read(t), pusher.newest[:])
	stats, err := inspect.New(store, inspect.Options{}).Stats(t.Context(), queue.Name())
	must(t, err)
	t.Logf("%d processes were killed: %d jobs are done, and %d payloads were stale",
		kills, stats[0].Processed, stats[0].Stale)
	if stats[0].Stale == 0 || stats[0].Dead > 0 {
		t.Errorf("%d payloads are stale, and %d ids are dead", stats[0].Stale, stats[0].Dead)
	}
}

// versionPusher pushes versions. The programs of its queues push as well.
type versionPusher struct {
	t      *testing.T
	store  ports.ShardStore
	queues []*skein.Queue[int]
	newest [versionIDs]int
}

// push pushes a number of versions: the next one of an id, or an earlier one again.
func (p *versionPusher) push(n int) {
	p.t.Helper()
	client := skein.NewClient(p.store, skein.ClientOptions{})
	for range n {
		id := rand.N(versionIDs)
		version := p.newest[id] + 1
		if version > 1 && rand.N(3) > 0 {
			version = 1 + rand.N(p.newest[id])
		}
		p.newest[id] = max(p.newest[id], version)
		must(p.t, p.queues[rand.N(len(p.queues))].Push(p.t.Context(), client, fmt.Sprint("product-", id), version))
	}
}

// watchMarks writes the marks of ids to the journal, as they rise.
func watchMarks(t *testing.T, store ports.ShardStore, j journal, stop <-chan struct{}) {
	var known [versionIDs]int
	for {
		for n := range versionIDs {
			select {
			case <-stop:
				return
			default:
			}
			id := fmt.Sprint("product-", n)
			found, err := store.Find(t.Context(), ports.FindRequest{Queue: "versions", ID: id})
			if err == nil && int(found.Mark.Score) > known[n] {
				known[n] = int(found.Mark.Score)
				j.write(journalLine{what: lineDone, id: id, recoveries: known[n]})
			}
		}
	}
}

// checkVersions checks that no handler has begun a version once it or a higher one was known to be done,
// and that the newest ones have ended. A handler of a lease that was over is ignored, as by a consumer
// that compares tokens.
func checkVersions(t *testing.T, lines []journalLine, newest []int) {
	t.Helper()
	done, tokens, ended := map[string]int{}, map[string]int64{}, map[string]int{}
	for _, l := range lines {
		switch {
		case l.what == lineDone:
			done[l.id] = l.recoveries
		case l.token < tokens[l.id]:
		case l.what == lineBegan:
			tokens[l.id] = l.token
			if l.recoveries <= done[l.id] {
				t.Errorf("%s: version %d is handled after %d was done", l.id, l.recoveries, done[l.id])
			}
		case l.what == lineEnded:
			ended[l.id] = max(ended[l.id], l.recoveries)
		}
	}
	for n, version := range newest {
		if id := fmt.Sprint("product-", n); ended[id] != version {
			t.Errorf("%s: version %d of %d has ended", id, ended[id], version)
		}
	}
}
