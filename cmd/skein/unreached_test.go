package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/skeintest"
)

// While the list of servers can't be read, their number is unknown: a dash or null, and not 0.
func TestStatsShowUnknownServersAsUnknown(t *testing.T) {
	store := skeintest.NewFailingStore(memory.New(memory.Options{}))
	declaredIn(t, store, "orders")
	store.Fail(skeintest.Fault{Method: "Nodes"})

	code, out, said := runOn(t, store, "stats", "orders")
	if row := rowAfterHeads(out); code != exitFailed || row["SERVERS"] != "-" ||
		row["LENGTH"] != "0" || row["UNOWNED"] != "1" {
		t.Errorf("exit code %d: %v\n%s%s", code, row, out, said)
	}
	for _, command := range [][]string{{"stats", "orders", "-o", "jsonl"}, {"queue", "show", "orders", "-o", "json"}} {
		code, out, said := runOn(t, store, command...)
		var shown map[string]any
		must(t, json.Unmarshal([]byte(out), &shown))
		if servers, there := shown["servers"]; code != exitFailed || !there || servers != nil {
			t.Errorf("%v: exit code %d: %s%s", command, code, out, said)
		}
	}
}

// rowAfterHeads returns the first row of a table without empty cells, by heading.
func rowAfterHeads(table string) map[string]string {
	lines := strings.Split(table, "\n")
	heads, cells, row := strings.Fields(lines[0]), strings.Fields(lines[1]), map[string]string{}
	for at := range min(len(heads), len(cells)) {
		row[heads[at]] = cells[at]
	}
	return row
}

// The counts of a queue are unknown while none of its shards can be read. A rate is unknown if the
// look before has read other shards.
func TestCountsOfUnreachedShardsAreUnknown(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	stats := func(second int, shards int, processed int64) []inspect.QueueStats {
		s := inspect.QueueStats{
			Queue: inspect.Queue{Name: "orders", Shards: 2},
			Now:   now.Add(time.Duration(second) * time.Second),
		}
		for index := range shards {
			s.Shards = append(s.Shards, inspect.ShardStats{Shard: core.Shard{Queue: "orders", Index: index}})
		}
		s.Processed = processed
		return []inspect.QueueStats{s}
	}

	var before []statLine
	for at, tt := range []struct {
		shards        int
		processed     int64
		length, rates any
	}{
		{2, 100, int64(0), nil},
		{2, 110, int64(0), 10.0},
		{0, 0, nil, nil},
		{2, 120, int64(0), nil},
		{1, 70, int64(0), nil},
		{1, 75, int64(0), 5.0},
	} {
		lines := linesOf(stats(at, tt.shards, tt.processed), nil, true, before)
		shown := map[string]any{}
		for _, c := range watchColumns {
			shown[c.name] = c.of(&lines[0])
		}

		if shown["length"] != tt.length || shown["done_per_second"] != tt.rates ||
			(shown["unowned"] == nil) != (tt.shards == 0) {
			t.Errorf("look %d: %v, want length %v and done %v", at, shown, tt.length, tt.rates)
		}

		before = lines
	}
}

// However narrow a terminal is, stats shows which queues are paused.
func TestPausedFitsEachTerminal(t *testing.T) {
	lines := []statLine{
		{QueueStats: inspect.QueueStats{
			Queue: inspect.Queue{Name: strings.Repeat("long", 4), Paused: true, Shards: 64},
		}},
	}
	lines[0].Shards = make([]inspect.ShardStats, 64)
	lines[0].Fresh, lines[0].Lag = 123456789, 400*time.Hour
	lines[0].Processed, lines[0].Dead = 123456789, 123456

	for _, width := range []int{20, 80, 120} {
		cols := fittingWidth(watchColumns, lines, width)
		names := map[string]bool{}
		for _, c := range cols {
			names[c.name] = true
		}

		if !names["paused"] || width > 20 && widthOf(cols, lines) > width {
			t.Errorf("at %d columns it takes %d: %v", width, widthOf(cols, lines), names)
		}
	}
}
