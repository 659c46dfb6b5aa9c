// Package metrics is the table of Skein's metrics: each metric's name, meaning, unit and labels. It
// is only data. Adapters make metrics from the table, and docs/reference/metrics.md is generated
// from it. docs/reference/alerts.yaml and docs/reference/grafana.json may name no other metrics.
package metrics

import "strings"

// Type is the kind of a metric.
type Type string

// Types of metrics.
const (
	// Counter only grows, until its source restarts.
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
	// Process has the events of a process: calls of its Observer.
	Process Source = "Observer"
	// Server has the present state of a server: its Node method.
	Server Source = "Server.Node"
	// Store has the content of the store: package inspect.
	Store Source = "inspect"
)

// Label is a label of a metric.
type Label struct {
	Name string
	// Values are the possible values. They are nil for names that users, stores or builds choose.
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
	// Sharded is set if the metric also has the label shard where a user requests it.
	Sharded bool
	// Buckets are the upper bounds of a histogram.
	Buckets []float64
	Help    string
	// Messaging is the metric's name in OpenTelemetry's conventions for messaging, version
	// [Conventions]. Most metrics have no such name.
	Messaging string
}

// Conventions is the version of OpenTelemetry's semantic conventions that names follow.
const Conventions = "1.43.0"

// OpenTelemetry returns the metric's name in OpenTelemetry.
func (m Metric) OpenTelemetry() string {
	if m.Messaging != "" {
		return m.Messaging
	}
	name := strings.TrimSuffix(strings.TrimSuffix(m.Name, "_total"), "_seconds")
	return strings.ReplaceAll(name, "_", ".")
}

// UCUM returns the metric's unit as OpenTelemetry writes it.
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

// Of returns the metric with a name. ok is false if there is none.
func Of(name string) (m Metric, ok bool) {
	for _, m := range All() {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}

// All returns the table. The slices are new, so callers may change them.
func All() []Metric {
	return append(append(ofProcess(), ofServer()...), ofStore()...)
}

// ShardLabel is the additional label of sharded metrics, where a user requests it.
const ShardLabel = "shard"

func queue() Label { return Label{Name: "queue"} }

func one(name string, values ...string) Label { return Label{Name: name, Values: values} }
