package kills_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// keyed is a queue with a rate for each key, which is what stands before the dash of an id, and
// keyedRate that rate. Jobs of the key free have none.
var (
	keyed     = skein.NewQueue("keyed", skein.QueueOptions[int]{Shards: 8, MaxRecoveries: 1000, RateBy: keyedBy})
	keyedRate = skein.Rate{Count: 10, Per: time.Second, Burst: 2}
)

const (
	keyedKeys  = 5
	keyedLanes = 10
	keyedTake  = 10 * time.Millisecond
)

func keyedBy(id string, _ int) (string, skein.Rate) {
	key := keyOf(id)
	if key == "free" {
		return "", skein.Rate{}
	}
	return key, keyedRate
}

func keyOf(id string) string {
	key, _, _ := strings.Cut(id, "-")
	return key
}

// keyedWorker is a server that keeps a journal of the starts that its keys are allowed, and of its
// jobs.
func keyedWorker() error {
	options := skein.ServerOptions{Lanes: keyedLanes, LeaseTTL: ratedTTL}
	return serveThrough(options, noteStarts, func(j journal) skein.Handler {
		return keyed.Handler(func(_ context.Context, id string, _ []int) error {
			line := journalLine{what: lineBegan, pid: os.Getpid(), id: id}
			j.write(line)
			time.Sleep(keyedTake)
			line.what = lineEnded
			j.write(line)
			return nil
		})
	})
}

// noteStarts writes a line for each start of a key that the store allows now or soon, before the server
// has the reply: id is the key, and token the time of the start by the store's clock.
func noteStarts(j journal) storekit.Interceptor {
	return func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
		err := next(ctx)
		reply, ok := call.Reply.(*ports.TakeReply)
		if !ok || err != nil {
			return err
		}

		for at, take := range call.Request.(*ports.TakeRequest).Takes {
			line := journalLine{what: lineTook, pid: os.Getpid(), id: take.Key}
			g := reply.Grants[at]
			for i := range g.Used {
				line.token = int64(take.Rate.Slot(g.Start, reply.Now, i))
				j.write(line)
			}
			for i := range g.Granted {
				if slot := take.Rate.Slot(g.First, reply.Now, i); slot <= reply.Now.Add(take.Soon) {
					line.token = int64(slot)
					j.write(line)
				}
			}
		}
		return nil
	}
}

// The rates of keys hold over servers that are killed and replaced under load, each job runs, and jobs
// without a key go on meanwhile.
func TestRatesOfKeysHoldWhileServersDieAndAreReplaced(t *testing.T) {
	tier.Long(t, "replaces processes at length")
	onEachStoreAndCluster(t, replaceKeyedServers)
}

func replaceKeyedServers(t *testing.T, url string, ends int) {
	store := kit.Open(t, url)
	client := skein.NewClient(store, skein.ClientOptions{})
	j, pushed := newJournal(t), 0
	push := func(n int) {
		var entries []skein.Entry[int]
		for range n {
			for key := range keyedKeys {
				entries = append(entries, skein.Entry[int]{ID: fmt.Sprint("key", key, "-", pushed), Payload: pushed})
			}
			entries = append(entries, skein.Entry[int]{ID: fmt.Sprint("free-", pushed), Payload: pushed})
			pushed++
		}
		must(t, keyed.PushMany(t.Context(), client, entries))
	}

	push(5 * keyedRate.Count)
	start := func() *process { return startProcess(t, "keyed", url, j) }
	var servers []*process
	for range ratedServers {
		servers = append(servers, start())
	}
	replace(t, servers, ends, 2*time.Second, func() { push(2 * keyedRate.Count) }, start)

	jobs := pushed * (keyedKeys + 1)
	ended := make(map[string]int)
	for deadline := time.Now().Add(testservers.Patience); len(ended) < jobs; time.Sleep(500 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d jobs have ended after %v", len(ended), jobs, testservers.Patience)
		}
		clear(ended)
		for _, l := range j.read(t) {
			if l.what == lineEnded {
				ended[l.id]++
			}
		}
	}
	for _, p := range servers {
		p.interrupt(t)
	}

	checkKeyRates(t, j.read(t))
	again := 0
	for _, n := range ended {
		again += n - 1
	}
	t.Logf("%d ends of servers, %d jobs, %d ran again", ends, jobs, again)
}

// checkKeyRates checks a journal.
//
//   - By the store's clock, in any period of the rate at most Count + Burst + 1 jobs of a key may start.
//   - Each job with a key that begins has a start of its key, of its own server.
func checkKeyRates(t *testing.T, lines []journalLine) {
	t.Helper()
	type serverKey struct {
		pid int
		key string
	}
	starts := make(map[string][]time.Time)
	unused := make(map[serverKey]int)
	for _, l := range lines {
		switch of := (serverKey{l.pid, keyOf(l.id)}); {
		case l.what == lineTook:
			starts[l.id] = append(starts[l.id], core.Instant(l.token).Time())
			unused[of]++
		case l.what == lineBegan && of.key != "free":
			if unused[of]--; unused[of] < 0 {
				t.Fatalf("server %d begins %s without a start of its key", l.pid, l.id)
			}
		}
	}

	for key, at := range starts {
		slices.SortFunc(at, time.Time.Compare)
		first, last := worstPeriod(at, keyedRate.Per, func(first, last int) int { return last - first })
		if n, most := last-first+1, keyedRate.Count+keyedRate.Burst+1; n > most {
			t.Errorf("%d jobs of %s may start from %v to %v, at a rate of %v", n, key, at[first], at[last], keyedRate)
		}
	}
}
