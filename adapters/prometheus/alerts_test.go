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
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/skeinq/skein/internal/metrics"
)

// wrongInShop are the alerts that must fire in the shop, and no others.
var wrongInShop = []string{
	"SkeinCheckFailed memory", "SkeinFailureRatio mails", "SkeinMorgueGrows mails",
	"SkeinNobodyServes reports", "SkeinNotMoving reports", "SkeinQueueLag reports",
}

// A real Prometheus scrapes a server that works, by the rules as they are published but for their durations: what is wrong fires, of
// the queue of which it is so, and nothing of the one that is well; and each query of the board is one.
func TestAlertsFireInPrometheus(t *testing.T) {
	t.Parallel()
	s := startPrometheus(t, openShop(t), compress(t, read(t, "../../docs/alerts.yaml")))
	var fired map[string]alert
	missing := func(name string) bool { _, ok := fired[name]; return !ok }
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(tick) {
		if fired = s.firing(); !slices.ContainsFunc(wrongInShop, missing) {
			break
		}
	}
	s.firedOnly(wrongInShop)
	for name, a := range fired {
		s.says(name, a)
	}
	s.scrapes()
	s.evaluates()
	s.draws()
	s.offers()
}

// firedOnly holds that these alerts have fired at some time and no others have.
func (s *server) firedOnly(want []string) {
	s.t.Helper()
	var names []string
	// What fires is in the store a moment later.
	for deadline := time.Now().Add(patience); len(names) < len(want) && time.Now().Before(deadline); time.Sleep(tick) {
		found, err := s.query(`count by (alertname, queue, check) (count_over_time(ALERTS{alertstate="firing"}[1h]))`)
		if err != nil {
			s.t.Fatal(err)
		}
		names = names[:0]
		for _, f := range found {
			names = append(names, subject(f.Metric))
		}
	}
	if slices.Sort(names); !slices.Equal(names, want) {
		s.t.Errorf("%q have fired, want %q", names, want)
	}
}

// says holds that an alert has the labels and texts of its rule, about its queue or check.
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

// scrapes holds that the shop is up, and that Prometheus has every metric of the table from it and no other of ours.
func (s *server) scrapes() {
	s.t.Helper()
	if up, err := s.query("max_over_time(up[1m])"); err != nil || len(up) != 1 || up[0].Value[1] != "1" {
		s.t.Errorf("up is %v, error %v", up, err)
	}
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
	names, err := ask[[]string](s, "label/__name__/values", url.Values{"match[]": {`{__name__=~"skein_.*"}`}})
	if err != nil || !slices.Equal(names, want) {
		s.t.Errorf("Prometheus has\n%q\nand the table\n%q\nerror %v", names, want, err)
	}
}

// selector is a metric of an expression with the labels that are asked for.
var selector = regexp.MustCompile(`\bskein_\w+(\{[^}]*\})?`)

// evaluates holds that no rule fails, and that there is what each asks for: one that asks for a label's value that nothing has never fires.
func (s *server) evaluates() {
	s.t.Helper()
	data, err := ask[struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}](s, "rules", nil)
	if err != nil || len(data.Groups) != 1 {
		s.t.Fatalf("%d groups of rules, error %v", len(data.Groups), err)
	}
	for _, rule := range data.Groups[0].Rules {
		if rule.Health != "ok" {
			s.t.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
		}
	}
	for _, rule := range alertRules(s.t) {
		for _, wanted := range selector.FindAllString(rule.Expr, -1) {
			if found, err := s.query(wanted); err != nil || len(found) == 0 {
				s.t.Errorf("%s asks for %s, which finds nothing, error %v", rule.Alert, wanted, err)
			}
		}
	}
}

// filled is a query of the board with its variables as Grafana fills them in.
func filled(t *testing.T, expr string) string {
	t.Helper()
	expr = strings.NewReplacer("$job", ".*", "$queue", ".*", "$__rate_interval", "10s").Replace(expr)
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
			if found, err := s.query(filled(s.t, target.Expr)); err != nil || len(found) == 0 {
				s.t.Errorf("%s shows nothing: %s, error %v", panel.Title, target.Expr, err)
			}
		}
	}
}

// labelValues is how the board asks for what a variable may be.
var labelValues = regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)

// offers holds that the board's variables have the values that there are.
func (s *server) offers() {
	s.t.Helper()
	offered := make(map[string][]string)
	for _, variable := range readBoard(s.t).Templating.List {
		asked, _ := variable.Query.(map[string]any)
		if asked == nil {
			continue // it asks for no labels
		}
		parts := labelValues.FindStringSubmatch(fmt.Sprint(asked["query"]))
		if parts == nil {
			s.t.Errorf("%s asks by %v, which the test doesn't know", variable.Name, asked)
			continue
		}
		values, err := ask[[]string](s, "label/"+parts[2]+"/values", url.Values{"match[]": {parts[1]}})
		if err != nil {
			s.t.Errorf("%s: %v", variable.Name, err)
		}
		offered[variable.Name] = values
	}
	want := map[string][]string{"job": {"shop"}, "queue": {"mails", "orders", "reports"}}
	if !maps.EqualFunc(offered, want, slices.Equal[[]string]) {
		s.t.Errorf("the board offers %v, want %v", offered, want)
	}
}

// The rules as they are published pass what their reader would check them with, and so do the queries of the board, as rules that
// record them.
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
	for path, n := range map[string]int{"../../docs/alerts.yaml": len(alertRules(t)), board: len(queries)} {
		said, err := exec.Command(program(t, "promtool"), "check", "rules", path).CombinedOutput()
		if want := fmt.Sprintf("SUCCESS: %d rules found", n); err != nil || !strings.Contains(string(said), want) {
			t.Errorf("%s: %v; %q is wanted of\n%s", path, err, want, said)
		}
	}
}
