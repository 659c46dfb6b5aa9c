package prometheus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/metrics"
)

const (
	// restFactor is how many times as long as a look took the store is left alone: it spends a hundredth of its time on looks.
	restFactor = 99
	minRest    = 5 * time.Second
	// maxFailedRest bounds the rest after a look that failed, which may have cost the store nothing.
	maxFailedRest  = time.Minute
	defaultTimeout = 5 * time.Second
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
	inspector *inspect.Inspector
	timeout   time.Duration
	metrics   map[string]described

	// looking is held by who looks at the store; mu guards the rest.
	looking sync.Mutex
	mu      sync.Mutex
	last    *view
	up      bool
	took    time.Duration
	next    time.Time
}

// view is what one look found.
type view struct {
	at     time.Time
	stats  []inspect.QueueStats
	nodes  []inspect.Node
	checks []inspect.Check
}

// NewCollector returns a collector that has not looked yet. Its error wraps core.ErrInvalidOptions: no inspector, a Timeout below 0, or
// constant labels as in [New].
func NewCollector(inspector *inspect.Inspector, o CollectorOptions) (*Collector, error) {
	switch {
	case inspector == nil:
		return nil, fmt.Errorf("%w: no inspector; give NewCollector one of inspect.New", core.ErrInvalidOptions)
	case o.Timeout < 0:
		return nil, fmt.Errorf("%w: Timeout %v is below 0", core.ErrInvalidOptions, o.Timeout)
	}
	if err := checkLabels(o.Labels); err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return &Collector{inspector: inspector, timeout: o.Timeout, metrics: descriptions(metrics.Store, o.Labels)}, nil
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.metrics {
		ch <- d.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.refresh()
	c.mu.Lock()
	last, up, took := c.last, c.up, c.took
	c.mu.Unlock()
	s := sink{c.metrics, ch}
	s.bool("skein_exporter_up", up)
	s.put("skein_exporter_look_seconds", took.Seconds())
	if last == nil {
		return
	}
	s.put("skein_exporter_age_seconds", time.Since(last.at).Seconds())
	s.queues(last)
	s.servers(last)
	s.checks(last.checks)
}

// refresh looks at the store if it may be looked at. Who comes while another looks has what is known, or waits if nothing is.
func (c *Collector) refresh() {
	if !c.due() {
		return
	}
	if !c.looking.TryLock() {
		if c.known() {
			return
		}
		c.looking.Lock()
	}
	defer c.looking.Unlock()
	if !c.due() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	start := time.Now()
	found, err := c.look(ctx)
	took := time.Since(start)
	rest := max(minRest, restFactor*took)
	if err != nil {
		rest = min(rest, maxFailedRest)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up, c.took, c.next = err == nil, took, start.Add(took+rest)
	if err == nil {
		found.at = start
		c.last = found
	}
}

func (c *Collector) due() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !time.Now().Before(c.next)
}

func (c *Collector) known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last != nil
}

// look asks the store. A part of it that can't be reached leaves its shards out; checks that can't be made are one that is unknown.
func (c *Collector) look(ctx context.Context) (*view, error) {
	stats, err := c.inspector.Stats(ctx)
	var partial *inspect.PartialError
	if err != nil && !errors.As(err, &partial) {
		return nil, err
	}
	nodes, err := c.inspector.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	checks, err := c.inspector.Checks(ctx)
	if err != nil {
		checks = []inspect.Check{{Name: "answers", Status: inspect.CheckUnknown, Value: err.Error()}}
	}
	return &view{stats: stats, nodes: nodes, checks: checks}, nil
}
