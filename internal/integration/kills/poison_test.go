package kills_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/tier"
)

const (
	poisonID = "poison"
	// poisonTTL is long enough for a busy machine: a lease that is lost though its
	// process lives counts as a crash, too.
	poisonTTL      = 3 * time.Second
	poisonRounds   = 4
	innocentOrders = 40
)

// roundsVariable is the number of rounds for each store, by default a few.
const roundsVariable = "SKEIN_TEST_POISON_ROUNDS"

var poisoned = skein.NewQueue[string]("poisoned", skein.QueueOptions[string]{Shards: 5})

// poisonWorker is a process that works the queue until nothing is left in it. The
// poisonous job kills it 50 ms after it has started, beside jobs of 150 to 300 ms.
func poisonWorker() error {
	return workPoisoned(5, poisoned.JobHandler(func(_ context.Context, job *skein.Job[string]) error {
		if job.ID == poisonID {
			time.Sleep(50 * time.Millisecond)
			killMyself()
		}
		time.Sleep(150*time.Millisecond + time.Duration(len(job.ID)%4)*50*time.Millisecond)
		return nil
	}))
}

// workPoisoned works the queue by the given number of lanes until nothing is left in it.
func workPoisoned(lanes int, handler skein.Handler) error {
	store, closeStore, err := backends.Open(context.Background(), os.Getenv(storeVariable))
	if err != nil {
		return err
	}
	defer func() { _ = closeStore() }()
	ctx, stop := context.WithCancel(context.Background())
	go stopWhenEmpty(ctx, store, poisoned.Name(), stop)
	return skein.NewServer(store, skein.ServerOptions{
		Lanes: lanes, LeaseTTL: poisonTTL, PollInterval: 100 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	}, handler).Run(ctx)
}

// killMyself ends this process as SIGKILL from elsewhere does.
func killMyself() {
	process, _ := os.FindProcess(os.Getpid())
	_ = process.Kill()
	select {}
}

func stopWhenEmpty(ctx context.Context, store inspect.Store, queue string, stop func()) {
	inspector := inspect.New(store, inspect.Options{})
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		stats, err := inspector.Stats(ctx, queue)
		if err == nil && stats[0].Fresh+stats[0].Retrying+stats[0].Claimed == 0 {
			stop()
		}
	}
}

// A job that kills its process is in the morgue after MaxRecoveries + 1 crashes, and no other job
// is.
func TestPoisonAloneEndsInTheMorgue(t *testing.T) {
	tier.Long(t, "kills processes at length")
	rounds := kit.FromVariable(t, roundsVariable, poisonRounds)
	for name, open := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			for round := range rounds {
				t.Run(strconv.Itoa(round), func(t *testing.T) {
					t.Parallel()
					poisonRound(t, open(t))
				})
			}
		})
	}
}

func poisonRound(t *testing.T, url string) {
	var orders []string
	for n := range innocentOrders {
		orders = append(orders, fmt.Sprintf("order-%s%d", strings.Repeat("x", n%4), n))
	}
	workPoisonBeside(t, "poison", url, newJournal(t), orders)
}

// workPoisonBeside pushes the poisonous job and innocent ones, starts a process that works
// them until it ends by itself, and checks that only the poison was buried, as soon as
// it may be. It returns the processes that were killed.
func workPoisonBeside(t *testing.T, worker, url string, j journal, innocent []string) (killed []int) {
	t.Helper()
	store := kit.Open(t, url)
	pushPoison(t, store, []string{"kill"}, innocent)
	killed = workUntilEmpty(t, worker, url, j)
	inspector := inspect.New(store, inspect.Options{})
	var dead []string
	for letter, err := range inspector.Morgue(t.Context(), poisoned.Name(), inspect.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		dead = append(dead, letter.ID)
	}
	if diff := cmp.Diff([]string{poisonID}, dead); diff != "" {
		t.Errorf("the morgue (-want +got):\n%s", diff)
	}
	if want := skein.DefaultMaxRecoveries + 1; len(killed) != want {
		t.Errorf("the process was killed %d times, want %d", len(killed), want)
	}
	stats, err := inspector.Stats(t.Context(), poisoned.Name())
	if err != nil || stats[0].Processed != int64(len(innocent)) || stats[0].Failed != 1 {
		t.Errorf("processed %d, failed %d, %v; want %d and 1", stats[0].Processed, stats[0].Failed, err, len(innocent))
	}
	return killed
}

// pushPoison pushes the payloads of the poisonous id in their order, and a payload for each
// innocent one.
func pushPoison(t *testing.T, store skein.Store, poison, innocent []string) {
	t.Helper()
	var entries []skein.Entry[string]
	for i, payload := range poison {
		entries = append(entries,
			skein.Entry[string]{ID: poisonID, Payload: payload, Options: []skein.PushOption{skein.Score(float64(i))}})
	}
	for _, id := range innocent {
		entries = append(entries, skein.Entry[string]{ID: id, Payload: "work"})
	}
	client := skein.NewClient(store, skein.ClientOptions{})
	if err := poisoned.PushMany(t.Context(), client, entries); err != nil {
		t.Fatal(err)
	}
}

// workUntilEmpty starts the worker again and again until it ends by itself, and
// returns the processes that were killed.
func workUntilEmpty(t *testing.T, worker, url string, j journal) (killed []int) {
	t.Helper()
	for {
		p := startProcess(t, worker, url, j)
		if !p.wasKilled(t) {
			return killed
		}
		killed = append(killed, p.pid())
		if len(killed) > 10*skein.DefaultMaxRecoveries {
			t.Fatalf("the worker was killed %d times, and the queue is not empty", len(killed))
		}
	}
}

const (
	crowdOrders = 300
	// crowdTakes is how long a harmless job takes if it runs alone. crowdKills is when the poison
	// kills its process if it runs alone.
	crowdTakes = 40 * time.Millisecond
	crowdKills = 20 * time.Millisecond
	// crowdGathers is how long the poison waits at most for all others to run beside it.
	crowdGathers = 30 * time.Second
)

// poisonCrowdWorker is a process with more lanes than there are jobs. While jobs run beside
// one another, none ends, and the poison kills the process when all of them run. Those that
// run alone take a moment.
func poisonCrowdWorker() error {
	journal := journal{os.Getenv(journalVariable)}
	var together atomic.Int64
	gathered := make(chan struct{})
	return workPoisoned(2*crowdOrders, poisoned.JobHandler(func(ctx context.Context, job *skein.Job[string]) error {
		token, _ := skein.Fence(ctx)
		line := journalLine{what: lineBegan, pid: os.Getpid(), id: job.ID, token: token, recoveries: job.Recoveries}
		journal.write(line)
		alone := job.Recoveries >= core.AloneRecoveries
		if !alone && together.Add(1) == crowdOrders+1 {
			close(gathered)
		}
		switch {
		case job.ID == poisonID && alone:
			time.Sleep(crowdKills)
			killMyself()
		case job.ID == poisonID:
			select {
			case <-gathered:
			case <-time.After(crowdGathers):
			}
			killMyself()
		case alone:
			time.Sleep(crowdTakes)
		default:
			<-ctx.Done()
			return context.Cause(ctx)
		}
		line.what = lineEnded
		journal.write(line)
		return nil
	}))
}

// A job that kills its process while hundreds run beside it is found, and buried alone.
// Each of the others is done, and runs again only after a death: one that ends a moment
// before it may not have been settled.
func TestPoisonIsFoundAmongHundreds(t *testing.T) {
	tier.Long(t, "kills processes at length")
	for name, open := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var orders []string
			for n := range crowdOrders {
				orders = append(orders, fmt.Sprint("quiet-", n)) // which the poison comes before
			}
			j := newJournal(t)
			killed := workPoisonBeside(t, "poison-crowd", open(t), j, orders)
			lines := j.read(t)
			for i, pid := range killed {
				beside := len(runningOf(lines, pid)) - 1
				t.Logf("death %d: %d others were running", i+1, beside)
				if i < core.AloneRecoveries && beside != crowdOrders {
					t.Errorf("death %d: %d others were running, want all %d", i+1, beside, crowdOrders)
				}
			}
			all := replay(t, lines)
			for _, id := range orders {
				if e := all[id]; e.ended == 0 || e.began != e.ended+e.died || !rises(e.recoveries) ||
					e.began > len(killed)+1 {
					t.Errorf("%s: %+v", id, e)
				}
			}
			if e := all[poisonID]; e.ended != 0 || e.died != len(killed) {
				t.Errorf("%s: %+v, of %d deaths", poisonID, e, len(killed))
			}
		})
	}
}

// rises reports whether each number is larger than the one before.
func rises(numbers []int) bool {
	for i := 1; i < len(numbers); i++ {
		if numbers[i] <= numbers[i-1] {
			return false
		}
	}
	return true
}

const (
	eachOrders   = 1000
	eachPayloads = 10
	// eachCulprit is the payload that kills its process.
	eachCulprit = "p05"
)

// poisonEachWorker is a process that works payload by payload. One payload of the poisonous id
// kills it 20 ms after its start.
func poisonEachWorker() error {
	journal := journal{os.Getenv(journalVariable)}
	return workPoisoned(20, poisoned.Each(func(_ context.Context, id, payload string) error {
		if id != poisonID {
			time.Sleep(time.Millisecond)
			return nil
		}
		line := journalLine{what: lineBegan, pid: os.Getpid(), id: payload}
		journal.write(line)
		if payload == eachCulprit {
			time.Sleep(20 * time.Millisecond)
			killMyself()
		}
		line.what = lineEnded
		journal.write(line)
		return nil
	}))
}

// Under Each only the payload that kills its process is buried, after MaxRecoveries + 1 crashes. Of
// the other payloads of its id, those before it have run at most twice, and those behind it once.
func TestAPoisonousPayloadIsBuriedAlone(t *testing.T) {
	tier.Long(t, "kills processes at length")
	for name, open := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, j := open(t), newJournal(t)
			store := kit.Open(t, url)
			var payloads, orders []string
			for i := range eachPayloads {
				payloads = append(payloads, fmt.Sprintf("p%02d", i+1))
			}
			for i := range eachOrders {
				orders = append(orders, fmt.Sprint("order-", i))
			}
			pushPoison(t, store, payloads, orders)

			killed := workUntilEmpty(t, "poison-each", url, j)
			began := map[string]int{}
			for _, line := range j.read(t) {
				if line.what == lineBegan {
					began[line.id]++
				}
			}
			t.Logf("%d crashes; executions by payload: %v", len(killed), began)
			if want := skein.DefaultMaxRecoveries + 1; len(killed) != want || began[eachCulprit] != want {
				t.Errorf("%d crashes and %d executions of the culprit, want %d", len(killed), began[eachCulprit], want)
			}
			for _, payload := range payloads {
				most := 1
				if payload < eachCulprit {
					most = 2
				}
				if payload != eachCulprit && (began[payload] == 0 || began[payload] > most) {
					t.Errorf("%s ran %d times, want at most %d", payload, began[payload], most)
				}
			}

			found, err := inspect.New(store, inspect.Options{}).Find(t.Context(), poisoned.Name(), poisonID)
			if err != nil || found.DeadLetter == nil || len(found.DeadLetter.Payloads) != 1 ||
				!strings.Contains(string(found.DeadLetter.Payloads[0].Data), eachCulprit) {
				t.Errorf("found %+v, %v; want %s alone in the morgue", found.DeadLetter, err, eachCulprit)
			}
			stats, err := inspect.New(store, inspect.Options{}).Stats(t.Context(), poisoned.Name())
			if err != nil || stats[0].Processed != eachOrders+1 || stats[0].Failed != 1 {
				t.Errorf("processed %d, failed %d, %v; want %d and 1",
					stats[0].Processed, stats[0].Failed, err, eachOrders+1)
			}
		})
	}
}
