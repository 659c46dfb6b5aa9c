package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLeaseTally(t *testing.T) {
	type held map[string]int
	tests := []struct {
		name  string
		nodes []held
		dead  []int
		want  bool
	}{
		{"nobody has any", []held{{}, {}, {}}, nil, false},
		{"a queue has no lease", []held{{"a": 2}, {"a": 2}, {"a": 1}}, nil, false},
		{"each has as many, or one more", []held{{"a": 2, "b": 1}, {"a": 2, "b": 2}, {"a": 1, "b": 2}}, nil, true},
		{"one has too many", []held{{"a": 3, "b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 2}}, nil, false},
		{"one is missing", []held{{"a": 2, "b": 1}, {"a": 2, "b": 2}, {"a": 1, "b": 1}}, nil, false},
		{
			"those of a dead node are missing",
			[]held{{"a": 2, "b": 1}, {"a": 2, "b": 2}, {"a": 1, "b": 2}},
			[]int{1},
			false,
		},
		{"those that live have all", []held{{"a": 3, "b": 2}, {"a": 2, "b": 2}, {"a": 2, "b": 3}}, []int{1}, true},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tally := newLeaseTally(fleetSetting{nodes: len(tt.nodes), queues: 2, shards: 5})
			for _, n := range tt.dead {
				tally.bury(n)
			}

			at := time.Unix(0, 0)
			for node, held := range tt.nodes {
				for queue, n := range held {
					tally.change(node, queue, n, at)
				}
			}

			if since, ok := tally.even(); ok != tt.want || ok && !since.Equal(at) {
				t.Errorf("even: %t since %v, want %t", ok, since, tt.want)
			}
		})
	}
}

func TestCallCounter(t *testing.T) {
	var c callCounter
	for _, method := range []string{"Turn", "Renew", "Turn"} {
		c.add(method)
	}

	type call struct {
		Method string
		Count  int64
	}
	var got []call
	for _, x := range c.take() {
		got = append(got, call{x.unit, x.count})
	}

	if diff := cmp.Diff([]call{{"Renew", 1}, {"Turn", 2}}, got); diff != "" {
		t.Error(diff)
	}
	if again := c.take(); len(again) != 0 {
		t.Errorf("got %v after all were taken", again)
	}
}
