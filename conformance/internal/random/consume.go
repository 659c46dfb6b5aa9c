package random

import (
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// someLease draws a lease, mostly a valid one.
func (d *driver) someLease() *leaseView {
	at := d.shard()
	if len(d.former) > 0 && rarely(d, "former") {
		return pick(d, "lease", d.former...)
	}
	if h, ok := d.current[at]; ok {
		return h
	}
	return &leaseView{lease: ports.Lease{Shard: at, Owner: "nobody", Token: 1}}
}

// acquire tries to acquire a shard, mostly with a new attempt.
func (d *driver) acquire(at core.Shard) {
	q := d.queues[slices.IndexFunc(d.queues, func(q ports.Queue) bool { return q.Name == at.Queue })]
	who := attemptKey{at, pick(d, "owner", "n1", "n2", "n3")}

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

	reply, err := compare(d, "Acquire", r, ports.ShardStore.Acquire)
	if err != nil {
		return
	}
	d.attempts[who] = r.Attempt

	h := d.current[at]
	if h == nil || h.lease.Token != reply.Token {
		if h != nil {
			d.former = append(d.former, h)
		}
		h = &leaseView{lease: ports.Lease{Shard: at, Owner: r.Owner, Token: reply.Token}}
		d.current[at] = h
	}

	h.addClaims(reply.Claims)
}

// addClaims adds claims that were handed over, unless the holder has them already.
func (h *leaseView) addClaims(claims []core.Claim) {
	for _, c := range claims {
		if !slices.ContainsFunc(h.claims, func(known core.Claim) bool {
			return known.ID == c.ID && known.Receipt == c.Receipt
		}) {
			h.claims = append(h.claims, c)
		}
	}
}

// turn sends the next turn, a repeated one, or one with a wrong number.
func (d *driver) turn(h *leaseView) {
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

func (d *driver) send(h *leaseView, r ports.TurnRequest) {
	reply, err := compare(d, "Turn", r, ports.ShardStore.Turn)
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

	h.endParts(&r, &reply)
	h.addClaims(reply.Claims)
	h.addClaims(reply.Orphans)
}

// endParts changes the claims that have lost a payload. Those whose part was skipped, or that were
// settled by the same turn, do not change.
func (h *leaseView) endParts(r *ports.TurnRequest, reply *ports.TurnReply) {
	if reply.Repeat {
		return
	}

	for i, part := range r.Parts {
		at := slices.IndexFunc(h.claims, func(c core.Claim) bool {
			return c.ID == part.ID && c.Receipt == part.Receipt
		})
		if at < 0 || slices.Contains(reply.SkippedParts, i) {
			continue
		}

		if left, ok := part.Apply(h.claims[at]); ok {
			h.claims[at] = left
		}
	}
}

// work acquires the shard if no caller has leased it, and claims all jobs that it can get.
func (d *driver) work(at core.Shard) {
	if d.current[at] == nil {
		d.acquire(at)
	}
	if h := d.current[at]; h != nil {
		r := d.turnRequest(h)
		r.Want = core.MaxTurnJobs
		d.send(h, r)
	}
}

// takeOver lets the lease of a shard run out, as after a crash, and acquires it again.
func (d *driver) takeOver(at core.Shard) {
	d.clock.Advance(ttl)
	d.acquire(at)
	if h := d.current[at]; h != nil {
		r := d.turnRequest(h)
		r.Settlements = nil
		for _, c := range h.claims {
			if c.Receipt.Token != h.lease.Token {
				r.Settlements = append(r.Settlements, d.policy.Recover(&c, d.model().Now()))
			}
		}
		d.send(h, r)
	}
}

func (d *driver) turnRequest(h *leaseView) ports.TurnRequest {
	r := ports.TurnRequest{
		Lease:       h.lease,
		Number:      h.last + 1,
		TTL:         pick(d, "TTL", randomTTLs()...),
		Settlements: d.settlements(h),
		Want:        pick(d, "Want", 0, 1, 1, 2, 5),
		PerJob:      pick(d, "PerJob", 0, 0, 1, 2, 9),
		Bytes:       pick(d, "Bytes", 0, 0, 1, 3, 4<<10),
		Node:        "node of " + h.lease.Owner,
		Keep:        d.keep,
	}

	for _, c := range h.claims {
		if rapid.Bool().Draw(d.t, "begin") {
			r.Begin = append(r.Begin, c.Ref())
		}
		if len(c.Payloads) > 1 && rarely(d, "part") {
			part := c.SettlePayload(rapid.IntRange(0, len(c.Payloads)).Draw(d.t, "position"))
			part.Mark = d.mark()
			r.Parts = append(r.Parts, part)
		}
	}

	r.Resent = rarely(d, "resent")
	r.Marks = rapid.Bool().Draw(d.t, "marks")
	return r
}

func (d *driver) renewOrRelease(h *leaseView) {
	if pick(d, "lease", "renew", "renew", "release") == "renew" {
		compare(d, "Renew", ports.RenewRequest{Lease: h.lease, TTL: pick(d, "TTL", randomTTLs()...)}, harness.Renew)
		return
	}
	compareErr(d, "Release", h.lease, ports.ShardStore.Release)
}

// settlements draws settlements that a holder may send: for some of its claims, and rarely one of
// them twice, those of another holder's claims, or one with a wrong receipt.
func (d *driver) settlements(h *leaseView) []core.Settlement {
	var settle []core.Settlement
	for _, c := range h.claims {
		if rapid.Bool().Draw(d.t, "settle") {
			settle = append(settle, d.settlement(h, c))
		}
	}

	if len(settle) > 0 && rarely(d, "twice") {
		settle = append(settle, settle[0])
	}

	if len(d.former) > 0 && rarely(d, "from the past") {
		for _, c := range pick(d, "former", d.former...).claims {
			settle = append(settle, d.settlement(h, c))
		}
	}

	if len(h.claims) > 0 && rarely(d, "wrong receipt") {
		c := pick(d, "claim", h.claims...)
		c.Receipt.Number++
		settle = append(settle, d.settlement(h, c))
	}
	return settle
}

// settlement mostly recovers a claim that an earlier lease left, and draws an outcome for any
// other.
func (d *driver) settlement(h *leaseView, c core.Claim) core.Settlement {
	if c.Receipt.Token != h.lease.Token && !rarely(d, "no recovery") {
		return d.policy.Recover(&c, d.model().Now())
	}

	if rarely(d, "put off") {
		return c.PutOff(pick(d, "put off for", 0, time.Second, -time.Second, time.Hour), d.slot())
	}

	o := core.Outcome{
		Kind: pick(d, "outcome", core.Done, core.Done, core.Failed, core.Failed, core.Failed,
			core.Buried, core.Snoozed, core.Untouched, core.Dropped, core.Undecided, core.Awaiting),
		Error:    pick(d, "error", "boom", "bang", "\x1eboom", strings.Repeat("é", 700)),
		Group:    d.group(),
		Delay:    pick(d, "delay", 0, time.Second, -time.Second, core.Forever),
		OwnDelay: rapid.Bool().Draw(d.t, "own delay"),
		At:       pick(d, "failed at", -1, 0, d.model().Now(), core.MaxInstant+1),
		Node:     pick(d, "node", randomNodes()...),
	}

	for i := range c.Payloads {
		if rarely(d, "by itself") {
			o.Payloads = append(o.Payloads, core.PayloadOutcome{
				Position: i,
				Bury:     rapid.Bool().Draw(d.t, "bury"),
				Error:    "of its own",
				Group:    d.group(),
			})
		}
	}

	s := d.policy.Settlement(&c, &o, rapid.IntRange(0, core.BackoffJitter-1).Draw(d.t, "jitter"))
	if rapid.Bool().Draw(d.t, "record") {
		s.Record(&c, core.Run{
			Started: pick(d, "started", -1, 0, d.model().Now()),
			Took:    pick(d, "took", -time.Second, 0, time.Microsecond, time.Hour),
			Node:    pick(d, "node", randomNodes()...),
			Result:  []byte(pick(d, "result", "", "", "42", "\x00\xff", strings.Repeat("r", core.MaxResultBytes/2))),
		})
	}
	if rapid.Bool().Draw(d.t, "mark") {
		s.MarkDone(&c, &o)
	}
	if rarely(d, "stale") {
		s.Stale = pick(d, "how many stale", 1, 2, 300)
	}
	return s
}

// mark draws the mark of a payload that ends by itself, sometimes none.
func (d *driver) mark() core.Mark {
	return pick(d, "mark",
		core.Mark{}, core.MarkAt(0), core.MarkAt(1), core.MarkAt(2), core.MarkAt(-1.5), core.MarkAt(1<<53))
}

// slot draws the slot of a job, sometimes none.
func (d *driver) slot() string {
	return pick(d, "slot", "", "a", "a", "b é", strings.Repeat("s", ports.MaxLimiterKey))
}

// group draws the group of a burial, sometimes one that core.GroupName changes.
func (d *driver) group() string {
	return pick(d, "group", randomGroups()...)
}

func randomNodes() []string {
	return []string{"", "web-1", "é\x1e", strings.Repeat("n", core.MaxNodeBytes+1)}
}

func randomGroups() []string {
	return []string{"x", "x", "y", "é z", "", "x\x00", strings.Repeat("é", core.MaxGroupBytes)}
}
