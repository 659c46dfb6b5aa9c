package conformance

import (
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// quarantinedShards returns the indexes of a queue's shards that have set something aside.
func (e *env) quarantinedShards(queue string, of []int) (indexes []int) {
	e.tb.Helper()
	reply, err := e.store.QuarantinedShards(e.ctx, ports.QuarantinedShardsRequest{Queue: queue, Shards: of})
	e.must(err, "QuarantinedShards")
	e.same("the shards that are not reached", reply.Unreached, []core.Shard(nil))
	for _, shard := range reply.Shards {
		e.same("the shard's queue", shard.Queue, queue)
		indexes = append(indexes, shard.Index)
	}
	return indexes
}

func damagedShards(e *env) {
	e.declareWith(ports.DeclareRequest{Queue: "wide", Shards: 3})
	for _, shard := range core.Shards("wide", 3)[1:] {
		id := idsOf(shard, 3, 1)[0]
		e.pushTo("wide", entryAt(id, "p", 1, e.now()))
		e.must(e.store.(Damager).Damage(e.ctx, shard, id, ports.PlaceQueued), "Damage")
		_, err := e.store.Delete(e.ctx, ports.JobStep{Shard: shard, IDs: []string{id}})
		e.must(err, "Delete")
	}
	e.same("the shards that have set something aside", e.quarantinedShards("wide", nil), []int{1, 2})
	e.same("those of the first two", e.quarantinedShards("wide", []int{1, 0}), []int{1})
	e.same("those of none", e.quarantinedShards("wide", []int{}), []int(nil))
}
