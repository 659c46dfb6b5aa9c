package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChoose(t *testing.T) {
	const (
		onRedis = "handle handle-prefetch1 push-batch push-one latency io io-hot mixed start idle memory merge " +
			"hot-shard backlog ceiling"
		onPostgres = "handle handle-one push-batch push-one latency latency-apart io io-hot mixed start idle backlog"
	)

	tests := []struct {
		name, rival, wanted, want string
	}{
		{"all but the one on demand", asynqName, "", onRedis},
		{"some, in their own order", asynqName, "memory,handle", "handle memory"},
		{"the one on demand", asynqName, "backlog-huge", "backlog-huge"},
		{"an unknown one", asynqName, "handle,fly", `there is no work "fly"`},
		{"all but those on demand, on Postgres", riverName, "", onPostgres},
		{"one on demand, on Postgres", riverName, "churn", "churn"},
		{"one that only Redis has", riverName, "memory", `there is no work "memory"`},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			works, err := choose(allWorks(tt.rival), tt.wanted)
			var names []string
			for _, w := range works {
				names = append(names, w.name)
			}

			got := strings.Join(names, " ")
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSystemsTakeTurns(t *testing.T) {
	works, err := choose(allWorks(asynqName), "push-one")
	if err != nil {
		t.Fatal(err)
	}

	var names []string
	for _, p := range probesOf(works) {
		names = append(names, p.name)
	}

	want := []string{
		"push-one, skein, 1 goroutine", "push-one, asynq, 1 goroutine",
		"push-one, skein, 10 goroutines", "push-one, asynq, 10 goroutines",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutARivalOnlySkeinIsMeasured(t *testing.T) {
	for _, p := range probesOf(allWorks("none")) {
		if strings.Contains(p.name, asynqName) {
			t.Error(p.name)
		}
	}
}

func TestInfoField(t *testing.T) {
	const info = "# Memory\r\nused_memory:123\r\nused_memory_human:1K\r\ncmdstat_evalsha:calls=42,usec=7\r\n"
	tests := []struct {
		name string
		want int64
	}{
		{"used_memory:", 123}, {"cmdstat_evalsha:calls=", 42},
	}
	for _, tt := range tests {
		if got, err := infoField(info, tt.name); got != tt.want || err != nil {
			t.Errorf("%s: got %d, %v; want %d", tt.name, got, err, tt.want)
		}
	}
}

func TestInfoFieldThatIsAbsent(t *testing.T) {
	if _, err := infoField("# Memory\r\n", "used_memory:"); err == nil {
		t.Error("no error for a field that is not there")
	}
}

func TestCSVRate(t *testing.T) {
	const out = "\"test\",\"rps\",\"avg_latency_ms\"\n\"evalsha abc\",\"4321.50\",\"0.2\"\n"
	if got, err := csvRate(out); got != 4321.5 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := csvRate("Could not connect"); err == nil {
		t.Error("no error for what is no table")
	}
}
