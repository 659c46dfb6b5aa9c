package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// schedule stores a schedule of a spec that begins now, with the changes of edit.
func (w *world) schedule(id, name, spec string, edit ...func(*core.Schedule)) {
	w.Helper()
	zone := time.UTC
	parsed, err := core.ParseSpec(spec, zone)
	if err != nil {
		w.Fatal(err)
	}
	now := core.InstantOf(time.Now())
	d := core.Declaration{
		ScheduleKey: core.ScheduleKey{ID: id, Name: name},
		Recurrence:  core.Recurrence{Spec: spec, Data: []byte(name)},
	}
	s, _ := d.Apply(core.Schedule{}, parsed, "test", now)
	for _, e := range edit {
		e(&s)
	}
	w.changeSchedule(ports.ScheduleChange{ScheduleKey: s.ScheduleKey, Schedule: &s})
}

func (w *world) changeSchedule(c ports.ScheduleChange) {
	w.Helper()
	q := w.queueRecord()
	reply, err := w.store.ChangeSchedules(context.Background(), ports.ChangeSchedulesRequest{
		Shard:  shardOfQueue(core.ShardOf(c.ID, q.Shards)),
		Shards: q.Shards, Generation: q.Generation, Changes: []ports.ScheduleChange{c},
	})
	if err != nil || reply.Results[0] != ports.ScheduleChanged {
		w.Fatalf("change of a schedule: %v, %v", reply.Results, err)
	}
}

// schedules returns the schedules of the queue.
func (w *world) schedules() (all []core.Schedule) {
	w.Helper()
	r := ports.SchedulesRequest{Queue: queueName}
	for {
		page, err := w.store.Schedules(context.Background(), r)
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, page.Schedules...)
		if r.After = page.Next; r.After == (core.ScheduleKey{}) {
			return all
		}
	}
}

// ran is the executions of payloads that ticks have pushed.
type ran struct {
	mu  sync.Mutex
	all []string
}

// handler notes the id and the tick of each payload, in seconds since the test began.
func (r *ran) handler(w *world) handler {
	every := core.MergeRule{Same: core.SamePush} // a queue by another rule has no stamps here
	return each(func(_ context.Context, c *core.Claim) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, p := range every.PushedAll(c.Payloads) {
			r.all = append(r.all, fmt.Sprintf("%s %s %g", c.ID, p.Data, p.Score-float64(w.began.Unix())))
		}
		return nil
	})
}

func (r *ran) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

func TestTicksFireOnTime(t *testing.T) {
	inWorld(t, func(w *world) {
		var r ran
		w.declare(1)
		w.schedule("a", "x", "every 10s 0")
		n := w.start(r.handler(w))
		w.sleepUntil(35 * time.Second)
		if diff := cmp.Diff([]string{"a x 10", "a x 20", "a x 30"}, r.take()); diff != "" {
			w.Errorf("ticks (-want +got):\n%s", diff)
		}
		for _, tick := range w.schedules()[0].Recent {
			if tick.Late > 10*time.Millisecond {
				w.Errorf("tick %v was fired %v late", tick.Due, tick.Late)
			}
		}

		w.schedule("b", "y", "every 3s 0") // noticed by the next look
		w.sleepUntil(40 * time.Second)
		if diff := cmp.Diff([]string{"b y 36", "b y 39"}, without(r.take(), "a x 40")); diff != "" {
			w.Errorf("ticks of a new schedule (-want +got):\n%s", diff)
		}
		n.wantLines(0, "level=WARN")
	})
}

func without(list []string, one string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == one })
}

// Ticks are pushed while all lanes are busy and no permit is free.
func TestTicksFireBesideBusyLanes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.schedule("a", "x", "every 10s 0")
		release := make(chan struct{})
		w.start(each(func(context.Context, *core.Claim) error { <-release; return nil }), lanes(1),
			func(s *setup) { s.queue.MaxRunning = 1 })
		w.push("other", "p")
		w.sleepUntil(25 * time.Second)
		if found := w.find("a"); found.Queued == nil || found.Queued.Count != 1 {
			w.Errorf("id a has %+v, want a queued job of one payload", found.Queued)
		}
		if s := w.schedules()[0]; s.Fired != 2 {
			w.Errorf("%d ticks were fired, want 2", s.Fired)
		}
		close(release)
		w.sleep(poll)
		w.wantCounts(0, 0, 2, 0)
	})
}

func TestAPausedQueueFiresNoTick(t *testing.T) {
	inWorld(t, func(w *world) {
		var r ran
		w.declare(1)
		w.schedule("a", "x", "every 10s 0")
		n := w.start(r.handler(w))
		w.sleepUntil(15 * time.Second)
		if err := w.store.Pause(w.Context(), queueName); err != nil {
			w.Fatal(err)
		}
		w.sleepUntil(55 * time.Second)
		if err := w.store.Resume(w.Context(), queueName); err != nil {
			w.Fatal(err)
		}
		w.sleepUntil(65 * time.Second)
		if diff := cmp.Diff([]string{"a x 10", "a x 50", "a x 60"}, r.take()); diff != "" {
			w.Errorf("ticks (-want +got):\n%s", diff)
		}
		n.wantLines(1, "level=WARN", "ticks were missed", "ticks=3", "schedule=x", "id=a")
	})
}

// A schedule that a server can't read does not stop others, and fires once one can.
func TestABrokenScheduleWaits(t *testing.T) {
	inWorld(t, func(w *world) {
		var r ran
		w.declare(1)
		w.schedule("a", "x", "every 10s 0")
		w.schedule("b", "y", "every 10s 0", func(s *core.Schedule) { s.Spec = "cron * * * * * Nowhere/Land" })
		n := w.start(r.handler(w))
		w.sleepUntil(75 * time.Second)
		if got := r.take(); len(got) != 7 || strings.Contains(fmt.Sprint(got), "b y") {
			w.Errorf("ticks %v, want 7 of a", got)
		}
		n.wantLines(2, "level=WARN", "can't be read", "schedule=y", "Nowhere/Land", "import time/tzdata")
		broken := w.schedules()[1]
		if !strings.Contains(broken.Broken, "Nowhere/Land") || broken.Fired != 0 {
			w.Fatalf("the schedule is %+v", broken)
		}

		spec, err := core.ParseSpec("every 10s 0", nil)
		if err != nil {
			w.Fatal(err)
		}
		mended := broken.Recurring(
			&core.Recurrence{Spec: "every 10s 0", Data: []byte("y")}, spec, core.InstantOf(time.Now()),
		).Changed("test", core.InstantOf(time.Now()))
		w.changeSchedule(ports.ScheduleChange{
			ScheduleKey: broken.ScheduleKey,
			Revision:    broken.Revision,
			Schedule:    &mended,
		})
		w.sleepUntil(135 * time.Second)
		if s := w.schedules()[1]; s.Broken != "" || s.Fired != 7 || s.Missed != 0 {
			w.Errorf("after it was mended: broken %q, %d fired, %d missed; want 7 and 0", s.Broken, s.Fired, s.Missed)
		}
	})
}

// The reply of each other change is lost. Each tick is fired once.
func TestTicksFireOnceWithoutReplies(t *testing.T) {
	inWorld(t, func(w *world) {
		var r ran
		w.declare(1)
		w.schedule("a", "x", "every 10s 0")
		lost := 0
		w.start(r.handler(w), func(s *setup) {
			s.link.lose = func(method string) bool { lost++; return method == "ChangeSchedules" && lost%2 == 0 }
		})
		w.sleepUntil(205 * time.Second)
		var want []string
		for i := range 20 {
			want = append(want, fmt.Sprint("a x ", 10*(i+1)))
		}
		if diff := cmp.Diff(want, r.take()); diff != "" {
			w.Errorf("ticks (-want +got):\n%s", diff)
		}
	})
}

// A shard whose calls hang delays the ticks of no other.
func TestAHungShardDelaysNoTicksOfOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		var r ran
		w.declare(2)
		hung, other := idIn(0, 2), idIn(1, 2)
		w.schedule(hung, "x", "every 10s 0")
		w.schedule(other, "y", "every 10s 0")
		n := w.start(r.handler(w), shards(2))
		w.sleepUntil(5 * time.Second)
		n.link.change(func() { n.link.stuck[shardOfQueue(0)] = true })
		w.sleepUntil(65 * time.Second)
		got := r.take()
		if len(got) != 6 || strings.Contains(fmt.Sprint(got), hung) {
			w.Errorf("ticks %v, want 6 of %s", got, other)
		}
		for _, tick := range w.schedules()[1].Recent {
			if tick.Late > poll {
				w.Errorf("tick %v of the healthy shard was fired %v late", tick.Due, tick.Late)
			}
		}
	})
}

func TestRunDueFiresTicks(t *testing.T) {
	inWorld(t, func(w *world) {
		var r ran
		w.declare(1)
		w.schedule("a", "x", "every 10s 0")
		w.sleepUntil(25 * time.Second)
		jobs, err := w.runDue(newLink(w.store.Open()), newQueue(queueName, r.handler(w)), "owner")
		if err != nil || jobs != 1 {
			w.Errorf("RunDue: %d jobs, %v", jobs, err)
		}
		if diff := cmp.Diff([]string{"a x 20"}, r.take()); diff != "" {
			w.Errorf("ticks (-want +got):\n%s", diff)
		}
	})
}

// tickWatcher is an observer of ticks.
type tickWatcher struct {
	ports.NopObserver
	events chan ports.TickEvent
}

func (o tickWatcher) TicksFired(e ports.TickEvent) { o.events <- e }

func TestAnObserverSeesTicks(t *testing.T) {
	inWorld(t, func(w *world) {
		var r ran
		o := tickWatcher{events: make(chan ports.TickEvent, 100)}
		w.declare(1)
		w.schedule("a", "x", "every 10s 0")
		w.schedule("b", "y", "every 10s 0", func(s *core.Schedule) { s.Skip = true })
		w.pushEntries(core.Entry{ID: "b", Payload: core.Payload{Data: []byte("p")}, When: core.In(time.Hour)})
		w.schedule("c", "z", "every 10s 0", func(s *core.Schedule) { s.Spec = "cron * * * * * Nowhere/Land" })
		w.sleepUntil(25 * time.Second)
		w.start(r.handler(w), func(s *setup) { s.Observer = o })
		w.sleep(poll)
		want := ports.TickEvent{
			Shard:   shardOfQueue(0),
			Fired:   1,
			Missed:  2,
			Skipped: 1,
			Broken:  1,
			Late:    []time.Duration{5 * time.Second, 5 * time.Second},
		}
		if diff := cmp.Diff(want, <-o.events); diff != "" {
			w.Errorf("event (-want +got):\n%s", diff)
		}
		if len(o.events) > 0 {
			w.Errorf("another event: %+v", <-o.events)
		}
	})
}

// Servers come, stop and are cut off at random. Each tick of a queue that merges by every is pushed
// once, in order.
func TestTicksFireOnceAmongServersThatDie(t *testing.T) {
	const ids = 40
	hours := tier.Count(2, 6)
	inWorld(t, func(w *world) {
		random := rand.New(rand.NewPCG(54, 1))
		every := core.MergeRule{Same: core.SamePush}
		if _, err := w.store.Declare(
			w.Context(), ports.DeclareRequest{Queue: queueName, Shards: 5, Merge: every},
		); err != nil {
			w.Fatal(err)
		}
		for i := range ids {
			w.schedule(fmt.Sprint("id-", i), "x", "every 1m0s 0", func(s *core.Schedule) {
				s.Catchup.Most = 1000
				s.Jitter = time.Duration(i) * time.Second
			})
		}

		var mu sync.Mutex
		last := map[string]float64{}
		seen := map[string]int{}
		run := each(func(_ context.Context, c *core.Claim) error {
			mu.Lock()
			defer mu.Unlock()
			for _, p := range every.PushedAll(c.Payloads) {
				k := fmt.Sprint(c.ID, " ", p.Score)
				if seen[k]++; p.Score < last[c.ID] {
					w.Errorf("id %s ran tick %v after %v", c.ID, p.Score, last[c.ID])
				}
				last[c.ID] = p.Score
			}
			return nil
		})
		one := func(s *setup) {
			s.queue.Shards, s.queue.Merge, s.Splitter = 5, every, core.SpreadSplitter{}
		}
		nodes := []*node{w.start(run, one), w.start(run, one)}
		for w.elapsed() < time.Duration(hours)*time.Hour {
			w.sleep(time.Duration(random.Int64N(int64(20 * time.Minute))))
			at := random.IntN(len(nodes))
			switch random.IntN(3) {
			case 0:
				nodes[at].stop()
			case 1:
				nodes[at].cutOff()
			default: // it pauses for longer than its lease
				nodes[at].link.set(hanging)
				w.sleep(2 * ttl)
				nodes[at].link.set(up)
				continue
			}
			nodes[at] = w.start(run, one)
		}
		w.sleep(5 * time.Minute)
		for _, n := range nodes {
			n.link.set(up)
			n.stop()
		}

		var fired int64
		for _, s := range w.schedules() {
			fired += s.Fired
			if s.Missed != 0 || int64(s.Next)-int64(core.InstantOf(w.began)) != (s.Fired+1)*60e6 {
				w.Errorf("schedule of %s: %d fired, %d missed, next tick %v", s.ID, s.Fired, s.Missed, s.Next.Time())
			}
		}
		for k, n := range seen { // a job that was recovered may run again
			if n > 3 {
				w.Errorf("tick %s ran %d times", k, n)
			}
		}
		if int64(len(seen)) != fired || fired < int64(ids*hours*59) {
			w.Errorf("%d ticks ran, and %d were fired", len(seen), fired)
		}
	})
}
