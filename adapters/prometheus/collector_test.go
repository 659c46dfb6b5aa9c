package prometheus

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// How long the collector leaves the store alone, as its comment states.
const minRest = 5 * time.Second

// slowStore answers Stats after a delay, and fails or leaves shards out as configured.
type slowStore struct {
	ports.ShardStore
	took    time.Duration
	err     error
	missing []core.Shard
	looks   atomic.Int64
}

func (s *slowStore) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	s.looks.Add(1)
	select {
	case <-time.After(s.took):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.err != nil {
		return nil, s.err
	}
	stats, err := s.ShardStore.Stats(ctx, r)
	for i := range stats {
		stats[i].Unreached = s.missing
		stats[i].Shards = stats[i].Shards[len(s.missing):]
	}
	return stats, err
}

func value(t *testing.T, c *Collector, name string) float64 {
	t.Helper()
	family := gather(t, c)[name]
	if family == nil {
		t.Fatalf("%s is not there", name)
	}
	return family.Metric[0].GetGauge().GetValue()
}

// A setting that an operator has set has a series, and others have none.
func TestCollectorShowsSettings(t *testing.T) {
	store := declared(t, 3, "orders", "mails")
	set := core.Settings{Version: 1, Set: []core.Setting{
		{Name: core.SettingMaxLanes, Value: "half"}, // of a newer version
		{Name: core.SettingMaxRunning, Value: "0"},
		{Name: core.SettingMorgueAge, Value: "720h0m0s"},
		{Name: core.SettingMorgueCount, Value: "1000"},
		{Name: core.SettingRate, Value: "30/1m0s"},
	}}
	if err := store.Configure(t.Context(), ports.ConfigureRequest{Queue: "orders", Settings: set}); err != nil {
		t.Fatal(err)
	}

	got := map[string]float64{}
	for _, m := range gather(t, newCollector(t, store))["skein_queue_setting"].GetMetric() {
		got[m.Label[0].GetValue()+" "+m.Label[1].GetValue()] = m.GetGauge().GetValue()
	}
	want := map[string]float64{
		"orders max_running": 0, "orders morgue_age_seconds": 720 * 3600, "orders morgue_count": 1000,
		"orders rate_per_second": 0.5,
	}
	if !maps.Equal(got, want) {
		t.Errorf("the settings are %v, want %v", got, want)
	}
}

func TestCollectorRests99TimesWhatALookCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{ShardStore: declared(t, 3, "orders")}
		c := newCollector(t, store)
		for range 100 {
			gather(t, c)
		}
		if n := store.looks.Load(); n != 1 {
			t.Fatalf("%d looks of 100 scrapes at once", n)
		}
		store.took = time.Second
		time.Sleep(5 * time.Second)
		gather(t, c)
		time.Sleep(98 * time.Second)
		if age := value(t, c, "skein_exporter_age_seconds"); age != 99 {
			t.Errorf("age %v s; the look began 99 s ago", age)
		}
		if n := store.looks.Load(); n != 2 {
			t.Errorf("%d looks; the second, of 1 s, is followed by a rest of 99 s", n)
		}
		time.Sleep(time.Second)
		gather(t, c)
		if n := store.looks.Load(); n != 3 {
			t.Errorf("%d looks after the rest, 3 are wanted", n)
		}
	})
}

func TestCollectorShowsWhatIsOldWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{ShardStore: declared(t, 3, "orders"), err: errors.New("away")}
		c := newCollector(t, store)
		if got := gather(t, c); got["skein_exporter_age_seconds"] != nil || got["skein_queue_jobs"] != nil {
			t.Errorf("%v before anything was found", got)
		}
		store.err = nil
		time.Sleep(minRest)
		if up := value(t, c, "skein_exporter_up"); up != 1 {
			t.Errorf("up %v", up)
		}
		store.took = time.Hour // the look ends at its timeout
		time.Sleep(minRest)
		if up := value(t, c, "skein_exporter_up"); up != 0 {
			t.Errorf("up %v after a look that failed", up)
		}
		if age := value(t, c, "skein_exporter_age_seconds"); age != 10 {
			t.Errorf("age %v s, want 10", age)
		}
		if gather(t, c)["skein_queue_jobs"] == nil {
			t.Error("what was known is gone")
		}
	})
}

func TestCollectorCountsShardsThatCannotBeReached(t *testing.T) {
	c := newCollector(t, &slowStore{ShardStore: declared(t, 3, "orders"), missing: []core.Shard{{Queue: "orders"}}})
	states := make(map[string]float64)
	for _, m := range gather(t, c)["skein_queue_shards"].Metric {
		states[m.Label[1].GetValue()] = m.GetGauge().GetValue()
	}
	if states["unreached"] != 1 || states["free"] != 2 {
		t.Errorf("%v", states)
	}
}

// panickingStore panics when its servers are requested.
type panickingStore struct{ ports.ShardStore }

func (panickingStore) Nodes(context.Context) (ports.NodesReply, error) { panic("no servers") }

// A registry collects in goroutines of its own, in which a panic of the store would end the
// process: it is a look that failed.
func TestAStoreThatPanicsIsALookThatFailed(t *testing.T) {
	c := newCollector(t, panickingStore{declared(t, 3, "orders")})
	if up := value(t, c, "skein_exporter_up"); up != 0 {
		t.Errorf("skein_exporter_up is %v", up)
	}
}

// The longest run of a queue is that of the handler that began first, on whatever server it is, and
// 0 in a queue where no handler runs.
func TestCollectorShowsTheLongestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := declared(t, 3, "orders", "mails")
		began := core.InstantOf(time.Now())
		for i, at := range []core.Instant{began.Add(10 * time.Second), began, began.Add(20 * time.Second)} {
			name := string(rune('a' + i))
			status := ports.NodeStatus{Longest: []ports.RunningJob{{
				Shard: core.Shard{Queue: "orders"},
				ID:    name,
				Began: at,
			}}}
			node := ports.Node{Owner: name, Name: name, Queues: []string{"orders"}, Lanes: 1, Status: status}
			if _, err := store.Announce(t.Context(), ports.AnnounceRequest{Node: node, TTL: time.Hour}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		longest := map[string]float64{}
		for _, m := range gather(t, newCollector(t, store))["skein_queue_longest_run_seconds"].Metric {
			longest[m.Label[0].GetValue()] = m.GetGauge().GetValue()
		}
		if longest["orders"] != 60 || longest["mails"] != 0 {
			t.Errorf("%v, want 60 s and 0", longest)
		}
	})
}

// unreadableTicks is a store whose ticks can't be read, of all shards or of some.
type unreadableTicks struct {
	ports.ShardStore
	missing []core.Shard
}

func (s unreadableTicks) Ticks(ctx context.Context, r ports.TicksRequest) (ports.TicksReply, error) {
	if s.missing == nil {
		return ports.TicksReply{}, errors.New("away")
	}
	reply, err := s.ShardStore.Ticks(ctx, r)
	for _, shard := range s.missing {
		reply.Shards[slices.Index(r.Shards, shard)] = ports.ShardTicks{}
	}
	reply.Unreached = s.missing
	return reply, err
}

// unreadableLimits is a store whose limiters can't be read.
type unreadableLimits struct{ ports.ShardStore }

func (unreadableLimits) Limits(context.Context, ports.LimitsRequest) (ports.LimitsReply, error) {
	return ports.LimitsReply{}, errors.New("away")
}

// A queue without a rate has no value, and neither does one whose limiter can't be read.
func TestCollectorShowsHowLongARateAllowsNoStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := declared(t, 3, "orders", "plain")
		rated(t, store, "orders")
		for _, tt := range []struct {
			store ports.ShardStore
			want  map[string]float64
		}{
			{store, map[string]float64{"orders": 3600}},
			{unreadableLimits{store}, map[string]float64{}},
		} {
			waits, got := map[string]float64{}, gather(t, newCollector(t, tt.store))
			for _, m := range got["skein_rate_wait_seconds"].GetMetric() {
				waits[m.Label[0].GetValue()] = m.GetGauge().GetValue()
			}
			if !maps.Equal(waits, tt.want) || got["skein_queue_jobs"] == nil {
				t.Errorf("the waits of rates are %v, want %v", waits, tt.want)
			}
		}
	})
}

// A queue without a next tick has no value, and neither does one whose ticks can't be read: 0 would
// end an alert.
func TestCollectorShowsHowLateTicksAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := declared(t, 3, "late", "early", "paused", "stopped", "none")
		now := core.InstantOf(time.Now())
		scheduled(t, store, "late", 3, now.Add(-time.Minute), false)
		scheduled(t, store, "early", 3, now.Add(time.Minute), false)
		scheduled(t, store, "paused", 3, now.Add(-time.Minute), true)
		scheduled(t, store, "stopped", 3, now.Add(-time.Minute), false)
		if err := store.Pause(t.Context(), "stopped"); err != nil {
			t.Fatal(err)
		}

		for name, tt := range map[string]struct {
			store ports.ShardStore
			want  map[string]float64
		}{
			"all":  {store, map[string]float64{"late": 60, "early": 0}},
			"none": {unreadableTicks{store, nil}, map[string]float64{}},
			"some, without its": {
				unreadableTicks{store, []core.Shard{{Queue: "late"}}},
				map[string]float64{"early": 0},
			},
			"some": {
				unreadableTicks{store, []core.Shard{{Queue: "late", Index: 1}}},
				map[string]float64{"late": 60, "early": 0},
			},
		} {
			late, got := map[string]float64{}, gather(t, newCollector(t, tt.store))
			for _, m := range got["skein_schedule_late_seconds"].GetMetric() {
				late[m.Label[0].GetValue()] = m.GetGauge().GetValue()
			}
			if !maps.Equal(late, tt.want) || got["skein_queue_jobs"] == nil ||
				got["skein_exporter_up"].Metric[0].GetGauge().GetValue() != 1 {
				t.Errorf("%s: %v, want %v and the other values", name, late, tt.want)
			}
		}
	})
}
