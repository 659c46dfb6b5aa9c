package otel

import (
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/metrics"
	"github.com/skeinq/skein/internal/metrics/counting"
	"github.com/skeinq/skein/internal/metrics/stored"
	"github.com/skeinq/skein/ports"
)

// MetricsOptions are the options of [Metrics]. The zero value is ready.
type MetricsOptions struct {
	// MeterProvider makes the instruments; nil is the global one, as it is when [NewMetrics] is called.
	MeterProvider metric.MeterProvider
	// Queues have their series from the start, at 0; other queues when they are first seen. A rate is wrong for a series that begins with its
	// first event, so name those that the process pushes to or serves.
	Queues []string
	// PerShard adds the attribute messaging.destination.partition.id to what is counted of jobs: some 20 series for each shard that this process
	// works, so only for queues of few shards.
	PerShard bool
}

// Metrics counts what the clients and servers of a process do. It is a [ports.Observer]. Make it with [NewMetrics]; it may be given to any
// number of clients and servers. It is safe for concurrent use.
type Metrics struct {
	*observer
	nodes    *counting.Nodes
	callback metric.Registration
}

// observer is embedded under a name that users don't see.
type observer = counting.Observer

var _ ports.Observer = (*Metrics)(nil)

// NewMetrics returns metrics that nothing has been counted in. Its error wraps core.ErrInvalidOptions: a name that no queue can have, or what the
// provider refuses.
func NewMetrics(o MetricsOptions) (*Metrics, error) {
	for _, name := range o.Queues {
		if err := core.ValidateQueue(name, 1); err != nil {
			return nil, fmt.Errorf("%w: Queues: %w", core.ErrInvalidOptions, err)
		}
	}
	meter := meterOf(o.MeterProvider)
	series, err := newInstruments(meter)
	if err != nil {
		return nil, err
	}
	servers, err := newObserved(meter, metrics.Server)
	if err != nil {
		return nil, err
	}
	m := &Metrics{observer: counting.New(series, o.PerShard, o.Queues...), nodes: new(counting.Nodes)}
	m.callback, err = servers.register(meter, func(put func(string, float64, ...string)) { m.nodes.Each(m.Queues(), put) })
	if err != nil {
		return nil, fmt.Errorf("%w: %w", core.ErrInvalidOptions, err)
	}
	return m, nil
}

// Watch shows a server's lanes, jobs and leases too: give it the method Node of each server. The values of several are added up. The function is
// called at each collection.
func (m *Metrics) Watch(node func() ports.Node) { m.nodes.Watch(node) }

// Close ends the calls of what Watch was given. What was counted stays.
func (m *Metrics) Close() error { return m.callback.Unregister() }

// StoreOptions are the options of [StoreMetrics]. The zero value is ready.
type StoreOptions struct {
	// MeterProvider makes the instruments; nil is the global one, as it is when [NewStoreMetrics] is called.
	MeterProvider metric.MeterProvider
	// Timeout bounds a look at the store, and so a collection that has to wait for it; 0 is 5 s.
	Timeout time.Duration
}

// StoreMetrics shows what a store holds: sizes, lag, shards, servers, checks. A collection looks at the store unless it was looked at a short while
// ago: after a look it is left alone for 99 times as long as that took, and for 5 s at least. Meanwhile, and when a look fails, the values are
// those of the last one, with its age in skein.exporter.age. Make it in one process of all; where several show the same store, take the max of
// them and never the sum. It is safe for concurrent use.
type StoreMetrics struct{ callback metric.Registration }

// NewStoreMetrics shows what the inspector's store holds from now on. Its error wraps core.ErrInvalidOptions: no inspector, a Timeout below 0, or
// what the provider refuses.
func NewStoreMetrics(inspector *inspect.Inspector, o StoreOptions) (*StoreMetrics, error) {
	store, err := stored.New(inspector, o.Timeout)
	if err != nil {
		return nil, err
	}
	meter := meterOf(o.MeterProvider)
	all, err := newObserved(meter, metrics.Store)
	if err != nil {
		return nil, err
	}
	callback, err := all.register(meter, store.Each)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", core.ErrInvalidOptions, err)
	}
	return &StoreMetrics{callback}, nil
}

// Close ends the looks at the store.
func (m *StoreMetrics) Close() error { return m.callback.Unregister() }
