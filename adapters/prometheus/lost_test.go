package prometheus

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.yaml.in/yaml/v3"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/wrong"
	"github.com/skeinq/skein/ports"
)

const (
	lostJobs = 12
	lostTTL  = 10 * time.Second
)

// loseServer pushes jobs to a queue of one shard. A server announces itself, claims all of them
// and is never heard of again.
func loseServer(t *testing.T, store ports.ShardStore) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	shard := core.Shard{Queue: "orders"}
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(err)
	var entries []core.Entry
	for n := range lostJobs {
		entries = append(entries, core.Entry{ID: fmt.Sprint(n), Payload: core.Payload{Data: []byte("p")}})
	}
	_, err = store.Push(t.Context(), ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: entries})
	must(err)
	_, err = store.Announce(t.Context(), ports.AnnounceRequest{
		Node: ports.Node{Owner: "lost", Name: "blue", Queues: []string{"orders"}},
		TTL:  lostTTL,
	})
	must(err)
	lease, err := store.Acquire(t.Context(), ports.AcquireRequest{
		Shard:      shard,
		Shards:     1,
		Generation: 1,
		Owner:      "lost",
		Attempt:    1,
		TTL:        lostTTL,
	})
	must(err)
	turn, err := store.Turn(t.Context(), ports.TurnRequest{
		Lease:  ports.Lease{Shard: shard, Owner: "lost", Token: lease.Token},
		TTL:    lostTTL,
		Node:   "blue",
		Number: 1,
		Want:   core.MaxTurnJobs,
	})
	must(err)
	if len(turn.Claims) != lostJobs {
		t.Fatalf("the server has claimed %d jobs, want %d", len(turn.Claims), lostJobs)
	}
}

// A server claims all jobs of its queue and is lost. Once its lease is over, the jobs wait for a
// server in an inspector's view, in the list of faults, and in the collector's metrics, by which
// SkeinNobodyServes fires and no other alert does.
func TestALostServerRaisesOneAlert(t *testing.T) {
	var passed atomic.Int64
	epoch := time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC)
	store := memory.New(memory.Options{Clock: func() time.Time { return epoch.Add(time.Duration(passed.Load())) }})
	loseServer(t, store)
	passed.Store(int64(lostTTL + time.Minute))

	inspector := inspect.New(store, inspect.Options{})
	stats, err := inspector.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if q := stats[0]; q.Waiting() != lostJobs || q.Length() != 0 || q.Lag != time.Minute {
		t.Errorf("%d jobs wait, %d of them in the queue, lag %v; want %d, 0 and %v",
			q.Waiting(), q.Length(), q.Lag, lostJobs, time.Minute)
	}
	nodes, err := inspector.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lines, _ := wrong.Now(&wrong.View{Now: stats[0].Now, Stats: stats, Nodes: nodes}, wrong.Memory{})
	if want := "No server runs this queue: 12 jobs wait, " +
		"12 of them left by blue, which stopped responding"; len(lines) == 0 || lines[0].Text != want {
		t.Errorf("wrong is %+v, want first %q", lines, want)
	}

	exported := constant(gather(t, newCollector(t, store)))
	for series, want := range map[string]string{
		`skein_queue_lag_seconds{queue="orders"}`:           "60x70",
		`skein_queue_jobs{queue="orders",state="orphaned"}`: "12x70",
		`skein_queue_jobs{queue="orders",state="fresh"}`:    "0x70",
		`skein_queue_nodes{queue="orders"}`:                 "0x70",
	} {
		if exported[series] != want {
			t.Errorf("%s is %q, want %q", series, exported[series], want)
		}
	}
	rules := alertRules(t)
	test := newUnitTest("a lost server", nil)
	test.Series = nil
	test.add(exported)
	fires := &firing{
		alert:   "SkeinNobodyServes",
		labels:  ofOrders,
		summary: "12 jobs of queue orders wait, and no server serves it.",
	}
	test.expect("1m", rules, nil)
	test.expect("2m", rules, fires)
	test.expect("1h", rules, fires)
	promtoolTests(t, []*unitTest{test})
}

// constant returns the series of a scrape, each with its value for 70 minutes.
func constant(families map[string]*dto.MetricFamily) values {
	all := make(values)
	for name, family := range families {
		for _, m := range family.Metric {
			labels := ""
			for at, l := range m.Label {
				if at > 0 {
					labels += ","
				}
				labels += fmt.Sprintf("%s=%q", l.GetName(), l.GetValue())
			}
			all[name+"{"+labels+"}"] = fmt.Sprintf("%vx70", number(m))
		}
	}
	return all
}

// promtoolTests runs unit tests of the rules as they are published.
func promtoolTests(t *testing.T, tests []*unitTest) {
	t.Helper()
	published, err := filepath.Abs("../../docs/reference/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(map[string]any{
		"rule_files":          []string{published},
		"evaluation_interval": "1m",
		"tests":               tests,
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tests.yaml")
	write(t, path, text)
	if said, err := exec.Command(program(t, "promtool"), "test", "rules", path).CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, said)
	}
}
