package wrong

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// queue is a queue with n shards, all owned. Only the first has jobs that lag.
func queue(name string, shards int, lag time.Duration, waiting int64) inspect.QueueStats {
	s := inspect.QueueStats{Queue: inspect.Queue{Name: name, Shards: shards}, Now: now}
	s.Fresh, s.Lag = waiting, lag
	if waiting > 0 {
		s.Oldest = ago(lag)
	}
	for index := range shards {
		sh := inspect.ShardStats{
			Shard:     core.Shard{Queue: name, Index: index},
			Owner:     "o",
			ExpiresAt: now.Add(5 * time.Second),
		}
		if index == 0 {
			sh.Counts = s.Counts
		}
		s.Shards = append(s.Shards, sh)
	}
	return s
}

// orphans is a queue of one shard that has nothing but n orphans, whose lease has been over for a
// while.
func orphans(n int64, gone time.Duration) inspect.QueueStats {
	s := queue("orders", 1, 0, 0)
	s.Claimed, s.Orphaned, s.Lag = n, n, gone
	s.Shards[0].Counts, s.Shards[0].ExpiresAt = s.Counts, ago(gone)
	return s
}

func server(name string, state inspect.NodeState, queues ...string) inspect.Node {
	return inspect.Node{Name: name, Owner: "o", State: state, Queues: queues, ExpiresAt: ago(3 * time.Minute)}
}

// minutes are the last n minutes, with the given numbers of done and failed jobs in each.
func minutes(n int, done, failed uint64) (list []inspect.MinuteStats) {
	for at := n - 1; at >= 0; at-- {
		list = append(list, inspect.MinuteStats{
			At:        now.Truncate(time.Minute).Add(-time.Duration(at) * time.Minute),
			Processed: done,
			Failed:    failed,
		})
	}
	return list
}

// nameOf is a line as tests name it.
func nameOf(l *Line) string {
	text := fmt.Sprintf("%v %s", l.Kind, l.Queue)
	if l.Shard >= 0 {
		text += fmt.Sprintf("/%d", l.Shard)
	}
	if l.Server != "" {
		text += "@" + l.Server
	}
	text += " since " + now.Sub(l.Since).String() + ": " + l.Text
	if l.ID != "" {
		text += " (" + l.ID + ")"
	}
	return text
}

// runs is the status of a server that runs a job of orders, and as many batches as given.
func runs(most, busy int, id string, shard int, since time.Duration) ports.NodeStatus {
	return ports.NodeStatus{
		Queues: []ports.QueueStatus{{Queue: "orders", MaxRunning: most, Busy: busy}},
		Longest: []ports.RunningJob{{
			Shard: core.Shard{Queue: "orders", Index: shard},
			ID:    id,
			Began: core.InstantOf(ago(since)),
		}},
	}
}

// rate is how long a rate of orders allows no start, and how long it is stopped.
func rate(count int, per, wait, stopped time.Duration) map[string]inspect.RateWait {
	return map[string]inspect.RateWait{
		"orders": {Rate: core.Rate{Count: count, Per: per}, Wait: wait, Stopped: stopped},
	}
}

var tests = []struct {
	name string
	view func(*View)
	want []string
}{
	{"a queue that is well", func(*View) {}, nil},
	{"no queue", func(v *View) { v.Stats = nil }, nil},
	{
		"a store that is silent",
		func(v *View) { v.Silence = "dial tcp: refused" },
		[]string{"no answer  since 0s: The store does not answer: dial tcp: refused"},
	},
	{
		"a shard that is away",
		func(v *View) { v.Unreached = []core.Shard{{Queue: "orders", Index: 3}} },
		[]string{"part away orders since 0s: Shard 3 can't be reached; the figures don't include it"},
	},
	{
		"shards of two queues that are away",
		func(v *View) {
			v.Unreached = []core.Shard{{Queue: "a", Index: 3}, {Queue: "b", Index: 1}, {Queue: "b", Index: 2}}
		},
		[]string{"part away  since 0s: 3 shards of 2 queues (b, a) can't be reached; the figures don't include them"},
	},
	{
		"shards of a queue that are away",
		func(v *View) { v.Unreached = []core.Shard{{Queue: "b", Index: 1}, {Queue: "b", Index: 2}} },
		[]string{"part away b since 0s: 2 shards can't be reached, the first is 1; the figures don't include them"},
	},
	{"checks", func(v *View) {
		v.Checks = []inspect.Check{
			{Name: "clock", Status: inspect.CheckOK, Value: "fine"},
			{Name: "slow", Status: inspect.CheckUnknown, Value: "no right"},
			{Name: "memory", Status: inspect.CheckWarn, Value: "91 %", Advice: "give it more"},
			{Name: "policy", Server: "h:1", Status: inspect.CheckFail, Value: "allkeys-lru"},
		}
	}, []string{"check fails @h:1 since 0s: policy: allkeys-lru", "check warns  since 0s: memory: 91 %. give it more"}},
	{
		"nobody serves it",
		func(v *View) { v.Nodes = nil; v.Stats[0] = queue("orders", 1, 9*time.Minute, 12345) },
		[]string{"nobody serves orders since 9m0s: No server runs this queue: 12,345 jobs wait"},
	},
	{"a server that serves another queue", func(v *View) {
		v.Nodes[0].Queues = []string{"emails"}
		v.Stats[0] = queue("orders", 1, time.Second, 1)
	}, []string{"nobody serves orders since 1s: No server runs this queue: 1 job waits"}},
	{"a server that drains serves nothing new", func(v *View) {
		v.Nodes[0].State, v.Nodes[0].ExpiresAt = inspect.NodeDraining, now.Add(5*time.Second)
		v.Stats[0] = queue("orders", 1, time.Second, 1)
	}, []string{"nobody serves orders since 1s: No server runs this queue: 1 job waits"}},
	{
		"the last server is gone",
		func(v *View) {
			v.Nodes = []inspect.Node{server("blue", inspect.NodeGone, "orders")}
			v.Stats[0] = queue("orders", 1, time.Hour, 4)
			v.Stats[0].Claimed, v.Stats[0].Orphaned = 2, 2
		},
		[]string{
			"nobody serves orders since 3m0s: " +
				"No server runs this queue since blue stopped responding: 6 jobs wait, " +
				"2 of them left by a server that stopped responding",
		},
	},
	{
		"the last server is lost with all jobs claimed",
		func(v *View) {
			v.Nodes = []inspect.Node{server("blue", inspect.NodeGone, "orders")}
			v.Stats[0] = orphans(600, 2*time.Minute)
		},
		[]string{
			"nobody serves orders since 2m0s: " +
				"No server runs this queue: 600 jobs wait, 600 of them left by blue, which stopped responding",
		},
	},
	{
		"orphans that a server of the queue has not taken over",
		func(v *View) { v.Stats[0] = orphans(600, 20*time.Minute) },
		[]string{
			"owner gone orders since 20m0s: 600 jobs left by a server that stopped responding: " +
				"the next owner of the shard recovers them",
		},
	},
	{"orphans of a paused queue", func(v *View) {
		v.Nodes, v.Stats[0] = nil, orphans(600, 2*time.Minute)
		v.Stats[0].Queue.Paused = true
	}, []string{"paused orders since 0s: Paused; 600 jobs wait"}},
	{"orphans beside jobs that are late", func(v *View) {
		v.Stats[0] = orphans(600, 2*time.Minute)
		v.Stats[0].Fresh, v.Stats[0].Shards[0].Fresh = 1, 1
	}, []string{
		"owner gone orders since 2m0s: 600 jobs left by a server that stopped responding: " +
			"the next owner of the shard recovers them; 2 min behind, 601 waiting; " +
			"no server has 1 of its 1 shards: 601 jobs wait there",
	}},
	{"nobody serves what is claimed alone", func(v *View) {
		v.Nodes = []inspect.Node{
			server("blue", inspect.NodeGone, "orders"),
			server("blue", inspect.NodeGone, "orders"),
			server("red", inspect.NodeGone, "emails"),
		}
		v.Nodes[1].ExpiresAt, v.Nodes[2].ExpiresAt = ago(4*time.Minute), ago(time.Minute)
		v.Stats[0].Claimed, v.Stats[0].Oldest = 2, now.Add(time.Hour)
	}, []string{
		"nobody serves orders since 3m0s: No server runs this queue since blue stopped responding: no job waits, 2 claimed",
		"server gone @red since 1m0s: This server stopped responding",
	}},
	{"nobody serves what is paused", func(v *View) {
		v.Nodes, v.Stats[0] = nil, queue("orders", 1, time.Hour, 3)
		v.Stats[0].Queue.Paused = true
	}, []string{"paused orders since 0s: Paused; 3 jobs wait"}},
	{"nobody serves what is empty", func(v *View) { v.Nodes = nil }, nil},
	{"nobody serves what is not due", func(v *View) { v.Nodes = nil; v.Stats[0] = queue("orders", 1, 0, 3) }, nil},
	{"servers are not known", func(v *View) {
		v.Nodes, v.NodesUnknown = nil, true
		v.Stats[0] = queue("orders", 1, time.Second, 3)
	}, nil},
	{
		"claimed by a server that is gone",
		func(v *View) {
			v.Stats[0].Claimed, v.Stats[0].Orphaned = 7, 7
			v.Stats[0].Shards[0].Orphaned, v.Stats[0].Shards[0].ExpiresAt = 7, ago(4*time.Second)
		},
		[]string{
			"owner gone orders since 4s: 7 jobs left by a server that stopped responding: " +
				"the next owner of the shard recovers them",
		},
	},
	{
		"claimed by servers of which the first is gone for longest",
		func(v *View) {
			v.Stats[0].Claimed, v.Stats[0].Orphaned = 7, 7
			for at, gone := range []time.Duration{4 * time.Second, 6 * time.Second, 2 * time.Second, time.Hour} {
				v.Stats[0].Shards[at].Orphaned, v.Stats[0].Shards[at].ExpiresAt = 2, ago(gone)
			}
			v.Stats[0].Shards[3].Orphaned = 0
		},
		[]string{
			"owner gone orders since 6s: 7 jobs left by a server that stopped responding: " +
				"the next owner of the shard recovers them",
		},
	},
	{
		"orphans whose lease is not known",
		func(v *View) {
			v.Stats[0].Claimed, v.Stats[0].Orphaned = 2, 2
			v.Stats[0].Shards[0].Orphaned, v.Stats[0].Shards[0].ExpiresAt = 1, ago(4*time.Second)
			v.Stats[0].Shards[1].Orphaned, v.Stats[0].Shards[1].Owner, v.Stats[0].Shards[1].ExpiresAt =
				1, "", time.Time{}
		},
		[]string{
			"owner gone orders since 4s: 2 jobs left by a server that stopped responding: " +
				"the next owner of the shard recovers them",
		},
	},
	{"late for a shorter time than nothing has ended", func(v *View) {
		v.Stats[0] = queue("orders", 2, 2*time.Minute, 300)
		v.Recent["orders"] = minutes(40, 5, 0)[:30]
	}, []string{"late orders since 2m0s: 2 min behind, 300 waiting"}},
	{"not moving", func(v *View) {
		v.Stats[0] = queue("orders", 2, 20*time.Minute, 300)
		v.Recent["orders"] = minutes(40, 5, 0)[:30]
	}, []string{"not moving orders since 20m0s: No job has ended for 5 min: 300 jobs wait"}},
	{
		"late, and its history is not known",
		func(v *View) { v.Stats[0] = queue("orders", 2, 20*time.Minute, 300) },
		[]string{"late orders since 20m0s: 20 min behind, 300 waiting"},
	},
	{"late and moving", func(v *View) {
		v.Stats[0] = queue("orders", 2, 20*time.Minute, 300)
		v.Recent["orders"] = minutes(40, 5, 0)
	}, []string{"late orders since 20m0s: 20 min behind, 300 waiting"}},
	{"a lag under a minute", func(v *View) { v.Stats[0] = queue("orders", 2, 59*time.Second, 300) }, nil},
	{"a hot shard", func(v *View) {
		v.Stats[0] = queue("orders", 4, 12*time.Minute, 300)
		v.Recent["orders"] = minutes(40, 5, 0)
	}, []string{"hot shard orders/0 since 12m0s: Shard 0 is 12 min behind, half of the others 0 s or less"}},
	{"all shards lag", func(v *View) {
		v.Stats[0] = queue("orders", 4, 12*time.Minute, 300)
		for at := range v.Stats[0].Shards {
			v.Stats[0].Shards[at].Lag = 10 * time.Minute
		}
		v.Recent["orders"] = minutes(40, 5, 0)
	}, []string{"late orders since 12m0s: 12 min behind, 300 waiting"}},
	{"as many shards lag as don't", func(v *View) {
		v.Stats[0] = queue("orders", 4, 12*time.Minute, 300)
		v.Stats[0].Shards[1].Lag = 9 * time.Minute
		v.Recent["orders"] = minutes(40, 5, 0)
	}, []string{"hot shard orders/0 since 12m0s: Shard 0 is 12 min behind, half of the others 0 s or less"}},
	{"failing again", func(v *View) {
		v.Recent["orders"] = append(append(minutes(60, 0, 9)[:20], minutes(40, 9, 0)[:37]...), minutes(3, 1, 9)...)
	}, []string{"failing orders since 2m5s: 29 % of 93 jobs failed within 10 min"}},
	{
		"failing",
		func(v *View) { v.Recent["orders"] = minutes(30, 6, 4) },
		[]string{"failing orders since 29m5s: 40 % of 100 jobs failed within 10 min"},
	},
	{
		"failing since a while",
		func(v *View) { v.Recent["orders"] = append(minutes(30, 9, 0)[:27], minutes(3, 1, 9)...) },
		[]string{"failing orders since 2m5s: 29 % of 93 jobs failed within 10 min"},
	},
	{"a tenth fails", func(v *View) { v.Recent["orders"] = minutes(30, 90, 10) }, nil},
	{"few fail", func(v *View) { v.Recent["orders"] = minutes(30, 0, 1) }, nil},
	{"shards without an owner", func(v *View) {
		v.Stats[0] = queue("orders", 4, 30*time.Second, 3)
		v.Stats[0].Shards[0].ExpiresAt = ago(25 * time.Second)
	}, []string{"unowned orders since 25s: No server has 1 of its 4 shards: 3 jobs wait there"}},
	{"shards without an owner for different times", func(v *View) {
		v.Stats[0] = queue("orders", 4, 30*time.Second, 3)
		for at, gone := range []time.Duration{40 * time.Second, 25 * time.Second, time.Hour, 0} {
			v.Stats[0].Shards[at].Lag, v.Stats[0].Shards[at].ExpiresAt = 30*time.Second, ago(gone)
		}
		v.Stats[0].Shards[2].Lag = 0 // has nothing to do
		v.Stats[0].Shards[3].Owner, v.Stats[0].Shards[3].ExpiresAt = "", time.Time{}
	}, []string{"unowned orders since 40s: No server has 3 of its 4 shards: 3 jobs wait there"}},
	{"a shard that has just lost its owner", func(v *View) {
		v.Stats[0] = queue("orders", 4, 30*time.Second, 3)
		v.Stats[0].Shards[0].ExpiresAt = ago(time.Second)
	}, nil},
	{"deaths", func(v *View) {
		v.Stats[0].Dead = 20
		v.Died["orders"] = Deaths{Count: 12, First: ago(50 * time.Minute), Last: ago(3 * time.Minute)}
	}, []string{"morgue grows orders since 50m0s: 12 died within the last hour, the newest 3 min ago"}},
	{"no deaths of late", func(v *View) { v.Stats[0].Dead = 20 }, nil},
	{"a death by a clock that is ahead", func(v *View) {
		v.Stats[0].Dead, v.Died["orders"] = 1, Deaths{Count: 1, First: now.Add(time.Second), Last: now.Add(time.Second)}
	}, []string{"morgue grows orders since -1s: 1 died within the last hour, the newest 0 s ago"}},
	{
		"deaths that were dealt with",
		func(v *View) { v.Died["orders"] = Deaths{Count: 12, First: ago(time.Minute), Last: ago(time.Minute)} },
		nil,
	},
	{"very many deaths", func(v *View) {
		v.Stats[0].Dead = 5000
		v.Died["orders"] = Deaths{Count: 1000, More: true, First: ago(time.Minute), Last: ago(time.Second)}
	}, []string{"morgue grows orders since 1m0s: 1,000 or more died within the last hour, the newest 1 s ago"}},
	{"a held job", func(v *View) { v.Stats[0].Retrying, v.Stats[0].Held = 1, 1 },
		[]string{
			"held jobs orders since 0s: 1 job held after the last retry, and their ids wait: " +
				"release them, or bury their first payloads",
		},
	},
	{"held jobs", func(v *View) { v.Stats[0].Retrying, v.Stats[0].Held = 3, 2 },
		[]string{
			"held jobs orders since 0s: 2 jobs held after the last retry, and their ids wait: " +
				"release them, or bury their first payloads",
		},
	},
	{
		"a job at its last retry",
		func(v *View) {
			v.Stats[0].Retrying = 3
			v.LastRetries = map[string]LastRetry{"orders": {Count: 1, IDs: []string{"a"}, Max: 25}}
		},
		[]string{
			"near morgue orders since 0s: 1 job waits for the last of its 25 retries; " +
				"if it fails, a payload goes to the morgue or the job is held: a",
		},
	},
	{
		"jobs at their last retry",
		func(v *View) {
			v.Stats[0].Retrying = 9
			v.LastRetries = map[string]LastRetry{"orders": {
				Count: 5,
				IDs:   []string{"a", strings.Repeat("b", 70), "c"},
				Max:   25,
			}}
		},
		[]string{
			"near morgue orders since 0s: 5 jobs wait for the last of their 25 retries; " +
				"if it fails, a payload goes to the morgue or the job is held: a, " +
				strings.Repeat("b", 60) + "…, c and 2 more",
		},
	},
	{
		"very many jobs at their last retry, whose ids may not be seen",
		func(v *View) {
			v.Stats[0].Retrying = 900
			v.LastRetries = map[string]LastRetry{"orders": {
				Count: 100,
				More:  true,
				IDs:   []string{"a", "b", "c"},
				Max:   9,
			}}
			v.ShowID = func(string, string) string { return "hidden" }
		},
		[]string{
			"near morgue orders since 0s: 100 or more jobs wait for the last of their 9 retries; " +
				"if it fails, a payload goes to the morgue or the job is held: hidden, hidden, hidden and 97 more",
		},
	},
	{
		"jobs at their last retry that were dealt with",
		func(v *View) { v.LastRetries = map[string]LastRetry{"orders": {Count: 1, IDs: []string{"a"}, Max: 25}} },
		nil,
	},
	{
		"records that can't be read",
		func(v *View) { v.Stats[0].Quarantined = 1 },
		[]string{"unreadable orders since 0s: 1 record can't be read: set aside"},
	},
	{"paused", func(v *View) {
		v.Stats[0] = queue("orders", 4, 2*time.Hour, 1234)
		v.Stats[0].Queue.Paused = true
	}, []string{"paused orders since 0s: Paused; 1,234 jobs wait"}},
	{"paused by somebody", func(v *View) {
		v.Stats[0] = queue("orders", 4, 2*time.Hour, 1234)
		v.Stats[0].Queue.Paused = true
		v.Pauses = map[string]inspect.Action{"orders": {
			At:    ago(time.Hour),
			Actor: inspect.Actor{Name: "ann", Reason: "the bank is away"},
		}}
	}, []string{"paused orders since 1h0m0s: Paused by ann: “the bank is away”; 1,234 jobs wait"}},
	{"paused and empty", func(v *View) { v.Stats[0].Queue.Paused = true }, nil},
	{
		"a server that is gone, beside one of its name",
		func(v *View) { v.Nodes = append(v.Nodes, server("blue", inspect.NodeGone, "orders")) },
		nil,
	},
	{"orphans of a server that is known", func(v *View) {
		v.Nodes = []inspect.Node{
			server("blue", inspect.NodeAlive, "orders"),
			{Name: "red", Owner: "o2", State: inspect.NodeGone, ExpiresAt: ago(time.Minute)},
		}
		v.Stats[0].Claimed, v.Stats[0].Orphaned = 7, 7
		v.Stats[0].Shards[0].Orphaned, v.Stats[0].Shards[0].Owner, v.Stats[0].Shards[0].ExpiresAt =
			7, "o2", ago(4*time.Second)
	}, []string{
		"owner gone orders since 4s: 7 jobs left by red, which stopped responding: " +
			"the next owner of the shard recovers them",
	}},
	{"two versions", func(v *View) {
		v.Nodes = append(v.Nodes, server("green", inspect.NodeAlive, "orders"),
			server("red", inspect.NodeAlive, "orders"), server("old", inspect.NodeDraining))
		for at, version := range []string{"v2", "v1", "v2", "v0"} {
			v.Nodes[at].Version, v.Nodes[at].StartedAt = version, ago(time.Duration(12+at)*time.Minute)
		}
	}, []string{"versions  since 13m0s: 2 versions run: v1 on green; v2 on blue, red"}},
	{"two versions amid a deployment", func(v *View) {
		v.Nodes = append(v.Nodes, server("green", inspect.NodeAlive, "orders"))
		v.Nodes[0].Version, v.Nodes[1].Version, v.Nodes[1].StartedAt = "v1", "v2", ago(time.Minute)
	}, nil},
	{
		"not moving behind the only job that may run",
		func(v *View) {
			v.Stats[0] = queue("orders", 2, 20*time.Minute, 12)
			v.Recent["orders"] = minutes(40, 5, 0)[:30]
			v.Nodes[0].Status = runs(1, 1, "export", 1, 9*time.Minute)
		},
		[]string{
			"not moving orders since 20m0s: " +
				"export has run for 9 min and is the only job that may run (MaxRunning 1); 12 jobs wait behind it (export)",
		},
	},
	{
		"late behind the only job that may run",
		func(v *View) {
			v.Stats[0] = queue("orders", 4, 2*time.Minute, 12)
			v.Nodes[0].Status = runs(1, 1, "export", 1, 40*time.Second)
		},
		[]string{
			"late orders since 2m0s: export has run for 40 s and is the only job that may run (MaxRunning 1); " +
				"12 jobs wait behind it, the first for 2 min (export)",
		},
	},
	{
		"late at a limit that an operator has set",
		func(v *View) {
			v.Stats[0] = queue("orders", 2, 2*time.Minute, 12)
			v.Stats[0].Queue.Settings.Settings = core.Settings{Version: 1, Set: []core.Setting{
				{Name: "max-running", Value: "4", By: "ann"},
			}}
			v.Nodes[0].Status = runs(4, 4, "export", 1, 40*time.Second)
			v.Nodes[0].Status.Queues[0].SettingsVersion = 1
		},
		[]string{
			"late orders since 2m0s: export has run for 40 s and no more than 4 may run (MaxRunning, set by ann); " +
				"12 jobs wait behind it, the first for 2 min (export)",
		},
	},
	{
		"late at a limit of several",
		func(v *View) {
			v.Stats[0] = queue("orders", 2, 2*time.Minute, 12)
			v.Nodes[0].Status = runs(4, 4, "export", 1, 40*time.Second)
		},
		[]string{
			"late orders since 2m0s: export has run for 40 s and no more than 4 may run (MaxRunning); " +
				"12 jobs wait behind it, the first for 2 min (export)",
		},
	},
	{
		"late by a rate",
		func(v *View) {
			v.Stats[0] = queue("orders", 4, 2*time.Minute, 5000)
			v.Rates = rate(10, time.Second, 50*time.Millisecond, 0)
			v.Recent["orders"] = minutes(40, 500, 40)
		},
		[]string{"late orders since 2m0s: 2 min behind, 5,000 waiting: its rate of 10/1s allows no more"},
	},
	{
		"late by a rate that an operator has set",
		func(v *View) {
			v.Stats[0] = queue("orders", 4, 2*time.Minute, 12)
			v.Stats[0].Queue.Settings.Settings = core.Settings{Version: 1, Set: []core.Setting{
				{Name: "rate", Value: "1/1h", By: "ann"},
			}}
			v.Nodes[0].Status.Queues = []ports.QueueStatus{{Queue: "orders", SettingsVersion: 1}}
			v.Rates = rate(1, time.Hour, 50*time.Minute, 0)
			v.Recent["orders"] = minutes(40, 0, 0)
		},
		[]string{"late orders since 2m0s: 2 min behind, 12 waiting: its rate of 1/1h0m0s, set by ann, allows no more"},
	},
	{
		"not moving by a slow rate",
		func(v *View) {
			v.Stats[0] = queue("orders", 4, 20*time.Minute, 12)
			v.Rates = rate(1, time.Hour, 50*time.Minute, 0)
			v.Recent["orders"] = minutes(40, 0, 0)
		},
		[]string{
			"not moving orders since 20m0s: " +
				"No job has ended for 5 min, since its rate of 1/1h0m0s allows no more: 12 jobs wait",
		},
	},
	{
		"not moving by a stop of a rate",
		func(v *View) {
			v.Stats[0] = queue("orders", 4, 20*time.Minute, 12)
			v.Rates = rate(100, time.Second, 4*time.Minute, 4*time.Minute)
			v.Recent["orders"] = minutes(40, 0, 0)
		},
		[]string{
			"not moving orders since 20m0s: " +
				"No job has ended for 5 min, since its rate is stopped for 4 min more: 12 jobs wait",
		},
	},
	{"late with a rate that allows a start", func(v *View) {
		v.Stats[0] = queue("orders", 2, 2*time.Minute, 12)
		v.Rates = rate(10, time.Second, 0, 0)
	}, []string{"late orders since 2m0s: 2 min behind, 12 waiting"}},
	{"late with a rate that is hardly used", func(v *View) {
		v.Stats[0] = queue("orders", 2, 2*time.Minute, 12)
		v.Rates = rate(10, time.Second, 50*time.Millisecond, 0)
		v.Recent["orders"] = minutes(40, 200, 0)
	}, []string{"late orders since 2m0s: 2 min behind, 12 waiting"}},
	{"late behind a long job at the limit of a queue with a rate", func(v *View) {
		v.Stats[0] = queue("orders", 2, 2*time.Minute, 12)
		v.Nodes[0].Status = runs(1, 1, "export", 1, 40*time.Second)
		v.Rates = rate(10, time.Second, 50*time.Millisecond, 0)
	}, []string{
		"late orders since 2m0s: export has run for 40 s and is the only job that may run (MaxRunning 1); " +
			"12 jobs wait behind it, the first for 2 min (export)",
	}},
	{"late at a limit of short jobs", func(v *View) {
		v.Stats[0] = queue("orders", 2, 2*time.Minute, 12)
		v.Nodes[0].Status = runs(1, 1, "export", 1, time.Second)
	}, []string{"late orders since 2m0s: 2 min behind, 12 waiting"}},
	{"late below a limit", func(v *View) {
		v.Stats[0] = queue("orders", 2, 2*time.Minute, 12)
		v.Nodes[0].Status = runs(2, 1, "export", 1, 9*time.Minute)
	}, []string{"late orders since 2m0s: 2 min behind, 12 waiting"}},
	{
		"not moving beside a long job",
		func(v *View) {
			v.Stats[0] = queue("orders", 2, 20*time.Minute, 12)
			v.Recent["orders"] = minutes(40, 5, 0)[:30]
			v.Nodes[0].Status = runs(0, 1, "export", 1, 9*time.Minute)
		},
		[]string{
			"not moving orders since 20m0s: export has run for 9 min, and no job has ended for 5 min; 12 jobs wait behind it (export)",
		},
	},
	{
		"a hot shard with a long job",
		func(v *View) {
			v.Stats[0] = queue("orders", 4, 12*time.Minute, 300)
			v.Nodes[0].Status = runs(0, 1, "catalog", 0, 56*time.Second)
		},
		[]string{
			"hot shard orders/0 since 12m0s: Shard 0 is 12 min behind, half of the others 0 s or less; " +
				"catalog has run for 56 s in it (catalog)",
		},
	},
	{"a hot shard with a long job in another", func(v *View) {
		v.Stats[0] = queue("orders", 4, 12*time.Minute, 300)
		v.Nodes[0].Status = runs(0, 1, "catalog", 1, 56*time.Second)
	}, []string{"hot shard orders/0 since 12m0s: Shard 0 is 12 min behind, half of the others 0 s or less"}},
	{"a long job, and nothing waits", func(v *View) { v.Nodes[0].Status = runs(0, 1, "export", 1, 61*time.Minute) },
		[]string{"runs long orders since 1h1m0s: export has run for 1 h 1 min: its handler may hang (export)"}},
	{"a job that is not long yet", func(v *View) { v.Nodes[0].Status = runs(0, 1, "export", 1, 59*time.Minute) }, nil},
	{
		"a long job that holds others up",
		func(v *View) {
			v.Stats[0] = queue("orders", 4, 2*time.Minute, 12)
			v.Nodes[0].Status = runs(1, 1, "export", 1, 2*time.Hour)
		},
		[]string{
			"late orders since 2m0s: export has run for 2 h and is the only job that may run (MaxRunning 1); " +
				"12 jobs wait behind it, the first for 2 min (export)",
		},
	},
	{
		"an id that may not be seen",
		func(v *View) {
			v.Stats[0] = queue("orders", 2, 2*time.Minute, 12)
			v.Nodes[0].Status = runs(1, 1, "export", 1, 40*time.Second)
			v.ShowID = func(queue, id string) string { return queue + " hidden" }
		},
		[]string{
			"late orders since 2m0s: orders hidden has run for 40 s and is the only job that may run " +
				"(MaxRunning 1); 12 jobs wait behind it, the first for 2 min (orders hidden)",
		},
	},
	{
		"a job that keeps losing its servers",
		func(v *View) {
			v.Stats[0].Claimed = 3
			v.Suspects = map[string]Suspects{"orders": {Count: 1, ID: "export", Recoveries: 2}}
			v.Nodes[0].Status.Queues = []ports.QueueStatus{
				{Queue: "emails", MaxRecoveries: 9},
				{Queue: "orders", MaxRecoveries: 3},
			}
		},
		[]string{
			"crashes orders since 0s: export may crash its server: " +
				"it has lost its server 2 times, of 3 at most (export)",
		},
	},
	{"jobs that keep losing their servers, whose ids may not be seen", func(v *View) {
		v.Stats[0].Claimed = 3
		v.Suspects = map[string]Suspects{"orders": {Count: 3, ID: "export", Recoveries: 3}}
		v.Nodes[0].Status.Queues = []ports.QueueStatus{{Queue: "orders", MaxRecoveries: 3}}
		v.ShowID = func(string, string) string { return "hidden" }
	}, []string{"crashes orders since 0s: hidden may crash its server: it has lost its server 3 times, " +
		"and with the next its first payload goes to the morgue or the job is held; so may 2 more (hidden)"}},
	{"a job that keeps losing its servers, while none runs", func(v *View) {
		v.Nodes, v.Stats[0].Claimed, v.Stats[0].Queue.Paused = nil, 1, true
		v.Suspects = map[string]Suspects{"orders": {Count: 1, ID: "export", Recoveries: 2}}
	}, []string{"crashes orders since 0s: export may crash its server: it has lost its server 2 times (export)"}},
	{"a job that kept losing its servers and has ended", func(v *View) {
		v.Suspects = map[string]Suspects{"orders": {Count: 1, ID: "export", Recoveries: 2}}
	}, nil},
	{"a job on its last chance", func(v *View) {
		v.Stats[0].Claimed = 1
		v.Nodes[0].Status.Queues = []ports.QueueStatus{{Queue: "orders", MaxRecoveries: 3}}
		v.Nodes[0].Status.LastChance = ports.LastChance{Shard: core.Shard{Queue: "orders", Index: 1}, ID: "export"}
	}, []string{"crashes orders since 0s: export may crash its server: it has lost its server 3 times, " +
		"and with the next its first payload goes to the morgue or the job is held (export)"}},
	{"a job whose first loss is its last chance", func(v *View) {
		v.Stats[0].Claimed = 1
		v.Nodes[0].Status.Queues = []ports.QueueStatus{{Queue: "orders", MaxRecoveries: 1}}
		v.Nodes[0].Status.LastChance = ports.LastChance{Shard: core.Shard{Queue: "orders", Index: 1}, ID: "export"}
	}, nil},
	{"a job of another queue on its last chance", func(v *View) {
		v.Stats[0].Claimed = 1
		v.Nodes[0].Status.Queues = []ports.QueueStatus{{Queue: "orders", MaxRecoveries: 3}}
		v.Nodes[0].Status.LastChance = ports.LastChance{Shard: core.Shard{Queue: "emails"}, ID: "export"}
	}, nil},
	{"a server with another merge rule", func(v *View) {
		v.Stats[0].Queue.Merge = core.MergeRule{Stays: core.Highest}
		v.Nodes[0].Status.Queues = []ports.QueueStatus{{Queue: "emails"}, {Queue: "orders"}}
	}, []string{"other rule orders since 0s: The merge rule is newest, but blue declares another, such as union: " +
		"deploy such programs with the queue's rule, since their next starts are refused"}},
	{
		"servers with other merge rules",
		func(v *View) {
			gone := server("old", inspect.NodeGone, "orders")
			v.Nodes = append(v.Nodes, server("red", inspect.NodeAlive, "orders"),
				server("green", inspect.NodeDraining, "orders"), server("blue", inspect.NodeAlive, "orders"), gone)
			for at, keep := range []int{0, 3, 1, 1, 1} {
				rule := core.MergeRule{}
				if keep > 0 {
					rule = core.MergeRule{Stays: core.Highest, Keep: keep}
				}
				v.Nodes[at].Status.Queues = []ports.QueueStatus{{Queue: "orders", Merge: rule}}
			}
		},
		[]string{"other rule orders since 0s: The merge rule is union, but blue, green, red declare another, " +
			"such as latest(3): " +
			"deploy such programs with the queue's rule, since their next starts are refused",
			"server gone @old since 3m0s: This server stopped responding"},
	},
	{"servers with the queue's merge rule", func(v *View) {
		v.Stats[0].Queue.Merge = core.MergeRule{Stays: core.Highest}
		v.Nodes[0].Status.Queues = []ports.QueueStatus{{Queue: "orders", Merge: v.Stats[0].Queue.Merge}}
	}, nil},
	{"settings that can't be read", func(v *View) {
		v.Stats[0].Queue.Settings.Settings = core.Settings{Version: 3, Broken: true}
		v.Nodes[0].Status.Queues = []ports.QueueStatus{{Queue: "orders", SettingsVersion: 2}}
	}, []string{"broken settings orders since 0s: The settings that operators have set can't be read: " +
		"servers continue with those that they have read, and a server that starts uses its code: " +
		"set one of them again, which replaces all"}},
	{"settings that a server does not follow", func(v *View) {
		v.Stats[0].Queue.Settings.Settings = core.Settings{Version: 3, At: core.InstantOf(ago(11 * time.Second))}
		v.Nodes = append(v.Nodes, server("red", inspect.NodeAlive, "orders"),
			server("slow", inspect.NodeAlive, "orders"), server("idle", inspect.NodeAlive, "emails"))
		v.Nodes[0].Status.Queues = []ports.QueueStatus{{Queue: "emails"}, {Queue: "orders", SettingsVersion: 2}}
		v.Nodes[1].Status.Queues = []ports.QueueStatus{{Queue: "orders", SettingsVersion: 3}}
		// The announcement of slow lasts for 18 s or more, so an interval of it is 6 s or more.
		v.Nodes[2].Status.Queues = []ports.QueueStatus{{Queue: "orders"}}
		v.Nodes[2].ExpiresAt = now.Add(12 * time.Second)
	}, []string{"settings not followed orders since 11s: Settings were changed, and blue does not follow: " +
		"its log has the reason, or its program is older than settings"}},
	{"settings that were just changed", func(v *View) {
		v.Stats[0].Queue.Settings.Settings = core.Settings{Version: 1, At: core.InstantOf(ago(10 * time.Second))}
		v.Nodes[0].Status.Queues = []ports.QueueStatus{{Queue: "orders"}}
	}, nil},
	{"a tick that is late", func(v *View) { v.Ticks = map[string]Ticks{"orders": {Since: ago(time.Minute)}} },
		[]string{"ticks late orders since 1m0s: A tick of its schedules is 1 min late: no server has fired it"}},
	{
		"a late tick, and nobody serves the queue",
		func(v *View) {
			v.Nodes, v.Ticks = nil, map[string]Ticks{"orders": {Since: ago(90 * time.Minute)}}
		},
		[]string{
			"ticks late orders since 1h30m0s: A tick of its schedules is 1 h 30 min late: no server runs this queue",
		},
	},
	{
		"a late tick of a schedule that is known, whose id must not be shown",
		func(v *View) {
			v.Ticks = map[string]Ticks{"orders": {
				Since: ago(70 * time.Second),
				Late:  core.ScheduleKey{ID: "secret", Name: "nightly"},
			}}
			v.ShowID = func(_, id string) string { return id[:1] + "…" }
		},
		[]string{"ticks late orders since 1m10s: A tick of its schedules is 1 min 10 s late: no server has fired it; " +
			"the schedule nightly of the id s… is late"},
	},
	{"a late tick, and nobody serves the jobs of the queue", func(v *View) {
		v.Nodes, v.Ticks = nil, map[string]Ticks{"orders": {Since: ago(90 * time.Minute)}}
		v.Stats[0] = queue("orders", 1, time.Second, 1)
	}, []string{"nobody serves orders since 1s: No server runs this queue: 1 job waits"}},
	{"a late tick of a paused queue", func(v *View) {
		v.Ticks, v.Stats[0].Queue.Paused = map[string]Ticks{"orders": {
			Since:  ago(time.Hour),
			Broken: []string{"nightly"},
		}}, true
	}, nil},
	{"a broken schedule", func(v *View) { v.Ticks = map[string]Ticks{"orders": {Broken: []string{"nightly"}}} },
		[]string{"broken schedule orders since 0s: Servers can't read the spec of the schedule nightly"}},
	{
		"a broken schedule among many",
		func(v *View) {
			v.Ticks = map[string]Ticks{"orders": {Broken: []string{"nightly"}, Checked: 101, Of: 1200}}
		},
		[]string{
			"broken schedule orders since 0s: Servers can't read the spec of the schedule nightly " +
				"(checked: 101 of at least 1,200 schedules)",
		},
	},
	{"broken schedules", func(v *View) {
		v.Ticks = map[string]Ticks{"orders": {Broken: []string{"a", "b", "c", "d"}, Since: ago(2 * time.Minute)}}
	}, []string{
		"broken schedule orders since 0s: Servers can't read the spec of schedules: a, b, c and 1 more",
		"ticks late orders since 2m0s: A tick of its schedules is 2 min late: no server has fired it",
	}},
	{"worst first, then most", func(v *View) {
		small, large := queue("small", 1, 2*time.Minute, 9), queue("large", 1, 3*time.Minute, 1)
		paused := queue("paused", 1, 4*time.Minute, 1)
		paused.Queue.Paused = true
		v.Stats = []inspect.QueueStats{small, paused, large, queue("none", 1, time.Second, 1)}
		v.Nodes[0].Queues = []string{"small", "large"}
		v.Checks = []inspect.Check{{Name: "c", Status: inspect.CheckWarn}}
	}, []string{
		"nobody serves none since 1s: No server runs this queue: 1 job waits",
		"late large since 3m0s: 3 min behind, 1 waiting",
		"late small since 2m0s: 2 min behind, 9 waiting",
		"check warns  since 0s: c: ",
		"paused paused since 0s: Paused; 1 job waits",
	}},
}

func TestWhatIsWrong(t *testing.T) {
	seen := map[Kind]bool{}
	for _, tt := range tests {
		v := &View{
			Now:   now,
			Stats: []inspect.QueueStats{queue("orders", 4, 0, 0)},
			Nodes: []inspect.Node{server("blue", inspect.NodeAlive, "orders")},
		}
		v.Recent, v.Died = map[string][]inspect.MinuteStats{}, map[string]Deaths{}
		tt.view(v)

		lines, _ := Now(v, Memory{})
		for at := range max(len(lines), len(tt.want)) {
			got, want := "nothing", "nothing"
			if at < len(lines) {
				got, seen[lines[at].Kind] = nameOf(&lines[at]), true
			}
			if at < len(tt.want) {
				want = tt.want[at]
			}
			if got != want {
				t.Errorf("%s: line %d is\n%s, want\n%s", tt.name, at, got, want)
			}
		}
	}

	for k := NoAnswer; k <= Versions; k++ {
		if !seen[k] {
			t.Errorf("no test has %v", k)
		}
	}
}

func TestKindsHaveNames(t *testing.T) {
	for _, k := range []Kind{Versions + 1, 99} {
		if got, want := k.String(), fmt.Sprintf("Kind(%d)", k); got != want {
			t.Errorf("an unknown kind is called %q, want %q", got, want)
		}
	}
}
