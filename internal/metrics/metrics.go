// Package metrics is the table of Skein's metrics: each metric's name, meaning, unit and labels.
// It is only data: adapters make metrics from it, docs/reference/metrics.md is written from it, and
// docs/reference/alerts.yaml and docs/reference/grafana.json may name no others.
package metrics

import "strings"

// Type is the kind of a metric.
type Type string

// Types of metrics.
const (
	// Counter only grows, until its source starts anew.
	Counter Type = "counter"
	// Gauge goes up and down.
	Gauge Type = "gauge"
	// Histogram counts values by size.
	Histogram Type = "histogram"
)

// Source is where a metric's values come from.
type Source string

// Sources of metrics.
const (
	// Process is what a process does: calls of its Observer.
	Process Source = "Observer"
	// Server is what a server has right now: its Node method.
	Server Source = "Server.Node"
	// Store is what the store holds: package inspect.
	Store Source = "inspect"
)

// Label is a label of a metric.
type Label struct {
	Name string
	// Values are those that it may have; nil for names that users, stores or builds choose.
	Values []string
}

// Metric is a row of the table.
type Metric struct {
	Name   string
	Type   Type
	Source Source
	// By is the method of the source that the values come from.
	By string
	// Unit is what is counted or measured.
	Unit   string
	Labels []Label
	// Sharded metrics can have the label shard too, where a user asks for it.
	Sharded bool
	// Buckets are the upper bounds of a histogram.
	Buckets []float64
	Help    string
	// Messaging is its name in OpenTelemetry's conventions for messaging, version [Conventions]. Most
	// metrics have no such name.
	Messaging string
}

// Conventions is the version of OpenTelemetry's semantic conventions that names follow.
const Conventions = "1.43.0"

// OpenTelemetry returns its name there.
func (m Metric) OpenTelemetry() string {
	if m.Messaging != "" {
		return m.Messaging
	}
	name := strings.TrimSuffix(strings.TrimSuffix(m.Name, "_total"), "_seconds")
	return strings.ReplaceAll(name, "_", ".")
}

// UCUM returns its unit as OpenTelemetry writes it.
func (m Metric) UCUM() string {
	switch {
	case m.Unit == "":
		return "1"
	case m.Unit == "seconds":
		return "s"
	case strings.HasSuffix(m.Unit, "shes"), strings.HasSuffix(m.Unit, "ches"):
		return "{" + strings.TrimSuffix(m.Unit, "es") + "}"
	}
	return "{" + strings.TrimSuffix(m.Unit, "s") + "}"
}

// LabelNames returns the names of the labels, in their order.
func (m Metric) LabelNames() []string {
	names := make([]string, len(m.Labels))
	for i, l := range m.Labels {
		names[i] = l.Name
	}
	return names
}

// Of returns the metric of a name, and whether there is one.
func Of(name string) (Metric, bool) {
	for _, m := range All() {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}

// All returns the table: new slices, that callers may change.
func All() []Metric {
	return append(append(ofProcess(), ofServer()...), ofStore()...)
}

// ShardLabel is the label of sharded metrics, where it is asked for.
const ShardLabel = "shard"

func queue() Label { return Label{Name: "queue"} }

func one(name string, values ...string) Label { return Label{Name: name, Values: values} }
