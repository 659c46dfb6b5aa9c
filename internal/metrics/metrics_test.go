package metrics

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/reference/metrics.md")

const (
	page    = "../../docs/reference/metrics.md"
	written = "<!-- The rest is made of the table: go test ./internal/metrics -run Page -update -->\n"
)

func TestRowsAreWellFormed(t *testing.T) {
	name := regexp.MustCompile(`^skein(_[a-z]+)+$`)
	seen := make(map[string]bool)
	for _, m := range All() {
		if seen[m.Name] || !name.MatchString(m.Name) {
			t.Errorf("%s: a name of lower-case words that comes once is wanted", m.Name)
		}
		seen[m.Name] = true
		if (m.Type == Counter) != strings.HasSuffix(m.Name, "_total") {
			t.Errorf("%s is a %s; counters and only counters end in _total", m.Name, m.Type)
		}
		if m.Type == Histogram && (!slices.IsSorted(m.Buckets) || len(m.Buckets) == 0) {
			t.Errorf("%s: buckets %v; sorted ones are wanted", m.Name, m.Buckets)
		}
		if (m.Unit == "seconds") != strings.Contains(m.Name, "_seconds") {
			t.Errorf("%s: unit %q", m.Name, m.Unit)
		}
		if !strings.HasSuffix(m.Help, ".") || m.By == "" {
			t.Errorf("%s: a help that is a sentence, and where its values come from, are wanted", m.Name)
		}
		for _, l := range m.Labels {
			if slices.Contains([]string{
				"id", "node", "owner", "token", "error", "payload", "instance", "job", ShardLabel,
			}, l.Name) {
				t.Errorf("%s has the label %s, which makes a series for each entity, or hides one of Prometheus",
					m.Name, l.Name)
			}
		}
	}
}

func TestNamesInOpenTelemetry(t *testing.T) {
	want := map[string][2]string{
		"skein_pushes_total":          {"skein.pushes", "{push}"},
		"skein_handler_overrun_total": {"skein.handler.overrun", "{batch}"},
		"skein_turn_duration_seconds": {"skein.turn.duration", "s"},
		"skein_leases_held":           {"skein.leases.held", "{lease}"},
		"skein_queue_paused":          {"skein.queue.paused", "1"},
		"skein_job_duration_seconds":  {"messaging.process.duration", "s"},
	}
	seen := make(map[string]bool)
	for _, m := range All() {
		if seen[m.OpenTelemetry()] {
			t.Errorf("%s: another metric is called %s", m.Name, m.OpenTelemetry())
		}
		seen[m.OpenTelemetry()] = true
		if w, ok := want[m.Name]; ok && w != [2]string{m.OpenTelemetry(), m.UCUM()} {
			t.Errorf("%s is %s in %s; want %v", m.Name, m.OpenTelemetry(), m.UCUM(), w)
		}
	}
}

func TestOf(t *testing.T) {
	if m, ok := Of("skein_lanes"); !ok || m.Type != Gauge {
		t.Errorf("Of(skein_lanes) = %v, %v", m, ok)
	}
	if _, ok := Of("skein_none"); ok {
		t.Error("a metric that there is not")
	}
}

func TestPageHasTheTable(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(text), written)
	want := head + written + tables()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("docs/reference/metrics.md is not of the table; run: go test ./internal/metrics -run Page -update")
	}
}

// tables are the metrics by source, in Markdown.
func tables() string {
	var b strings.Builder
	for _, section := range []struct {
		source Source
		title  string
	}{
		{Process, "What a process does"},
		{Server, "What the servers of a process have now"},
		{Store, "What the store holds"},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n| metric | type | labels | what | by | in OpenTelemetry |\n| --- | --- | --- | "+
			"--- | --- | --- |\n", section.title)
		for _, m := range All() {
			if m.Source == section.source {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | `%s`, %s |\n", m.Name, m.Type, labels(m), m.Help, m.By,
					m.OpenTelemetry(), m.UCUM())
			}
		}
	}
	return b.String()
}

func labels(m Metric) string {
	var all []string
	for _, l := range m.Labels {
		text := "`" + l.Name + "`"
		if l.Values != nil {
			text += ": " + strings.Join(l.Values, " ")
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}
