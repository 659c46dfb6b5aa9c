package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// flat returns a row whose values were all the same.
func flat(work, system, setting, unit string, v float64) row {
	return row{work, system, setting, unit, summary{v, v, v}, cpuPerJob{}}
}

func TestTable(t *testing.T) {
	rows := []row{
		flat("handle", "skein", "5 lanes", perSecond, 1_234_567),
		flat("handle", "asynq", "concurrency 5", perSecond, 100),
		{"handle", "asynq", "concurrency 10", perSecond, summary{1000, 999.5, 2000}, cpuPerJob{12.3, 4.5}},
		flat("latency", "skein", "p50", millis, 0.25),
		flat("latency", "asynq", "p50", millis, 500),
	}

	var out strings.Builder
	if err := writeTable(&out, rows); err != nil {
		t.Fatal(err)
	}
	want := `| work | system | setting | median | min … max | unit | CPU µs/job | ratio |
| --- | --- | --- | ---: | ---: | --- | ---: | ---: |
| handle | skein | 5 lanes | 1,234,567 | 1,234,567 … 1,234,567 | jobs/s |  | 1234.57 |
| handle | asynq | concurrency 5 | 100 | 100 … 100 | jobs/s |  |  |
| handle | asynq | concurrency 10 | 1,000 | 1,000 … 2,000 | jobs/s | 12.30 + 4.50 |  |
| latency | skein | p50 | 0.25 | 0.25 … 0.25 | ms |  | 2000.00 |
| latency | asynq | p50 | 500 | 500 … 500 | ms |  |  |
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestJSON(t *testing.T) {
	rows := []row{
		{"handle", "skein", "5 lanes", perSecond, summary{2, 1, 3.5}, cpuPerJob{12.3, 4.5}},
		flat("memory", "asynq", "1000000 queued", perJob, 500),
	}

	var out strings.Builder
	if err := writeJSON(&out, rows); err != nil {
		t.Fatal(err)
	}
	want := `{"work":"handle","system":"skein","setting":"5 lanes","median":2,"min":1,"max":3.5,"unit":"jobs/s","cpu_client":12.3,"cpu_database":4.5}
{"work":"memory","system":"asynq","setting":"1000000 queued","median":500,"min":500,"max":500,"unit":"bytes/job"}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestAgainst(t *testing.T) {
	skein := flat("w", "skein", "a", perSecond, 10)
	tests := []struct {
		name   string
		row    row
		others []row
		want   string
	}{
		{"the best of a rate is the highest", skein,
			[]row{flat("w", "asynq", "low", perSecond, 1), flat("w", "asynq", "high", perSecond, 2)}, "high"},
		{"the best of a cost is the lowest", flat("w", "skein", "a", perJob, 10),
			[]row{flat("w", "asynq", "high", perJob, 2), flat("w", "asynq", "low", perJob, 1)}, "low"},
		{"the same setting comes before the best", skein,
			[]row{flat("w", "asynq", "best", perSecond, 9), flat("w", "asynq", "a", perSecond, 1)}, "a"},
		{"without others it is the work's first row", flat("w", "skein", "second", perSecond, 9), []row{skein}, "a"},
		{"the first row has nothing to be held against", skein, nil, "none"},
		{"other works and units do not count", skein,
			[]row{flat("v", "asynq", "a", perSecond, 1), flat("w", "asynq", "a", millis, 1)}, "none"},
		{"others have no ratio", flat("w", "asynq", "a", perSecond, 1), []row{skein}, "none"},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := "none"
			if other, ok := against(tt.row, append(tt.others, tt.row)); ok {
				got = other.setting
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestFigure(t *testing.T) {
	tests := []struct {
		value float64
		want  string
	}{
		{0.1234, "0.12"}, {99.5, "99.50"}, {282.4, "282"}, {1000, "1,000"}, {123456, "123,456"}, {1234567, "1,234,567"},
	}
	for _, tt := range tests {
		if got := figure(tt.value); got != tt.want {
			t.Errorf("%v: got %s, want %s", tt.value, got, tt.want)
		}
	}
}

// counting returns a probe that counts how often it is measured, and fails at the end.
func counting(order *[]string, name string, once bool, failAt int) *probe {
	n := 0
	return &probe{name: name, once: once, measure: func(context.Context, *lab) ([]reading, error) {
		*order = append(*order, name)
		if n++; n == failAt {
			return nil, errors.New("out of order")
		}
		return []reading{{system: name, setting: "s", unit: perSecond, value: float64(n)}}, nil
	}}
}

func TestProbesTakeTurns(t *testing.T) {
	var order []string
	a, b, c := counting(&order, "a", false, 0), counting(&order, "b", true, 0), counting(&order, "c", false, 0)
	works := []work{{name: "one", probes: []*probe{a, b}}, {name: "two", probes: []*probe{b, c}}}
	l := &lab{log: io.Discard}

	measured, err := l.measure(t.Context(), probesOf(works), 3)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a b c a c a c", strings.Join(order, " ")); diff != "" {
		t.Error(diff)
	}

	want := []row{
		{"two", "b", "s", perSecond, summary{1, 1, 1}, cpuPerJob{}},
		{"two", "c", "s", perSecond, summary{2, 1, 3}, cpuPerJob{}},
	}
	if diff := cmp.Diff(
		want,
		rowsOf(works[1], measured),
		cmp.AllowUnexported(row{}, summary{}, cpuPerJob{}),
	); diff != "" {
		t.Error(diff)
	}
}

func TestWhatWasMeasuredBeforeAFailureIsKept(t *testing.T) {
	var order []string
	works := []work{{name: "one", probes: []*probe{counting(&order, "a", false, 0), counting(&order, "b", false, 1)}}}
	l := &lab{log: io.Discard}
	measured, err := l.measure(t.Context(), probesOf(works), 2)
	if err == nil || err.Error() != "b: out of order" {
		t.Errorf("got %v", err)
	}
	if rows := rowsOf(works[0], measured); len(rows) != 1 || rows[0].system != "a" {
		t.Errorf("got %v", rows)
	}
}
