package otel

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/metrics"
	"github.com/skeinq/skein/internal/metrics/counting"
)

// scope is the name of the instrumentation.
const scope = "github.com/skeinq/skein/adapters/otel"

// meterOf returns a provider's meter; nil is the global provider.
func meterOf(p metric.MeterProvider) metric.Meter {
	if p == nil {
		p = otel.GetMeterProvider()
	}
	return p.Meter(scope)
}

// Attributes that are the same in metrics and traces.
const (
	systemKey    = attribute.Key("messaging.system")
	queueKey     = attribute.Key("messaging.destination.name")
	shardKey     = attribute.Key("messaging.destination.partition.id")
	operationKey = attribute.Key("messaging.operation.name")
	typeKey      = attribute.Key("messaging.operation.type")
	countKey     = attribute.Key("messaging.batch.message_count")
	errorKey     = attribute.Key("error.type")
)

// Values of attributes.
const (
	system     = "skein"
	pushing    = "push"
	processing = "process"
	sending    = "send"
	otherError = "_OTHER"
)

// operations are the operations of the metrics that the conventions name.
var operations = map[string]string{
	"skein_pushed_total": pushing, "skein_push_duration_seconds": pushing,
	"skein_payloads_total": processing, "skein_job_duration_seconds": processing,
}

// attributesOf returns the attributes of a series of the table. The shard's label, if it is there,
// comes after the labels of the table.
func attributesOf(row metrics.Metric, labels []string) attribute.Set {
	var all []attribute.KeyValue
	if row.Messaging != "" {
		all = append(all, systemKey.String(system), operationKey.String(operations[row.Name]))
	}

	for i, value := range labels {
		switch {
		case i >= len(row.Labels):
			all = append(all, shardKey.String(value))
		case row.Labels[i].Name == "queue":
			all = append(all, queueKey.String(value))
		default:
			all = append(all, attribute.String("skein."+row.Labels[i].Name, value))
			if row.Messaging != "" && value == "error" {
				all = append(all, errorKey.String(otherError))
			}
		}
	}

	return attribute.NewSet(all...)
}

// instruments are those of the metrics that are counted as events happen. Counters are read at a
// collection, so that an event costs no more than an addition. The API has no histograms that can
// be read in this way.
type instruments struct {
	rows       map[string]metrics.Metric
	counters   map[string]metric.Int64ObservableCounter
	histograms map[string]metric.Float64Histogram
	mu         sync.Mutex
	// all are the counters made so far.
	all []*counter
}

func newInstruments(meter metric.Meter) (*instruments, error) {
	in := &instruments{
		rows:       map[string]metrics.Metric{},
		counters:   map[string]metric.Int64ObservableCounter{},
		histograms: map[string]metric.Float64Histogram{},
	}
	var read []metric.Observable

	for _, row := range metrics.All() {
		if row.Source != metrics.Process {
			continue
		}

		in.rows[row.Name] = row
		var err error
		switch row.Type {
		case metrics.Counter:
			in.counters[row.Name], err = meter.Int64ObservableCounter(row.OpenTelemetry(),
				metric.WithUnit(row.UCUM()), metric.WithDescription(row.Help))
			read = append(read, in.counters[row.Name])
		case metrics.Histogram:
			in.histograms[row.Name], err = meter.Float64Histogram(row.OpenTelemetry(),
				metric.WithUnit(row.UCUM()), metric.WithDescription(row.Help),
				metric.WithExplicitBucketBoundaries(row.Buckets...))
		}

		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", core.ErrInvalidOptions, row.OpenTelemetry(), err)
		}
	}

	// The callback stays for as long as the meter exists, since the counts stay.
	if _, err := meter.RegisterCallback(in.collect, read...); err != nil {
		return nil, fmt.Errorf("%w: %w", core.ErrInvalidOptions, err)
	}
	return in, nil
}

// collect reports the values of the counters.
func (in *instruments) collect(_ context.Context, to metric.Observer) error {
	in.mu.Lock()
	all := slices.Clip(in.all)
	in.mu.Unlock()
	for _, c := range all {
		to.ObserveInt64(c.of, c.Value(), c.series...)
	}
	return nil
}

// Counter implements [counting.Series]. The series is there from now on, at 0.
func (in *instruments) Counter(name string, labels ...string) counting.Counter {
	c := &counter{
		of:     in.counters[name],
		series: []metric.ObserveOption{metric.WithAttributeSet(attributesOf(in.rows[name], labels))},
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.all = append(in.all, c)
	return c
}

// Measure implements [counting.Series].
func (in *instruments) Measure(name string, labels ...string) counting.Measure {
	return measure{
		in.histograms[name],
		[]metric.RecordOption{metric.WithAttributeSet(attributesOf(in.rows[name], labels))},
	}
}

type counter struct {
	counting.Sum
	of     metric.Int64ObservableCounter
	series []metric.ObserveOption
}

type measure struct {
	metric.Float64Histogram
	series []metric.RecordOption
}

func (m measure) Observe(v float64) { m.Record(context.Background(), v, m.series...) }

// observed are the instruments of metrics that are read at a collection.
type observed struct {
	rows map[string]metrics.Metric
	of   map[string]metric.Float64Observable
	all  []metric.Observable
}

func newObserved(meter metric.Meter, source metrics.Source) (*observed, error) {
	o := &observed{rows: map[string]metrics.Metric{}, of: map[string]metric.Float64Observable{}}
	for _, row := range metrics.All() {
		if row.Source != source {
			continue
		}

		var one metric.Float64Observable
		var err error
		if row.Type == metrics.Counter {
			one, err = meter.Float64ObservableCounter(row.OpenTelemetry(),
				metric.WithUnit(row.UCUM()), metric.WithDescription(row.Help))
		} else {
			one, err = meter.Float64ObservableGauge(row.OpenTelemetry(),
				metric.WithUnit(row.UCUM()), metric.WithDescription(row.Help))
		}

		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", core.ErrInvalidOptions, row.OpenTelemetry(), err)
		}

		o.rows[row.Name], o.of[row.Name] = row, one
		o.all = append(o.all, one)
	}
	return o, nil
}

// register makes the meter call each at every collection, to read the values.
func (o *observed) register(
	meter metric.Meter, each func(put func(name string, v float64, labels ...string)),
) (metric.Registration, error) {
	return meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		each(func(name string, v float64, labels ...string) {
			to.ObserveFloat64(o.of[name], v, metric.WithAttributeSet(attributesOf(o.rows[name], labels)))
		})
		return nil
	}, o.all...)
}
