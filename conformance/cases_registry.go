package conformance

import (
	"time"

	"github.com/skeinq/skein/ports"
)

func registryCases() []namedCase {
	return []namedCase{
		{"answers a ping", "Ping asks whether the store answers and can be used", registryAnswers},
		{"lists the nodes that run", "Announce records that a node runs, for the TTL from now", registryLists},
		{"lists nodes in order of name and owner", "Nodes: in order of (Name, Owner)", registryOrder},
		{"lists a node that stopped announcing as gone for an hour", ruleNodes, registryGone},
		{"forgets what has been gone for an hour", "Announce: what ran out more than NodeKept ago is removed", registryForgets},
		{"renews by announcing again", "Announce: in place of what its Owner announced before; repeating it renews", registryRenews},
		{"cuts an announcement that a clock has made longer", ruleNodeCut, registryCut},
		{"retires a node at once", "Retire forgets a node at once; a node that is not known is not an error", registryRetires},
		{"refuses a bad announcement", "AnnounceRequest.Validate: ErrInvalidRequest for an empty owner or a TTL below 1 ms", registryInvalid},
		{"shows in Nodes alone what nodes are doing", "Node: Only Nodes returns Status; in the reply of Announce it is zero", registryStatus},
		{"bounds what a node says that it is doing", "Announce: ErrInvalidRequest for more than MaxLongest running jobs in the status, or MaxLaneBusy shards of a queue", registryStatusBound},
		{"drains a node and has it work again", ruleDrain, registryDrains},
		{"keeps a drain while a node renews", "Announce: what an operator has asked by DrainNode stays while the node is known", registryDrainKept},
		{"ends a drain with the announcement", "Announce: what an operator has asked by DrainNode stays until the node is retired or its announcement has run out", registryDrainEnds},
		{"lets a node that stops drain whatever an operator says", ruleDrain, registryStops},
		{"refuses to drain an unknown node", "DrainNode: ErrUnknownNode if no announcement of that owner lasts", registryDrainUnknown},
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
