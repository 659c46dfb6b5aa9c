package prometheus

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skeinq/skein/internal/metrics"
	"github.com/skeinq/skein/internal/metrics/counting"
)

// Native histograms, for servers that scrape them: the largest growth from one bound to the next,
// the largest number of buckets, and the shortest time between resets.
const (
	nativeGrowth  = 1.1
	nativeBuckets = 100
	nativeReset   = time.Hour
)

// vectors are the metrics of one Observer, as the table has them.
type vectors struct {
	counters   map[string]*prometheus.CounterVec
	histograms map[string]*prometheus.HistogramVec
}

func newVectors(constant prometheus.Labels, perShard bool) *vectors {
	v := &vectors{make(map[string]*prometheus.CounterVec), make(map[string]*prometheus.HistogramVec)}
	for _, m := range metrics.All() {
		if m.Source != metrics.Process {
			continue
		}

		names := m.LabelNames()
		if perShard && m.Sharded {
			names = append(names, metrics.ShardLabel)
		}

		switch m.Type {
		case metrics.Counter:
			v.counters[m.Name] = prometheus.NewCounterVec(prometheus.CounterOpts{
				Name:        m.Name,
				Help:        m.Help,
				ConstLabels: constant,
			}, names)
		case metrics.Histogram:
			v.histograms[m.Name] = prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name:                            m.Name,
				Help:                            m.Help,
				ConstLabels:                     constant,
				Buckets:                         m.Buckets,
				NativeHistogramBucketFactor:     nativeGrowth,
				NativeHistogramMaxBucketNumber:  nativeBuckets,
				NativeHistogramMinResetDuration: nativeReset,
			}, names)
		}
	}
	return v
}

// each calls f with each vector.
func (v *vectors) each(f func(prometheus.Collector)) {
	for _, c := range v.counters {
		f(c)
	}
	for _, h := range v.histograms {
		f(h)
	}
}

// Counter implements [counting.Series].
func (v *vectors) Counter(name string, labels ...string) counting.Counter {
	return counter{v.counters[name].WithLabelValues(labels...)}
}

type counter struct{ prometheus.Counter }

// Add implements [counting.Counter].
func (c counter) Add(n int) { c.Counter.Add(float64(n)) }

// Measure implements [counting.Series].
func (v *vectors) Measure(name string, labels ...string) counting.Measure {
	return v.histograms[name].WithLabelValues(labels...)
}

// descriptions are the metrics of other sources.
func descriptions(source metrics.Source, constant prometheus.Labels) map[string]described {
	all := make(map[string]described)
	for _, m := range metrics.All() {
		if m.Source != source {
			continue
		}
		kind := prometheus.GaugeValue
		if m.Type == metrics.Counter {
			kind = prometheus.CounterValue
		}
		all[m.Name] = described{prometheus.NewDesc(m.Name, m.Help, m.LabelNames(), constant), kind}
	}
	return all
}

// described is a metric whose values are read at each scrape.
type described struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func (d described) value(v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d.desc, d.kind, v, labels...)
}
