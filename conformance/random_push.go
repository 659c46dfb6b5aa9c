package conformance

import (
	"math"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// The alphabets are small, so that entries meet, and their order by bytes is
// that of no language.

func randomIDs() []string { return []string{"9", "10", "B", "a", "ab", "é"} }

func randomData() []string { return []string{"", "p", "q", "pq", "\x00\xff"} }

func randomTTLs() []time.Duration {
	return []time.Duration{ttl, ttl, 10*time.Second + 999, time.Millisecond}
}

func declaration(q ports.Queue) ports.DeclareRequest {
	return ports.DeclareRequest{Queue: q.Name, Shards: q.Shards, IndexIDs: q.IndexIDs}
}

func (d *duel) push() {
	q := d.queue()
	r := ports.PushRequest{Queue: q.Name, Shards: q.Shards, Generation: q.Generation}
	r.Rule = core.PushRule{
		Kind:  pick(d, "rule", core.Keep, core.Keep, core.Earliest, core.Debounce),
		Limit: pick(d, "limit", 0, 5*time.Second),
	}
	for range pick(d, "entries", 1, 1, 2, 4) {
		r.Entries = append(r.Entries, d.entry())
	}
	if rarely(d, "misinformed") {
		switch pick(d, "about", "queue", "shards", "generation") {
		case "queue":
			r.Queue = "nowhere"
		case "shards":
			r.Shards++
		case "generation":
			r.Generation++
		}
	}
	ask(d, "Push", r, ports.ShardStore.Push)
}

func (d *duel) entry() core.Entry {
	now := d.model.now()
	e := core.Entry{
		ID: pick(d, "id", randomIDs()...),
		Payload: core.Payload{
			Data:  d.data("data"),
			Score: pick(d, "score", 0, 1, 1.5, 2, -1, math.Copysign(0, -1), 1<<53),
		},
		When: pick(d, "when", core.When{}, core.When{}, core.When{},
			core.In(-time.Second), core.In(time.Second), core.In(10*time.Second+time.Nanosecond),
			core.At(now), core.At(now.Add(time.Second)), core.At(0), core.At(core.MaxInstant)),
	}
	if meta := pick(d, "meta", "", "", "m", "n"); meta != "" {
		e.Meta = []byte(meta)
	}
	return e
}

func (d *duel) data(label string) []byte { return []byte(pick(d, label, randomData()...)) }
