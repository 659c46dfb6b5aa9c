package prometheus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/metrics"
	"github.com/skeinq/skein/ports"
)

func newMetrics(t testing.TB, o Options) *Metrics {
	t.Helper()
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// gather returns the metrics of a registry with these collectors, by name.
func gather(t testing.TB, collectors ...prometheus.Collector) map[string]*dto.MetricFamily {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	for _, c := range collectors {
		if err := r.Register(c); err != nil {
			t.Fatal(err)
		}
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]*dto.MetricFamily)
	for _, f := range families {
		byName[f.GetName()] = f
	}
	return byName
}

// series counts Prometheus's series of families whose histograms are classic.
func series(families map[string]*dto.MetricFamily) int {
	n := 0
	for _, f := range families {
		for _, m := range f.Metric {
			if h := m.Histogram; h != nil {
				n += len(h.Bucket) + 3 // and +Inf, the sum, the count
				continue
			}
			n++
		}
	}
	return n
}

// play has each event that each queue has, in each form that counts elsewhere.
func play(m *Metrics, shard core.Shard) {
	ctx := context.Background()
	for _, err := range []error{nil, ports.ErrFull, ports.ErrInvalidRequest, context.DeadlineExceeded} {
		m.Pushed(ctx, ports.PushEvent{
			Queue:     shard.Queue,
			Entries:   3,
			Took:      time.Millisecond,
			Err:       err,
			New:       1,
			Merged:    1,
			Duplicate: 1,
		})
	}
	m.Pushed(ctx, ports.PushEvent{Queue: shard.Queue, Entries: 3, Took: time.Millisecond}) // in a transaction
	claims := []core.Claim{{Job: core.Job{ID: "a", Payloads: make([]core.Payload, 3)}}}
	for _, kind := range []core.OutcomeKind{core.Done, core.Failed} {
		e := ports.BatchEvent{Shard: shard, Claims: claims, Now: core.InstantOf(time.Unix(2, 0)), Took: time.Second}
		batch := m.BatchStart(ctx, e)
		e.Outcomes = []core.Outcome{{Kind: kind}}
		m.BatchEnd(batch, e)
	}
	for end := ports.EndDone; end <= ports.EndHeld; end++ {
		m.JobsEnded(ports.EndEvent{Shard: shard, Jobs: []ports.EndedJob{{ID: "a", End: end, Buried: 1}}})
	}
	for cause := ports.OverrunTimeout; cause <= ports.OverrunShutdown; cause++ {
		m.HandlerOverran(ports.OverrunEvent{Shard: shard, Cause: cause})
	}
	for _, err := range []error{nil, ports.ErrLeaseLost, ports.ErrStaleTurn, errors.New("x")} {
		m.TurnEnd(ports.TurnEvent{Shard: shard, Claimed: 1, Settled: 1, Recovered: 1, Woken: true, Err: err})
	}
	m.TurnEnd(ports.TurnEvent{Shard: shard, Woken: true})
	row, _ := metrics.Of("skein_store_errors_total")
	for _, call := range row.Labels[0].Values {
		for kind := ports.FailureUnknown; kind <= ports.FailureUnreachable; kind++ {
			m.StoreFailed(ports.FailureEvent{Call: call, Shard: shard, Kind: kind})
		}
	}
	for change := ports.LeaseAcquired; change <= ports.LeaseDropped; change++ {
		m.LeaseChanged(ports.LeaseEvent{Shard: shard, Change: change, Orphans: 1})
	}
	for change := ports.NodeJoined; change <= ports.NodeLeft; change++ {
		m.NodeChanged(ports.NodeEvent{Change: change})
	}
	m.ShardsAssigned(ports.AssignEvent{})
}

// playTicks has the events of a queue with schedules and a rate that keeps only some dead letters.
func playTicks(m *Metrics, queue string) {
	late := []time.Duration{time.Second, time.Minute}
	m.TicksFired(ports.TickEvent{
		Shard:   core.Shard{Queue: queue},
		Fired:   2,
		Missed:  3,
		Skipped: 4,
		Broken:  5,
		Late:    late,
	})
	m.DeadLettersExpired(ports.ExpiryEvent{Shard: core.Shard{Queue: queue}, Expired: 7})
	m.SlotsTaken(ports.SlotEvent{Queue: queue, Want: 9, Granted: 3})
	m.QueueSlowed(ports.SlowEvent{Queue: queue, For: time.Minute})
}

// scheduled gives an id of shard 0 a schedule that is paused or has a next tick.
func scheduled(t testing.TB, store inspect.Store, queue string, shards int, next core.Instant, paused bool) {
	t.Helper()
	spec, err := core.IntervalSpec(time.Hour, 0)
	if err != nil {
		t.Fatal(err)
	}
	var key core.ScheduleKey
	for n := 0; key.ID == ""; n++ {
		if id := fmt.Sprint(n); core.ShardOf(id, shards) == 0 {
			key = core.ScheduleKey{ID: id, Name: "hourly"}
		}
	}
	s := &core.Schedule{
		ScheduleKey: key,
		Recurrence:  core.Recurrence{Spec: spec},
		Next:        next,
		Paused:      paused,
		Revision:    1,
	}
	reply, err := store.ChangeSchedules(t.Context(), ports.ChangeSchedulesRequest{
		Shard:      core.Shard{Queue: queue},
		Shards:     shards,
		Generation: 1,
		Changes:    []ports.ScheduleChange{{ScheduleKey: key, Schedule: s}},
	})
	if err != nil || len(reply.Results) != 1 || reply.Results[0] != ports.ScheduleChanged {
		t.Fatalf("%+v, %v", reply, err)
	}
}

// rated has a server announce a queue with a rate of a start an hour, and takes the first.
func rated(t testing.TB, store ports.ShardStore, queue string) {
	t.Helper()
	rate := core.Rate{Count: 1, Per: time.Hour}
	_, err := store.Announce(t.Context(), ports.AnnounceRequest{TTL: time.Hour, Node: ports.Node{
		Owner: "rated", Name: "rated", Queues: []string{queue},
		Status: ports.NodeStatus{Queues: []ports.QueueStatus{{Queue: queue, Rate: rate.String()}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	take := ports.TakeRequest{Queue: queue, Takes: []ports.Take{{Rate: rate, Want: 1}}}
	if _, err := store.Take(t.Context(), take); err != nil {
		t.Fatal(err)
	}
}

func node(queues ...string) func() ports.Node {
	n := ports.Node{Lanes: 8, Status: ports.NodeStatus{Busy: 3}}
	for _, name := range queues {
		n.Status.Queues = append(n.Status.Queues, ports.QueueStatus{Queue: name, Running: 2, Claimed: 4, Shards: 5})
	}
	return func() ports.Node { return n }
}

// checkedStore is a store whose server can be looked at.
type checkedStore struct{ ports.ShardStore }

func (checkedStore) Check(context.Context) ([]ports.Check, error) {
	return []ports.Check{
		{Name: "answers"},
		{Name: "memory", Server: "a", Status: ports.CheckWarn},
		{Name: "memory", Server: "b"},
	}, nil
}

func declared(t testing.TB, shards int, queues ...string) ports.ShardStore {
	t.Helper()
	store := memory.New(memory.Options{})
	for _, name := range queues {
		if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: name, Shards: shards}); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func newCollector(t testing.TB, store inspect.Store) *Collector {
	t.Helper()
	c, err := NewCollector(inspect.New(store, inspect.Options{}), CollectorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestEveryMetricOfTheTableIsExported plays each event and compares the gathered metrics with the
// table, in both directions.
func TestEveryMetricOfTheTableIsExported(t *testing.T) {
	m := newMetrics(t, Options{})
	m.Watch(node("orders"))
	play(m, core.Shard{Queue: "orders"})
	playTicks(m, "orders")
	store := declared(t, 3, "orders")
	rated(t, store, "orders")
	scheduled(t, store, "orders", 3, core.InstantOf(time.Now().Add(time.Hour)), false)
	set := core.Settings{Version: 1, Set: []core.Setting{
		{Name: core.SettingMaxLanes, Value: "2"},
		{Name: core.SettingMaxRunning, Value: "20"},
		{Name: core.SettingMorgueAge, Value: "720h0m0s"},
		{Name: core.SettingMorgueCount, Value: "1000"},
		{Name: core.SettingRate, Value: "30/1m0s"},
	}}
	if err := store.Configure(t.Context(), ports.ConfigureRequest{Queue: "orders", Settings: set}); err != nil {
		t.Fatal(err)
	}
	got := gather(t, m, newCollector(t, checkedStore{store}))
	for _, row := range metrics.All() {
		family := got[row.Name]
		delete(got, row.Name)
		if family == nil {
			t.Errorf("%s is not exported", row.Name)
			continue
		}
		if kind := strings.ToLower(family.GetType().String()); kind != string(row.Type) {
			t.Errorf("%s is a %s, the table says %s", row.Name, kind, row.Type)
		}
		if family.GetHelp() != row.Help {
			t.Errorf("%s: help %q", row.Name, family.GetHelp())
		}
		holdLabels(t, row, family)
	}
	for name := range got {
		t.Errorf("%s is not in the table", name)
	}
}

// holdLabels holds that a family has the labels of its row, all their values, and that play and
// the store have made something of each of the Observer's.
func holdLabels(t *testing.T, row metrics.Metric, family *dto.MetricFamily) {
	t.Helper()
	seen := make(map[string]map[string]bool)
	for _, m := range family.Metric {
		var names []string
		for _, l := range m.Label {
			names = append(names, l.GetName())
			if seen[l.GetName()] == nil {
				seen[l.GetName()] = make(map[string]bool)
			}
			seen[l.GetName()][l.GetValue()] = true
		}
		if want := slices.Sorted(slices.Values(row.LabelNames())); !slices.Equal(names, want) {
			t.Errorf("%s has the labels %v, the table says %v", row.Name, names, want)
		}
		if row.Source == metrics.Process &&
			m.GetCounter().GetValue()+m.GetGauge().GetValue()+float64(m.GetHistogram().GetSampleCount()) == 0 {
			t.Errorf("%s %v is 0 though its event was played", row.Name, m.Label)
		}
	}
	for _, l := range row.Labels {
		if l.Values == nil {
			continue
		}
		want := slices.Sorted(slices.Values(l.Values))
		if is := slices.Sorted(maps.Keys(seen[l.Name])); !slices.Equal(is, want) {
			t.Errorf("%s: the label %s has %v, the table says %v", row.Name, l.Name, is, want)
		}
	}
}

func TestSeriesExistFromTheStart(t *testing.T) {
	before := gather(t, newMetrics(t, Options{Queues: []string{"orders"}}))
	played := newMetrics(t, Options{})
	play(played, core.Shard{Queue: "orders"})
	if a, b := series(before), series(gather(t, played)); a != b {
		t.Errorf("%d series before any event, %d after each", a, b)
	}
}

// Most queues have no schedule, so the series of ticks come with the first event, each of them at
// once.
func TestTicksAreCountedFromTheFirst(t *testing.T) {
	m := newMetrics(t, Options{Queues: []string{"orders", "mails"}})
	play(m, core.Shard{Queue: "orders"})
	got := gather(t, m)
	if got["skein_ticks_total"] != nil || got["skein_tick_late_seconds"] != nil {
		t.Errorf("series of ticks without a tick: %v, %v", got["skein_ticks_total"], got["skein_tick_late_seconds"])
	}

	m.TicksFired(ports.TickEvent{Shard: core.Shard{Queue: "orders"}, Fired: 1, Late: []time.Duration{time.Hour}})
	playTicks(m, "orders")
	got = gather(t, m)
	counts := map[string]float64{}
	for _, metric := range got["skein_ticks_total"].Metric {
		counts[metric.Label[1].GetValue()+" "+metric.Label[0].GetValue()] = metric.GetCounter().GetValue()
	}
	if want := map[string]float64{
		"orders fired": 3, "orders missed": 3, "orders skipped": 4, "orders broken": 5,
	}; !maps.Equal(counts, want) {
		t.Errorf("got %v, want %v", counts, want)
	}
	expired := got["skein_dead_letters_expired_total"].Metric
	if len(expired) != 1 || expired[0].GetCounter().GetValue() != 7 {
		t.Errorf("expired %v, want 7 dead letters", expired)
	}
	slots := map[string]float64{}
	for _, metric := range got["skein_rate_slots_total"].Metric {
		slots[metric.Label[1].GetValue()] = metric.GetCounter().GetValue()
	}
	stops := got["skein_rate_stops_total"].Metric
	if want := map[string]float64{"granted": 3, "delayed": 6}; !maps.Equal(slots, want) ||
		len(stops) != 1 || stops[0].GetCounter().GetValue() != 1 {
		t.Errorf("slots %v and stops %v, want %v and 1", slots, stops, want)
	}
	late := got["skein_tick_late_seconds"].Metric
	if len(late) != 1 || late[0].GetHistogram().GetSampleCount() != 3 || late[0].GetHistogram().GetSampleSum() != 3661 {
		t.Errorf("late %v, want 3 ticks of 3,661 s", late)
	}
}

func TestSeriesAreFew(t *testing.T) {
	const shards = 1000
	var queues []string
	for i := range 20 {
		queues = append(queues, "queue-"+string(rune('a'+i)))
	}
	m := newMetrics(t, Options{Queues: queues})
	m.Watch(node(queues...))
	for _, name := range queues {
		for i := range shards {
			m.LeaseChanged(ports.LeaseEvent{Shard: core.Shard{Queue: name, Index: i}})
		}
		play(m, core.Shard{Queue: name, Index: shards - 1})
	}
	process, store := series(gather(t, m)), series(gather(t, newCollector(t, declared(t, shards, queues...))))
	t.Logf("%d series of a process, %d of a store", process, store)
	if process >= 2100 || store >= 2100 {
		t.Errorf("%d series of a process and %d of a store with 20 queues of 1,000 shards; "+
			"fewer than 2,100 each are wanted",
			process, store)
	}
}

func TestPerShardAddsTheShard(t *testing.T) {
	m := newMetrics(t, Options{PerShard: true})
	play(m, core.Shard{Queue: "orders", Index: 7})
	play(m, core.Shard{Queue: "orders", Index: 8})
	got := gather(t, m)
	for _, row := range metrics.All() {
		switch {
		case row.Source != metrics.Process, row.By == "TicksFired", row.By == "DeadLettersExpired",
			row.By == "SlotsTaken", row.By == "QueueSlowed":
			continue
		}
		shards := make(map[string]bool)
		for _, metric := range got[row.Name].Metric {
			for _, l := range metric.Label {
				if l.GetName() == metrics.ShardLabel {
					shards[l.GetValue()] = true
				}
			}
		}
		if want := map[string]bool{"7": true, "8": true}; row.Sharded != maps.Equal(shards, want) ||
			(!row.Sharded && len(shards) > 0) {
			t.Errorf("%s has shards %v; sharded is %v", row.Name, shards, row.Sharded)
		}
	}
}

func TestHostileQueueNamesMakeOneSeries(t *testing.T) {
	m := newMetrics(t, Options{})
	for _, name := range []string{"", "\xff\xfe", "a\nb", `"} 1`, strings.Repeat("x", 10_000), "(invalid)"} {
		play(m, core.Shard{Queue: name, Index: -1})
	}
	got := gather(t, m)["skein_pushes_total"]
	if len(got.Metric) != 5 || got.Metric[0].Label[0].GetValue() != "(invalid)" ||
		got.Metric[0].GetCounter().GetValue() != 6 {
		t.Errorf("%v; one queue of 6 pushes of each result is wanted", got)
	}
}

// A push in a caller's transaction is not counted as stored: that may still roll back.
func TestAPushInATransactionIsCountedAsSuch(t *testing.T) {
	m := newMetrics(t, Options{})
	m.Pushed(t.Context(), ports.PushEvent{Queue: "orders", Entries: 2})
	m.Pushed(t.Context(), ports.PushEvent{Queue: "orders", Entries: 2, New: 1, Duplicate: 1})
	m.Pushed(t.Context(), ports.PushEvent{Queue: "orders"}) // middleware has removed all
	got := make(map[string]float64)
	for _, metric := range gather(t, m)["skein_pushes_total"].Metric {
		for _, l := range metric.Label {
			if l.GetName() == "result" {
				got[l.GetValue()] = metric.GetCounter().GetValue()
			}
		}
	}
	if want := map[string]float64{
		"stored": 2, "in_tx": 1, "refused": 0, "full": 0, "unknown": 0,
	}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestConcurrentUse(t *testing.T) {
	m := newMetrics(t, Options{})
	c := newCollector(t, declared(t, 3, "orders"))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 50 {
				play(m, core.Shard{Queue: "queue-" + string(rune('a'+i%3)), Index: i})
			}
		})
		all.Go(func() { m.Watch(node("orders")) })
		all.Go(func() { gather(t, m, c) })
	}
	all.Wait()
	total := 0.0
	for _, metric := range gather(t, m)["skein_jobs_started_total"].Metric {
		total += metric.GetCounter().GetValue()
	}
	if total != 8*50*2 {
		t.Errorf("%v jobs started, %d were played", total, 8*50*2)
	}
	if lanes := gather(t, m)["skein_lanes"].Metric[0].GetGauge().GetValue(); lanes != 8*8 {
		t.Errorf("%v lanes of 8 servers with 8 each", lanes)
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	for name, o := range map[string]Options{
		"queue":          {Queues: []string{"a b"}},
		"own label":      {Labels: map[string]string{"queue": "x"}},
		"shard":          {Labels: map[string]string{"shard": "x"}},
		"label's name":   {Labels: map[string]string{"\xff": "x"}},
		"reserved label": {Labels: map[string]string{"__x": "x"}},
		"label's value":  {Labels: map[string]string{"env": "\xff"}},
	} {
		if _, err := New(o); !errors.Is(err, core.ErrInvalidOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewCollector(nil, CollectorOptions{}); !errors.Is(err, core.ErrInvalidOptions) {
		t.Errorf("no inspector: %v", err)
	}
}
