package prometheus

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/metrics"
	"github.com/skeinq/skein/internal/metrics/counting"
	"github.com/skeinq/skein/ports"
)

// Options are the options of [Metrics]. The zero value is ready.
type Options struct {
	// Queues are the queues whose series exist from the start, with value 0. The series of other
	// queues begin with their first event. rate() and absent() are wrong for such a series, so name
	// the queues that the process pushes to or serves.
	Queues []string
	// Labels are constant labels of all metrics. Two Metrics in one registry must have different
	// Labels.
	Labels map[string]string
	// PerShard adds the label shard to the metrics of jobs. It costs some 70 series for each shard
	// that this process runs, so use it only for queues with few shards.
	PerShard bool
	// Version is the version of the program in skein_build_info. Empty means the version of the
	// main module.
	Version string
}

// Metrics counts the events of the clients and servers of a process. It is a [ports.Observer] and a
// prometheus.Collector. Make it with [New]. It may be passed to any number of clients and servers,
// and is safe for concurrent use.
type Metrics struct {
	*observer
	vectors *vectors
	server  map[string]described
	build   prometheus.Gauge

	nodes counting.Nodes
}

// observer is embedded under a name that users don't see.
type observer = counting.Observer

var (
	_ ports.Observer       = (*Metrics)(nil)
	_ prometheus.Collector = (*Metrics)(nil)
)

// New returns metrics without any count. Its error wraps core.ErrInvalidOptions for a name that no
// queue can have, and for a constant label that Prometheus refuses or that a metric already has.
func New(o Options) (*Metrics, error) {
	for _, name := range o.Queues {
		if err := core.ValidateQueue(name, 1); err != nil {
			return nil, fmt.Errorf("%w: Queues: %w", core.ErrInvalidOptions, err)
		}
	}
	if err := checkLabels(o.Labels); err != nil {
		return nil, err
	}

	v := newVectors(o.Labels, o.PerShard)
	return &Metrics{
		observer: counting.New(v, o.PerShard, o.Queues...),
		vectors:  v,
		server:   descriptions(metrics.Server, o.Labels),
		build:    buildInfo(o),
	}, nil
}

// Watch adds a server's lanes, jobs and leases to the metrics: pass the method Node of each server.
// The values of several servers are added up. The function is called at each scrape.
func (m *Metrics) Watch(node func() ports.Node) { m.nodes.Watch(node) }

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.vectors.each(func(c prometheus.Collector) { c.Describe(ch) })
	m.build.Describe(ch)
	for _, d := range m.server {
		ch <- d.desc
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.vectors.each(func(c prometheus.Collector) { c.Collect(ch) })
	m.build.Collect(ch)
	m.nodes.Each(m.Queues(), func(name string, v float64, labels ...string) {
		ch <- m.server[name].value(v, labels...)
	})
}

// checkLabels refuses labels that would make Prometheus panic.
func checkLabels(labels map[string]string) error {
	for name := range labels {
		taken := name == metrics.ShardLabel
		for _, m := range metrics.All() {
			taken = taken || slices.Contains(m.LabelNames(), name)
		}
		if taken {
			return fmt.Errorf("%w: Labels: %q is a label of Skein's own metrics; choose another name",
				core.ErrInvalidOptions, name)
		}
	}

	probe := prometheus.NewGauge(prometheus.GaugeOpts{Name: "skein_probe", ConstLabels: labels})
	if err := prometheus.NewRegistry().Register(probe); err != nil {
		return fmt.Errorf("%w: Labels: %w", core.ErrInvalidOptions, err)
	}
	return nil
}

func buildInfo(o Options) prometheus.Gauge {
	row, _ := metrics.Of("skein_build_info")
	version := o.Version
	if info, ok := debug.ReadBuildInfo(); ok && version == "" {
		version = info.Main.Version
	}
	labels := prometheus.Labels{"version": version, "go": runtime.Version()}
	for name, value := range o.Labels {
		labels[name] = value
	}
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: row.Name, Help: row.Help, ConstLabels: labels})
	g.Set(1)
	return g
}
