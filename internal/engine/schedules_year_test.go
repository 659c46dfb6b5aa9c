package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
	_ "time/tzdata" // zones don't depend on the machine

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/specs"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// A year of schedules. What takes time is ticks and servers, which look at their handlers each
// second. So most schedules are weekly and monthly, one in a thousand is hourly, and the servers
// run on weekends, when clocks are changed: for 20 hours if a clock is, and else for 90 minutes. On
// Saturdays they catch up on the ticks of the week.
//
// Two cores take a minute and a half for it, and with the race detector several times as much.
const (
	yearSchedules = 10_000
	yearServers   = 16
	yearShards    = 32
	yearPoll      = 10 * time.Minute
	yearTTL       = 30 * time.Minute
	yearWeeks     = 53        // from 1 January 2000 on, a Saturday, when virtual time begins
	yearLimit     = time.Hour // of real time
	longWeekend   = 20 * time.Hour
	shortWeekend  = 90 * time.Minute
)

// yearZones have changes of the clock in both directions in 2000, by an hour at 1:00 UTC, at 2:00,
// by half an hour, and at midnight, or no changes.
var yearZones = []string{
	"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kolkata", "UTC",
}

// yearSpec draws a spec. Many of its times are those that a change of the clock skips or repeats.
func yearSpec(t *testing.T, random *rand.Rand) string {
	t.Helper()
	minute, hour := 5*random.IntN(12), random.IntN(4)
	var cron string
	switch n := random.IntN(1000); {
	case n < 1:
		cron = fmt.Sprintf("%d * * * *", minute)
	case n < 2:
		spec, err := core.IntervalSpec(2*time.Hour+time.Duration(minute)*time.Second, core.Instant(minute)*1e6)
		if err != nil {
			t.Fatal(err)
		}
		return spec
	case n < 30:
		cron = fmt.Sprintf("%d %d * * *", minute, hour)
	case n < 700: // the changes come on Sundays
		cron = fmt.Sprintf("%d %d * * sun", minute, hour)
	case n < 800:
		cron = fmt.Sprintf("%d %d * * %d", minute, random.IntN(24), random.IntN(7))
	default:
		cron = fmt.Sprintf("%d %d %d * *", minute, hour, 1+random.IntN(31))
	}
	spec, err := core.CronSpec(cron, yearZones[random.IntN(len(yearZones))])
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// yearClock is a schedule of the year: the specs that it had, and the ticks that its payloads had
// in the order of their first runs.
type yearClock struct {
	specs  []core.EarlierSpec // each Until its change
	ticks  []core.Instant
	repeat int
}

// yearWorld is a world with the schedules of a year.
type yearWorld struct {
	*world
	random  *rand.Rand
	parsed  specs.Specs
	version int64
	clocks  []yearClock
	// changes is the number of weekends on which a clock was changed.
	changes int
	// mu guards the ticks of the clocks, which handlers add.
	mu    sync.Mutex
	nodes []*node
}

func yearID(i int) string { return fmt.Sprint("id-", i) }

// run is the handler. A payload may run again if its server was cut off, in the order of its job.
func (y *yearWorld) run(_ context.Context, c *core.Claim) error {
	var i int
	if _, err := fmt.Sscanf(c.ID, "id-%d", &i); err != nil {
		return err
	}
	time.Sleep(time.Second) // so that kills meet running handlers
	y.mu.Lock()
	defer y.mu.Unlock()
	clock := &y.clocks[i]
	for _, p := range (core.MergeRule{Same: core.SamePush}).PushedAll(c.Payloads) {
		tick := core.Instant(p.Score * 1e6)
		if n := len(clock.ticks); n > 0 && tick <= clock.ticks[n-1] {
			clock.repeat++
			continue
		}
		clock.ticks = append(clock.ticks, tick)
	}
	return nil
}

func (y *yearWorld) startNode() *node {
	wakeups := y.random.IntN(2) == 0
	return y.start(each(y.run), lanes(2), func(s *setup) {
		s.queue.Shards, s.queue.Merge, s.Splitter = yearShards, core.MergeRule{Same: core.SamePush},
			core.SpreadSplitter{}
		s.queue.Policy.MaxRecoveries = 1000
		s.PollInterval, s.LeaseTTL, s.ShutdownTimeout = yearPoll, yearTTL, yearPoll
		s.noWakeups = !wakeups
	})
}

// deploy declares a new version of the schedules, in which some have other specs, as a program does
// at its start. An older version changes nothing.
func (y *yearWorld) deploy() {
	y.Helper()
	y.version++
	stored := make(map[string]core.Schedule)
	for _, s := range y.schedules() {
		stored[s.ID] = s
	}
	for i := range y.clocks {
		id := yearID(i)
		current, exists := stored[id]
		d := core.Declaration{
			ScheduleKey: core.ScheduleKey{ID: id, Name: "x"},
			Recurrence:  current.Recurrence,
			Set:         "year",
			Version:     y.version,
		}
		if !exists {
			d.Data, d.Catchup.Most = []byte("x"), core.MaxCatchup
			d.Jitter = time.Duration(i%3) * 10 * time.Minute
		}
		if !exists || y.random.IntN(10) == 0 {
			d.Spec = yearSpec(y.T, y.random)
		}
		spec, err := y.parsed.Parse(d.Spec)
		y.must(err)

		now := core.InstantOf(time.Now())
		next, changed := d.Apply(current, spec, "code", now)
		if !changed {
			y.Fatalf("version %d changed nothing", y.version)
		}
		y.changeSchedule(ports.ScheduleChange{ScheduleKey: d.ScheduleKey, Revision: current.Revision, Schedule: &next})
		if d.Version--; d.Version > 0 {
			if _, changed := d.Apply(next, spec, "code", now); changed {
				y.Fatalf("version %d changed version %d", d.Version, y.version)
			}
		}
		if clock := &y.clocks[i]; next.Spec != current.Spec || !exists {
			if n := len(clock.specs); n > 0 {
				clock.specs[n-1].Until = now
			}
			clock.specs = append(clock.specs, core.EarlierSpec{Spec: next.Spec, Until: core.MaxInstant})
		}
	}
}

// oracle returns the ticks of a clock before next.
func (y *yearWorld) oracle(c *yearClock, next core.Instant) (ticks []core.Instant) {
	since := core.InstantOf(y.began)
	for _, s := range c.specs {
		spec, err := y.parsed.Parse(s.Spec)
		y.must(err)
		until := min(s.Until, next-1)
		for tick, ok := spec.Next(since); ok && tick <= until; tick, ok = spec.Next(tick) {
			ticks = append(ticks, tick)
		}
		since = s.Until
	}
	return ticks
}

// disturb stops a server, kills it, or has it stand still for longer than its lease.
func (y *yearWorld) disturb() {
	at := y.random.IntN(len(y.nodes))
	n := y.nodes[at]
	switch y.random.IntN(3) {
	case 0:
		n.stop()
	case 1:
		n.cutOff()
		n.cancel() // so that it ends, although none of its calls reaches the store
	default:
		n.link.set(hanging)
		y.sleep(2 * yearTTL)
		n.link.set(up)
		return
	}
	y.nodes[at] = y.startNode()
}

// clockChanges reports whether a zone has another offset in two days.
func (y *yearWorld) clockChanges() bool {
	now := time.Now()
	return slices.ContainsFunc(yearZones, func(name string) bool {
		zone, err := time.LoadLocation(name)
		y.must(err)
		_, before := now.In(zone).Zone()
		_, after := now.Add(48 * time.Hour).In(zone).Zone()
		return before != after
	})
}

// weekend runs the servers from Saturday 14:00 UTC on, and stops or kills all of them at its end.
func (y *yearWorld) weekend(week int) (disturbances int) {
	y.sleepUntil(time.Duration(week)*7*24*time.Hour + 14*time.Hour)
	if week%4 == 2 { // none of them runs, so there are ticks of the old specs
		y.deploy()
	}
	for range yearServers {
		y.nodes = append(y.nodes, y.startNode())
	}
	lasts := shortWeekend
	if y.clockChanges() {
		lasts = longWeekend
		y.changes++
	}
	pause := time.Minute // the first of them is disturbed while it catches up
	for over := y.elapsed() + lasts; y.elapsed() < over; disturbances++ {
		y.sleep(time.Duration(y.random.Int64N(int64(pause))))
		y.disturb()
		pause = lasts / 5
	}
	if week%4 == 0 {
		y.deploy()
		for at, old := range y.nodes {
			y.nodes[at] = y.startNode()
			old.stop()
		}
		y.sleep(yearPoll)
	}

	for _, n := range y.nodes {
		if y.random.IntN(2) == 0 && week < yearWeeks-1 {
			n.cutOff()
		}
		n.stop()
	}
	y.nodes = nil
	return disturbances
}

// Servers of ten thousand schedules in several zones are stopped, killed and replaced for a year,
// and some schedules get another spec every two weeks. Each tick is pushed once, in order.
func TestTicksFireOnceForAYear(t *testing.T) {
	tier.Long(t, "runs a year of virtual time")
	inWorldFor(t, yearLimit, func(w *world) {
		y := &yearWorld{world: w, random: rand.New(rand.NewPCG(54, 2)), clocks: make([]yearClock, yearSchedules)}
		every := core.MergeRule{Same: core.SamePush}
		_, err := w.store.Declare(w.Context(), ports.DeclareRequest{Queue: queueName, Shards: yearShards, Merge: every})
		w.must(err)
		y.deploy()
		disturbances := 0
		for week := range yearWeeks {
			disturbances += y.weekend(week)
		}
		y.check()
		if y.changes < 6 {
			t.Errorf("clocks were changed on %d weekends; is the zone data missing?", y.changes)
		}
		t.Logf("%d disturbances, %d versions, clocks were changed on %d weekends", disturbances, y.version, y.changes)
	})
}

// check compares the ticks that ran and those that are counted with the oracle.
func (y *yearWorld) check() {
	y.Helper()
	var fired, repeats, missed, differ int
	end := core.InstantOf(time.Now().Add(-yearPoll))
	all := y.schedules()
	for k := range all {
		s := &all[k]
		var i int
		if _, err := fmt.Sscanf(s.ID, "id-%d", &i); err != nil {
			y.Fatal(err)
		}
		clock := &y.clocks[i]
		want := y.oracle(clock, s.Next)
		fired, repeats, missed = fired+int(s.Fired), repeats+clock.repeat, missed+int(s.Missed)
		if s.Fired == int64(len(want)) && slices.Equal(clock.ticks, want) && s.Head().Due > end {
			continue
		}
		if differ++; differ < 10 {
			y.Errorf("schedule of %s with specs %v: %d ticks ran, %d fired, %d missed, next %v; want %d ticks",
				s.ID, clock.specs, len(clock.ticks), s.Fired, s.Missed, s.Next.Time(), len(want))
		}
	}
	if len(all) != yearSchedules || differ > 0 || missed > 0 {
		y.Errorf("%d schedules, of which %d differ from the oracle; %d ticks were missed", len(all), differ, missed)
	}
	if left := y.stats(); left.Fresh+left.Retrying+left.Claimed+left.Dead > 0 {
		y.Errorf("left over: %+v", left.Counts)
	}
	y.Logf("%d ticks were fired, and %d ran again", fired, repeats)
}
