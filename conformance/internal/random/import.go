package random

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// imported draws dead letters of ids of one shard, which may be there already, most often earlier
// or later than they come.
func (d *driver) imported() ports.ImportRequest {
	at := d.shard()
	q := d.queues[slices.IndexFunc(d.queues, func(q ports.Queue) bool { return q.Name == at.Queue })]
	r := ports.ImportRequest{Shard: at, Shards: q.Shards, Generation: q.Generation}
	if rarely(d, "another layout") {
		r.Generation++
	}
	ids := slices.DeleteFunc(randomIDs(), func(id string) bool { return core.ShardOf(id, q.Shards) != at.Index })
	if len(ids) == 0 {
		return r
	}
	now := d.model().Now()
	for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 0, len(ids), rapid.ID[string]).Draw(d.t, "ids") {
		letter := core.DeadLetter{
			ID: id, ChangedAt: now.Add(pick(d, "changed", -time.Hour, -time.Second, 0, 0, time.Second)),
			Error: pick(d, "error", "", "boom"), Group: core.GroupName(pick(d, "group", randomGroups()...)),
		}
		var payloads core.PayloadSet
		for _, data := range d.distinctData(pick(d, "payloads", 1, 1, 2, 3)) {
			payloads.Add(core.Payload{Data: data, Score: float64(pick(d, "score", 1, 2, 3)), Meta: pick(d, "meta", nil, []byte("m"))})
		}
		letter.Payloads = payloads.List()
		r.DeadLetters = append(r.DeadLetters, letter)
	}
	return r
}
