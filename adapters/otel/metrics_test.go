package otel_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/adapters/otel"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/metrics"
	"github.com/skeinq/skein/ports"
)

// meter is a provider with its collected metrics.
type meter struct {
	*metric.MeterProvider
	reader *metric.ManualReader
}

func newMeter() meter {
	reader := metric.NewManualReader()
	return meter{metric.NewMeterProvider(metric.WithReader(reader)), reader}
}

// collect returns the metrics by name.
func (m meter) collect(t testing.TB) map[string]metricdata.Metrics {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := m.reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]metricdata.Metrics)
	for _, scope := range all.ScopeMetrics {
		for _, one := range scope.Metrics {
			byName[one.Name] = one
		}
	}
	return byName
}

// series returns the values of a metric by its attributes; of a histogram how many there are.
func series(m metricdata.Metrics) map[string]float64 {
	values := make(map[string]float64)
	add := func(set attribute.Set, v float64) { values[set.Encoded(attribute.DefaultEncoder())] = v }
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, float64(p.Value))
		}
	case metricdata.Sum[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, p.Value)
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, p.Value)
		}
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			add(p.Attributes, float64(p.Count))
		}
	}
	return values
}

// play has events of each kind.
func play(m ports.Observer, shard core.Shard) {
	ctx := context.Background()
	m.Pushed(ctx, ports.PushEvent{
		Queue:     shard.Queue,
		Entries:   6,
		Took:      time.Millisecond,
		New:       3,
		Merged:    2,
		Duplicate: 1,
	})
	claims := []core.Claim{{Job: core.Job{ID: "a", Payloads: make([]core.Payload, 3)}}}
	for _, kind := range []core.OutcomeKind{core.Done, core.Failed} {
		e := ports.BatchEvent{Shard: shard, Claims: claims, Took: time.Second}
		batch := m.BatchStart(ctx, e)
		e.Outcomes = []core.Outcome{{Kind: kind}}
		m.BatchEnd(batch, e)
	}
	m.JobsEnded(ports.EndEvent{Shard: shard, Jobs: []ports.EndedJob{{ID: "a", End: ports.EndDone, Buried: 1}}})
	m.HandlerOverran(ports.OverrunEvent{Shard: shard, Cause: ports.OverrunTimeout})
	m.TicksFired(ports.TickEvent{Shard: shard, Fired: 2, Missed: 1, Late: []time.Duration{time.Second, time.Minute}})
	m.DeadLettersExpired(ports.ExpiryEvent{Shard: shard, Expired: 3})
	m.SlotsTaken(ports.SlotEvent{Queue: shard.Queue, Want: 2, Granted: 1})
	m.QueueSlowed(ports.SlowEvent{Queue: shard.Queue, For: time.Second})
	m.TurnEnd(ports.TurnEvent{Shard: shard, Claimed: 1, Recovered: 1, Woken: true})
	m.StoreFailed(ports.FailureEvent{Call: "renew", Kind: ports.FailureUnreachable})
	m.LeaseChanged(ports.LeaseEvent{Shard: shard, Change: ports.LeaseAcquired})
	m.NodeChanged(ports.NodeEvent{Change: ports.NodeJoined})
}

func newMetrics(t testing.TB, o otel.MetricsOptions) *otel.Metrics {
	t.Helper()
	m, err := otel.NewMetrics(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func node() ports.Node {
	return ports.Node{
		Lanes: 8,
		Status: ports.NodeStatus{
			Busy:   3,
			Queues: []ports.QueueStatus{{Queue: "orders", Running: 2, Claimed: 4, Shards: 5}},
		},
	}
}

// checked is a store whose server can be looked at.
type checked struct{ ports.ShardStore }

func (checked) Check(context.Context) ([]ports.Check, error) {
	return []ports.Check{{Name: "answers"}}, nil
}

// schedule gives the queue orders of three shards a schedule.
func schedule(t *testing.T, store inspect.Store) {
	t.Helper()
	spec, err := core.IntervalSpec(time.Hour, 0)
	if err != nil {
		t.Fatal(err)
	}
	key := core.ScheduleKey{ID: "a", Name: "hourly"}
	change := ports.ScheduleChange{ScheduleKey: key, Schedule: &core.Schedule{
		ScheduleKey: key,
		Recurrence:  core.Recurrence{Spec: spec},
		Next:        core.InstantOf(time.Now().Add(time.Hour)),
		Revision:    1,
	}}
	_, err = store.ChangeSchedules(t.Context(), ports.ChangeSchedulesRequest{
		Shard:      core.Shard{Queue: "orders", Index: core.ShardOf("a", 3)},
		Shards:     3,
		Generation: 1,
		Changes:    []ports.ScheduleChange{change},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEveryMetricOfTheTableIsExported compares the collected metrics with the table, in both
// directions. A resource has the build's information instead.
func TestEveryMetricOfTheTableIsExported(t *testing.T) {
	provider := newMeter()
	m := newMetrics(t, otel.MetricsOptions{MeterProvider: provider})
	m.Watch(node)
	play(m, core.Shard{Queue: "orders"})
	store := memory.New(memory.Options{})
	if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 3}); err != nil {
		t.Fatal(err)
	}
	schedule(t, store)
	set := core.Settings{Version: 1, Set: []core.Setting{{Name: core.SettingMaxRunning, Value: "20"}}}
	if err := store.Configure(t.Context(), ports.ConfigureRequest{Queue: "orders", Settings: set}); err != nil {
		t.Fatal(err)
	}
	_, err := store.Announce(t.Context(), ports.AnnounceRequest{TTL: time.Hour, Node: ports.Node{
		Owner: "rated", Queues: []string{"orders"},
		Status: ports.NodeStatus{Queues: []ports.QueueStatus{{Queue: "orders", Rate: "1/1h0m0s"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := otel.NewStoreMetrics(inspect.New(checked{store}, inspect.Options{}),
		otel.StoreOptions{MeterProvider: provider}); err != nil {
		t.Fatal(err)
	}
	got := provider.collect(t)
	for _, row := range metrics.All() {
		if row.Name == "skein_build_info" {
			continue
		}
		one, ok := got[row.OpenTelemetry()]
		delete(got, row.OpenTelemetry())
		if !ok {
			t.Errorf("%s is not exported", row.OpenTelemetry())
			continue
		}
		if one.Unit != row.UCUM() || one.Description != row.Help {
			t.Errorf("%s is in %q: %q; want %q: %q", one.Name, one.Unit, one.Description, row.UCUM(), row.Help)
		}
		if len(series(one)) == 0 {
			t.Errorf("%s has no series", one.Name)
		}
	}
	for name := range got {
		t.Errorf("%s is not in the table", name)
	}
}

func TestValuesAndAttributes(t *testing.T) {
	provider := newMeter()
	m := newMetrics(t, otel.MetricsOptions{MeterProvider: provider})
	m.Watch(node)
	m.Watch(node)
	play(m, core.Shard{Queue: "orders"})
	got := provider.collect(t)
	const push, process = "messaging.destination.name=orders,messaging.operation.name=push,messaging.system=skein",
		"messaging.destination.name=orders,messaging.operation.name=process,messaging.system=skein"
	for name, want := range map[string]map[string]float64{
		"messaging.client.sent.messages": {
			push + ",skein.met=new":       3,
			push + ",skein.met=merged":    2,
			push + ",skein.met=duplicate": 1,
		},
		"messaging.client.operation.duration": {push: 1},
		"messaging.client.consumed.messages":  {process: 6},
		"messaging.process.duration": {
			process + ",skein.outcome=ok": 1,
			"error.type=_OTHER,messaging.destination.name=orders,messaging.operation.name=process,messaging.system=skein,skein.outcome=error": 1,
		},
		"skein.lanes":        {"": 16},
		"skein.jobs.running": {"messaging.destination.name=orders": 4},
		"skein.job.payloads": {"messaging.destination.name=orders": 2},
		"skein.ticks": {
			"messaging.destination.name=orders,skein.outcome=fired":   2,
			"messaging.destination.name=orders,skein.outcome=missed":  1,
			"messaging.destination.name=orders,skein.outcome=skipped": 0,
			"messaging.destination.name=orders,skein.outcome=broken":  0,
		},
		"skein.tick.late": {"messaging.destination.name=orders": 2},
	} {
		if diff := cmp.Diff(want, series(got[name])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if left := series(provider.collect(t)["skein.lanes"]); len(left) != 0 {
		t.Errorf("after Close there is %v", left)
	}
}

func TestNamedQueuesBeginAtZero(t *testing.T) {
	provider := newMeter()
	newMetrics(t, otel.MetricsOptions{MeterProvider: provider, Queues: []string{"orders"}})
	got := series(provider.collect(t)["skein.jobs"])
	if got["messaging.destination.name=orders,skein.outcome=done"] != 0 || len(got) != 9 {
		t.Errorf("series %v; want one of each outcome, at 0", slices.Sorted(maps.Keys(got)))
	}
}

func TestShardsAreThereWhereAskedFor(t *testing.T) {
	for _, asked := range []bool{false, true} {
		provider := newMeter()
		m := newMetrics(t, otel.MetricsOptions{MeterProvider: provider, PerShard: asked})
		for index := range 3 {
			play(m, core.Shard{Queue: "orders", Index: index})
		}
		want := map[string]float64{"messaging.destination.name=orders": 6}
		if asked {
			want = map[string]float64{}
			for index := range 3 {
				want["messaging.destination.name=orders,messaging.destination.partition.id="+strconv.Itoa(index)] = 2
			}
		}
		if diff := cmp.Diff(want, series(provider.collect(t)["skein.jobs.started"])); diff != "" {
			t.Errorf("PerShard %v (-want +got):\n%s", asked, diff)
		}
	}
}

func TestOptionsAreRefused(t *testing.T) {
	if _, err := otel.NewMetrics(
		otel.MetricsOptions{Queues: []string{"a queue"}}); !errors.Is(err, core.ErrInvalidOptions) {
		t.Errorf("a bad queue: %v", err)
	}
	if _, err := otel.NewStoreMetrics(nil, otel.StoreOptions{}); !errors.Is(err, core.ErrInvalidOptions) {
		t.Errorf("no inspector: %v", err)
	}
	if _, err := otel.NewStoreMetrics(inspect.New(memory.New(memory.Options{}), inspect.Options{}),
		otel.StoreOptions{Timeout: -1}); !errors.Is(err, core.ErrInvalidOptions) {
		t.Errorf("a Timeout below 0: %v", err)
	}
	if m, err := otel.NewMetrics(otel.MetricsOptions{}); err != nil { // of the global provider
		t.Error(err)
	} else {
		play(m, core.Shard{Queue: "orders"})
	}
}
