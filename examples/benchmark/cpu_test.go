package main

import (
	"testing"
	"time"
)

func TestRedisCPU(t *testing.T) {
	const info = "# CPU\r\nused_cpu_sys:0.250000\r\nused_cpu_user:1.500000\r\n" +
		"used_cpu_sys_children:9.000000\r\nused_cpu_user_children:9.000000\r\n"
	if got, want := redisCPU(info), 1750*time.Millisecond; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := redisCPU("# Memory\r\n"); got != 0 {
		t.Errorf("got %v without the fields", got)
	}
}

func TestParseProcStat(t *testing.T) {
	const text = "42 (a ) b) S 7 42 42 0 -1 4194304 1 2 3 4 150 50 20 30 20 0 1 0 100 200 300\n"
	got, err := parseProcStat(text)
	want := procStat{name: "a ) b", parent: 7, own: 2 * time.Second, children: 500 * time.Millisecond}
	if got != want || err != nil {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{"", "42 (a", "42 (a) S 7 42", "42 (a) S 7 42 42 0 -1 4194304 1 2 3 4 x 50 20 30 20"} {
		if _, err := parseProcStat(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func TestCPUPerJob(t *testing.T) {
	before := cpuTime{client: time.Second, database: time.Second}

	tests := []struct {
		name  string
		after cpuTime
		want  string
	}{
		{"both are known", cpuTime{3 * time.Second, 2 * time.Second}, "200 + 100"},
		{"the database's is unknown", cpuTime{client: 3 * time.Second}, "200 + ?"},
		{"neither is known", cpuTime{}, ""},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.after.since(before).per(10_000).String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}

	if got := before.since(cpuTime{}); got != (cpuTime{}) {
		t.Errorf("got %v since an unknown time", got)
	}
}
