package kills_test

import (
	"context"
	"fmt"
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
	ends := kit.FromVariable(t, endsVariable, 20)
	stores := kit.StoreURLs(t)
	cluster := testservers.RedisCluster(t)
	stores["Redis Cluster"] = func(t *testing.T) string {
		return kit.RedisURL(cluster) + "&prefix=" + testservers.Prefix(t, cluster)
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replaceRatedServers(t, open(t), ends)
		})
	}
}

func replaceRatedServers(t *testing.T, url string, ends int) {
	store, j := kit.Open(t, url), newJournal(t)
	pushRated(t, store, (ends+5)*4*ratedRate.Count)
	var servers []*process
	for range ratedServers {
		servers = append(servers, startProcess(t, "rated", url, j))
	}
	for _, p := range servers {
		j.await(t, lineBegan, p.pid(), 1)
	}

	for end := range ends {
		time.Sleep(time.Second + rand.N(4*time.Second)) // on a slow machine fewer jobs begin meanwhile
		at := rand.N(len(servers))
		if end%2 == 0 {
			servers[at].kill(t)
		} else {
			servers[at].interrupt(t)
		}
		servers[at] = startProcess(t, "rated", url, j)
	}
	for _, p := range servers {
		j.await(t, lineBegan, p.pid(), 1)
		p.interrupt(t)
	}

	u := checkRate(t, j.read(t), ratedRate)
	t.Logf("%d ends of servers: %v", ends, u)
	if lost := u.granted - u.began; lost > u.granted/20+(ends+ratedServers)*ratedLanes {
		t.Errorf("%d slots were granted and %d jobs began, so %d are lost", u.granted, u.began, lost)
	}
}

// pushRated pushes the given number of jobs, each of an id of its own.
func pushRated(t *testing.T, store ports.ShardStore, jobs int) {
	t.Helper()
	var entries []skein.Entry[int]
	for n := range jobs {
		entries = append(entries, skein.Entry[int]{ID: fmt.Sprint("job-", n), Payload: n})
	}
	must(t, rated.PushMany(t.Context(), skein.NewClient(store, skein.ClientOptions{}), entries))
}

// usage is how the slots of a rate were used.
type usage struct {
	granted, began int
	// slots and begins are the most in any period of the rate.
	slots, begins int
	took          time.Duration
}

func (u usage) String() string {
	return fmt.Sprintf("%d slots granted and %d jobs begun in %v; at most %d slots and %d begins in a period",
		u.granted, u.began, u.took.Round(time.Second), u.slots, u.begins)
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
	var slots, begins []time.Time
	ofServer, beganBy := make(map[int][]time.Time), make(map[int][]time.Time)
	var began []journalLine
	for _, l := range lines {
		switch l.what {
		case lineTook:
			for _, slot := range slotsOf(t, l, rate) {
				slots = append(slots, slot.Time())
				ofServer[l.pid] = append(ofServer[l.pid], l.at.Add(slot.Sub(nowOf(t, l))))
			}
		case lineBegan:
			begins, began = append(begins, l.at), append(began, l)
			beganBy[l.pid] = append(beganBy[l.pid], l.at)
		}
	}
	for pid, at := range beganBy {
		checkSlotsOfServer(t, pid, ofServer[pid], at)
	}

	bound := rate.Count + rate.Burst + 1
	u.granted, u.began = len(slots), len(begins)
	slices.SortFunc(slots, time.Time.Compare)
	eachPeriod(slots, rate.Per, func(first, last int) {
		if u.slots = max(u.slots, last-first+1); last-first+1 > bound {
			t.Errorf("%d slots from %v to %v, at a rate of %v", last-first+1, slots[first], slots[last], rate)
		}
	})

	slices.SortFunc(began, func(a, b journalLine) int { return a.at.Compare(b.at) })
	slices.SortFunc(begins, time.Time.Compare)
	if len(begins) > 0 {
		u.took = begins[len(begins)-1].Sub(begins[0])
	}
	ahead := int(ratedAhead/rate.Interval()) + 1
	eachPeriod(begins, rate.Per, func(first, last int) {
		servers := make(map[int]bool)
		for _, l := range began[first : last+1] {
			servers[l.pid] = true
		}
		u.begins = max(u.begins, last-first+1)
		if n := last - first + 1; n > bound+ratedLanes*len(servers)+ahead {
			t.Errorf("%d jobs begin on %d servers from %v to %v, at a rate of %v",
				n, len(servers), begins[first], begins[last], rate)
		}
	})
	return u
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

// eachPeriod calls a function with the first and the last index of the times of each period that ends
// with a time, in order.
func eachPeriod(times []time.Time, period time.Duration, f func(first, last int)) {
	first := 0
	for last := range times {
		for times[last].Sub(times[first]) > period {
			first++
		}
		f(first, last)
	}
}
