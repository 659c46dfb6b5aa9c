package kills_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

const (
	takeoverJobs = 1_000
	takeoverTake = 100 * time.Millisecond
	takeoverTTL  = 5 * time.Second
	// takeoverWithin is how long after the lease's end all jobs are done again, on a quiet
	// machine.
	takeoverWithin = 2 * time.Second
	// takeoverStart is how long a server takes there at most to start and to run all jobs at once.
	takeoverStart = 500 * time.Millisecond
)

var takenOver = skein.NewQueue[int]("taken-over", skein.QueueOptions[int]{})

// victimWorker is a server whose jobs never end.
func victimWorker() error {
	return takeoverWorker(func() { select {} })
}

// successorWorker is a server whose jobs take a while. It ends by an interrupt.
func successorWorker() error {
	return takeoverWorker(func() { time.Sleep(takeoverTake) })
}

func takeoverWorker(work func()) error {
	return journalWorker(takenOver, skein.ServerOptions{Lanes: takeoverJobs, LeaseTTL: takeoverTTL}, work)
}

// A server with a thousand running jobs dies. Its successor has as many lanes, and stands by or
// starts at once. It runs each job once more as soon as the leases have ended.
func TestSuccessorTakesOverAThousandRunningJobs(t *testing.T) {
	tier.Long(t, "kills processes at length")
	for name, open := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, standby := range []bool{true, false} {
				t.Run(map[bool]string{true: "standing by", false: "started at once"}[standby], func(t *testing.T) {
					inTime(t, func() time.Duration { return takeOver(t, open(t), standby) })
				})
			}
		})
	}
}

// takeOver kills a server while all jobs run, and returns how much later than allowed its successor
// has done them. It checks that each ran once more.
func takeOver(t *testing.T, url string, standby bool) (late time.Duration) {
	store := kit.Open(t, url)
	pushTakeoverJobs(t, store)
	j, began := newJournal(t), time.Now()
	victim := startProcess(t, "victim", url, j)
	j.await(t, lineBegan, victim.pid(), takeoverJobs)
	start := time.Since(began)
	var successor *process
	if standby {
		successor = startProcess(t, "successor", url, j)
		j.await(t, lineReady, successor.pid(), 1)
		time.Sleep(500 * time.Millisecond) // it has requested every shard
	}
	killed := time.Now()
	victim.kill(t)
	if !standby {
		successor = startProcess(t, "successor", url, j)
	}
	j.await(t, lineEnded, successor.pid(), takeoverJobs)
	successor.interrupt(t)

	lines := j.read(t)
	checkTakeover(t, store, lines)
	took := lines[len(lines)-1].at.Sub(killed)
	may := takeoverTTL + scaled(takeoverWithin, start, takeoverStart)
	t.Logf("all jobs ran %v after the server's start; all were done again %v after its death, where %v is allowed",
		start, took, may)
	return took - may
}

func pushTakeoverJobs(t *testing.T, store ports.ShardStore) {
	t.Helper()
	var entries []skein.Entry[int]
	for n := range takeoverJobs {
		entries = append(entries, skein.Entry[int]{ID: fmt.Sprint("job-", n), Payload: n})
	}
	client := skein.NewClient(store, skein.ClientOptions{})
	if err := takenOver.PushMany(t.Context(), client, entries); err != nil {
		t.Fatal(err)
	}
}

// checkTakeover checks that each job was running when its server died, was recovered once
// and done once, and that the store's counts agree.
func checkTakeover(t *testing.T, store ports.ShardStore, lines []journalLine) {
	t.Helper()
	all := replay(t, lines)
	for n := range takeoverJobs {
		id := fmt.Sprint("job-", n)
		want := executions{began: 2, ended: 1, died: 1, recoveries: []int{0, 1}}
		if got := all[id]; !cmp.Equal(want, got, cmp.AllowUnexported(executions{})) {
			t.Errorf("%s: %+v, want %+v", id, got, want)
		}
	}
	stats, err := inspect.New(store, inspect.Options{}).Stats(t.Context(), takenOver.Name())
	if err != nil || stats[0].Processed != takeoverJobs || stats[0].Length()+stats[0].Claimed+stats[0].Dead != 0 {
		t.Errorf("after the takeover: %+v, %v", stats, err)
	}
}
