package conformance

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func registryCases() []namedCase {
	return []namedCase{
		{"answers a ping", "Ping asks whether the store answers and can be used", registryAnswers},
		{"lists the servers that run", "Announce records that a server runs, for the TTL from now", registryLists},
		{"lists servers in order of name and owner", "Nodes: in order of (Name, Owner)", registryOrder},
		{"lists a server that stopped announcing as gone for an hour", ruleNodes, registryGone},
		{"forgets servers that have been gone for an hour", "Announce: announcements that expired more than NodeKept ago are removed", registryForgets},
		{"renews by announcing again", "Announce: replaces the Owner's earlier announcement; repeating it renews", registryRenews},
		{"shortens an announcement that a clock has lengthened", ruleNodeCut, registryCut},
		{"retires a server at once", "Retire forgets a server at once; an unknown server is not an error", registryRetires},
		{"refuses a bad announcement", "AnnounceRequest.Validate: ErrInvalidRequest for an empty owner or a TTL below 1 ms", registryInvalid},
		{"returns only from Nodes what servers are doing", "Node: only Nodes returns Status; it is zero in the reply of Announce", registryStatus},
		{"limits the status of a server", "Announce: ErrInvalidRequest for more than MaxLongest running jobs in the status, or MaxLaneBusy shards of a queue", registryStatusBound},
		{"drains a server and ends the drain", ruleDrain, registryDrains},
		{"keeps a drain while a server renews", "Announce: an operator's DrainNode stays in force while the server is known", registryDrainKept},
		{"ends a drain with the announcement", "Announce: an operator's DrainNode stays in force until the server is retired or its announcement has expired", registryDrainEnds},
		{"drains a server that stops, whatever an operator asks for", ruleDrain, registryStops},
		{"refuses to drain an unknown server", "DrainNode: ErrUnknownNode if no announcement of that owner lasts", registryDrainUnknown},
		{"lists queues in order of name", "Queues lists the declared queues in order of name", registryQueues},
	}
}

func registryAnswers(e *env) { e.must(e.store.Ping(e.ctx), "Ping") }

func registryLists(e *env) {
	n := ports.Node{
		Owner: "n1", Name: "web-1", Host: "host.example", PID: 4711, Lanes: 16, Queues: []string{"z", "a"}, Version: "v1.2.3-é",
		StartedAt: 5, ExpiresAt: 6,
	}
	reply := e.announce(n)
	n.StartedAt, n.ExpiresAt = start, start.Add(ttl)
	e.same("the reply", reply, ports.AnnounceReply{Now: start, Nodes: []ports.Node{n}})
	e.same("the nodes", e.nodes(), []ports.Node{n})
}

func owners(nodes []ports.Node) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, n.Owner)
	}
	return out
}

func registryOrder(e *env) {
	e.announce(ports.Node{Owner: "3", Name: "b"})
	e.announce(ports.Node{Owner: "9", Name: "a"})
	e.announce(ports.Node{Owner: "10", Name: "a"})
	reply := e.announce(ports.Node{Owner: "1", Name: "é"})
	e.same("the owners", owners(e.nodes()), []string{"10", "9", "3", "1"})
	e.same("the owners in the reply", owners(reply.Nodes), []string{"10", "9", "3", "1"})
}

func registryGone(e *env) {
	e.announce(ports.Node{Owner: "1"})
	e.clock.Advance(20 * time.Second)
	e.announce(ports.Node{Owner: "2"})
	e.clock.Advance(10*time.Second - time.Microsecond)
	e.same("the nodes while it lasts", e.states(), []string{"1 alive", "2 alive"})
	e.clock.Advance(time.Microsecond)
	e.same("the nodes when it has run out", e.states(), []string{"1 gone", "2 alive"})
	e.same("the owners in a reply", owners(e.announce(ports.Node{Owner: "3"}).Nodes), []string{"2", "3"})
	e.clock.Advance(ports.NodeKept)
	e.same("the nodes an hour later", e.states(), []string{"1 gone", "2 gone", "3 gone"})
	e.clock.Advance(time.Microsecond)
	e.same("the nodes after an hour", e.states(), []string{"2 gone", "3 gone"})
}

func registryForgets(e *env) {
	e.announce(ports.Node{Owner: "1"})
	e.same("the nodes at first", e.states(), []string{"1 alive"})
	e.clock.Advance(ttl + ports.NodeKept + time.Second)
	e.announce(ports.Node{Owner: "2"})
	e.same("the nodes", e.states(), []string{"2 alive"})
	e.clock.Advance(-time.Minute)
	e.same("the nodes when the clock steps back", e.states(), []string{"2 alive"})
}

func registryRenews(e *env) {
	e.announce(ports.Node{Owner: "1", Lanes: 1})
	e.clock.Advance(20 * time.Second)
	e.announce(ports.Node{Owner: "1", Lanes: 2, Queues: []string{orders}})
	e.clock.Advance(20 * time.Second)
	e.same("the nodes", e.nodes(), []ports.Node{{
		Owner: "1", Lanes: 2, Queues: []string{orders},
		StartedAt: start, ExpiresAt: start.Add(20*time.Second + ttl),
	}})
}

func registryRetires(e *env) {
	e.announce(ports.Node{Owner: "1"})
	e.announce(ports.Node{Owner: "2"})
	e.retire("1")
	e.retire("1")
	e.retire("never")
	e.same("the owners", owners(e.nodes()), []string{"2"})
	e.clock.Advance(ttl)
	e.same("before the retirement of one that is gone", e.states(), []string{"2 gone"})
	e.retire("2")
	e.same("after it", e.states(), nil)
}

func registryInvalid(e *env) {
	for _, r := range []ports.AnnounceRequest{
		{TTL: ttl},
		{Node: ports.Node{Owner: "1"}},
		{Node: ports.Node{Owner: "1"}, TTL: time.Millisecond - 1},
	} {
		_, err := e.store.Announce(e.ctx, r)
		e.refused("a bad Announce", err, ports.ErrInvalidRequest)
	}
	e.same("the nodes", e.nodes(), nil)
}

func registryQueues(e *env) {
	for _, name := range []string{"b", "a:b", "a", "Z", "a.b"} {
		e.declare(name, 1)
	}
	queues, err := e.store.Queues(e.ctx)
	e.must(err, "Queues")
	var names []string
	for _, q := range queues {
		names = append(names, q.Name)
	}
	e.same("the names", names, []string{"Z", "a", "a.b", "a:b", "b", orders})
}

const (
	ruleNodes     = "Nodes lists the servers whose announcement is valid or expired at most NodeKept ago"
	ruleDrain     = "DrainNode asks a server to drain, or withdraws that: Draining is true while the server reports it or an operator asks for it"
	ruleNodeCut   = "Announce: another server's announcement whose end is further away than its own TTL, because the clock stepped back, is shortened to that TTL from now"
	ruleNodeWakes = "Wakeups: the zero Shard is sent when an unknown server announces itself or a known one with other Queues, Lanes or Draining, when DrainNode has changed something, and when Retire has removed a server"
)

func registryStatus(e *env) {
	n := ports.Node{Owner: "1", Queues: []string{orders, "mail"}, Status: ports.NodeStatus{
		Shards: 1, Running: 2, Busy: 3, Claimed: 4, Memory: math.MaxInt64, Goroutines: 5,
		Queues: []ports.QueueStatus{
			{Queue: orders, MaxRetries: 25, MaxRunning: 6, MaxLanes: 7, Parallel: 8, BatchSize: 9, Shards: 1, Running: 2, Busy: 3, Claimed: 4, LaneBusy: []int{0, 7, 16383}}, {Queue: "mail"},
		},
		Longest: []ports.RunningJob{
			{Shard: e.shard, ID: "\x00é\\\"", Receipt: core.Receipt{Token: math.MaxInt64, Number: 7}, Began: core.MaxInstant},
			{Shard: e.shard, ID: "b", Receipt: core.Receipt{Token: 1, Number: 2}, Began: start},
		},
	}}
	for _, reply := range []ports.AnnounceReply{e.announce(n), e.announce(ports.Node{Owner: "2"})} {
		e.same("the status in a reply", reply.Nodes[0].Status, ports.NodeStatus{})
	}
	e.same("the status", e.nodes()[0].Status, n.Status)
	n.Status = ports.NodeStatus{Running: 7}
	e.announce(n)
	e.same("the next status", e.nodes()[0].Status, n.Status)
	e.clock.Advance(ttl)
	e.same("the status of a node that is gone", e.nodes()[0].Status, n.Status)
	n.Status = ports.NodeStatus{}
	e.announce(n)
	e.same("the status of a node that does nothing", e.nodes()[0].Status, n.Status)
}

func registryStatusBound(e *env) {
	n := ports.Node{Owner: "1"}
	for i := range ports.MaxLongest {
		n.Status.Longest = append(n.Status.Longest, ports.RunningJob{Shard: e.shard, ID: strings.Repeat("i", 512), Began: core.Instant(i)})
	}
	e.announce(n)
	e.same("the jobs of the status", e.nodes()[0].Status.Longest, n.Status.Longest)
	n.Status.Longest = append(n.Status.Longest, n.Status.Longest[0])
	_, err := e.store.Announce(e.ctx, ports.AnnounceRequest{Node: n, TTL: ttl})
	e.refused("with a job more", err, ports.ErrInvalidRequest)
	e.same("the jobs of the status after it", len(e.nodes()[0].Status.Longest), ports.MaxLongest)
	busy := make([]int, ports.MaxLaneBusy+1)
	for i := range busy {
		busy[i] = i
	}
	n.Status.Longest, n.Status.Queues = n.Status.Longest[:ports.MaxLongest], []ports.QueueStatus{{Queue: orders, LaneBusy: busy[1:]}}
	e.announce(n)
	e.same("the busy lanes of the status", e.nodes()[0].Status.Queues, n.Status.Queues)
	n.Status.Queues[0].LaneBusy = busy
	_, err = e.store.Announce(e.ctx, ports.AnnounceRequest{Node: n, TTL: ttl})
	e.refused("with a shard more", err, ports.ErrInvalidRequest)
}

func registryCut(e *env) {
	short := ports.AnnounceRequest{Node: ports.Node{Owner: "1"}, TTL: ttl / 2}
	_, err := e.store.Announce(e.ctx, short)
	e.must(err, "Announce")
	e.drain("1", true)
	e.clock.Advance(-10 * ttl)
	ends := e.now().Add(short.TTL)
	reply := e.announce(ports.Node{Owner: "2"})
	e.same("the end in a reply", reply.Nodes[0].ExpiresAt, ends)
	e.clock.Advance(short.TTL - time.Microsecond)
	e.same("the nodes before that", e.states(), []string{"1 draining", "2 alive"})
	e.clock.Advance(time.Microsecond)
	e.same("the nodes then", e.states(), []string{"1 gone", "2 alive"})
	e.same("the owners in a reply", owners(e.announce(ports.Node{Owner: "2"}).Nodes), []string{"2"})
}

func registryDrains(e *env) {
	e.announce(ports.Node{Owner: "1"})
	e.announce(ports.Node{Owner: "2"})
	for range 2 {
		e.drain("1", true)
		e.same("the nodes", e.states(), []string{"1 draining", "2 alive"})
	}
	e.same("a draining node in a reply", e.announce(ports.Node{Owner: "2"}).Nodes[0].Draining, true)
	for range 2 {
		e.drain("1", false)
		e.same("the nodes after it", e.states(), []string{"1 alive", "2 alive"})
	}
}

func registryDrainKept(e *env) {
	e.announce(ports.Node{Owner: "1"})
	e.drain("1", true)
	for range 3 {
		e.clock.Advance(ttl - time.Microsecond)
		e.same("the reply to a renewal", e.announce(ports.Node{Owner: "1", Lanes: 2}).Nodes[0].Draining, true)
		e.same("the nodes after it", e.states(), []string{"1 draining"})
	}
	e.drain("1", false)
	e.same("the reply to the next", e.announce(ports.Node{Owner: "1"}).Nodes[0].Draining, false)
}

func registryDrainEnds(e *env) {
	for _, end := range []func(){
		func() { e.clock.Advance(ttl) },
		func() { e.retire("1") },
	} {
		e.announce(ports.Node{Owner: "1"})
		e.drain("1", true)
		end()
		e.same("the reply to the next announcement", e.announce(ports.Node{Owner: "1"}).Nodes[0].Draining, false)
		e.same("the nodes", e.states(), []string{"1 alive"})
	}
}

func registryStops(e *env) {
	e.announce(ports.Node{Owner: "1"})
	e.same("the reply", e.announce(ports.Node{Owner: "1", Draining: true}).Nodes[0].Draining, true)
	for _, asked := range []bool{false, true, false} {
		e.drain("1", asked)
		e.same("the nodes", e.states(), []string{"1 draining"})
	}
	e.announce(ports.Node{Owner: "1"})
	e.same("the nodes when it no longer stops", e.states(), []string{"1 alive"})
}

func registryDrainUnknown(e *env) {
	for _, owner := range []string{"retired", "gone"} {
		e.announce(ports.Node{Owner: owner})
	}
	e.retire("retired")
	e.clock.Advance(ttl)
	for _, owner := range []string{"never", "retired", "gone", ""} {
		for _, asked := range []bool{true, false} {
			e.refused(fmt.Sprintf("DrainNode of %q", owner), e.store.DrainNode(e.ctx, owner, asked), ports.ErrUnknownNode)
		}
	}
	e.same("the nodes", e.states(), []string{"gone gone"})
}

// wakeupNodes changes the list of servers in each way, through another handle.
func wakeupNodes(e *env) {
	ch := e.wakeups(e.shard, core.Shard{})
	other := *e
	other.store = e.open()
	n := ports.Node{Owner: "1", Lanes: 1}
	announce := func() { other.announce(n) }
	for _, change := range []struct {
		what string
		do   func()
	}{
		{"a new node", announce},
		{"another count of lanes", func() { n.Lanes = 2; announce() }},
		{"another list of queues", func() { n.Queues = []string{orders}; announce() }},
		{"a queue more", func() { n.Queues = append(n.Queues, "mail"); announce() }},
		{"a node that stops", func() { n.Draining = true; announce() }},
		{"a node that no longer stops", func() { n.Draining = false; announce() }},
		{"a drain", func() { other.drain("1", true) }},
		{"the end of a drain", func() { other.drain("1", false) }},
		{"a node that is back after it was gone", func() { e.clock.Advance(ttl); announce() }},
		{"a retirement", func() { other.retire("1") }},
		{"a node that is back after its retirement", announce},
	} {
		change.do()
		e.wakes(change.what, ch, core.Shard{})
	}
}

// wakeupNodesQuiet changes nothing that other servers need to know. A store may send some spurious
// wake-ups, so the case fails only if there is one for each renewal.
func wakeupNodesQuiet(e *env) {
	const rounds = 8
	ch := e.wakeups(core.Shard{}, e.shard)
	n := ports.Node{Owner: "1", Lanes: 1, Queues: []string{orders}}
	e.announce(n)
	e.wakes("a new node", ch, core.Shard{})
	woken := 0
	for i := range rounds {
		e.clock.Advance(time.Second)
		n.Status.Running = i + 1
		e.announce(n)
		e.push(entryAt(fmt.Sprint("job", i), "p", 1, start.Add(-time.Duration(i)*time.Second)))
		for _, s := range e.wokenUntil("a push", ch, e.shard) {
			if s == (core.Shard{}) {
				woken++
			}
		}
	}
	if woken >= rounds {
		e.errorf("%d renewals sent %d wake-ups for the list of servers, want fewer", rounds, woken)
	}
}

func wakeupNodesUnasked(e *env) {
	ch := e.wakeups(e.shard)
	e.announce(ports.Node{Owner: "1"})
	e.pushIDs("a")
	for _, s := range e.wokenUntil("a push", ch, e.shard) {
		e.errorf("a wake-up of %v, which was not asked for", s)
	}
}
