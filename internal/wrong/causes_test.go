package wrong

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// lost is a server that is gone, under an owner id of its own.
func lost(name string, since time.Duration, queues ...string) inspect.Node {
	return inspect.Node{
		Name:      name,
		Owner:     "o-" + name,
		State:     inspect.NodeGone,
		Queues:    queues,
		ExpiresAt: ago(since),
	}
}

// left is a queue of a lost server, which has left jobs claimed in its first shard.
func left(name, server string, orphaned, waiting int64, since time.Duration) inspect.QueueStats {
	s := queue(name, 4, since, waiting)
	s.Claimed, s.Orphaned = orphaned, orphaned
	sh := &s.Shards[0]
	sh.Counts, sh.Owner, sh.ExpiresAt = s.Counts, "o-"+server, ago(since)
	return s
}

// One cause is one line, whatever follows from it.
func TestOneCauseIsOneLine(t *testing.T) {
	eleven := func(v *View) {
		var queues []string
		v.Nodes, v.Stats = nil, nil
		for n := range 10 {
			queues = append(queues, fmt.Sprintf("q%d", n))
		}
		for _, name := range queues {
			v.Stats = append(v.Stats, left(name, "blue", 2, 10, 25*time.Minute))
		}
		v.Nodes = []inspect.Node{lost("blue", 25*time.Minute, queues...)}
	}
	ofTwo := func(v *View) {
		v.Nodes = append(v.Nodes, lost("red", 2*time.Minute, "a", "b"), lost("green", 3*time.Minute, "b", "c"))
		v.Nodes[0].Queues = []string{"a", "b"}
		v.Stats = []inspect.QueueStats{
			left("a", "red", 1, 0, 2*time.Minute),
			left("b", "green", 2, 3, 3*time.Minute),
			left("c", "green", 0, 3, 3*time.Minute),
		}
		sh := &v.Stats[1].Shards[1]
		sh.Orphaned, sh.Owner, sh.ExpiresAt = 1, "o-red", ago(2*time.Minute)
	}

	for name, tt := range map[string]struct {
		view func(*View)
		want []string
	}{
		"a dead server and its ten queues": {eleven, []string{
			"nobody serves @blue since 25m0s: blue stopped responding: no server runs 10 queues (q0, q1, q2 and 7 more); " +
				"120 jobs wait, 20 of them left behind",
		}},
		"two dead servers that shared a queue": {ofTwo, []string{
			"nobody serves  since 3m0s: red, green stopped responding: no server runs c; 3 jobs wait; " +
				"3 jobs left in 2 queues (b, a), which the next owners of the shards recover",
		}},
		"two dead servers that shared none": {func(v *View) {
			ofTwo(v)
			v.Nodes[1].Queues, v.Stats[1].Shards[1].Orphaned = []string{"a"}, 0
		}, []string{
			"nobody serves @green since 3m0s: green stopped responding: no server runs c; 3 jobs wait; " +
				"2 jobs left in b, which the next owners of the shards recover",
			"owner gone a since 2m0s: 1 job left by red, which stopped responding: " +
				"the next owner of the shard recovers them",
		}},
		"queues whose servers are not known": {func(v *View) {
			eleven(v)
			v.Nodes = nil
		}, []string{
			"nobody serves  since 25m0s: No server runs 10 queues (q0, q1, q2 and 7 more): 120 jobs wait, " +
				"20 of them left by servers that stopped responding",
		}},
		"a queue that is late beside orphans for another reason": {func(v *View) {
			v.Nodes = append(v.Nodes, lost("red", 2*time.Minute, "orders"))
			v.Stats[0] = left("orders", "red", 2, 3, 2*time.Minute)
			for at := range 3 {
				v.Stats[0].Shards[at+1].Lag = 90 * time.Second
			}
		}, []string{
			"owner gone orders since 2m0s: 2 jobs left by red, which stopped responding: " +
				"the next owner of the shard recovers them; no server has 1 of its 4 shards since red stopped responding: " +
				"5 jobs wait there",
			"late orders since 2m0s: 2 min behind, 5 waiting",
		}},
		"another queue that is late beside one with orphans": {func(v *View) {
			v.Nodes[0].Queues = []string{"mail", "orders"}
			v.Nodes = append(v.Nodes, lost("red", 2*time.Minute, "orders"))
			v.Stats = []inspect.QueueStats{
				queue("mail", 4, 90*time.Second, 5),
				left("orders", "red", 2, 0, 2*time.Minute),
			}
		}, []string{
			"owner gone orders since 2m0s: 2 jobs left by red, which stopped responding: " +
				"the next owner of the shard recovers them",
			"hot shard mail/0 since 1m30s: Shard 0 is 1 min 30 s behind, half of the others 0 s or less",
		}},
		"a hot shard that has orphans": {func(v *View) {
			v.Nodes = append(v.Nodes, lost("red", 2*time.Minute, "orders"))
			v.Stats[0] = left("orders", "red", 2, 3, 2*time.Minute)
			v.Stats[0].Shards[1].Lag = 90 * time.Second
		}, []string{
			"owner gone orders since 2m0s: 2 jobs left by red, which stopped responding: " +
				"the next owner of the shard recovers them; shard 0 is 2 min behind, half of the others 0 s or less; " +
				"no server has 1 of its 4 shards since red stopped responding: 5 jobs wait there",
		}},
		"shards that no server has taken over": {func(v *View) {
			v.Nodes = append(v.Nodes, lost("red", 50*time.Second, "orders"))
			v.Stats[0] = left("orders", "red", 0, 3, 50*time.Second)
		}, []string{
			"unowned orders since 50s: No server has 1 of its 4 shards since red stopped responding: 3 jobs wait there",
		}},
		"a dead server whose queues have only schedules": {func(v *View) {
			v.Nodes = []inspect.Node{lost("red", 50*time.Minute, "orders", "mail")}
			v.Stats = []inspect.QueueStats{queue("orders", 1, 0, 0), queue("mail", 1, 0, 0)}
			v.Ticks = map[string]Ticks{"orders": {Since: ago(40 * time.Minute)}, "mail": {Since: ago(30 * time.Minute)}}
		}, []string{"ticks late @red since 40m0s: red stopped responding: ticks are late in 2 queues (orders, mail)"}},
		"a dead server from which nothing follows": {func(v *View) {
			v.Nodes = append(v.Nodes, lost("red", 50*time.Minute, "orders"), lost("red", 52*time.Minute, "orders"))
			v.Nodes[2].Owner = "another"
		}, []string{"server gone @red since 50m0s: This server stopped responding"}},
		"deaths and last retries of a failing queue": {func(v *View) {
			v.Stats[0].Dead, v.Stats[0].Retrying = 400, 7
			v.Recent["orders"] = minutes(30, 4, 6)
			v.Died["orders"] = Deaths{Count: 305, First: ago(50 * time.Minute), Last: ago(time.Minute),
				Error: "smtp: no such\n mailbox", Same: 300}
			v.LastRetries = map[string]LastRetry{"orders": {Count: 2, IDs: []string{"a", "b"}, Max: 25}}
		}, []string{
			"failing orders since 29m5s: 60 % of 100 jobs failed within 10 min; " +
				"305 died within the hour, most with “smtp: no such mailbox”; 2 jobs wait for the last retry",
		}},
		"deaths of one error": {func(v *View) {
			v.Stats[0].Dead = 4
			v.Died["orders"] = Deaths{Count: 3, First: ago(50 * time.Minute), Last: ago(time.Minute), Error: "e", Same: 3}
		}, []string{"morgue grows orders since 50m0s: 3 died within the last hour with “e”, the newest 1 min ago"}},
		"failures that began with a version": {func(v *View) {
			v.Nodes = append(v.Nodes, server("red", inspect.NodeDraining, "orders"), server("old", inspect.NodeGone, "mail"))
			v.Recent["orders"] = append(minutes(30, 9, 0)[:27], minutes(3, 1, 9)...)
			for at, version := range []string{"v2", "v1", "v3"} {
				v.Nodes[at].Version = version
				v.Nodes[at].StartedAt = ago(time.Duration(4+60*at) * time.Minute)
			}
			v.Nodes[0].StartedAt = ago(2 * time.Minute)
		}, []string{
			"failing orders since 2m5s: 29 % of 93 jobs failed within 10 min; began with v2",
			"server gone @old since 3m0s: This server stopped responding",
		}},
		"failures of the only version": {func(v *View) {
			v.Nodes[0].Version, v.Nodes[0].StartedAt = "v2", ago(3*time.Minute)
			v.Recent["orders"] = minutes(3, 1, 9)
		}, []string{"failing orders since 2m5s: 90 % of 30 jobs failed within 10 min"}},
	} {
		v := &View{
			Now:    now,
			Stats:  []inspect.QueueStats{queue("orders", 4, 0, 0)},
			Nodes:  []inspect.Node{server("live", inspect.NodeAlive, "orders")},
			Recent: map[string][]inspect.MinuteStats{},
			Died:   map[string]Deaths{},
		}
		tt.view(v)

		lines, _ := Now(v, Memory{})
		var got []string
		for at := range lines {
			got = append(got, nameOf(&lines[at]))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A line for several queues has the fault of each one, and names the servers that are gone.
func TestALineHasItsQueues(t *testing.T) {
	v := &View{Now: now, Nodes: []inspect.Node{lost("blue", time.Hour, "a", "b")}, Stats: []inspect.QueueStats{
		left("a", "blue", 2, 0, time.Minute),
		left("b", "blue", 0, 3, time.Minute),
	}}
	lines, _ := Now(v, Memory{})
	if len(lines) != 1 || !slices.Equal(lines[0].Owners, []string{"o-blue"}) {
		t.Fatalf("got %+v, want one line of the server o-blue", lines)
	}
	for queue, want := range map[string]string{
		"a": "No server runs this queue: 2 jobs wait, 2 of them left by blue, which stopped responding",
		"b": "No server runs this queue since blue stopped responding: 3 jobs wait",
		"c": "",
	} {
		got := ""
		if l := lines[0].Of(queue); l != nil {
			got = l.Text
		}
		if got != want {
			t.Errorf("of %s: %q, want %q", queue, got, want)
		}
	}
	if got := lines[0].Parts[0].Of("b"); got != &lines[0].Parts[0] {
		t.Errorf("a line of a queue is of that queue, got %v", got)
	}
}

// Red lines come before amber ones, and those before what an operator has stopped and notes.
func TestKindsAreInTheOrderOfTheirLevels(t *testing.T) {
	for k := NoAnswer; k < Versions; k++ {
		if k.Level() > (k + 1).Level() {
			t.Errorf("%v is before %v", k, k+1)
		}
	}
	for k, want := range map[Kind]Level{NoAnswer: Red, MorgueGrows: Red, TicksLate: Amber, ServerGone: Amber,
		Paused: Hold, Versions: Note} {
		if got := k.Level(); got != want {
			t.Errorf("the level of %v is %v, want %v", k, got, want)
		}
	}
	if got := fmt.Sprint(Red, Amber, Hold, Note); got != "red amber hold note" {
		t.Errorf("the levels are called %s", got)
	}
}

// Each line has a beginning, and so has each of its parts: that of the store, or when it was first
// seen, also if another fault joins it.
func TestEachLineHasABeginning(t *testing.T) {
	see := func(at time.Duration, queues int, before Memory) ([]Line, Memory) {
		v := &View{Now: now.Add(at), Nodes: []inspect.Node{server("blue", inspect.NodeAlive, "mail")}}
		for n := range queues {
			s := queue(fmt.Sprint("q", n), 1, 0, 0)
			s.Claimed = 1
			v.Stats = append(v.Stats, s)
		}
		return Now(v, before)
	}

	lines, memory := see(0, 1, Memory{})
	if len(lines) != 1 || !lines[0].Since.Equal(now) || !lines[0].Seen {
		t.Errorf("first: %+v, want since %v, first seen then", lines, now)
	}
	lines, _ = see(time.Minute, 2, memory)
	if len(lines) != 1 || !lines[0].Since.Equal(now) || len(lines[0].Parts) != 2 ||
		!lines[0].Parts[1].Since.Equal(now.Add(time.Minute)) {
		t.Errorf("joined: %+v, want since %v, and the second since a minute later", lines, now)
	}

	other, crash := queue("orders", 1, 0, 0), queue("mail", 1, 0, 0)
	other.Queue.Merge, crash.Claimed = core.MergeRule{Stays: core.Highest}, 1
	started := server("blue", inspect.NodeAlive, "orders", "mail")
	started.StartedAt, started.Status = ago(time.Hour), runs(0, 0, "", 0, 0)
	lines, _ = Now(&View{
		Now:      now,
		Stats:    []inspect.QueueStats{other, crash},
		Nodes:    []inspect.Node{started, lost("red", 9*time.Minute, "mail")},
		Suspects: map[string]Suspects{"mail": {Count: 1, ID: "a", Recoveries: 2}},
	}, Memory{})
	var got []string
	for _, l := range lines {
		got = append(got, fmt.Sprint(l.Kind, " ", now.Sub(l.Since), " ", l.Seen))
	}
	want := "crashes 9m0s false, other rule 1h0m0s false, server gone 9m0s false"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
}

// Many servers that are gone cost each queue little more than their number.
func TestManyServersThatAreGone(t *testing.T) {
	const servers, unserved = 400, 100
	v := &View{Now: ago(0), ShowID: func(_, id string) string { return id }}
	var queues []string
	for n := range unserved {
		queues = append(queues, fmt.Sprintf("q%03d", n))
		v.Stats = append(v.Stats, left(queues[n], "s7", 3, 10, time.Hour))
	}
	for n := range servers {
		v.Nodes = append(v.Nodes, lost(fmt.Sprint("s", n), time.Duration(n+60)*time.Second, queues...))
	}

	var lines []Line
	allocations := testing.AllocsPerRun(1, func() { lines, _ = Now(v, Memory{}) })
	if allocations > servers*unserved {
		t.Errorf("%v allocations for %d servers and %d queues", allocations, servers, unserved)
	}
	const want = "s0, s1, s2 and 397 more stopped responding: no server runs 100 queues (q000, q001, q002 and 97 more); " +
		"1,300 jobs wait, 300 of them left behind"
	if len(lines) != 1 || lines[0].Text != want || len(lines[0].Owners) != servers {
		t.Errorf("%d lines, the first: %s", len(lines), lines[0].Text)
	}
}

// A queue is late for its lost servers only if each of its late shards is without an owner that
// responds, or has orphans.
func TestALateShardWithAnOwnerIsNotAbandoned(t *testing.T) {
	owned := func(index int, lag time.Duration) inspect.ShardStats {
		sh := inspect.ShardStats{Shard: core.Shard{Queue: "orders", Index: index}, Owner: "o"}
		sh.ExpiresAt = now.Add(time.Minute)
		sh.Lag = lag
		return sh
	}
	none, expired, orphans := owned(0, late), owned(0, late), owned(0, late)
	none.Owner, expired.ExpiresAt, orphans.Orphaned = "", now, 1

	for name, tt := range map[string]struct {
		first inspect.ShardStats
		shard int
		want  bool
	}{
		"it has an owner":         {owned(0, late), -1, false},
		"it is the one":           {owned(0, late), 0, false},
		"another is the one":      {owned(0, late), 1, true},
		"it is hardly late":       {owned(0, late-1), -1, true},
		"it has no owner":         {none, -1, true},
		"its owner is gone":       {expired, -1, true},
		"it has jobs left behind": {orphans, -1, true},
	} {
		s := &inspect.QueueStats{Now: now, Shards: []inspect.ShardStats{tt.first, owned(1, 0)}}
		if got := abandoned(s, tt.shard); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// Failures began with the newest version whose first server of the queue started just before, if an
// older version was there.
func TestFailuresBeganWithAVersion(t *testing.T) {
	since := ago(10 * time.Minute)
	node := func(version, queue string, before time.Duration) inspect.Node {
		return inspect.Node{Version: version, Queues: []string{queue}, StartedAt: since.Add(-before)}
	}
	old := node("v1", "orders", time.Hour)
	for name, tt := range map[string]struct {
		nodes []inspect.Node
		want  string
	}{
		"a new one":       {[]inspect.Node{old, node("v2", "orders", time.Minute)}, "; began with v2"},
		"too long before": {[]inspect.Node{old, node("v2", "orders", versionStart)}, ""},
		"without a name":  {[]inspect.Node{old, node("", "orders", time.Minute)}, ""},
		"beside one without": {[]inspect.Node{
			old, node("v2", "orders", 2*time.Minute), node("", "orders", time.Minute),
		}, "; began with v2"},
		"of another queue": {[]inspect.Node{old, node("v2", "mail", time.Minute)}, ""},
		"its first was earlier": {[]inspect.Node{
			old, node("v2", "orders", time.Minute), node("v2", "orders", time.Hour),
		}, ""},
		"the other came later": {[]inspect.Node{node("v2", "orders", time.Minute), node("v3", "orders", -time.Hour)}, ""},
		"the newest of several": {[]inspect.Node{
			old, node("v2", "orders", 3*time.Minute), node("v4", "orders", time.Minute), node("v3", "orders", 2*time.Minute),
		}, "; began with v4"},
	} {
		r := &rules{View: &View{Nodes: tt.nodes}}
		for range 20 { // versions are compared in any order
			if got := r.beganWith(&inspect.QueueStats{Queue: inspect.Queue{Name: "orders"}}, since); got != tt.want {
				t.Errorf("%s: %q, want %q", name, got, tt.want)
			}
		}
	}
}

// The error of deaths is that of most, unless all are known to have it.
func TestDeathsNameTheirError(t *testing.T) {
	for want, d := range map[string]Deaths{
		"":                  {Count: 3},
		" with “e”":         {Count: 3, Same: 3, Error: "e"},
		", most with “e f”": {Count: 3, Same: 2, Error: "e\n f"},
		", most with “e”":   {Count: 3, Same: 3, More: true, Error: "e"},
	} {
		if got := d.mostly(); got != want {
			t.Errorf("%+v: %q, want %q", d, got, want)
		}
	}
	long := Deaths{Count: 1, Same: 1, Error: strings.Repeat("e", 5000)}
	if got := long.mostly(); len(got) > 500 {
		t.Errorf("a long error takes %d bytes", len(got))
	}
}

// A line for several queues is as bad as the worst of them, and weighs what they weigh together.
func TestAFoldedLineIsOfTheWorstKind(t *testing.T) {
	l := folded([]Line{
		{Kind: OwnerGone, Queue: "a", weight: 9, Since: ago(time.Minute)},
		{Kind: NobodyServes, Queue: "b", weight: 1, Since: ago(time.Hour)},
	})
	if l.Kind != NobodyServes || l.weight != 10 || !l.Since.Equal(ago(time.Hour)) || l.Parts[0].Queue != "b" {
		t.Errorf("%+v", l)
	}
}
