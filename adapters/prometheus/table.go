package prometheus

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skeinq/skein/internal/metrics"
)

// Native histograms, for servers that scrape them: bounds that grow by 10 % at most, and so many of them.
const (
	nativeGrowth  = 1.1
	nativeBuckets = 100
	nativeReset   = time.Hour
)

// vectors are the metrics of one Observer, as the table has them.
type vectors struct {
	counters   map[string]*prometheus.CounterVec
	histograms map[string]*prometheus.HistogramVec
	perShard   bool
}

func newVectors(constant prometheus.Labels, perShard bool) *vectors {
	v := &vectors{make(map[string]*prometheus.CounterVec), make(map[string]*prometheus.HistogramVec), perShard}
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
			v.counters[m.Name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help, ConstLabels: constant}, names)
		case metrics.Histogram:
			v.histograms[m.Name] = prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name: m.Name, Help: m.Help, ConstLabels: constant, Buckets: m.Buckets,
				NativeHistogramBucketFactor: nativeGrowth, NativeHistogramMaxBucketNumber: nativeBuckets, NativeHistogramMinResetDuration: nativeReset,
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

// counter returns the series of a metric of the table, whose last label may be that of the shard.
func (v *vectors) counter(name string, labels ...string) prometheus.Counter {
	return v.counters[name].WithLabelValues(labels...)
}

func (v *vectors) histogram(name string, labels ...string) prometheus.Observer {
	return v.histograms[name].WithLabelValues(labels...)
}

// counted returns a series for each value of a metric's last label of its own, with the labels before and behind it.
func (v *vectors) counted(name string, before, behind []string) map[string]prometheus.Counter {
	row, _ := metrics.Of(name)
	series := make(map[string]prometheus.Counter)
	for _, value := range row.Labels[len(before)].Values {
		labels := append(append(append([]string(nil), before...), value), behind...)
		series[value] = v.counter(name, labels...)
	}
	return series
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

// described is a metric whose values are asked for at each scrape.
type described struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func (d described) value(v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d.desc, d.kind, v, labels...)
}
