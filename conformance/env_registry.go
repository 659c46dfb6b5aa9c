package conformance

import "github.com/skeinq/skein/ports"

// declare declares a queue, whose record the other helpers then use.
func (e *env) declare(name string, shards int) {
	e.tb.Helper()
	e.declareWith(ports.DeclareRequest{Queue: name, Shards: shards})
}

func (e *env) declareWith(r ports.DeclareRequest) {
	e.tb.Helper()
	reply, err := e.store.Declare(e.ctx, r)
	e.must(err, "Declare")
	e.declared[r.Queue] = ports.Queue{
		Name: r.Queue, Shards: r.Shards, Generation: reply.Generation, IndexIDs: r.IndexIDs,
	}
}

func (e *env) announce(n ports.Node) ports.AnnounceReply {
	e.tb.Helper()
	reply, err := e.store.Announce(e.ctx, ports.AnnounceRequest{Node: n, TTL: ttl})
	e.must(err, "Announce")
	return reply
}

// nodes lists the nodes that run and those that are gone.
func (e *env) nodes() []ports.Node {
	e.tb.Helper()
	reply, err := e.store.Nodes(e.ctx)
	e.must(err, "Nodes")
	e.same("the time of the nodes", reply.Now, e.now())
	return reply.Nodes
}

// states lists the owners of the nodes, each with its state.
func (e *env) states() []string {
	e.tb.Helper()
	var out []string
	for _, n := range e.nodes() {
		out = append(out, n.Owner+" "+n.State(e.now()).String())
	}
	return out
}

func (e *env) drain(owner string, drain bool) {
	e.tb.Helper()
	e.must(e.store.DrainNode(e.ctx, owner, drain), "DrainNode")
}

func (e *env) retire(owner string) {
	e.tb.Helper()
	e.must(e.store.Retire(e.ctx, owner), "Retire")
}
