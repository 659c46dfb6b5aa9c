package conformance

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// tenure is a lease to try: mostly one that should hold.
func (d *duel) tenure() *tenure {
	at := d.shard()
	if len(d.former) > 0 && rarely(d, "former") {
		return pick(d, "lease", d.former...)
	}
	if h, ok := d.holders[at]; ok {
		return h
	}
	return &tenure{lease: ports.Lease{Shard: at, Owner: "nobody", Token: 1}}
}

// acquire tries to get a shard, mostly with a new attempt.
func (d *duel) acquire(at core.Shard) {
	q := d.queues[slices.IndexFunc(d.queues, func(q ports.Queue) bool { return q.Name == at.Queue })]
	who := contender{at, pick(d, "owner", "n1", "n2", "n3")}
	r := ports.AcquireRequest{
		Shard:      at,
		Shards:     q.Shards,
		Generation: q.Generation,
		Owner:      who.owner,
		Attempt:    d.attempts[who] + pick(d, "attempt", int64(1), 1, 0, 0, -1),
		TTL:        pick(d, "TTL", randomTTLs()...),
	}
	if rarely(d, "misinformed") {
		r.Generation++
	}
	reply, err := ask(d, "Acquire", r, ports.ShardStore.Acquire)
	if err != nil {
		return
	}
	d.attempts[who] = r.Attempt
	h := d.holders[at]
	if h == nil || h.lease.Token != reply.Token {
		if h != nil {
			d.former = append(d.former, h)
		}
		h = &tenure{lease: ports.Lease{Shard: at, Owner: r.Owner, Token: reply.Token}}
		d.holders[at] = h
	}
	h.learn(reply.Claims)
}

// learn adds claims that were handed over.
func (h *tenure) learn(claims []core.Claim) {
	for _, c := range claims {
		if !slices.ContainsFunc(h.claims, func(known core.Claim) bool { return known.ID == c.ID && known.Receipt == c.Receipt }) {
			h.claims = append(h.claims, c)
		}
	}
}

// turn sends a turn that is next, or repeated, or from another time.
func (d *duel) turn(h *tenure) {
	r := d.turnRequest(h)
	switch pick(d, "turn", "next", "next", "next", "next", "again", "changed", "stale", "ahead") {
	case "again":
		if h.last > 0 {
			r = h.sent
		}
	case "changed":
		r.Number = h.last
	case "stale":
		r.Number = h.last - 1
	case "ahead":
		r.Number = h.last + 2
	}
	d.send(h, r)
}

func (d *duel) send(h *tenure, r ports.TurnRequest) {
	reply, err := ask(d, "Turn", r, ports.ShardStore.Turn)
	if err != nil {
		return
	}
	if reply.Last > h.last {
		h.last, h.sent = reply.Last, r
		for i, s := range r.Settlements {
			if !slices.Contains(reply.Skipped, i) {
				h.claims = slices.DeleteFunc(h.claims, func(c core.Claim) bool { return c.ID == s.ID })
			}
		}
	}
	h.learn(reply.Claims)
	h.learn(reply.Orphans)
}

// work is a turn that claims what it can get, by a holder that is found first.
func (d *duel) work(at core.Shard) {
	if d.holders[at] == nil {
		d.acquire(at)
	}
	if h := d.holders[at]; h != nil {
		r := d.turnRequest(h)
		r.Want = core.MaxTurnJobs
		d.send(h, r)
	}
}

// succeed is a crash: the lease runs out and another attempt takes over.
func (d *duel) succeed(at core.Shard) {
	d.clock.Advance(ttl)
	d.acquire(at)
	if h := d.holders[at]; h != nil {
		r := d.turnRequest(h)
		r.Settlements = nil
		for _, c := range h.claims {
			if c.Receipt.Token != h.lease.Token {
				r.Settlements = append(r.Settlements, d.policy.Recover(&c))
			}
		}
		d.send(h, r)
	}
}

func (d *duel) turnRequest(h *tenure) ports.TurnRequest {
	r := ports.TurnRequest{
		Lease:       h.lease,
		Number:      h.last + 1,
		TTL:         pick(d, "TTL", randomTTLs()...),
		Settlements: d.settlements(h),
		Want:        pick(d, "Want", 0, 1, 1, 2, 5),
		PerJob:      pick(d, "PerJob", 0, 0, 1, 2, 9),
		Bytes:       pick(d, "Bytes", 0, 0, 1, 3, 4<<10),
		Node:        "node of " + h.lease.Owner,
		Lane:        pick(d, "Lane", 0, 1),
	}
	for _, c := range h.claims {
		if rapid.Bool().Draw(d.t, "begin") {
			r.Begin = append(r.Begin, c.Ref())
		}
	}
	r.Resent = rarely(d, "resent")
	if rarely(d, "Stats") {
		r.Stats = &core.Stats{Processed: 2, Failed: 1}
		r.Stats.Wait.Observe(pick(d, "wait", time.Millisecond, time.Second))
		r.Stats.Run.Observe(time.Minute)
	}
	return r
}

func (d *duel) renewOrRelease(h *tenure) {
	if pick(d, "lease", "renew", "renew", "release") == "renew" {
		ask(d, "Renew", ports.RenewRequest{Lease: h.lease, TTL: pick(d, "TTL", randomTTLs()...)}, ports.ShardStore.Renew)
		return
	}
	tell(d, "Release", h.lease, ports.ShardStore.Release)
}
