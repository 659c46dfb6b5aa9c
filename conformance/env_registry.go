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

func (e *env) nodes() []ports.Node {
	e.tb.Helper()
	nodes, err := e.store.Nodes(e.ctx)
	e.must(err, "Nodes")
	return nodes
}
