package prometheus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for an event that must come. It is no bound on speed.
const patience = 3 * time.Minute

// await waits until holds returns nil, and fails the test with its last error after patience.
func await(t *testing.T, holds func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(tick) {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// compressed is how many times shorter the durations of alerts are in tests. The shortest range, 5
// minutes, is then 15 s, in which the collector looks at the store three times.
const compressed = 20

// tick is how long tests rest between two looks at such an event.
const tick = 250 * time.Millisecond

// How often Prometheus scrapes and evaluates rules, and how long a scrape may take, which can't be
// longer: a scrape that fails ends the alerts that wait.
const (
	scrapeInterval     = 4 * time.Second
	scrapeTimeout      = scrapeInterval
	evaluationInterval = time.Second
)

// program returns where a program is; without it the test is skipped, but in CI, where nothing may
// be missing.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if ci, _ := strconv.ParseBool(os.Getenv("CI")); ci {
		t.Fatalf("this is CI, where nothing may be missing: %v", err)
	}
	t.Skip(err)
	return ""
}

// durations are the parts of rules that are shortened in tests: ranges in brackets, and how long
// an alert waits.
var durations = regexp.MustCompile(`(\[|\bfor: )(\d+)([smh])\b`)

// compress makes the durations of rules shorter.
func compress(t *testing.T, rules []byte) []byte {
	t.Helper()
	return durations.ReplaceAllFunc(rules, func(text []byte) []byte {
		part := durations.FindSubmatch(text)
		d, err := time.ParseDuration(string(part[2]) + string(part[3]))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Appendf(nil, "%s%dms", part[1], (d / compressed).Milliseconds())
	})
}

// runWhileRead runs a command until the command ends or the script's input does, which it also
// does when the test is killed.
const runWhileRead = `
exec 3<&0
"$@" 3<&- </dev/null & server=$!
{ read -r _; kill -9 $server; } <&3 & watch=$!
wait $server
kill $watch 2>/dev/null
`

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// server is a Prometheus that runs.
type server struct {
	t   *testing.T
	url string
}

// startPrometheus starts one that scrapes a URL and has the rules.
func startPrometheus(t *testing.T, target string, rules []byte) *server {
	t.Helper()
	path, dir := program(t, "prometheus"), t.TempDir()
	at, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: %v, scrape_timeout: %v, evaluation_interval: %v}\n"+
		"rule_files: [rules.yaml]\n"+
		"scrape_configs: [{job_name: shop, static_configs: [{targets: [%q]}]}]\n",
		scrapeInterval, scrapeTimeout, evaluationInterval, at.Host)
	for name, text := range map[string][]byte{"prometheus.yaml": []byte(config), "rules.yaml": rules} {
		write(t, filepath.Join(dir, name), text)
	}
	for range 3 { // another may have taken the port
		if s := tryPrometheus(t, path, dir); s != nil {
			return s
		}
	}
	t.Fatal("Prometheus does not start")
	return nil
}

// tryPrometheus returns nil if it ended before it was ready.
func tryPrometheus(t *testing.T, path, dir string) *server {
	t.Helper()
	address := freeAddress(t)
	var said bytes.Buffer
	process := exec.Command("sh", "-c", runWhileRead, "sh", path,
		"--config.file="+filepath.Join(dir, "prometheus.yaml"),
		"--storage.tsdb.path="+t.TempDir(),
		"--web.listen-address="+address,
		"--log.level=warn",
	)
	process.Stdout, process.Stderr = &said, &said
	input, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = process.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = input.Close()
		<-ended
		if t.Failed() {
			t.Log(said.String())
		}
	})
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(tick) {
		select {
		case <-ended:
			return nil
		default:
		}
		if r, err := http.Get("http://" + address + "/-/ready"); err == nil {
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return &server{t, "http://" + address}
			}
		}
	}
	t.Fatal("Prometheus never gets ready")
	return nil
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// ask returns the data of an answer of Prometheus's API.
func ask[T any](s *server, path string, query url.Values) (data T, err error) {
	s.t.Helper()
	r, err := http.Get(s.url + "/api/v1/" + path + "?" + query.Encode())
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	var answer struct {
		Status, Error string
		Data          T
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		s.t.Fatal(err)
	}
	if answer.Status != "success" {
		err = errors.New(strings.TrimSpace(answer.Error))
	}
	return answer.Data, err
}

// sample is a series that a query finds, with its time and value.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

// query returns an expression's present result.
func (s *server) query(expr string) ([]sample, error) {
	s.t.Helper()
	data, err := ask[struct{ Result []sample }](s, "query", url.Values{"query": {expr}})
	return data.Result, err
}

// alert is an alert that is pending or fires.
type alert struct {
	State               string
	Labels, Annotations map[string]string
}

// subject is an alert's name and the queue or check that it is about.
func subject(labels map[string]string) string {
	return strings.TrimSpace(labels["alertname"] + " " + labels["queue"] + labels["check"])
}

// firing returns the alerts that fire, by subject.
func (s *server) firing() map[string]alert {
	s.t.Helper()
	data, err := ask[struct{ Alerts []alert }](s, "alerts", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	found := make(map[string]alert)
	for _, a := range data.Alerts {
		if a.State == "firing" {
			found[subject(a.Labels)] = a
		}
	}
	return found
}
