package registry

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func registryCases() []env.Case {
	return []env.Case{
		{Name: "answers a ping", Rule: "Ping asks whether the store answers and can be used", Check: registryAnswers},
		{
			Name:  "lists the servers that run",
			Rule:  "Announce records that a server runs, for the TTL from now",
			Check: registryLists,
		},
		{
			Name:  "lists servers in order of name and owner",
			Rule:  "Nodes: in order of (Name, Owner)",
			Check: registryOrder,
		},
		{Name: "lists a server that stopped announcing as gone for an hour", Rule: ruleNodes, Check: registryGone},
		{
			Name:  "forgets servers that have been gone for an hour",
			Rule:  "Announce: announcements that expired more than NodeKept ago are removed",
			Check: registryForgets,
		},
		{
			Name:  "renews by announcing again",
			Rule:  "Announce: replaces the Owner's earlier announcement; repeating it renews",
			Check: registryRenews,
		},
		{Name: "shortens an announcement that a clock has lengthened", Rule: ruleNodeCut, Check: registryCut},
		{
			Name:  "retires a server at once",
			Rule:  "Retire forgets a server at once; an unknown server is not an error",
			Check: registryRetires,
		},
		{
			Name:  "refuses a bad announcement",
			Rule:  "AnnounceRequest.Validate: ErrInvalidRequest for an empty owner or a TTL below 1 ms",
			Check: registryInvalid,
		},
		{
			Name:  "returns only from Nodes what servers are doing",
			Rule:  "Node: only Nodes returns Status; it is zero in the reply of Announce",
			Check: registryStatus,
		},
		{
			Name: "limits the status of a server",
			Rule: "Announce: ErrInvalidRequest for more than MaxLongest running jobs in the status, " +
				"or MaxLaneBusy shards of a queue",
			Check: registryStatusBound,
		},
		{Name: "drains a server and ends the drain", Rule: ruleDrain, Check: registryDrains},
		{
			Name:  "keeps a drain while a server renews",
			Rule:  "Announce: an operator's DrainNode stays in force while the server is known",
			Check: registryDrainKept,
		},
		{
			Name: "ends a drain with the announcement",
			Rule: "Announce: an operator's DrainNode stays in force " +
				"until the server is retired or its announcement has expired",
			Check: registryDrainEnds,
		},
		{Name: "drains a server that stops, whatever an operator asks for", Rule: ruleDrain, Check: registryStops},
		{
			Name:  "refuses to drain an unknown server",
			Rule:  "DrainNode: ErrUnknownNode if no announcement of that owner lasts",
			Check: registryDrainUnknown,
		},
		{
			Name:  "lists queues in order of name",
			Rule:  "Queues lists the declared queues in order of name",
			Check: registryQueues,
		},
	}
}

func registryAnswers(e *env.Env) { e.Must(e.Store.Ping(e.Ctx), "Ping") }

func registryLists(e *env.Env) {
	n := ports.Node{
		Owner:     "n1",
		Name:      "web-1",
		Host:      "host.example",
		PID:       4711,
		Lanes:     16,
		Queues:    []string{"z", "a"},
		Version:   "v1.2.3-é",
		StartedAt: 5,
		ExpiresAt: 6,
	}

	reply := announce(e, n)
	n.StartedAt, n.ExpiresAt = env.Start, env.Start.Add(env.TTL)
	e.Same("the reply", reply, ports.AnnounceReply{Now: env.Start, Nodes: []ports.Node{n}})
	e.Same("the nodes", e.Nodes(), []ports.Node{n})
}

func owners(nodes []ports.Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Owner)
	}
	return out
}

func registryOrder(e *env.Env) {
	announce(e, ports.Node{Owner: "3", Name: "b"})
	announce(e, ports.Node{Owner: "9", Name: "a"})
	announce(e, ports.Node{Owner: "10", Name: "a"})
	reply := announce(e, ports.Node{Owner: "1", Name: "é"})
	e.Same("the owners", owners(e.Nodes()), []string{"10", "9", "3", "1"})
	e.Same("the owners in the reply", owners(reply.Nodes), []string{"10", "9", "3", "1"})
}

func registryGone(e *env.Env) {
	announce(e, ports.Node{Owner: "1"})
	e.Clock.Advance(20 * time.Second)
	announce(e, ports.Node{Owner: "2"})

	e.Clock.Advance(10*time.Second - time.Microsecond)
	e.Same("the nodes while it lasts", states(e), []string{"1 alive", "2 alive"})

	e.Clock.Advance(time.Microsecond)
	e.Same("the nodes when it has run out", states(e), []string{"1 gone", "2 alive"})
	e.Same("the owners in a reply", owners(announce(e, ports.Node{Owner: "3"}).Nodes), []string{"2", "3"})

	e.Clock.Advance(ports.NodeKept)
	e.Same("the nodes an hour later", states(e), []string{"1 gone", "2 gone", "3 gone"})
	e.Clock.Advance(time.Microsecond)
	e.Same("the nodes after an hour", states(e), []string{"2 gone", "3 gone"})
}

func registryForgets(e *env.Env) {
	announce(e, ports.Node{Owner: "1"})
	e.Same("the nodes at first", states(e), []string{"1 alive"})
	e.Clock.Advance(env.TTL + ports.NodeKept + time.Second)
	announce(e, ports.Node{Owner: "2"})
	e.Same("the nodes", states(e), []string{"2 alive"})
	e.Clock.Advance(-time.Minute)
	e.Same("the nodes when the clock steps back", states(e), []string{"2 alive"})
}

func registryRenews(e *env.Env) {
	announce(e, ports.Node{Owner: "1", Lanes: 1})
	e.Clock.Advance(20 * time.Second)
	announce(e, ports.Node{Owner: "1", Lanes: 2, Queues: []string{env.Orders}})
	e.Clock.Advance(20 * time.Second)
	e.Same("the nodes", e.Nodes(), []ports.Node{{
		Owner:     "1",
		Lanes:     2,
		Queues:    []string{env.Orders},
		StartedAt: env.Start,
		ExpiresAt: env.Start.Add(20*time.Second + env.TTL),
	}})
}

func registryRetires(e *env.Env) {
	announce(e, ports.Node{Owner: "1"})
	announce(e, ports.Node{Owner: "2"})
	e.Retire("1")
	e.Retire("1")
	e.Retire("never")
	e.Same("the owners", owners(e.Nodes()), []string{"2"})
	e.Clock.Advance(env.TTL)
	e.Same("before the retirement of one that is gone", states(e), []string{"2 gone"})
	e.Retire("2")
	e.Same("after it", states(e), nil)
}

func registryInvalid(e *env.Env) {
	for _, r := range []ports.AnnounceRequest{
		{TTL: env.TTL},
		{Node: ports.Node{Owner: "1"}},
		{Node: ports.Node{Owner: "1"}, TTL: time.Millisecond - 1},
	} {
		_, err := e.Store.Announce(e.Ctx, r)
		e.Refused("a bad Announce", err, ports.ErrInvalidRequest)
	}
	e.Same("the nodes", e.Nodes(), nil)
}

func registryQueues(e *env.Env) {
	for _, name := range []string{"b", "a:b", "a", "Z", "a.b"} {
		e.Declare(name, 1)
	}
	queues, err := e.Store.Queues(e.Ctx)
	e.Must(err, "Queues")
	var names []string
	for _, q := range queues {
		names = append(names, q.Name)
	}
	e.Same("the names", names, []string{"Z", "a", "a.b", "a:b", "b", env.Orders})
}

const (
	ruleNodes = "Nodes lists the servers whose announcement is valid or expired at most NodeKept ago"
	ruleDrain = "DrainNode asks a server to drain, or withdraws that: " +
		"Draining is true while the server reports it or an operator asks for it"
	ruleNodeCut = "Announce: another server's announcement whose end is further away than its own TTL, " +
		"because the clock stepped back, is shortened to that TTL from now"
	ruleNodeWakes = "Wakeups: the zero Shard is sent when an unknown server announces itself " +
		"or a known one with other Queues, Lanes or Draining, when DrainNode has changed something, " +
		"and when Retire has removed a server"
)

func registryStatus(e *env.Env) {
	n := ports.Node{Owner: "1", Queues: []string{env.Orders, "mail"}, Status: ports.NodeStatus{
		Shards:     1,
		Running:    2,
		Busy:       3,
		Claimed:    4,
		Memory:     math.MaxInt64,
		Goroutines: 5,
		StartedAt:  core.MaxInstant,
		ClockAhead: -90 * time.Minute,
		Queues: []ports.QueueStatus{
			{
				Queue:         env.Orders,
				Merge:         core.MergeRule{Stays: core.Highest, Keep: 3},
				MaxRetries:    25,
				MaxRecoveries: 3,
				MaxRunning:    6,
				MaxLanes:      7,
				Parallel:      8,
				BatchSize:     9,
				Rate:          "10/1m0s+5",
				Shards:        1,
				Running:       2,
				Busy:          3,
				Claimed:       4,
				LaneBusy:      []int{0, 7, 16383},

				Code:            map[string]string{"max-running": "50", "of-a-newer-version": "1"},
				SettingsVersion: 4,
			},
			{Queue: "mail"},
		},
		Longest: []ports.RunningJob{
			{
				Shard:   e.Shard,
				ID:      "\x00é\\\"",
				Receipt: core.Receipt{Token: math.MaxInt64, Number: 7},
				Began:   core.MaxInstant,
			},
			{Shard: e.Shard, ID: "b", Receipt: core.Receipt{Token: 1, Number: 2}, Began: env.Start},
		},
		LastChance: ports.LastChance{Shard: core.Shard{Queue: "mail", Index: 16383}, ID: "\x00é\\\""},
	}}

	for _, reply := range []ports.AnnounceReply{announce(e, n), announce(e, ports.Node{Owner: "2"})} {
		e.Same("the status in a reply", reply.Nodes[0].Status, ports.NodeStatus{})
	}
	e.Same("the status", e.Nodes()[0].Status, n.Status)

	n.Status = ports.NodeStatus{Running: 7}
	announce(e, n)
	e.Same("the next status", e.Nodes()[0].Status, n.Status)

	e.Clock.Advance(env.TTL)
	e.Same("the status of a node that is gone", e.Nodes()[0].Status, n.Status)

	n.Status = ports.NodeStatus{}
	announce(e, n)
	e.Same("the status of a node that does nothing", e.Nodes()[0].Status, n.Status)
}

func registryStatusBound(e *env.Env) {
	n := ports.Node{Owner: "1"}
	for i := range ports.MaxLongest {
		n.Status.Longest = append(n.Status.Longest, ports.RunningJob{
			Shard: e.Shard,
			ID:    strings.Repeat("i", 512),
			Began: core.Instant(i),
		})
	}

	announce(e, n)
	e.Same("the jobs of the status", e.Nodes()[0].Status.Longest, n.Status.Longest)

	n.Status.Longest = append(n.Status.Longest, n.Status.Longest[0])
	_, err := e.Store.Announce(e.Ctx, ports.AnnounceRequest{Node: n, TTL: env.TTL})
	e.Refused("with a job more", err, ports.ErrInvalidRequest)
	e.Same("the jobs of the status after it", len(e.Nodes()[0].Status.Longest), ports.MaxLongest)

	busy := make([]int, ports.MaxLaneBusy+1)
	for i := range busy {
		busy[i] = i
	}
	n.Status.Longest, n.Status.Queues = n.Status.Longest[:ports.MaxLongest],
		[]ports.QueueStatus{{Queue: env.Orders, LaneBusy: busy[1:]}}

	announce(e, n)
	e.Same("the busy lanes of the status", e.Nodes()[0].Status.Queues, n.Status.Queues)

	n.Status.Queues[0].LaneBusy = busy
	_, err = e.Store.Announce(e.Ctx, ports.AnnounceRequest{Node: n, TTL: env.TTL})
	e.Refused("with a shard more", err, ports.ErrInvalidRequest)
}

func registryCut(e *env.Env) {
	short := ports.AnnounceRequest{Node: ports.Node{Owner: "1"}, TTL: env.TTL / 2}
	_, err := e.Store.Announce(e.Ctx, short)
	e.Must(err, "Announce")
	e.Drain("1", true)

	e.Clock.Advance(-10 * env.TTL)
	ends := e.Now().Add(short.TTL)
	reply := announce(e, ports.Node{Owner: "2"})
	e.Same("the end in a reply", reply.Nodes[0].ExpiresAt, ends)

	e.Clock.Advance(short.TTL - time.Microsecond)
	e.Same("the nodes before that", states(e), []string{"1 draining", "2 alive"})
	e.Clock.Advance(time.Microsecond)
	e.Same("the nodes then", states(e), []string{"1 gone", "2 alive"})
	e.Same("the owners in a reply", owners(announce(e, ports.Node{Owner: "2"}).Nodes), []string{"2"})
}

func registryDrains(e *env.Env) {
	announce(e, ports.Node{Owner: "1"})
	announce(e, ports.Node{Owner: "2"})
	for range 2 {
		e.Drain("1", true)
		e.Same("the nodes", states(e), []string{"1 draining", "2 alive"})
	}
	e.Same("a draining node in a reply", announce(e, ports.Node{Owner: "2"}).Nodes[0].Draining, true)
	for range 2 {
		e.Drain("1", false)
		e.Same("the nodes after it", states(e), []string{"1 alive", "2 alive"})
	}
}

func registryDrainKept(e *env.Env) {
	announce(e, ports.Node{Owner: "1"})
	e.Drain("1", true)
	for range 3 {
		e.Clock.Advance(env.TTL - time.Microsecond)
		e.Same("the reply to a renewal", announce(e, ports.Node{Owner: "1", Lanes: 2}).Nodes[0].Draining, true)
		e.Same("the nodes after it", states(e), []string{"1 draining"})
	}
	e.Drain("1", false)
	e.Same("the reply to the next", announce(e, ports.Node{Owner: "1"}).Nodes[0].Draining, false)
}

func registryDrainEnds(e *env.Env) {
	for _, end := range []func(){
		func() { e.Clock.Advance(env.TTL) },
		func() { e.Retire("1") },
	} {
		announce(e, ports.Node{Owner: "1"})
		e.Drain("1", true)
		end()
		e.Same("the reply to the next announcement", announce(e, ports.Node{Owner: "1"}).Nodes[0].Draining, false)
		e.Same("the nodes", states(e), []string{"1 alive"})
	}
}

func registryStops(e *env.Env) {
	announce(e, ports.Node{Owner: "1"})
	e.Same("the reply", announce(e, ports.Node{Owner: "1", Draining: true}).Nodes[0].Draining, true)
	for _, asked := range []bool{false, true, false} {
		e.Drain("1", asked)
		e.Same("the nodes", states(e), []string{"1 draining"})
	}
	announce(e, ports.Node{Owner: "1"})
	e.Same("the nodes when it no longer stops", states(e), []string{"1 alive"})
}

func registryDrainUnknown(e *env.Env) {
	for _, owner := range []string{"retired", "gone"} {
		announce(e, ports.Node{Owner: owner})
	}
	e.Retire("retired")
	e.Clock.Advance(env.TTL)

	for _, owner := range []string{"never", "retired", "gone", ""} {
		for _, asked := range []bool{true, false} {
			e.Refused(fmt.Sprintf("DrainNode of %q", owner),
				e.Store.DrainNode(e.Ctx, owner, asked), ports.ErrUnknownNode)
		}
	}
	e.Same("the nodes", states(e), []string{"gone gone"})
}

// wakeupNodes changes the list of servers in each way, through another handle.
func wakeupNodes(e *env.Env) {
	ch := wakeups(e, e.Shard, core.Shard{})
	other := *e
	other.Store = e.Open()

	n := ports.Node{Owner: "1", Lanes: 1}
	again := func() { announce(&other, n) }
	for _, change := range []struct {
		what string
		do   func()
	}{
		{"a new node", again},
		{"another count of lanes", func() { n.Lanes = 2; again() }},
		{"another list of queues", func() { n.Queues = []string{env.Orders}; again() }},
		{"a queue more", func() { n.Queues = append(n.Queues, "mail"); again() }},
		{"a node that stops", func() { n.Draining = true; again() }},
		{"a node that no longer stops", func() { n.Draining = false; again() }},
		{"a drain", func() { other.Drain("1", true) }},
		{"the end of a drain", func() { other.Drain("1", false) }},
		{"a node that is back after it was gone", func() { e.Clock.Advance(env.TTL); again() }},
		{"a retirement", func() { other.Retire("1") }},
		{"a node that is back after its retirement", again},
	} {
		change.do()
		wakes(e, change.what, ch, core.Shard{})
	}
}

// wakeupNodesQuiet changes nothing that other servers need to know. A store may send some spurious
// wake-ups, so the case fails only if there is one for each renewal.
func wakeupNodesQuiet(e *env.Env) {
	const rounds = 8
	ch := wakeups(e, core.Shard{}, e.Shard)
	n := ports.Node{Owner: "1", Lanes: 1, Queues: []string{env.Orders}}
	announce(e, n)
	wakes(e, "a new node", ch, core.Shard{})

	woken := 0
	for i := range rounds {
		e.Clock.Advance(time.Second)
		n.Status.Running = i + 1
		announce(e, n)

		e.Push(env.EntryAt(fmt.Sprint("job", i), "p", 1, env.Start.Add(-time.Duration(i)*time.Second)))
		for _, s := range wokenUntil(e, "a push", ch, e.Shard) {
			if s == (core.Shard{}) {
				woken++
			}
		}
	}

	if woken >= rounds {
		e.Errorf("%d renewals sent %d wake-ups for the list of servers, want fewer", rounds, woken)
	}
}

func wakeupNodesUnasked(e *env.Env) {
	ch := wakeups(e, e.Shard)
	announce(e, ports.Node{Owner: "1"})
	e.PushIDs("a")
	for _, s := range wokenUntil(e, "a push", ch, e.Shard) {
		e.Errorf("a wake-up of %v, which was not asked for", s)
	}
}

// announce announces a server.
func announce(e *env.Env, n ports.Node) ports.AnnounceReply {
	e.TB.Helper()
	reply, err := e.Store.Announce(e.Ctx, ports.AnnounceRequest{Node: n, TTL: env.TTL})
	e.Must(err, "announce")
	return reply
}

// states lists the owners of the nodes, each with its state.
func states(e *env.Env) []string {
	e.TB.Helper()
	var out []string
	for _, n := range e.Nodes() {
		out = append(out, n.Owner+" "+n.State(e.Now()).String())
	}
	return out
}
