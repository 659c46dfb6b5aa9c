package conformance

import (
	"context"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// jobStep is Expedite, Bury or Delete.
type jobStep func(context.Context, ports.JobStep) (ports.StepReply, error)

// deadLetterStep is Revive or Purge.
type deadLetterStep func(context.Context, ports.DeadLetterStep) (ports.StepReply, error)

// byIDs handles the named jobs.
func (e *env) byIDs(do jobStep, ids ...string) ports.StepReply {
	e.tb.Helper()
	reply, err := do(e.ctx, ports.JobStep{Shard: e.shard, IDs: ids})
	e.must(err, "a step by ids")
	return reply
}

// byRefs handles the named dead letters, or payloads of them.
func (e *env) byRefs(do deadLetterStep, refs ...ports.DeadLetterRef) ports.StepReply {
	e.tb.Helper()
	reply, err := do(e.ctx, ports.DeadLetterStep{Shard: e.shard, DeadLetters: refs})
	e.must(err, "a step by dead letters")
	return reply
}

// byAge handles at most limit dead letters that last changed before an instant.
func (e *env) byAge(do deadLetterStep, before core.Instant, limit int) ports.StepReply {
	e.tb.Helper()
	since := e.repeats.Lossy.Load()
	reply, err := do(e.ctx, ports.DeadLetterStep{Shard: e.shard, Before: before, Limit: limit})
	e.must(err, "a step over all")
	e.giveUpIfRepeated(since)
	return reply
}

// whole refers to a dead letter with all its payloads.
func whole(id string) ports.DeadLetterRef { return ports.DeadLetterRef{ID: id} }

// parts refers to some payloads of a dead letter, by their Data.
func parts(id string, data ...string) ports.DeadLetterRef {
	ref := ports.DeadLetterRef{ID: id, Payloads: [][]byte{}}
	for _, d := range data {
		ref.Payloads = append(ref.Payloads, []byte(d))
	}
	return ref
}

// failAll pushes a job for each id and fails it with the error "boom". The first job is due again
// in a second, and each other one a second after the one before it.
func failAll(e *env, ids ...string) {
	e.tb.Helper()
	e.pushIDs(ids...)
	h := e.acquire("failer")
	var s []core.Settlement
	for i, c := range h.claim(len(ids)) {
		s = append(s, failed(c, "boom", time.Duration(i+1)*time.Second))
	}
	h.settle(s...)
	h.release()
}

// buryAll buries a job with the payloads p and q for each id, and advances the clock by a second
// after each burial.
func buryAll(e *env, ids ...string) {
	e.tb.Helper()
	for _, id := range ids {
		e.push(entryAt(id, "p", 1, 0), entryAt(id, "q", 2, 0))
		e.byIDs(e.store.Bury, id)
		e.clock.Advance(time.Second)
	}
}

// deadIDs returns the ids in the morgue of orders, by time.
func (e *env) deadIDs() []string {
	e.tb.Helper()
	return e.morguePages(false)(wholePage(orders)).ids
}

func (e *env) pause(queue string) {
	e.tb.Helper()
	e.must(e.store.Pause(e.ctx, queue), "Pause")
}

func (e *env) resume(queue string) {
	e.tb.Helper()
	e.must(e.store.Resume(e.ctx, queue), "Resume")
}

func (e *env) cancel(drop bool, ids ...string) ports.StepReply {
	e.tb.Helper()
	reply, err := e.store.Cancel(e.ctx, ports.CancelRequest{Shard: e.shard, IDs: ids, Drop: drop})
	e.must(err, "Cancel")
	return reply
}

// deadLetterSteps are the methods that handle dead payloads.
func (e *env) deadLetterSteps() map[string]deadLetterStep {
	return map[string]deadLetterStep{"Revive": e.store.Revive, "Purge": e.store.Purge}
}

// jobSteps are the methods that handle queued jobs.
func (e *env) jobSteps() map[string]jobStep {
	return map[string]jobStep{"Expedite": e.store.Expedite, "Bury": e.store.Bury, "Delete": e.store.Delete}
}

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
		Name: r.Queue, Shards: r.Shards, Generation: reply.Generation, IndexIDs: r.IndexIDs, Merge: r.Merge,
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
