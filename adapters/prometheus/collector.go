package prometheus

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/metrics"
	"github.com/skeinq/skein/internal/metrics/stored"
)

// CollectorOptions are the options of a [Collector]. The zero value is ready.
type CollectorOptions struct {
	// Labels are constant labels of all metrics. Two collectors in one registry must have different
	// Labels.
	Labels map[string]string
	// Timeout is the maximum time of one read of the store, and so of a scrape that has to wait for
	// it. 0 means 5 s. Keep it below Prometheus's scrape_timeout.
	Timeout time.Duration
}

// Collector exports what a store holds: sizes, lag, shards, servers, checks. Make it with
// [NewCollector]. It is safe for concurrent use.
//
// A scrape reads the store unless a recent read is still fresh. A read is fresh for 99 times as
// long as it took, and for at least 5 s. Until then, and if a read fails, scrapes return the values
// of the last successful read, with its age in skein_exporter_age_seconds.
type Collector struct {
	store   *stored.Store
	metrics map[string]described
}

// NewCollector returns a collector that has not yet read the store. Its error wraps
// core.ErrInvalidOptions for a nil inspector, a negative Timeout, and constant labels that [New]
// refuses.
func NewCollector(inspector *inspect.Inspector, o CollectorOptions) (*Collector, error) {
	store, err := stored.New(inspector, o.Timeout)
	if err != nil {
		return nil, err
	}
	if err := checkLabels(o.Labels); err != nil {
		return nil, err
	}
	return &Collector{store: store, metrics: descriptions(metrics.Store, o.Labels)}, nil
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.metrics {
		ch <- d.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.store.Each(func(name string, v float64, labels ...string) { ch <- c.metrics[name].value(v, labels...) })
}
