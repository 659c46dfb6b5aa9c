package dashboard

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/wrong"
	"github.com/skeinq/skein/ports"
)

// figText is a figure as tests name it.
func figText(f *fig) string {
	var words []string
	for _, p := range f.Parts {
		words = append(words, strings.TrimSpace(p.Value+" "+p.Unit))
	}
	text := f.Name + ": " + strings.Join(words, " ")
	if f.Caption != "" {
		text += ", " + f.Caption
	}
	if f.Class != "" {
		text += " (" + f.Class + ")"
	}
	return text
}

// A figure has the queue that causes it in its caption, and is coloured only if a problem says why.
func TestFiguresSayWhy(t *testing.T) {
	late := queueRow{Name: "reports", Lag: 25 * time.Minute, Waiting: 10, Done: 1, badge: badgeOf(wrong.NobodyServes)}
	dying := queueRow{Name: "emails", Waiting: 5, Retries: 7, Dead: 718, Done: 0.6, Failed: 0.4, Running: 8}
	paused := queueRow{Name: "invoices", Lag: 3 * time.Hour, Waiting: 41, Paused: true, Retries: 1}
	s := &snapshot{view: wrong.View{
		Now:  epoch,
		Died: map[string]wrong.Deaths{"emails": {Count: 305}},
		Nodes: []inspect.Node{
			{Name: "a", Lanes: 48, Queues: []string{"emails"}, Status: ports.NodeStatus{Longest: []ports.RunningJob{{
				Shard: core.Shard{Queue: "emails"}, Began: core.InstantOf(epoch.Add(-582 * time.Second)),
			}}}},
			{Name: "gone", Lanes: 16, State: inspect.NodeGone},
		},
	}}
	s.wrong = []wrong.Line{
		{Kind: wrong.NobodyServes, Parts: []wrong.Line{{Kind: wrong.NobodyServes, Queue: "reports"}}},
		{Kind: wrong.Failing, Queue: "emails"},
		{Kind: wrong.NearMorgue, Queue: "emails"},
	}

	var day []inspect.MinuteStats
	for at := range 25 {
		m := inspect.MinuteStats{At: epoch.Truncate(time.Hour).Add(-time.Duration(at) * time.Hour)}
		m.Processed, m.Failed = 3600*8, 360
		day = append(day, m)
	}

	for name, tt := range map[string]struct {
		queue string
		rows  []queueRow
		want  string
	}{
		"all": {"", []queueRow{late, dying, paused}, "Oldest due job: 25 min, reports, not served (bad) | " +
			"Waiting: 56, 41 of them paused | Running: 8 of 48 lanes, longest 9 min 42 s | " +
			"Retrying: 8, 7 in emails (warn) | Dead: 718, +305 in 1 h, emails (bad) | " +
			"Done: 1.6 /s, a day ago 8.0/s | Failing: 20 %, a day ago 1.2 % (bad)"},
		"a queue without a problem": {"orders", []queueRow{{Name: "orders"}}, "Oldest due job: 0 s, no job is late | " +
			"Waiting: 0 | Running: 0 | Retrying: 0 | Dead: 0 | Done: 0 /s, a day ago 8.0/s | Failing: – %, a day ago 1.2 %"},
		"none": {"", nil, "Oldest due job: 0 s, no job is late | Waiting: 0 | Running: 0 of 48 lanes | Retrying: 0 (warn) | " +
			"Dead: 0 | Done: 0 /s, a day ago 8.0/s | Failing: –, a day ago 1.2 % (bad)"},
	} {
		figs := s.figs(tt.queue, tt.rows, day)
		var got []string
		for at := range figs {
			got = append(got, figText(&figs[at]))
		}
		want := strings.ReplaceAll(tt.want, "Failing: – %", "Failing: –")
		if text := strings.Join(got, " | "); text != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, text, want)
		}
	}

	figs := s.figs("", []queueRow{late}, day)
	for at := range figs {
		if has := figs[at].Line != ""; has != (figs[at].Name == "Done" || figs[at].Name == "Failing") {
			t.Errorf("%s has a line: %v", figs[at].Name, has)
		}
	}
	if figs = s.figs("", []queueRow{late}, nil); figs[5].Line != "" || figs[5].Caption != "" {
		t.Errorf("without a history there is %+v", figs[5])
	}
}

func TestLinesOfFigures(t *testing.T) {
	for want, values := range map[string][]float64{
		"":                         {-1, -1, 5},
		"M0 18L30 3L60 10.5":       {0, 10, 5},
		"M0 18L60 18":              {0, 0},
		"M0 3L20 3M60 18":          {4, 4, -1, 0},
		"M0 3L15 3L30 3L45 3L60 3": {7, 7, 7, 7, 7},
	} {
		if got := figLine(values); got != want {
			t.Errorf("%v is drawn as %q, want %q", values, got, want)
		}
	}
	for value, want := range map[float64]string{
		-1: "–", 0: "0 %", 0.0004: "< 0.1 %", 0.041: "4.1 %", 0.0994: "9.9 %", 0.0996: "10 %", 0.63: "63 %", 1: "100 %",
	} {
		if got := percent(value); got != want {
			t.Errorf("%v is %q, want %q", value, got, want)
		}
	}
}

// Lag bars have a logarithmic scale from a second to an hour. They are blue under a minute.
func TestLagBars(t *testing.T) {
	for _, tt := range []struct {
		lag   time.Duration
		level wrong.Level
		want  lagBar
	}{
		{0, wrong.Red, lagBar{}},
		{time.Millisecond, wrong.Note, lagBar{"M3 3h0.1", "d"}},
		{11 * time.Second, wrong.Amber, lagBar{"M3 3h12.7", "d"}},
		{59 * time.Second, wrong.Red, lagBar{"M3 3h25.9", "d"}},
		{time.Minute, wrong.Red, lagBar{"M3 3h26", "k4"}},
		{time.Minute, wrong.Note, lagBar{"M3 3h26", "k3"}},
		{time.Hour, wrong.Amber, lagBar{"M3 3h58", "k3"}},
		{9 * time.Hour, wrong.Hold, lagBar{"M3 3h58", "kh"}},
	} {
		if got := lagBarOf(tt.lag, tt.level); got != tt.want {
			t.Errorf("a lag of %v at %v is drawn as %v, want %v", tt.lag, tt.level, got, tt.want)
		}
	}
}

// The shards of a queue are cells by lag, at most 128 of them in two rows.
func TestShardsAsCells(t *testing.T) {
	for _, tt := range []struct {
		shards, width int
		small         bool
		want          string
	}{
		{1, 6, false, "k M0 6h5 | 1 shard"},
		{12, 72, false, "k M0 6h5 | k1 M6 6h47M60 6h5 | k2 M66 6h5 | kn M54 6h5 | 12 shards, the worst 11 s behind, 1 without an owner"},
		{32, 192, false, ""},
		{33, 51, true, ""},
		{128, 192, true, ""},
		{1000, 189, true, ""},
		{core.MaxShards, 192, true, ""},
	} {
		s := queueOf(tt.shards)
		c := cellsOf(s, "")
		var parts []string
		for _, p := range c.Paths {
			parts = append(parts, p.Class+" "+p.Path)
		}
		got := strings.Join(append(parts, c.Text), " | ")
		if c.Width != tt.width || c.Small != tt.small || tt.want != "" && got != tt.want {
			t.Errorf("%d shards are %d wide, small %v, drawn as\n%s, want %d, %v,\n%s",
				tt.shards, c.Width, c.Small, got, tt.width, tt.small, tt.want)
		}
	}
	s := queueOf(3)
	s.Queue.Paused = true
	if c := cellsOf(s, ""); c.Paths[1].Class != "kh" {
		t.Errorf("the shards of a paused queue are drawn as %v", c.Paths)
	}
}

// A long name is cut before its last eight characters, and the page has the whole.
func TestLongNamesAreCutBeforeTheirEnd(t *testing.T) {
	long := "eu-west-1." + strings.Repeat("x", 110) + ".live-01"
	h := newHouse(t, Options{})
	h.declare(long, 1)
	page := h.get("/")
	if want := `<span class="nm" title="` + long + `"><span>` + long[:120] + `</span><span>.live-01</span></span>`; !strings.Contains(page, want) {
		t.Errorf("no %s", want)
	}
	if strings.Contains(page, `<span class="nm" title="orders">`) {
		t.Error("a short name is cut")
	}
	for name, head := range map[string]string{
		"":                     "",
		"a name of fiftee":     "a name o",
		"a name of fifte":      "",
		"äöüäöüäöüäöü-live-01": "äöüäöüäöüäöü",
	} {
		if got := nameHead(name); got != head {
			t.Errorf("%q may be cut in %q, want %q", name, got, head)
		}
	}
}

// The first page fits into 10 kB, with a queue of 1,000 shards, other queues, and a day of history.
func TestTheFirstPageIsSmall(t *testing.T) {
	h := newHouse(t, Options{})
	h.declare("large", 1000)
	for n := range 1000 {
		h.push("large", fmt.Sprint(n), -time.Duration(n*n)*time.Millisecond, "p")
	}
	r := ports.RecordRequest{Owner: "o"}
	for at := range 24 * 60 {
		var s core.Stats
		s.Processed, s.Failed = uint64(100+at*7919%100), uint64(at*104729%20)
		s.ObserveWait(time.Duration(at*7919%100) * time.Millisecond)
		minute := core.InstantOf(h.clock().Truncate(time.Minute).Add(-time.Duration(at) * time.Minute))
		r.Records = append(r.Records, ports.Record{Queue: "large", Minute: minute, Stats: s})
	}
	for len(r.Records) > 0 {
		n := min(len(r.Records), ports.MaxRecords)
		if err := h.store.Record(t.Context(), ports.RecordRequest{Owner: "o", Records: r.Records[:n]}); err != nil {
			t.Fatal(err)
		}
		r.Records = r.Records[n:]
	}
	for n := range 6 {
		h.declare(fmt.Sprint("queue", n), 8)
	}

	q := request(http.MethodGet, "/", nil)
	q.Header.Set("Accept-Encoding", "gzip")
	w := answerOf(h.board, q)
	if _, err := gzip.NewReader(bytes.NewReader(w.Body.Bytes())); err != nil || w.Body.Len() > 10_000 {
		t.Errorf("the first page has %d bytes, 10,000 are the most (%v)", w.Body.Len(), err)
	}
	if page := h.get("/"); !regexp.MustCompile(`class="cells small"`).MatchString(page) || !strings.Contains(page, `class="plot"`) {
		t.Error("the page has no cells or charts")
	}
}
