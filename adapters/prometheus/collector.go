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
	// Labels are constant labels of all metrics. Two collectors in one registry must differ in them.
	Labels map[string]string
	// Timeout bounds a look at the store, and so a scrape that has to wait for it; 0 is 5 s. Keep it below Prometheus's scrape_timeout.
	Timeout time.Duration
}

// Collector shows what a store holds: sizes, lag, shards, servers, checks. A scrape looks at the store unless it was looked at a short
// while ago: after a look it is left alone for 99 times as long as that took, and for 5 s at least. Meanwhile, and when a look fails, scrapes show what
// the last one found, with its age in skein_exporter_age_seconds. Make it with [NewCollector]. It is safe for concurrent use.
type Collector struct {
	store   *stored.Store
	metrics map[string]described
}

// NewCollector returns a collector that has not looked yet. Its error wraps core.ErrInvalidOptions: no inspector, a Timeout below 0, or
// constant labels as in [New].
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
