package kills_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
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

const (
	ratedServers = 4
	ratedLanes   = 2
	// ratedTake is how long a job takes: four servers could do more than twice the rate.
	ratedTake = 60 * time.Millisecond
	ratedTTL  = 3 * time.Second
	// ratedAhead is how far ahead of its time a slot is granted at most.
	ratedAhead = 50 * time.Millisecond
	// endsVariable is how often a server is killed or replaced. By default it takes about a minute.
	endsVariable = "SKEIN_TEST_RATED_ENDS"
)

// rated is a queue with a rate, and ratedRate that rate.
var (
	rated     = skein.NewQueue[int]("rated", skein.QueueOptions[int]{Shards: 8, MaxRecoveries: 1000, Rate: ratedRate})
	ratedRate = skein.Rate{Count: 50, Per: time.Second}
)

// ratedWorker is a server that keeps a journal of the slots that it is granted, and of its jobs. It
// ends by an interrupt.
func ratedWorker() error {
	options := skein.ServerOptions{Lanes: ratedLanes, LeaseTTL: ratedTTL}
	return serveThrough(options, noteGrants, func(j journal) skein.Handler {
		return rated.JobHandler(func(_ context.Context, job *skein.Job[int]) error {
			line := journalLine{what: lineBegan, pid: os.Getpid(), id: job.ID}
			j.write(line)
			time.Sleep(ratedTake)
			line.what = lineEnded
			j.write(line)
			return nil
		})
	})
}

// noteGrants writes a line for each reply of Take that grants slots, before the server has the reply:
// id is the store's clock, token the first slot, and recoveries how many there are.
func noteGrants(j journal) storekit.Interceptor {
	return func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
		err := next(ctx)
		if reply, ok := call.Reply.(*ports.TakeReply); ok && err == nil && reply.Grants[0].Granted > 0 {
			j.write(journalLine{
				what: lineTook, pid: os.Getpid(), id: strconv.FormatInt(int64(reply.Now), 10),
				token: int64(reply.Grants[0].First), recoveries: reply.Grants[0].Granted,
			})
		}
		return err
	}
}

// A rate holds over servers that are killed and replaced under load. Of the slots that they are granted
// 95 % are used, besides one for each lane of a server that ended. How many are granted depends on the
// machine.
func TestARateHoldsWhileServersDieAndAreReplaced(t *testing.T) {
	tier.Long(t, "replaces processes at length")
	onEachStoreAndCluster(t, replaceRatedServers)
}

// onEachStoreAndCluster runs a test of servers that end a number of times, on each store.
func onEachStoreAndCluster(t *testing.T, test func(t *testing.T, url string, ends int)) {
	ends := kit.FromVariable(t, endsVariable, 20)
	for name, open := range kit.StoreAndClusterURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t), ends)
		})
	}
}

// replace kills or interrupts one of the servers after another, and starts one in its place. Before
// each end it calls work, and lets the servers work for a second, and longer by up to a time. On a slow
// machine fewer jobs begin meanwhile.
func replace(t *testing.T, servers []*process, ends int, longer time.Duration, work func(), start func() *process) {
	t.Helper()
	for end := range ends {
		work()
		time.Sleep(time.Second + rand.N(longer))
		at := rand.N(len(servers))
		if end%2 == 0 {
			servers[at].kill(t)
		} else {
			servers[at].interrupt(t)
		}
		servers[at] = start()
	}
}

func replaceRatedServers(t *testing.T, url string, ends int) {
	f := newRatedFlow(t, url)
	var servers []*process
	for range ratedServers {
		servers = append(servers, f.start())
	}
	for _, p := range servers {
		f.await(p, 1)
	}

	replace(t, servers, ends, 4*time.Second, func() { f.push(5 * ratedRate.Count) }, f.start)
	for _, p := range servers {
		f.await(p, 1)
		p.interrupt(t)
	}

	u := checkRate(t, f.j.read(t), ratedRate)
	t.Logf("%d ends of servers: %v", ends, u)
	if lost := u.granted - u.began; lost > u.granted/20+(ends+ratedServers)*ratedLanes {
		t.Errorf("%d slots were granted and %d jobs began, so %d are lost", u.granted, u.began, lost)
	}
}

// ratedFlow is jobs of a queue with a rate, and the journal of its servers.
type ratedFlow struct {
	*testing.T
	url    string
	client *skein.Client
	j      journal
	pushed int
}

// newRatedFlow makes a flow with some seconds' jobs.
func newRatedFlow(t *testing.T, url string) *ratedFlow {
	t.Helper()
	f := &ratedFlow{T: t, url: url, client: skein.NewClient(kit.Open(t, url), skein.ClientOptions{}), j: newJournal(t)}
	f.push(10 * ratedRate.Count)
	return f
}

func (f *ratedFlow) start() *process { return startProcess(f.T, "rated", f.url, f.j) }

// push pushes the given number of jobs, each of an id of its own. A store that starts again may refuse
// the first calls.
func (f *ratedFlow) push(jobs int) {
	f.Helper()
	var entries []skein.Entry[int]
	for range jobs {
		f.pushed++
		entries = append(entries, skein.Entry[int]{ID: fmt.Sprint("job-", f.pushed), Payload: f.pushed})
	}
	for deadline := time.Now().Add(testservers.Patience); ; time.Sleep(10 * time.Millisecond) {
		err := rated.PushMany(f.Context(), f.client, entries)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			f.Fatal(err)
		}
	}
}

// await waits until a server has begun the given number of jobs, and pushes some meanwhile.
func (f *ratedFlow) await(p *process, jobs int) {
	f.Helper()
	for deadline := time.Now().Add(testservers.Patience); f.begunBy(p) < jobs; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.Fatalf("server %d has begun %d of %d jobs after %v", p.pid(), f.begunBy(p), jobs, testservers.Patience)
		}
		f.push(ratedRate.Count / 5)
	}
}

// begunBy returns how many jobs a server has begun.
func (f *ratedFlow) begunBy(p *process) (jobs int) {
	f.Helper()
	for _, l := range f.j.read(f.T) {
		if l.what == lineBegan && l.pid == p.pid() {
			jobs++
		}
	}
	return jobs
}

// usage is how the slots of a rate were used.
type usage struct {
	granted, began int
	// slots and begins are those of the worst period of the rate.
	slots, begins int
	took          time.Duration
	// by are the jobs that each server began.
	by map[int]int
}

func (u usage) String() string {
	return fmt.Sprintf("%d slots granted and %d jobs begun in %v; %d slots and %d begins in the worst period; "+
		"by server: %v",
		u.granted, u.began, u.took.Round(time.Second), u.slots, u.begins, slices.Sorted(maps.Values(u.by)))
}

// checkRate checks a journal against a rate.
//
//   - By the store's clock, any period has at most Count + Burst + 1 slots, whatever the machine does.
//   - Each begin has a slot of its own, of its own server, whose time has come.
//   - By the clock of the journal, any period has at most Count + Burst + 1 begins, and for each server
//     that began one meanwhile, dead or alive, two more, for the slots of its two lanes that had come
//     before and were unused or not in the journal yet; and what is granted within ratedAhead.
func checkRate(t *testing.T, lines []journalLine, rate core.Rate) (u usage) {
	t.Helper()
	var slots []time.Time
	var begins []journalLine
	ofServer, beganBy := make(map[int][]time.Time), make(map[int][]time.Time)
	for _, l := range lines {
		switch l.what {
		case lineTook:
			for _, slot := range slotsOf(t, l, rate) {
				slots = append(slots, slot.Time())
				ofServer[l.pid] = append(ofServer[l.pid], l.at.Add(slot.Sub(nowOf(t, l))))
			}
		case lineBegan:
			begins = append(begins, l)
			beganBy[l.pid] = append(beganBy[l.pid], l.at)
		}
	}
	u.by = make(map[int]int)
	for pid, at := range beganBy {
		u.by[pid] = len(at)
		checkSlotsOfServer(t, pid, ofServer[pid], at)
	}

	u.granted, u.began = len(slots), len(begins)
	u.slots = checkSlots(t, slots, rate)
	u.begins, u.took = checkBegins(t, begins, rate)
	return u
}

// checkSlots checks the slots of all servers, and returns how many the worst period has.
func checkSlots(t *testing.T, slots []time.Time, rate core.Rate) (worst int) {
	t.Helper()
	slices.SortFunc(slots, time.Time.Compare)
	first, last := worstPeriod(slots, rate.Per, func(first, last int) int { return last - first })
	if worst = last - first + 1; worst > rate.Count+rate.Burst+1 {
		t.Errorf("%d slots from %v to %v, at a rate of %v", worst, slots[first], slots[last], rate)
	}
	return worst
}

// checkBegins checks the jobs of all servers, and returns how many begin in the worst period, and how
// long they took together.
func checkBegins(t *testing.T, begins []journalLine, rate core.Rate) (worst int, took time.Duration) {
	t.Helper()
	slices.SortFunc(begins, func(a, b journalLine) int { return a.at.Compare(b.at) })
	at := make([]time.Time, len(begins))
	for i, l := range begins {
		at[i] = l.at
	}

	may := func(first, last int) int {
		servers := make(map[int]bool)
		for _, l := range begins[first : last+1] {
			servers[l.pid] = true
		}
		return rate.Count + rate.Burst + 1 + ratedLanes*len(servers) + int(ratedAhead/rate.Interval()) + 1
	}
	first, last := worstPeriod(at, rate.Per, func(first, last int) int { return last - first - may(first, last) })
	if worst = last - first + 1; worst > may(first, last) {
		t.Errorf("%d jobs begin from %v to %v, and %d may, at a rate of %v",
			worst, at[first], at[last], may(first, last), rate)
	}
	return worst, at[len(at)-1].Sub(at[0])
}

// nowOf returns the store's clock of a line of grants.
func nowOf(t *testing.T, l journalLine) core.Instant {
	t.Helper()
	now, err := strconv.ParseInt(l.id, 10, 64)
	must(t, err)
	return core.Instant(now)
}

// slotsOf returns the slots of a line of grants.
func slotsOf(t *testing.T, l journalLine, rate core.Rate) (slots []core.Instant) {
	t.Helper()
	for i := range l.recoveries {
		slots = append(slots, rate.Slot(core.Instant(l.token), nowOf(t, l), i))
	}
	return slots
}

// checkSlotsOfServer checks that each job of a server begins at a slot of its own or later.
func checkSlotsOfServer(t *testing.T, pid int, slots, begins []time.Time) {
	t.Helper()
	slices.SortFunc(slots, time.Time.Compare)
	slices.SortFunc(begins, time.Time.Compare)
	for i, at := range begins {
		if i >= len(slots) || at.Before(slots[i]) {
			t.Errorf("server %d begins job %d at %v, and has %d slots: %v", pid, i+1, at, len(slots), slots[min(i, len(slots)):])
			return
		}
	}
}

// worstPeriod returns the first and the last index of the times of a period that ends with a time: of
// the one that exceeds most.
func worstPeriod(times []time.Time, period time.Duration, exceeds func(first, last int) int) (first, last int) {
	from, most := 0, math.MinInt
	for to := range times {
		for times[to].Sub(times[from]) > period {
			from++
		}
		if n := exceeds(from, to); n > most {
			first, last, most = from, to, n
		}
	}
	return first, last
}
