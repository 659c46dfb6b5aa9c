package dashboard

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/ports"
)

// queueOf is a queue. Each shard lags by its index in seconds and has as many jobs; each tenth has
// no owner.
func queueOf(shards int) *inspect.QueueStats {
	s := &inspect.QueueStats{Queue: inspect.Queue{Name: "q", Shards: shards}, Now: epoch}
	for index := range shards {
		sh := inspect.ShardStats{Shard: core.Shard{Queue: "q", Index: index}}
		sh.Lag, sh.Fresh = time.Duration(index)*time.Second, int64(index)
		if index%10 != 9 {
			sh.Owner, sh.ExpiresAt = fmt.Sprintf("o%d", index%3), epoch.Add(time.Second)
		}
		s.Shards = append(s.Shards, sh)
	}
	return s
}

func counts(m *shardMap) string {
	var list []string
	for at, l := range m.Levels {
		list = append(list, fmt.Sprintf("%s %d", l.Label, l.Count))
		for _, d := range m.Drawings {
			if got := squares(d.Paths[at].Path); got != l.Count || d.Paths[at].Class != l.Class {
				list = append(list, fmt.Sprintf("%s: drawn %d as %s", d.Class, got, d.Paths[at].Class))
			}
		}
	}
	return strings.Join(list, ", ")
}

// squares counts the marks of a path: a row of squares is one stroke, and so is a bar.
func squares(path string) (n int) {
	for stroke := range strings.SplitSeq(path, "M") {
		var x, y, length int
		if _, err := fmt.Sscanf(stroke, "%d %dh%d", &x, &y, &length); err == nil {
			n += (length + 2) / pitch
		} else if stroke != "" {
			n++
		}
	}
	return n
}

func TestMapOfShards(t *testing.T) {
	for _, tt := range []struct {
		shards  int
		by      string
		bars    bool
		group   int
		noOwner int
		want    string
	}{
		{1, "lag", true, 1, 0, "nothing due 1, under 1 s 0, under 10 s 0, under 1 min 0, under 10 min 0, more 0"},
		{32, "lag", true, 1, 3, "nothing due 1, under 1 s 1, under 10 s 9, under 1 min 21, under 10 min 0, more 0"},
		{33, "", false, 1, 3, "nothing due 1, under 1 s 1, under 10 s 9, under 1 min 22, under 10 min 0, more 0"},
		{1000, "waiting", false, 1, 100, "none 1, 1 to 9 9, 10 to 99 90, 100 to 999 900, 1,000 to 9,999 0, more 0"},
		{1000, "running", false, 1, 100, "none 1000, 1 to 9 0, 10 to 99 0, 100 to 999 0, 1,000 to 9,999 0, more 0"},
		{100, "owner", false, 1, 10, "nobody 10, zero 30, one 30, o2 30"},
		{4096, "lag", false, 1, 409, "nothing due 1, under 1 s 1, under 10 s 9, under 1 min 50, under 10 min 540, more 3495"},
		{4097, "lag", false, 8, 409, "nothing due 0, under 1 s 0, under 10 s 1, under 1 min 6, under 10 min 68, more 438"},
	} {
		m := shardMapOf(queueOf(tt.shards), tt.by, map[string]string{"o0": "zero", "o1": "one"})
		if m.Drawings[0].Bars != tt.bars || m.Group != tt.group || m.NoOwner != tt.noOwner || counts(m) != tt.want {
			t.Errorf("%d by %q: bars %v, groups of %d, %d without an owner: %s\nwant %s",
				tt.shards, tt.by, m.Drawings[0].Bars, m.Group, m.NoOwner, counts(m), tt.want)
		}
	}
	s := queueOf(100)
	s.Shards = s.Shards[:90]
	if m := shardMapOf(s, "lag", nil); m.Away != 10 || strings.Count(m.Drawings[1].Unreached, "M") != 10 {
		t.Errorf("%d are away", m.Away)
	}
	s = queueOf(64)
	for at := range s.Shards {
		s.Shards[at].Owner, s.Shards[at].ExpiresAt = fmt.Sprintf("o%02d", at%12), epoch.Add(time.Second)
	}
	if m := shardMapOf(s, "owner", nil); len(m.Levels) != maxOwners+2 || m.Levels[maxOwners+1].Label != "others" ||
		m.Levels[maxOwners+1].Count != 15 {
		t.Errorf("twelve owners are %s", counts(m))
	}
	// A row of 20 squares is narrow enough for a phone; a map that is narrower anyway is drawn once.
	for shards, classes := range map[int]string{
		1:    "",
		18:   "",
		19:   "wide narrow",
		32:   "wide narrow",
		33:   "wide narrow",
		4097: "wide narrow",
	} {
		var got []string
		for _, d := range shardMapOf(queueOf(shards), "lag", nil).Drawings {
			got = append(got, d.Class)
			if d.Class != "wide" && d.Width+mapLeft > 372 {
				t.Errorf("the map of %d shards is %d pixels wide on a phone", shards, d.Width+mapLeft)
			}
		}
		if strings.Join(got, " ") != classes {
			t.Errorf("%d shards are drawn as %q, want %q", shards, got, classes)
		}
	}
	if m := shardMapOf(queueOf(core.MaxShards), "lag", nil); (core.MaxShards+m.Group-1)/m.Group > maxSquares {
		t.Errorf("the largest queue is drawn in groups of %d", m.Group)
	}
}

// figure is a number of a path.
var figure = regexp.MustCompile(`-?\d+(\.\d+)?`)

func TestChartsStayWithinTheirFrames(t *testing.T) {
	var minutes []inspect.MinuteStats
	for at := range 96 {
		m := inspect.MinuteStats{
			At:        epoch.Truncate(quarter).Add(-time.Duration(95-at) * quarter),
			Processed: uint64(at * at),
			Failed:    uint64(at),
		}
		m.Wait.Observe(time.Duration(at) * time.Second)
		minutes = append(minutes, m)
	}
	nodes := []inspect.Node{
		{Version: "v1", StartedAt: epoch.Add(-48 * time.Hour)},
		{Version: "v2", StartedAt: epoch.Add(-3 * time.Hour)},
		{Version: "v2", StartedAt: epoch.Add(-2 * time.Hour)},
	}
	d := dayOf(append(minutes, minutes...), nodes, epoch)
	done, wait := d.throughput(), d.waits()
	if len(done.Deploys) != 1 || done.Deploys[0].Version != "v2" {
		t.Errorf("new versions: %v", done.Deploys)
	}
	if len(done.Rows) < 24 || len(done.Rows) > 25 || len(wait.Rows) != len(done.Rows) {
		t.Errorf("%d and %d hours", len(done.Rows), len(wait.Rows))
	}
	total := 0
	for _, row := range done.Rows {
		total += len(row.Cells[0])
	}
	paths := []string{done.Bars[0].Path, done.Bars[1].Path, wait.Lines[0].Path, wait.Lines[1].Path}
	for _, p := range paths {
		if p == "" {
			t.Error("a chart is empty")
		}
		for part := range strings.SplitSeq(p, "M") {
			at := figure.FindAllString(part, 2)
			if len(at) < 2 {
				continue
			}
			var x, y float64
			fmt.Sscan(at[0], &x)
			fmt.Sscan(at[1], &y)
			if x < 0 || x >= float64(done.Points) || y < 0 || y > chartHeight {
				t.Fatalf("a chart draws at %s,%s", at[0], at[1])
			}
		}
	}
	if last := strings.SplitAfter(wait.Lines[0].Path, "M"); len(last) != 2 {
		t.Errorf("a wait that was known all day is drawn in %d pieces", len(last)-1)
	}
	if s := sparkOf(nil, epoch); s.Done != "" || s.Text != "0 done, 0 failed within an hour" {
		t.Errorf("an empty hour is %+v", s)
	}
}

// A wait of milliseconds and one of an hour can both be read on one scale, whose texts don't stand
// in one another.
func TestScalesOfCharts(t *testing.T) {
	of := func(waits ...time.Duration) *chart {
		var minutes []inspect.MinuteStats
		for at, wait := range waits {
			m := inspect.MinuteStats{At: epoch.Add(-time.Duration(at) * time.Hour), Processed: 1}
			m.Wait.Observe(wait)
			minutes = append(minutes, m)
		}
		return dayOf(minutes, nil, epoch).waits()
	}
	texts := func(c *chart) string {
		var list []string
		y := float64(chartHeight)
		for _, s := range c.Scale {
			if s.Text != "" {
				if y-s.Y < 14 {
					t.Errorf("%s stands at %v, the text before at %v", s.Text, s.Y, y)
				}
				list, y = append(list, s.Text), s.Y
			}
		}
		return strings.Join(list, ", ")
	}
	for want, waits := range map[string][]time.Duration{
		"1 ms, 10 ms, 100 ms, 1 s":               {2 * time.Millisecond},
		"1 ms, 10 ms, 100 ms, 1 s, 10 s, 10 min": {2 * time.Millisecond, 5 * time.Minute},
		"1 ms, 100 ms, 10 s, 10 min, 10 h":       {time.Millisecond, 40 * time.Hour},
	} {
		if got := texts(of(waits...)); got != want {
			t.Errorf("the scale of waits of %v is %q, want %q", waits, got, want)
		}
	}
	if c := of(); !c.Empty || c.Lines[0].Path != "" {
		t.Errorf("a day without a run is %+v", c)
	}
	var y float64
	fmt.Sscanf(of(2*time.Millisecond, time.Hour).Lines[1].Path, "M%f %f", new(float64), &y)
	if y > chartBase-5 || y < chartTop {
		t.Errorf("a wait of 2 ms beside one of an hour is drawn at %v", y)
	}
	hour := hourOf([]inspect.MinuteStats{
		{At: epoch.Add(-30 * time.Minute), Processed: 60, Failed: 30}, {At: epoch.Add(-2 * time.Hour), Processed: 1000},
	}, nil, epoch).throughput()
	if hour.Above != "60" || len(hour.Rows) != 1 || hour.Base != chartTop+math.Round((chartBase-chartTop)*3/5.0) {
		t.Errorf("an hour of 60 done and 30 failed is at most %s, has %d rows and its line at %v",
			hour.Above, len(hour.Rows), hour.Base)
	}
}

// Done and failed have one scale, with figures on both sides of the line.
func TestDoneAndFailedHaveOneScale(t *testing.T) {
	for _, tt := range []struct {
		done, failed uint64
		scale        string
	}{
		{12, 68, "20 0 20 40 60 80"},
		{15_817, 15_871, "20,000 10,000 0 10,000 20,000"},
		{194, 16, "200 150 100 50 0 50"},
		{60, 0, "60 40 20 0"},
		{0, 3, "1 0 1 2 3"},
		{0, 0, "0.01 0"},
	} {
		c := hourOf([]inspect.MinuteStats{{At: epoch.Add(-30 * time.Minute), Processed: tt.done, Failed: tt.failed}},
			nil, epoch).throughput()
		var texts []string
		for at, s := range c.Scale {
			texts = append(texts, s.Text)
			if at > 0 && s.Y-c.Scale[at-1].Y < 20 {
				t.Errorf("%d done and %d failed: %q stands at %v, the text above at %v",
					tt.done, tt.failed, s.Text, s.Y, c.Scale[at-1].Y)
			}
		}
		if got := strings.Join(texts, " "); got != tt.scale {
			t.Errorf("the scale of %d done and %d failed is %q, want %q", tt.done, tt.failed, got, tt.scale)
		}
		if want := fmt.Sprintf(
			"%s done, %s failed a minute", rate(float64(tt.done)), rate(float64(tt.failed)),
		); len(c.Slots) != 60 || c.Slots[29].Text != want {
			t.Errorf("the step of %d slots says %q, want %q", len(c.Slots), c.Slots[29].Text, want)
		}
	}
	c := hourOf([]inspect.MinuteStats{{At: epoch.Add(-30 * time.Minute), Processed: 40, Failed: 40}}, nil,
		epoch).throughput()
	var up, down float64
	fmt.Sscanf(regexp.MustCompile(`v(-?[\d.]+)`).FindString(c.Bars[0].Path), "v%f", &up)
	fmt.Sscanf(regexp.MustCompile(`v(-?[\d.]+)`).FindString(c.Bars[1].Path), "v%f", &down)
	if up >= 0 || down != -up {
		t.Errorf("as many done as failed are drawn with heights of %v and %v", up, down)
	}
}

// The axis and what is read at a step have one unit, whatever the length of a step.
func TestAxisAndReadingHaveOneUnit(t *testing.T) {
	last := epoch.Truncate(quarter).Add(-quarter)
	c := dayOf([]inspect.MinuteStats{
		{At: last.Add(time.Minute), Processed: 6000, Failed: 30}, {At: last.Add(2 * time.Minute), Processed: 270},
	}, nil, epoch).throughput()
	if c.Unit != "a minute" || c.Above != "418" {
		t.Errorf("the axis is %s, at most %s; want 418 a minute", c.Unit, c.Above)
	}
	if got, want := c.Slots[94].Text, "418 done, 2.0 failed a minute"; got != want {
		t.Errorf("the step is read as %q, want %q", got, want)
	}
	if c.Bars[0].Last != "418" || c.Bars[1].Last != "2.0" {
		t.Errorf("the legend has %q and %q", c.Bars[0].Last, c.Bars[1].Last)
	}
	if row := c.Rows[0]; c.Heads[0] != "done in 1 h" || row.Cells[0] != "6,270" {
		t.Errorf("the table has %v of %v", row.Cells, c.Heads)
	}
}

// A month has a bar for each day of UTC, with the jobs of the whole day, and dates that no page writes in
// another zone.
func TestAMonthIsDrawnByDay(t *testing.T) {
	today := epoch.Truncate(inspect.Day)
	var days []inspect.MinuteStats
	for ago := range 40 {
		d := inspect.MinuteStats{At: today.Add(-time.Duration(ago) * inspect.Day), Processed: 1000, Failed: 2}
		d.Wait.Observe(time.Second)
		days = append(days, d)
	}

	w := monthOf(days, nil, epoch)
	c := w.throughput()
	if c.Unit != "a day" || c.Above != "1,000" || c.Points != 31 || len(c.Slots) != 31 || len(c.Rows) != 31 {
		t.Errorf("the axis is %s, at most %s, with %d points, %d slots and %d rows",
			c.Unit, c.Above, c.Points, len(c.Slots), len(c.Rows))
	}
	if got, want := c.Slots[30], (slot{30, today, "1,000 done, 2 failed a day"}); got != want {
		t.Errorf("the last step is %+v, want %+v", got, want)
	}
	if c.Clock || c.Layout != dateLayout || len(c.Times) < 6 {
		t.Errorf("the times are written as %q, in a local zone %t: %v", c.Layout, c.Clock, c.Times)
	}
	for _, m := range c.Times {
		if m.Text != m.At.Format("2 Jan") || m.At != m.At.Truncate(inspect.Day) {
			t.Errorf("the axis has %q at %v", m.Text, m.At)
		}
	}
	if c.Heads[0] != "done in 1 d" || c.Rows[0].Cells[0] != "1,000" || c.Bars[0].Last != "1,000" {
		t.Errorf("the table has %v of %v, and the legend %s", c.Rows[0].Cells, c.Heads, c.Bars[0].Last)
	}
	if wait := w.waits(); wait.Rows[30].Cells[0] == "" || wait.Lines[0].Gaps != "" {
		t.Errorf("the waits are %+v", wait.Rows[30])
	}
	if c := monthOf(nil, nil, epoch).throughput(); !c.Empty || c.Words != "30 days" {
		t.Errorf("a month without a job is %+v", c)
	}
}

// A mark has the version and the time at its left. Marks whose labels would overlap share one.
func TestMarksOfVersionsAreLabelled(t *testing.T) {
	for name, tt := range map[string]struct {
		versions string
		at       []float64
		want     string
	}{
		"one":                  {"v1.5.0", []float64{97.2}, "97.2 left v1.5.0"},
		"no room at the left":  {"v1.5.0", []float64{3}, "3 right v1.5.0"},
		"apart":                {"v1.4.2 v1.5.0", []float64{30, 97.2}, "30 left v1.4.2, 97.2 left v1.5.0"},
		"near":                 {"v1.4.2 v1.5.0", []float64{80, 90}, "80 left v1.4.2, v1.5.0, 90"},
		"three that are near":  {"v1 v2 v3", []float64{80, 85, 90}, "80 left 3 versions, 85, 90"},
		"near, then apart":     {"v1 v2 v3", []float64{20, 25, 90}, "20 left v1, v2, 25, 90 left v3"},
		"a pseudo-version":     {"v0.0.0-20260101120000-abcdefabcdef", []float64{90}, "90 left v0.0.0-20…efabcdef"},
		"no version, no label": {"", nil, ""},
	} {
		var marks []deploy
		for n, version := range strings.Fields(tt.versions) {
			marks = append(marks, deploy{X: tt.at[n], Version: version})
		}
		var got []string
		for _, m := range labelled(marks) {
			text := fmt.Sprint(m.X)
			if m.Label != "" {
				text += map[bool]string{true: " right ", false: " left "}[m.Right] + m.Label
			}
			got = append(got, text)
		}
		if text := strings.Join(got, ", "); text != tt.want {
			t.Errorf("%s: %s, want %s", name, text, tt.want)
		}
	}
}

// A mark is where the process started, by its own announcement.
func TestAMarkIsAtTheStartOfTheProcess(t *testing.T) {
	h := newHouse(t, Options{})
	server := func(name, version string, started time.Duration) ports.Node {
		return ports.Node{Owner: name, Name: name, Version: version, Queues: []string{"orders"},
			Status: ports.NodeStatus{StartedAt: core.InstantOf(h.now.Add(-started))}}
	}
	h.announce(server("old", "v1", 10*time.Hour))
	h.announce(server("new", "v2", 3*time.Hour))
	h.record("orders", 10*time.Minute, 600, 30)
	if page := h.get("/"); !strings.Contains(page, `first server of v2, 00:04 UTC`) ||
		strings.Contains(page, "first server of v1") {
		t.Errorf("the marks are %v", regexp.MustCompile(`first server of [^<]*`).FindAllString(page, -1))
	}
}

// A store in which nothing has run has words instead of axes.
func TestAChartOfNothingHasWords(t *testing.T) {
	h := newHouse(t, Options{})
	page := h.get("/")
	says(t, page, "Done and failed a minute, in 24 h Nothing has run in 24 h.", "Wait from due to start, in 24 h, log scale Nothing has run")
	if strings.Contains(page, `class="plot"`) {
		t.Error("there are axes")
	}
	says(t, h.get("/queue?q=orders"), "Nothing has run in the last hour.")
}

// A line of waits goes from point to point, and is dashed where values are unknown.
func TestWaitsAreJoined(t *testing.T) {
	var minutes []inspect.MinuteStats
	for _, ago := range []int{30, 29, 10, 9} {
		m := inspect.MinuteStats{At: epoch.Add(-time.Duration(ago) * time.Minute), Processed: 1}
		m.Wait.Observe(time.Duration(ago) * time.Millisecond)
		minutes = append(minutes, m)
	}
	c := hourOf(minutes, nil, epoch).waits()
	line := c.Lines[0]
	if strings.Count(line.Path, "M") != 2 || strings.Count(line.Path, "L") != 2 || strings.Count(line.Gaps, "M") != 1 {
		t.Errorf("two times two minutes are drawn as %q, the gap as %q", line.Path, line.Gaps)
	}
	if c.Slots[29].Text == "nothing started" || c.Slots[31].Text != "nothing started" {
		t.Errorf("the steps say %q and %q", c.Slots[29].Text, c.Slots[31].Text)
	}
}

func TestTextsOfPages(t *testing.T) {
	for text, want := range map[string]string{
		"plain":    "plain",
		"a\u202eb": `a\u202eb`,
		"é 😀":      "é 😀",
		"a\tb":     `a\u0009b`,
		"\ufeff":   `\ufeff`,
	} {
		if got := shown(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"one":                    "one",
		"one\ntwo":               "one …",
		" one \n":                "one",
		strings.Repeat("x", 300): strings.Repeat("x", 200) + " …",
		"":                       "",
	} {
		if got := line(text); got != want {
			t.Errorf("%q is the line %q, want %q", text, got, want)
		}
	}
	for perSecond, want := range map[float64]string{
		0:      "0",
		0.001:  "< 0.01",
		0.5:    "0.50",
		3.14:   "3.1",
		1234.5: "1,235",
	} {
		if got := rate(perSecond); got != want {
			t.Errorf("%v a second is %q, want %q", perSecond, got, want)
		}
	}
	if got := (when{epoch.Add(time.Minute), epoch}).Text(); got != "in 1 min" {
		t.Error(got)
	}
}

func TestPayloadsAreShownAsTheyMayBeRead(t *testing.T) {
	of := func(data string) *payload { return &payload{service.Payload{Data: []byte(data)}} }
	for _, tt := range []struct {
		data, full, brief string
		editable          bool
	}{
		{`{"b":1,"a":[1,2]}`, "{\n  \"b\": 1,\n  \"a\": [\n    1,\n    2\n  ]\n}", `{"b":1,"a":[1,2]}`, true},
		{`{"n":12345678901234567890.123}`, "{\n  \"n\": 12345678901234567890.123\n}", `{"n":12345678901234567890.123}`, true},
		{"plain <b>\u202e\nx", "plain <b>\\u202e\nx", `plain <b>\u202e x`, true},
		{"a\r\nb", "a\\u000d\nb", "a b", false},
		{"", "", "", true},
		{"\xff\x00", "00000000  ff 00                                             |..|\n", "binary: ff00", false},
	} {
		p := of(tt.data)
		if p.Full() != tt.full || p.Brief() != tt.brief || p.Editable() != tt.editable {
			t.Errorf("%q is shown as %q, in a line as %q, editable %v", tt.data, p.Full(), p.Brief(), p.Editable())
		}
	}
	large := of(strings.Repeat("é", 100_000))
	if full := large.Full(); len(full) > maxShown+100 || !strings.HasSuffix(full, "… of 200000 bytes") ||
		large.Editable() {
		t.Errorf("a large payload is shown with %d bytes", len(full))
	}
	if binary := of(strings.Repeat("\xff", 100_000)).Full(); !strings.HasSuffix(binary, "… of 100000 bytes") {
		t.Errorf("a large binary payload ends with %q", binary[len(binary)-40:])
	}
}
