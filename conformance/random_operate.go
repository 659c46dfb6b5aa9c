package conformance

import (
	"context"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// operate does one thing by hand.
func (d *duel) operate() {
	switch pick(d, "operator", "pause", "resume", "resume", "expedite", "expedite", "bury", "delete", "cancel", "cancel", "revive", "revive", "purge", "edit", "recount", "forget") {
	case "pause":
		tell(d, "Pause", d.queue().Name, ports.ShardStore.Pause)
	case "resume":
		tell(d, "Resume", d.queue().Name, ports.ShardStore.Resume)
	case "expedite":
		ask(d, "Expedite", d.jobStep(), ports.ShardStore.Expedite)
	case "bury":
		ask(d, "Bury", d.jobStep(), ports.ShardStore.Bury)
	case "delete":
		ask(d, "Delete", d.jobStep(), ports.ShardStore.Delete)
	case "cancel":
		d.cancel()
	case "revive":
		ask(d, "Revive", d.deadStep(), ports.ShardStore.Revive)
	case "purge":
		ask(d, "Purge", d.deadStep(), ports.ShardStore.Purge)
	case "edit":
		d.edit()
	case "recount":
		ask(d, "Recount", d.shard(), ports.ShardStore.Recount)
	case "forget":
		d.forget()
	}
}

// forget tries to remove a queue, and declares it again, since all else needs it.
// What was known of its leases is then of no use.
func (d *duel) forget() {
	q := d.queue()
	if tell(d, "Forget", q.Name, ports.ShardStore.Forget) != nil {
		return
	}
	ask(d, "Declare", declaration(q), ports.ShardStore.Declare)
	for at, h := range d.holders {
		if at.Queue == q.Name {
			d.former = append(d.former, h)
			delete(d.holders, at)
		}
	}
}

// cancel mostly means what is claimed.
func (d *duel) cancel() {
	r := ports.CancelRequest{Shard: d.shard(), Drop: rapid.Bool().Draw(d.t, "drop")}
	if rarely(d, "any") {
		r.IDs = d.someIDs()
	}
	for _, c := range sorted(d.modelShard(r.Shard).claimed, byClaimID) {
		if rapid.Bool().Draw(d.t, "claimed") {
			r.IDs = append(r.IDs, c.ID)
		}
	}
	ask(d, "Cancel", r, func(s ports.ShardStore, ctx context.Context, r ports.CancelRequest) (ports.StepReply, error) {
		reply, err := s.Cancel(ctx, r)
		reply.Handled = 0 // repeats may count or not
		return reply, err
	})
}

func (d *duel) jobStep() ports.JobStep {
	s := ports.JobStep{Shard: d.shard(), Limit: pick(d, "limit", 0, 1, 2)}
	if rapid.Bool().Draw(d.t, "by id") {
		s.IDs = d.someIDs()
	}
	return s
}

// someIDs is a list that may be empty or name an id twice, and is never nil.
func (d *duel) someIDs() []string {
	return rapid.SliceOfN(rapid.SampledFrom(randomIDs()), 0, 4).Draw(d.t, "ids")
}

func (d *duel) deadStep() ports.DeadLetterStep {
	now := d.model().now()
	s := ports.DeadLetterStep{
		Shard:  d.shard(),
		Before: pick(d, "before", now+1, now+1, now, 0),
		Limit:  pick(d, "limit", 0, 1, 2),
	}
	if rapid.Bool().Draw(d.t, "all") {
		return s
	}
	s.DeadLetters = []ports.DeadLetterRef{}
	for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom(randomIDs()), 0, 4, rapid.ID[string]).Draw(d.t, "ids") {
		ref := ports.DeadLetterRef{ID: id}
		for range pick(d, "payloads", 0, 0, 1, 2, 9) {
			ref.Payloads = append(ref.Payloads, d.data("payload"))
		}
		s.DeadLetters = append(s.DeadLetters, ref)
	}
	return s
}

// edit replaces a dead payload by another: by itself is left open.
func (d *duel) edit() {
	at, id := d.anyDead()
	payloads := d.apart(2)
	r := ports.EditRequest{
		Shard: at,
		ID:    id,
		Old:   payloads[0],
		New:   payloads[1],
	}
	ask(d, "Edit", r, ports.ShardStore.Edit)
}

// anyDead is an entry of the morgue, or an id without one.
func (d *duel) anyDead() (core.Shard, string) {
	at := d.shard()
	if all := sorted(d.modelShard(at).dead, byChange); len(all) > 0 {
		return at, pick(d, "dead", all...).ID
	}
	return at, pick(d, "id", randomIDs()...)
}

// registry declares a queue again, perhaps otherwise, or moves nodes.
func (d *duel) registry() {
	switch pick(d, "registry", "declare", "announce", "announce", "retire") {
	case "declare":
		r := declaration(d.queue())
		switch pick(d, "otherwise", "no", "shards", "index") {
		case "shards":
			r.Shards++
		case "index":
			r.IndexIDs = !r.IndexIDs
		}
		ask(d, "Declare", r, ports.ShardStore.Declare)
	case "announce":
		r := ports.AnnounceRequest{TTL: pick(d, "TTL", randomTTLs()...)}
		r.Node = ports.Node{
			Owner:  pick(d, "owner", "n1", "n2", "n3"),
			Name:   pick(d, "name", "east", "west"),
			Host:   "host",
			PID:    pick(d, "pid", 1, 2),
			Lanes:  5,
			Queues: pick(d, "serves", nil, []string{"orders"}, []string{"orders", "mail"}),
		}
		ask(d, "Announce", r, ports.ShardStore.Announce)
	case "retire":
		tell(d, "Retire", pick(d, "owner", "n1", "n2", "n3"), ports.ShardStore.Retire)
	}
}
