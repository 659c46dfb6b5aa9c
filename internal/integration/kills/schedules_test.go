package kills_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

const (
	// tickingVariable has the version and the number of the schedules that a ticking worker declares,
	// and its LeaseTTL.
	tickingVariable = "SKEIN_TEST_WORKER_SCHEDULES"
	// tickingFaultsVariable is how many faults the long test makes.
	tickingFaultsVariable = "SKEIN_TEST_SCHEDULE_FAULTS"

	tickingShards = 8
	// tickingTake is how long a payload takes, so that kills meet running handlers.
	tickingTake = 5 * time.Millisecond
	// tickingNames is the number of schedules of an id.
	tickingNames = 4
	// tickingQuiet is how long the long test measures lateness before its first fault.
	tickingQuiet = 20 * time.Second
)

// ticking is a queue of schedules. It keeps each payload, so a second push of a tick is seen unless
// the first is still queued, and then it is counted in the schedule.
var ticking = skein.NewQueue[string]("ticking", skein.QueueOptions[string]{
	Shards: tickingShards, Merge: skein.Every(), MaxRecoveries: 1000,
})

// tickingSet returns a version of the declared schedules. Each version changes the specs of three
// in four of them.
func tickingSet(version, count int) skein.ScheduleSet {
	set := skein.ScheduleSet{Name: "clocks", Version: int64(version)}
	for i := range count {
		every, offset := time.Second, i*37%1000
		if i%4 > 0 {
			offset = (offset + 211*version) % 1000
		}
		if (i+version)%8 == 1 {
			every = 1500 * time.Millisecond
		}
		name, id := fmt.Sprint("clock-", i%tickingNames), fmt.Sprint("id-", i/tickingNames)
		spec := skein.Interval(every).From(time.UnixMilli(int64(offset)))
		set.Schedules = append(set.Schedules,
			ticking.NewSchedule(name, spec, id, name, skein.Catchup(core.MaxCatchup, 0)))
	}
	return set
}

// tickRun is a payload of a tick that a handler has.
type tickRun struct {
	core.ScheduleKey
	tick core.Instant
}

const tickRunFormat = "%s %s %d"

// tickingWorker is a server that declares a version of the schedules. Its handler writes each
// payload to the journal.
func tickingWorker() error {
	var version, count int
	var ttl time.Duration
	if _, err := fmt.Sscan(os.Getenv(tickingVariable), &version, &count, (*int64)(&ttl)); err != nil {
		return err
	}
	options := skein.ServerOptions{Lanes: tickingShards, LeaseTTL: ttl, Schedules: tickingSet(version, count)}
	return serveWithJournal(options, func(j journal) skein.Handler {
		return ticking.JobHandler(func(ctx context.Context, job *skein.Job[string]) error {
			for i := range job.Payloads {
				if ctx.Err() != nil { // the lease is lost, and another server has the job
					return ctx.Err()
				}
				p := &job.Payloads[i]
				j.write(journalLine{
					what: lineTick, pid: os.Getpid(), recoveries: job.Recoveries,
					id: fmt.Sprintf(tickRunFormat, job.ID, p.Value, int64(math.Round(p.Score*1e6))),
				})
				time.Sleep(tickingTake) // no test counts how much a slow machine does
			}
			return nil
		})
	})
}

// specSince is a spec and the time from which on it gives the ticks.
type specSince struct {
	spec  string
	since core.Instant
}

// clocks are schedules whose servers come and go.
type clocks struct {
	t       *testing.T
	url     string
	store   ports.ShardStore
	j       journal
	count   int
	ttl     time.Duration
	version int
	nodes   []*process
	// history are the specs that each schedule had, in order.
	history map[core.ScheduleKey][]specSince
	// offset is the length of the journal that was read, and runs are its ticks, in order.
	offset int64
	runs   []journalLine
	// newest are the newest ticks that ran, and quiet is the number of runs before the first fault.
	newest map[core.ScheduleKey]core.Instant
	quiet  int
}

func newClocks(t *testing.T, url string, count, nodes int, ttl time.Duration) *clocks {
	c := &clocks{
		t: t, url: url, store: kit.Open(t, url), j: newJournal(t), count: count, ttl: ttl, version: 1,
		history: map[core.ScheduleKey][]specSince{}, newest: map[core.ScheduleKey]core.Instant{},
	}
	for range nodes {
		c.nodes = append(c.nodes, c.start(1))
	}
	c.noteSpecs()
	c.awaitTicks()
	return c
}

// start starts a server with a version of the schedules, and returns when it has declared them.
func (c *clocks) start(version int) *process {
	c.t.Helper()
	p := startProgram(c.t, os.Args[0], "ticking",
		c.url, c.j, fmt.Sprintf("%s=%d %d %d", tickingVariable, version, c.count, c.ttl))
	c.j.await(c.t, lineReady, p.pid(), 1)
	return p
}

// schedules returns what the store has of each schedule.
func (c *clocks) schedules() (all []core.Schedule) {
	c.t.Helper()
	r := ports.SchedulesRequest{Queue: ticking.Name()}
	for {
		page, err := c.store.Schedules(c.t.Context(), r)
		must(c.t, err)
		all = append(all, page.Schedules...)
		if r.After = page.Next; r.After == (core.ScheduleKey{}) {
			return all
		}
	}
}

// noteSpecs checks that the store has the newest version of all schedules, and notes the specs.
func (c *clocks) noteSpecs() {
	c.t.Helper()
	all := c.schedules()
	if len(all) != c.count {
		c.t.Fatalf("the store has %d schedules, want %d", len(all), c.count)
	}
	for i := range all {
		s := &all[i]
		if s.Version != int64(c.version) {
			c.t.Fatalf("schedule %q of id %q has version %d, want %d", s.Name, s.ID, s.Version, c.version)
		}
		now := specSince{s.Spec, s.SpecSince}
		if had := c.history[s.ScheduleKey]; len(had) == 0 || had[len(had)-1] != now {
			c.history[s.ScheduleKey] = append(had, now)
		}
	}
}

// look reads the journal.
func (c *clocks) look() {
	c.t.Helper()
	var lines []journalLine
	lines, c.offset = c.j.readFrom(c.t, c.offset)
	for _, l := range lines {
		if l.what == lineTick {
			run := c.parse(l)
			c.newest[run.ScheduleKey] = max(c.newest[run.ScheduleKey], run.tick)
			c.runs = append(c.runs, l)
		}
	}
}

func (c *clocks) parse(l journalLine) (run tickRun) {
	c.t.Helper()
	if _, err := fmt.Sscanf(l.id, tickRunFormat, &run.ID, &run.Name, &run.tick); err != nil {
		c.t.Fatalf("%q: %v", l.id, err)
	}
	return run
}

// awaitTicks waits until each schedule has run a tick after now.
func (c *clocks) awaitTicks() {
	c.t.Helper()
	now := core.InstantOf(time.Now())
	for deadline := time.Now().Add(testservers.Patience); ; time.Sleep(10 * time.Millisecond) {
		c.look()
		behind := 0
		for key := range c.history {
			if c.newest[key] <= now {
				behind++
			}
		}
		if behind == 0 {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%d schedules have run no tick for %v", behind, testservers.Patience)
		}
	}
}

// replace puts a started server in the place of one that has ended.
func (c *clocks) replace(at, version int) { c.nodes[at] = c.start(version) }

// fault makes one of a few faults, and waits until all schedules tick again.
func (c *clocks) fault(number int) {
	c.t.Helper()
	at := rand.IntN(len(c.nodes))
	switch number % 5 {
	case 0: // a process is killed
		c.nodes[at].kill(c.t)
		c.replace(at, c.version)
	case 1: // a process stands still until others have its shards
		thaw := testservers.FreezeProcess(c.t, c.nodes[at].pid())
		c.awaitTicks()
		thaw()
	case 2: // all are replaced by a new version, one by one
		c.version++
		for at, old := range c.nodes {
			c.replace(at, c.version)
			c.noteSpecs()
			old.interrupt(c.t)
		}
	case 3: // an old version starts again, and fires the schedules of the new one
		c.nodes[at].kill(c.t)
		c.replace(at, 1)
		c.noteSpecs()
	case 4: // none is there for a while, and a new version has ticks of the old specs to fire
		for _, p := range c.nodes {
			p.kill(c.t)
		}
		time.Sleep(time.Duration(rand.Int64N(int64(2 * c.ttl)))) // a slow machine makes it longer
		c.version++
		for at := range c.nodes {
			c.replace(at, c.version)
		}
		c.noteSpecs()
	}
	c.awaitTicks()
}

// finish pauses all schedules, lets the servers run what was pushed, and stops them.
func (c *clocks) finish() {
	c.t.Helper()
	i := inspect.New(c.store, inspect.Options{Logger: slog.New(slog.DiscardHandler)})
	for name := range min(tickingNames, c.count) {
		_, err := i.PauseSchedules(c.t.Context(),
			ticking.Name(), inspect.ScheduleSelection{Name: fmt.Sprint("clock-", name)}, "the end")
		must(c.t, err)
	}
	kit.AwaitCounts(c.t, c.store, ticking.Name(), 0, 0, 0)
	for _, p := range c.nodes {
		p.interrupt(c.t)
	}
	c.look()

	stats, err := i.Stats(c.t.Context(), ticking.Name())
	must(c.t, err)
	if stats[0].Dead != 0 || stats[0].Failed != 0 {
		c.t.Errorf("%d dead letters and %d failures", stats[0].Dead, stats[0].Failed)
	}
}

// oracle returns the ticks of specs up to the next one that has not been fired.
func (c *clocks) oracle(specs []specSince, next core.Instant) (ticks []core.Instant) {
	c.t.Helper()
	for i, of := range specs {
		until := next - 1
		if i+1 < len(specs) {
			until = min(until, specs[i+1].since)
		}
		spec, err := core.ParseSpec(of.spec, nil)
		must(c.t, err)
		for tick, ok := spec.Next(of.since); ok && tick <= until; tick, ok = spec.Next(tick) {
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// check compares what the store has counted and what the handlers were given with the oracle. A
// payload may run again after its server has died or lost its lease, so after a recovery. It is
// claimed without one at most once, or it was pushed twice.
func (c *clocks) check() {
	c.t.Helper()
	ran, fresh := map[core.ScheduleKey][]core.Instant{}, map[tickRun]int{}
	seen := map[tickRun]bool{}
	repeats := 0
	for _, l := range c.runs {
		run := c.parse(l)
		if l.recoveries == 0 {
			fresh[run]++
		}
		if seen[run] {
			repeats++
			continue
		}
		seen[run] = true
		ran[run.ScheduleKey] = append(ran[run.ScheduleKey], run.tick)
	}
	for run, n := range fresh {
		if n > 1 {
			c.t.Errorf("tick %d of %v ran %d times without a recovery before it", run.tick, run.ScheduleKey, n)
		}
	}

	all := c.schedules()
	fired := int64(0)
	for i := range all {
		s := &all[i]
		fired += s.Fired
		want := c.oracle(c.history[s.ScheduleKey], s.Next)
		if s.Fired != int64(len(want)) || s.Missed != 0 || s.Skipped != 0 || s.Broken != "" {
			c.t.Errorf("%v: %d fired, %d missed, %d skipped, broken %q; want %d fired",
				s.ScheduleKey, s.Fired, s.Missed, s.Skipped, s.Broken, len(want))
		}
		if got := ran[s.ScheduleKey]; !slices.Equal(got, want) {
			c.t.Errorf("%v: %d ticks ran, in the order %v; want %d; specs %v",
				s.ScheduleKey, len(got), got, len(want), c.history[s.ScheduleKey])
		}
	}
	if len(all) != c.count || int64(len(seen)) != fired {
		c.t.Errorf("%d schedules have fired %d ticks, and %d ran; want %d schedules",
			len(all), fired, len(seen), c.count)
	}
	c.t.Logf("%d schedules in version %d: %d ticks were fired and ran, %d of them again after a recovery",
		len(all), c.version, fired, repeats)
}

// late returns how long after its tick each payload ran first, before the first fault and since.
func (c *clocks) late() (quiet, faulty kit.Spread) {
	seen := map[string]bool{}
	for i, l := range c.runs {
		if seen[l.id] {
			continue
		}
		seen[l.id] = true
		d := l.at.Sub(c.parse(l).tick.Time())
		if i < c.quiet {
			quiet = append(quiet, d)
		} else {
			faulty = append(faulty, d)
		}
	}
	return quiet, faulty
}

// Hundreds of schedules tick each second while their servers are killed, stand still and are
// replaced by versions with other specs. Each tick of each spec is pushed once, and in order.
func TestTicksArePushedOnceWhileServersAreKilled(t *testing.T) {
	tier.Long(t, "kills processes at length")
	faults := kit.FromVariable(t, tickingFaultsVariable, 20)
	for name, open := range kit.StoreAndClusterURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClocks(t, open(t), 500, 3, 2*time.Second)
			start := len(c.runs)
			time.Sleep(tickingQuiet)
			c.look()
			c.quiet = len(c.runs)
			for number := range faults {
				c.fault(number)
			}
			c.finish()
			c.check()
			c.runs, c.quiet = c.runs[start:], c.quiet-start
			quiet, faulty := c.late()
			t.Logf("from a tick to its handler, without faults: %v; with %d faults and a TTL of %v: %v",
				quiet, faults, c.ttl, faulty)
		})
	}
}

// The same in short: a server of a few schedules is killed.
func TestTicksArePushedOnceWhenAServerIsKilled(t *testing.T) {
	t.Parallel()
	c := newClocks(t, kit.StoreURLs(t)["Redis"](t), 20, 2, time.Second)
	c.fault(0)
	c.finish()
	c.check()
}
