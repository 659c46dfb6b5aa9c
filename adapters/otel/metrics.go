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
	// MeterProvider makes the instruments. nil means the global one at the time of [NewMetrics].
	MeterProvider metric.MeterProvider
	// Queues are the queues whose series exist from the start, with value 0. The series of other
	// queues begin with their first event. A rate is wrong for such a series, so name the queues
	// that the process pushes to or serves.
	Queues []string
	// PerShard adds the attribute messaging.destination.partition.id to the metrics of jobs. It
	// costs some 20 series for each shard that this process runs, so use it only for queues with
	// few shards.
	PerShard bool
}

// Metrics counts the events of the clients and servers of a process. It is a [ports.Observer]. Make
// it with [NewMetrics]. It may be passed to any number of clients and servers, and is safe for
// concurrent use.
type Metrics struct {
	*observer
	nodes    *counting.Nodes
	callback metric.Registration
}

// observer is embedded under a name that users don't see.
type observer = counting.Observer

var _ ports.Observer = (*Metrics)(nil)

// NewMetrics returns metrics without any count. Its error wraps core.ErrInvalidOptions for a name
// that no queue can have; it may also be an error of the provider.
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
	m.callback, err = servers.register(meter, func(put func(string, float64, ...string)) {
		m.nodes.Each(m.Queues(), put)
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", core.ErrInvalidOptions, err)
	}

	return m, nil
}

// Watch adds a server's lanes, jobs and leases to the metrics: pass the method Node of each server.
// The values of several servers are added up. The function is called at each collection.
func (m *Metrics) Watch(node func() ports.Node) { m.nodes.Watch(node) }

// Close ends the calls of the functions that Watch was given. Counts stay.
func (m *Metrics) Close() error { return m.callback.Unregister() }

// StoreOptions are the options of [StoreMetrics]. The zero value is ready.
type StoreOptions struct {
	// MeterProvider makes the instruments. nil means the global one at the time of
	// [NewStoreMetrics].
	MeterProvider metric.MeterProvider
	// Timeout is the maximum time of one read of the store, and so of a collection that has to wait
	// for it. 0 means 5 s.
	Timeout time.Duration
}

// StoreMetrics exports what a store holds: sizes, lag, shards, servers, checks. Make it in one of
// the processes, with [NewStoreMetrics]. If several processes export the same store, use the max of
// their values, never the sum. It is safe for concurrent use.
//
// A collection reads the store unless a recent read is still fresh. A read is fresh for 99 times as
// long as it took, and for at least 5 s. Until then, and if a read fails, collections return the
// values of the last successful read, with its age in skein.exporter.age.
type StoreMetrics struct{ callback metric.Registration }

// NewStoreMetrics exports what the inspector's store holds, until Close. Its error wraps
// core.ErrInvalidOptions for a nil inspector and a negative Timeout; it may also be an error of the
// provider.
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

// Close ends the export.
func (m *StoreMetrics) Close() error { return m.callback.Unregister() }
