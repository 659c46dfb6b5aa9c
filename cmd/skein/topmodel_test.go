package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/wrong"
	"github.com/skeinq/skein/ports"
)

// topNow is when the frames of tests were seen, and topShown when they are shown.
func topNow() time.Time   { return time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC) }
func topShown() time.Time { return topNow().Add(3 * time.Second) }

// topOf is a page of a shop with troubles.
func topOf(width, height int) *topModel {
	line := func(name string, length, dead int64, lag time.Duration, done float64, servers int, paused bool) statLine {
		s := statLine{servers: servers, done: done, failed: done / 10}
		s.Queue.Name, s.Queue.Paused = name, paused
		s.Fresh, s.Dead, s.Lag, s.Processed, s.Claimed, s.Retrying = length, dead, lag, 123456789, 7, 0
		return s
	}
	hour := func(most uint64) (list []inspect.MinuteStats) {
		for minute := range 60 {
			list = append(list, inspect.MinuteStats{
				At:        topNow().Add(time.Duration(minute-60) * time.Minute),
				Processed: most * uint64(minute) / 59,
			})
		}
		return list
	}
	node := func(owner, name string, state inspect.NodeState, busy int) inspect.Node {
		return inspect.Node{
			Owner:     owner,
			Name:      name,
			Host:      "host-" + name,
			Version:   "v1.5.0",
			Lanes:     16,
			State:     state,
			StartedAt: topNow().Add(-26 * time.Hour),
			Status:    inspect.NodeStatus{Busy: busy, Running: busy, Shards: 12, Memory: 123 << 20},
		}
	}
	f := top{
		lines: []statLine{
			line("orders", 1234, 0, 0, 1234.5, 2, false),
			line("mails", 48, 5000, 3*time.Minute, 12.34, 2, false),
			line("reports", 7, 0, time.Hour, 0, 0, false),
			line("a.queue.whose.name.is.so.long.that.it.takes.more.than.its.column.has.room.for.世界", 0, 1, 0, -1, 2, true),
		},
		nodes: []inspect.Node{
			node("A", "web-1", inspect.NodeAlive, 9),
			node("B", "web-2", inspect.NodeDraining, 16),
			node("C", "web-3", inspect.NodeGone, 0),
		},
		wrong: []wrong.Line{
			{
				Kind:  wrong.NobodyServes,
				Queue: "reports",
				Text:  "no server runs this queue: 7 jobs wait",
				Since: topNow().Add(-time.Hour),
			},
			{
				Kind:  wrong.Late,
				Queue: "mails",
				Text:  "3 min behind and growing, 48 waiting \x1b[31m",
				Since: topNow().Add(-3 * time.Minute),
			},
		},
		seen: topNow(), recent: map[string][]inspect.MinuteStats{"orders": hour(90), "mails": hour(3)},
	}

	return &topModel{frame: topFrame{f, topShown()}, width: width, height: height, interval: time.Second}
}

// press passes keys to a page, and their results.
func press(m *topModel, keys ...string) (quit bool) {
	for _, key := range keys {
		k := tea.Key{Text: key, Code: []rune(key)[0]}
		switch key {
		case "tab":
			k = tea.Key{Code: tea.KeyTab}
		case "enter":
			k = tea.Key{Code: tea.KeyEnter}
		case "esc":
			k = tea.Key{Code: tea.KeyEscape}
		case "backspace":
			k = tea.Key{Code: tea.KeyBackspace}
		case "down":
			k = tea.Key{Code: tea.KeyDown}
		case "ctrl+c":
			k = tea.Key{Code: 'c', Mod: tea.ModCtrl}
		}

		_, do := m.Update(tea.KeyPressMsg(k))
		if do == nil {
			continue
		}

		msg := do()
		if _, quit = msg.(tea.QuitMsg); quit {
			return true
		}
		m.Update(msg)
	}
	return false
}

// The page fits terminals of 80, 120 and 200 columns. The screens after keys are compared with
// testdata/top.
func TestTopAtEachWidth(t *testing.T) {
	for _, width := range []int{80, 120, 200} {
		for name, keys := range map[string][]string{
			"first":      nil,
			"by-waiting": {"s", "s"},
			"servers":    {"tab", "down"},
			"filtered":   {"/", "m", "a", "enter"},
			"asked":      {"down", "p"},
			"help":       {"?"},
		} {
			m := topOf(width, 24)
			press(m, keys...)

			lines := m.page()
			for _, line := range lines {
				if columnsOfText(line) > width || strings.Contains(line, "\x1b") {
					t.Errorf("%s: a line takes %d of %d columns: %q", name, columnsOfText(line), width, line)
				}
			}
			if len(lines) > 24 {
				t.Errorf("%s: %d lines of 24", name, len(lines))
			}

			var b strings.Builder
			for _, line := range lines {
				b.WriteString(strings.TrimRight(line, " ") + "\n")
			}

			file := filepath.Join("testdata", "top", fmt.Sprintf("%s-%d.txt", name, width))
			if *update {
				must(t, os.MkdirAll(filepath.Dir(file), 0o755))
				must(t, os.WriteFile(file, []byte(b.String()), 0o644))
			}

			want, err := os.ReadFile(file)
			must(t, err)
			if string(want) != b.String() {
				t.Errorf("%s is, at %d columns:\n%s\nwant:\n%s", name, width, b.String(), want)
			}
		}
	}
}

// Nothing is paused, resumed or drained before y; any other key does nothing.
func TestTopAsksBeforeItActs(t *testing.T) {
	store := memory.New(memory.Options{})
	declaredIn(t, store, "mails", "orders")
	_, err := store.Announce(t.Context(), ports.AnnounceRequest{
		Node: ports.Node{Owner: "A", Name: "web-1"},
		TTL:  time.Hour,
	})
	must(t, err)

	i := inspect.New(store, inspect.Options{})
	seen := &top{inspector: i, answerTime: time.Minute}
	m := &topModel{
		width:  80,
		height: 24,
		act:    func(do func(context.Context, *inspect.Inspector) error) error { return do(t.Context(), i) },
	}

	look := func() (paused, draining bool) {
		seen.look(t.Context())
		m.frame = topFrame{*seen, time.Now()}
		for at := range seen.lines {
			if seen.lines[at].Queue.Name == "orders" {
				paused = seen.lines[at].Queue.Paused
			}
		}
		return paused, seen.nodes[0].State == inspect.NodeDraining
	}

	look()

	for _, step := range []struct {
		keys             []string
		paused, draining bool
		note             string
	}{
		{[]string{"down", "p"}, false, false, ""},
		{[]string{"n"}, false, false, "nothing was changed"},
		{[]string{"p", "y"}, true, false, "queue orders is paused"},
		{[]string{"r", "q"}, true, false, "nothing was changed"},
		{[]string{"r", "y"}, false, false, "queue orders is resumed"},
		{[]string{"d", "d"}, false, false, "nothing was changed"},
		{[]string{"d", "y"}, false, true, "server web-1 drains"},
		{[]string{"u", "y"}, false, false, "server web-1 takes shards again"},
	} {
		if press(m, step.keys...) {
			t.Fatalf("%v ended it", step.keys)
		}

		if paused, draining := look(); paused != step.paused || draining != step.draining || m.note != step.note {
			t.Errorf("after %v: paused %v, draining %v, %q; want %+v", step.keys, paused, draining, m.note, step)
		}
	}

	m.act = func(func(context.Context, *inspect.Inspector) error) error {
		return errors.New("the store\x1b is away")
	}
	press(m, "d", "y")
	if page := strings.Join(m.page(), "\n"); !strings.Contains(page, `the store\x1b is away`) {
		t.Errorf("it does not say what failed:\n%s", page)
	}
}

func TestTopEndsByItsKeys(t *testing.T) {
	for _, keys := range [][]string{{"q"}, {"ctrl+c"}, {"/", "q", "ctrl+c"}, {"p", "ctrl+c"}, {"?", "x", "q"}} {
		if !press(topOf(80, 24), keys...) {
			t.Errorf("%v did not end it", keys)
		}
	}
	if m := topOf(80, 24); press(m, "/", "q", "x", "backspace", "enter") || m.filter != "q" {
		t.Errorf("the filter is %q", m.filter)
	} else if press(m, "esc"); m.filter != "" {
		t.Errorf("esc left the filter %q", m.filter)
	}
}

// The selected entry stays selected when another look moves it to another row, and the clock runs
// between looks.
func TestTopKeepsItsSelectionAndShowsItsAge(t *testing.T) {
	m := topOf(80, 24)
	press(m, "down", "down")
	was := m.selected[paneQueues]
	f := m.frame
	f.lines = append([]statLine{{}}, f.lines...)
	f.lines[0].Queue.Name, f.lines[0].Lag = "worst", 24*time.Hour
	m.Update(topSeen{f})
	if m.at(paneQueues) != 3 || m.selected[paneQueues] != was {
		t.Errorf("%q is in row %d", m.selected[paneQueues], m.at(paneQueues))
	}
	m.Update(topTick(topNow().Add(70 * time.Second)))
	m.frame.old = true
	if head := m.page()[0]; !strings.Contains(head, "03:05:10 UTC  seen 1 min 10 s ago: the store does not answer") {
		t.Errorf("it begins with %q", head)
	}
	m.colour = true
	if head := m.page()[0]; !strings.HasPrefix(head, "\x1b[31m") {
		t.Errorf("old figures are not red: %q", head)
	}
}
