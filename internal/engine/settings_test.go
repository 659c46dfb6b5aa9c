package engine_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// announces is how long a node takes to follow a setting: an announce interval, and a call.
const announces = ttl/3 + time.Second

// set changes settings of the queue, "name=value" or "name" to unset one.
func (w *world) set(changes ...core.SettingChange) {
	w.Helper()
	now := core.InstantOf(time.Now())
	was := w.queueRecord().Settings
	settings, err := was.Change(changes, "ann", now)
	if err == nil && settings.Version > was.Version {
		err = w.store.Configure(w.Context(), ports.ConfigureRequest{Queue: queueName, Settings: settings})
	}
	if err != nil {
		w.Fatal(err)
	}
}

func setting(name string, value int) core.SettingChange {
	return core.SettingChange{Name: name, Value: strconv.Itoa(value)}
}

func unset(name string) core.SettingChange { return core.SettingChange{Name: name, Unset: true} }

// gauge counts the batches that run. peak returns the most since the last call.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) handler(took time.Duration) handler {
	return each(func(ctx context.Context, _ *core.Claim) error {
		n := g.now.Add(1)
		defer g.now.Add(-1)
		for most := g.most.Load(); n > most && !g.most.CompareAndSwap(most, n); most = g.most.Load() {
		}
		time.Sleep(took)
		return nil
	})
}

func (g *gauge) peak() int64 { return g.most.Swap(g.now.Load()) }

// wantPeak checks that in the next seconds at most n batches run at once, and as many at some time.
func (w *world) wantPeak(g *gauge, n int64) {
	w.Helper()
	g.peak()
	w.sleep(5 * time.Second)
	if got := g.peak(); got != n {
		w.Errorf("at %v: %d batches run at once, want %d", w.elapsed(), got, n)
	}
}

func TestSettingsBoundARunningServer(t *testing.T) {
	for name, option := range map[string]func(*setup){
		"with wake-ups":    func(*setup) {},
		"without wake-ups": noWakeups,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				var g gauge
				n := w.start(g.handler(50*time.Millisecond), spread, shards(10), lanes(10), option)
				w.sleep(time.Second)
				w.pushEach(60_000)
				w.wantPeak(&g, 10)

				for _, step := range []struct {
					change core.SettingChange
					want   int64
				}{
					{setting(core.SettingMaxLanes, 2), 2},
					{setting(core.SettingMaxLanes, 4), 4},
					{setting(core.SettingMaxRunning, 3), 3},
					{unset(core.SettingMaxLanes), 3},
					{setting(core.SettingMaxRunning, 7), 7},
					{setting(core.SettingMaxRunning, 1), 1},
					{setting(core.SettingMaxRunning, 0), 10},
					{setting(core.SettingMaxRunning, 5), 5},
					{unset(core.SettingMaxRunning), 10},
				} {
					w.set(step.change)
					w.sleep(announces + 2*poll)
					w.wantPeak(&g, step.want)
				}

				w.sleep(10 * time.Minute)
				if left, _, done := w.counts(queueName); left > 0 || done != 60_000 {
					w.Errorf("%d jobs are left and %d done", left, done)
				}
				n.wantLines(0, "permits lost")
				if _, holders := w.held(); len(holders) > 0 {
					w.Errorf("the queue has no bound over all servers, and permits are held: %v", holders)
				}
			})
		})
	}
}

// Where lanes have shards of their own, each lane is a pool, and they share the bound.
func TestSettingsBoundPinnedLanes(t *testing.T) {
	inWorld(t, func(w *world) {
		var g gauge
		w.start(g.handler(50*time.Millisecond), shards(10), lanes(10))
		w.sleep(time.Second)
		w.pushEach(20_000)
		w.wantPeak(&g, 10)
		for _, step := range []struct {
			change core.SettingChange
			most   int64
		}{
			{setting(core.SettingMaxRunning, 3), 3},
			{setting(core.SettingMaxRunning, 6), 6},
			{setting(core.SettingMaxLanes, 2), 2},
		} {
			w.set(step.change)
			w.sleep(announces + 2*poll)
			g.peak()
			w.sleep(5 * time.Second)
			if got := g.peak(); got > step.most || got == 0 {
				t.Errorf("%d batches run at once, of %d that may", got, step.most)
			}
		}
		w.set(setting(core.SettingMaxRunning, 0), setting(core.SettingMaxLanes, 0))
		w.sleep(announces)
		w.wantPeak(&g, 10)
	})
}

// A setting applies instead of the program's value, also if it says that there is no limit, and
// until it is unset. A server that starts follows it from its first job on.
func TestSettingsApplyInsteadOfTheProgramsValues(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(4)
		w.set(setting(core.SettingMaxLanes, 1))
		w.pushEach(20_000)

		var g gauge
		n := w.start(g.handler(50*time.Millisecond), spread, shards(4), lanes(10), func(s *setup) { s.queue.MaxLanes = 6 })
		w.wantPeak(&g, 1)
		n.wantLines(1, "level=INFO", "a setting of a queue applies instead of the program's value",
			"queue=orders", "setting=max-lanes", "value=1", "by=ann", "own=6")

		w.set(setting(core.SettingMaxLanes, 0))
		w.sleep(announces)
		w.wantPeak(&g, 10)

		w.set(unset(core.SettingMaxLanes))
		w.sleep(announces)
		w.wantPeak(&g, 6)
		n.wantLines(1, "level=INFO", "a setting of a queue was unset: the program's value applies", "own=6")
	})
}

func TestServersAnnounceWhichSettingsTheyFollow(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), func(s *setup) {
			s.queue.MaxRunning, s.queue.Keep = 50, core.Retention{Age: time.Hour, Count: 9}
		})
		w.sleep(announces)
		w.set(setting(core.SettingMaxRunning, 20))
		w.sleep(2 * announces)

		node, _ := w.announced(n)
		got := node.Status.Queues[0]
		if got.MaxRunning != 20 || got.SettingsVersion != 1 {
			t.Errorf("it announces that it follows version %d, MaxRunning %d", got.SettingsVersion, got.MaxRunning)
		}
		want := map[string]string{"max-running": "50", "morgue-age": "1h0m0s", "morgue-count": "9"}
		if diff := cmp.Diff(want, got.Code); diff != "" {
			t.Errorf("the program's values (-want +got):\n%s", diff)
		}
	})
}

// What a server can't read changes nothing, and is logged once. So is a setting of a newer version.
func TestSettingsThatCannotBeReadAreNotFollowed(t *testing.T) {
	inWorld(t, func(w *world) {
		var g gauge
		broken := new(atomic.Bool)
		n := w.start(g.handler(50*time.Millisecond), spread, shards(4), lanes(10), func(s *setup) {
			s.wrap = func(l notifyingLink) engine.Store { return brokenSettings{l, broken} }
		})
		w.sleep(time.Second)
		w.set(setting(core.SettingMaxLanes, 2))
		w.pushEach(20_000)
		w.sleep(announces)
		w.wantPeak(&g, 2)

		broken.Store(true)
		w.sleep(10 * announces)
		w.wantPeak(&g, 2)
		n.wantLines(1, "level=ERROR", "the settings of a queue can't be read", "version=1")

		broken.Store(false)
		w.sleep(announces)
		settings := w.queueRecord().Settings
		settings.Version++
		settings.Set = append(settings.Set, core.Setting{Name: "of-2030", Value: "1", By: "bob"})
		w.must(w.store.Configure(w.Context(), ports.ConfigureRequest{Queue: queueName, Settings: settings}))
		w.sleep(10 * announces)
		n.wantLines(1, "level=WARN", "a setting of a queue is not known to this version", "setting=of-2030", "by=bob")
		w.wantPeak(&g, 2)
	})
}

// brokenSettings is a store whose settings can't be read while broken is set.
type brokenSettings struct {
	notifyingLink
	broken *atomic.Bool
}

func (s brokenSettings) Queues(ctx context.Context) ([]ports.Queue, error) {
	queues, err := s.notifyingLink.Queues(ctx)
	for i := range queues {
		if s.broken.Load() {
			queues[i].Settings = core.Settings{Version: queues[i].Settings.Version, Broken: true}
		}
	}
	return queues, err
}

func TestAQueueThatIsAddedFollowsItsSettings(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(4)
		w.set(setting(core.SettingMaxRunning, 2))
		w.pushEach(20_000)
		rec := w.record()
		n := w.start(nil, spread, lanes(10), serving(rec.queue("red", 1, succeed)))
		w.sleep(time.Second)

		var g gauge
		q := newQueue(queueName, g.handler(50*time.Millisecond))
		q.Shards = 4
		w.must(n.engine.AddQueue(q))
		w.wantPeak(&g, 2)
	})
}

func TestRunDueFollowsSettings(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.push("a", "x")
		w.set(setting(core.SettingMaxRunning, 1))
		_, err := w.store.Permit(w.Context(), ports.PermitRequest{
			Queue: queueName, Owner: "other", Attempt: 1, Limit: 1, Hold: 1, Want: 1, TTL: time.Hour,
		})
		w.must(err)

		jobs, err := w.runDue(newLink(w.store.Open()), newQueue(queueName, each(succeed)), "first")
		if jobs > 0 || err != nil {
			t.Errorf("%d jobs ran, although another server has the only permit; error %v", jobs, err)
		}

		w.set(setting(core.SettingMaxRunning, 0))
		if jobs, err := w.runDue(newLink(w.store.Open()), newQueue(queueName, each(succeed)), "second"); jobs != 1 || err != nil {
			t.Errorf("%d jobs ran without a limit, want 1; error %v", jobs, err)
		}
	})
}

// Settings change under load while servers start, stop, die and lose their store. After the last
// change, and an announce interval of a store that answers, no server has an old value.
func TestInRandomHistoriesNoServerKeepsAnOldSetting(t *testing.T) {
	for seed := range uint64(tier.Count(3, 40)) {
		inWorld(t, func(w *world) { settingsHistory(w, seed) })
	}
}

func settingsHistory(w *world, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	var g gauge
	var all []*node
	start := func() {
		all = append(all, w.start(g.handler(time.Duration(1+random.IntN(100))*time.Millisecond), spread, shards(6), lanes(4),
			roundTrip(time.Duration(random.IntN(10))*time.Millisecond), func(s *setup) { s.queue.MaxRunning = random.IntN(3) }))
	}
	stop := func(at int) {
		all[at].link.set(up)
		all[at].stop()
		all = append(all[:at], all[at+1:]...)
	}

	w.declare(6)
	start()
	for range 60 {
		w.pushEach(200)
		w.sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
		name := []string{core.SettingMaxRunning, core.SettingMaxLanes}[random.IntN(2)]
		switch at := random.IntN(len(all)); random.IntN(8) {
		case 0:
			if len(all) < 4 {
				start()
			}
		case 1:
			if len(all) > 1 {
				stop(at)
			}
		case 2:
			all[at].link.set(down)
		case 3:
			all[at].link.set(up)
		case 4:
			w.set(unset(name))
		default:
			w.set(setting(name, random.IntN(6)))
		}
	}

	for _, n := range all {
		n.link.set(up)
	}
	w.set(setting(core.SettingMaxRunning, 3), unset(core.SettingMaxLanes))
	w.sleep(announces + ttl + poll)
	for g.peak(); g.now.Load() > 3; { // what ran before the last change
		w.sleep(time.Millisecond)
	}
	g.peak()
	w.pushEach(2000)
	w.sleep(30 * time.Second)
	if got := g.peak(); got != 3 {
		w.Errorf("seed %d: %d batches ran at once, want 3", seed, got)
	}

	w.sleep(10 * time.Minute)
	if left, claimed, _ := w.counts(queueName); left+claimed > 0 {
		w.Errorf("seed %d: %d jobs are left, and %d claimed", seed, left, claimed)
	}
	for len(all) > 0 {
		stop(0)
	}
}
