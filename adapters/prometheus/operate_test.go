package prometheus

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/internal/metrics"
)

// named matches possible names of Skein's metrics.
var named = regexp.MustCompile(`\bskein_\w+`)

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// alertRule is a rule of docs/reference/alerts.yaml.
type alertRule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func alertRules(t *testing.T) []alertRule {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []alertRule }
	}
	if err := yaml.Unmarshal(read(t, "../../docs/reference/alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	return file.Groups[0].Rules
}

// board is the part of docs/reference/grafana.json that queries Prometheus.
type board struct {
	Panels []struct {
		Title, Type, Description string
		Targets                  []struct{ Expr string }
	}
	Templating struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
}

func readBoard(t *testing.T) board {
	t.Helper()
	var b board
	if err := json.Unmarshal(read(t, "../../docs/reference/grafana.json"), &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// valueShown is where an annotation shows the value of its expression, and roundedValue how it may.
var (
	valueShown   = regexp.MustCompile(`{{[^}]*\$value[^}]*}}`)
	roundedValue = regexp.MustCompile(`\bhumanize|\bprintf "%\.[0-9]f"`)
)

// holdNames checks that the metrics of an expression are in the table; those of a histogram end in
// Prometheus's names of its parts.
func holdNames(t *testing.T, where, expr string) {
	t.Helper()
	for _, name := range named.FindAllString(expr, -1) {
		row, ok := metrics.Of(name)
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			if base, cut := strings.CutSuffix(name, part); cut && !ok {
				row, ok = metrics.Of(base)
				ok = ok && row.Type == metrics.Histogram
			}
		}
		if !ok {
			t.Errorf("%s names %s, which is not in the table", where, name)
		}
	}
}

func TestAlertsNameMetricsOfTheTableAndHaveTheirPages(t *testing.T) {
	pages := string(read(t, "../../docs/operations/runbooks.md"))
	rules := alertRules(t)
	for _, rule := range rules {
		holdNames(t, rule.Alert, rule.Expr)
		if !named.MatchString(rule.Expr) || rule.For == "" || rule.Labels["severity"] == "" ||
			rule.Annotations["summary"] == "" {
			t.Errorf("%s: an expression of ours, a time, a severity and a summary are wanted", rule.Alert)
		}
		for name, text := range rule.Annotations {
			for _, shown := range valueShown.FindAllString(text, -1) {
				if !roundedValue.MatchString(shown) {
					t.Errorf("%s: the %s has %s with all its digits", rule.Alert, name, shown)
				}
			}
		}
		if !strings.HasSuffix(rule.Annotations["runbook_url"],
			"docs/operations/runbooks.md#"+strings.ToLower(rule.Alert)) {
			t.Errorf("%s links to %q", rule.Alert, rule.Annotations["runbook_url"])
		}
		if !strings.Contains(pages, "\n## "+rule.Alert+"\n") {
			t.Errorf("%s has no page in docs/operations/runbooks.md", rule.Alert)
		}
	}
	if n := strings.Count(pages, "\n## "); n != len(rules) {
		t.Errorf("%d pages of %d alerts", n, len(rules))
	}
	for _, word := range named.FindAllString(pages, -1) {
		holdNames(t, "docs/operations/runbooks.md", word)
	}
}

// A server takes over another's shards within two leases: after three something is wrong. The page
// names the TTL that the rule is about.
func TestShardsMayBeUnownedForThreeLeases(t *testing.T) {
	pages := strings.Join(strings.Fields(string(read(t, "../../docs/operations/runbooks.md"))), " ")
	for _, rule := range alertRules(t) {
		if rule.Alert != "SkeinShardsUnowned" {
			continue
		}
		if d, err := time.ParseDuration(rule.For); err != nil || d != 3*skein.DefaultLeaseTTL {
			t.Errorf("%s waits for %v, %v; want three times %v", rule.Alert, d, err, skein.DefaultLeaseTTL)
		}
		if text := fmt.Sprintf("The default LeaseTTL is %.0f s, and %.0f s is three times that.",
			skein.DefaultLeaseTTL.Seconds(), 3*skein.DefaultLeaseTTL.Seconds()); !strings.Contains(pages, text) {
			t.Errorf("docs/operations/runbooks.md does not say: %s", text)
		}
	}
}

func TestBoardNamesMetricsOfTheTable(t *testing.T) {
	for _, panel := range readBoard(t).Panels {
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("%s asks for nothing", panel.Title)
		}
	}
	holdNames(t, "docs/reference/grafana.json", string(read(t, "../../docs/reference/grafana.json")))
}

// queried is a metric of a query.
var queried = regexp.MustCompile(`\b(?:skein|go|process)_\w+`)

// If only an exporter is scraped, some panels of the board are empty. Those state it, and no
// others do.
func TestPanelsThatAnExporterLeavesEmptySaySo(t *testing.T) {
	exported := gather(t, newCollector(t, checkedStore{declared(t, 3, "orders")}))
	for _, panel := range readBoard(t).Panels {
		empty := false
		for _, target := range panel.Targets {
			for _, name := range queried.FindAllString(target.Expr, -1) {
				empty = empty || exported[name] == nil
			}
		}
		if says := strings.Contains(panel.Description, "Empty"); says != empty {
			t.Errorf("%s is empty beside an exporter alone: %v; its description says %q",
				panel.Title, empty, panel.Description)
		}
	}
}
