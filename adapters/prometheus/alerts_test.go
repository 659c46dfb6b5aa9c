package prometheus

import (
	"fmt"
	"maps"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/skeinq/skein/internal/metrics"
	"github.com/skeinq/skein/internal/tier"
)

// wrongInShop are alerts that must fire in the shop. Which rules fire where, and which don't, is
// in rules_test.go.
var wrongInShop = []string{
	"SkeinCheckWarns memory", "SkeinFailureRatio mails", "SkeinMorgueGrows mails",
	"SkeinNobodyServes reports",
}

// A real Prometheus scrapes a server at work, by the published rules with shorter durations. The
// alerts on faults fire, and each query of the board finds something.
func TestAlertsFireInPrometheus(t *testing.T) {
	tier.Long(t, "durations of alerts pass in a real Prometheus")
	t.Parallel()
	s := startPrometheus(t, openShop(t), compress(t, read(t, "../../docs/reference/alerts.yaml")))
	fired := make(map[string]alert)
	await(t, func() error {
		maps.Copy(fired, s.firing())
		for _, name := range wrongInShop {
			if _, ok := fired[name]; !ok {
				return fmt.Errorf("%s has not fired yet", name)
			}
		}
		return nil
	})
	for _, name := range wrongInShop {
		s.says(name, fired[name])
	}
	for name, a := range fired {
		if a.Labels["queue"] == "reports" && a.Labels["alertname"] != "SkeinNobodyServes" {
			t.Errorf("%s fires too, of a queue that nobody serves", name)
		}
	}
	s.scrapes()
	s.evaluates()
	s.draws()
	s.offers()
}

// says checks that an alert has the labels and texts of its rule, about its queue or check.
func (s *server) says(name string, a alert) {
	s.t.Helper()
	for _, rule := range alertRules(s.t) {
		if rule.Alert != a.Labels["alertname"] {
			continue
		}
		summary := a.Annotations["summary"]
		s.t.Logf("%s: %s", name, summary)
		if a.Labels["severity"] != rule.Labels["severity"] || len(a.Labels) != 3 {
			s.t.Errorf("%s has the labels %v", name, a.Labels)
		}
		if !strings.Contains(summary, a.Labels["queue"]+a.Labels["check"]) || strings.Contains(summary, "<error") {
			s.t.Errorf("%s says %q", name, summary)
		}
	}
}

// scrapes holds that the shop is up, and that Prometheus has every metric of the table from it and
// no other of ours.
func (s *server) scrapes() {
	s.t.Helper()
	s.finds("up == 1")
	var want []string
	for _, row := range metrics.All() {
		parts := []string{""}
		if row.Type == metrics.Histogram {
			parts = []string{"_bucket", "_count", "_sum"}
		}
		for _, part := range parts {
			want = append(want, row.Name+part)
		}
	}
	slices.Sort(want)
	await(s.t, func() error {
		names, err := ask[[]string](s, "label/__name__/values", url.Values{"match[]": {`{__name__=~"skein_.*"}`}})
		if err != nil || !slices.Equal(names, want) {
			return fmt.Errorf("Prometheus has\n%q\nand the table\n%q\nerror %v", names, want, err)
		}
		return nil
	})
}

// finds waits until a query finds something.
func (s *server) finds(expr string) {
	s.t.Helper()
	await(s.t, func() error {
		if found, err := s.query(expr); err != nil || len(found) == 0 {
			return fmt.Errorf("%s finds nothing, error %v", expr, err)
		}
		return nil
	})
}

// selector is a metric of an expression with the requested labels.
var selector = regexp.MustCompile(`\bskein_\w+(\{[^}]*\})?`)

// evaluates checks that no rule fails, and that the data of each exist: a rule on a label's value
// that nothing has never fires.
func (s *server) evaluates() {
	s.t.Helper()
	await(s.t, func() error {
		data, err := ask[struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}](s, "rules", nil)
		if err != nil || len(data.Groups) != 1 {
			return fmt.Errorf("%d groups of rules, error %v", len(data.Groups), err)
		}
		for _, rule := range data.Groups[0].Rules {
			if rule.Health != "ok" {
				return fmt.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
		}
		return nil
	})
	for _, rule := range alertRules(s.t) {
		for _, wanted := range selector.FindAllString(rule.Expr, -1) {
			s.finds(wanted)
		}
	}
}

// filled is a query of the board with its variables as Grafana fills them in.
func filled(t *testing.T, expr string) string {
	t.Helper()
	expr = strings.NewReplacer("$job", ".*", "$queue", ".*", "$__rate_interval", "1m").Replace(expr)
	if strings.Contains(expr, "$") {
		t.Errorf("%s has a variable that the test doesn't know", expr)
	}
	return expr
}

// draws holds that the board's queries are valid and find something.
func (s *server) draws() {
	s.t.Helper()
	for _, panel := range readBoard(s.t).Panels {
		for _, target := range panel.Targets {
			s.finds(filled(s.t, target.Expr))
		}
	}
}

// labelValues is the board's query for the values of a variable.
var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// offers holds that the board's variables have the values that there are.
func (s *server) offers() {
	s.t.Helper()
	want := map[string][]string{"job": {"shop"}, "queue": {"calls", "mails", "orders", "reports"}}
	asked := 0
	for _, variable := range readBoard(s.t).Templating.List {
		query, _ := variable.Query.(map[string]any)
		if query == nil {
			continue // it asks for no labels
		}
		asked++
		parts := labelValues.FindStringSubmatch(fmt.Sprint(query["query"]))
		if parts == nil {
			s.t.Errorf("%s asks by %v, which the test doesn't know", variable.Name, query)
			continue
		}
		await(s.t, func() error {
			values, err := ask[[]string](s, "label/"+parts[2]+"/values", url.Values{"match[]": {parts[1]}})
			if err != nil || !slices.Equal(values, want[variable.Name]) {
				return fmt.Errorf("the board offers %q as %s, want %q, error %v",
					values, variable.Name, want[variable.Name], err)
			}
			return nil
		})
	}
	if asked != len(want) {
		s.t.Errorf("%d variables of the board ask for labels, want %d", asked, len(want))
	}
}

// The published rules pass the check that their users would run, and so do the queries of the
// board, as rules that record them.
func TestPromtoolAcceptsTheRulesAndQueries(t *testing.T) {
	t.Parallel()
	type recorded struct{ Record, Expr string }
	var queries []recorded
	for _, panel := range readBoard(t).Panels {
		for _, target := range panel.Targets {
			queries = append(queries, recorded{fmt.Sprintf("board:query%d", len(queries)), filled(t, target.Expr)})
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "board", "rules": queries}}})
	if err != nil {
		t.Fatal(err)
	}
	board := filepath.Join(t.TempDir(), "board.yaml")
	write(t, board, text)
	for path, n := range map[string]int{"../../docs/reference/alerts.yaml": len(alertRules(t)), board: len(queries)} {
		said, err := exec.Command(program(t, "promtool"), "check", "rules", path).CombinedOutput()
		if want := fmt.Sprintf("SUCCESS: %d rules found", n); err != nil || !strings.Contains(string(said), want) {
			t.Errorf("%s: %v; %q is wanted of\n%s", path, err, want, said)
		}
	}
}
