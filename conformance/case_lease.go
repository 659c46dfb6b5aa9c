package conformance

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// ttl is what leases last in the suite.
const ttl = 30 * time.Second

// lane is where the suite's turns say that they run.
const lane = 3

// holder holds a lease and numbers its turns.
type holder struct {
	e     *env
	lease ports.Lease
	// number is that of the last turn carried out.
	number int64
	// reply is what Acquire answered, and left what earlier leases left, as far
	// as the store has handed it over.
	reply ports.AcquireReply
	left  []core.Claim
}

// acquire takes the shard of orders with a new attempt.
func (e *env) acquire(owner string) *holder {
	e.tb.Helper()
	return e.acquireBy(e.acquireRequest(e.shard, owner))
}

// acquireAt takes any shard with a new attempt.
func (e *env) acquireAt(s core.Shard, owner string) *holder {
	e.tb.Helper()
	return e.acquireBy(e.acquireRequest(s, owner))
}

func (e *env) acquireBy(r ports.AcquireRequest) *holder {
	e.tb.Helper()
	reply, err := e.store.Acquire(e.ctx, r)
	e.must(err, "Acquire")
	h := &holder{
		e:     e,
		lease: ports.Lease{Shard: r.Shard, Owner: r.Owner, Token: reply.Token},
		reply: reply,
		left:  reply.Claims,
	}
	if e.worked != nil {
		h.workFirst()
	}
	return h
}

// acquireRequest is a new attempt at a shard.
func (e *env) acquireRequest(s core.Shard, owner string) ports.AcquireRequest {
	e.attempts++
	q := e.declared[s.Queue]
	return ports.AcquireRequest{
		Shard: s, Shards: q.Shards, Generation: q.Generation,
		Owner: owner, Attempt: e.attempts, TTL: ttl,
	}
}

// request is the holder's next turn.
func (h *holder) request(want int, settle ...core.Settlement) ports.TurnRequest {
	return ports.TurnRequest{
		Lease: h.lease, Number: h.number + 1, TTL: ttl, Settlements: settle, Want: want,
		Node: "node of " + h.lease.Owner, Lane: lane,
	}
}

// send carries a turn out.
func (h *holder) send(r ports.TurnRequest) ports.TurnReply {
	h.e.tb.Helper()
	reply, err := h.e.store.Turn(h.e.ctx, r)
	h.e.must(err, "Turn")
	h.number = reply.Last
	h.left = append(h.left, reply.Orphans...)
	return reply
}

// refused sends a turn that must fail.
func (h *holder) refused(what string, r ports.TurnRequest, sentinel error) {
	h.e.tb.Helper()
	_, err := h.e.store.Turn(h.e.ctx, r)
	h.e.refused(what, err, sentinel)
}

func (h *holder) turn(want int, settle ...core.Settlement) ports.TurnReply {
	h.e.tb.Helper()
	return h.send(h.request(want, settle...))
}

func (h *holder) settle(settle ...core.Settlement) ports.TurnReply {
	h.e.tb.Helper()
	return h.turn(0, settle...)
}

// begin marks claimed jobs as begun.
func (h *holder) begin(claims ...core.Claim) ports.TurnReply {
	h.e.tb.Helper()
	return h.send(h.beginRequest(claims...))
}

// beginRequest is the holder's next turn, which begins claimed jobs.
func (h *holder) beginRequest(claims ...core.Claim) ports.TurnRequest {
	r := h.request(0)
	for i := range claims {
		r.Begin = append(r.Begin, claims[i].Ref())
	}
	return r
}

func (h *holder) claim(want int) []core.Claim {
	h.e.tb.Helper()
	return h.turn(want).Claims
}

// one is the single job of a turn that wants one, which must be there.
func (h *holder) one(settle ...core.Settlement) core.Claim {
	h.e.tb.Helper()
	return h.only(h.request(1, settle...))
}

// cut claims one job but no more than so many of its payloads.
func (h *holder) cut(payloads int) core.Claim {
	h.e.tb.Helper()
	r := h.request(1)
	r.PerJob = payloads
	return h.only(r)
}

func (h *holder) only(r ports.TurnRequest) core.Claim {
	h.e.tb.Helper()
	claims := h.send(r).Claims
	if len(claims) != 1 {
		h.e.tb.Fatalf("a turn that wants a job claimed %d, want 1\nthe rule: %s", len(claims), h.e.rule)
	}
	return claims[0]
}

// handOver is how many turns a store gets to hand over what Acquire could not
// reach.
const handOver = 8

// orphans are the jobs that earlier leases left, by id: those of Acquire and of
// as many turns as bring some.
func (h *holder) orphans() []core.Claim {
	h.e.tb.Helper()
	for range handOver {
		if len(h.turn(0).Orphans) == 0 {
			break
		}
	}
	all := slices.Clone(h.left)
	slices.SortStableFunc(all, func(a, b core.Claim) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

func (h *holder) release() {
	h.e.tb.Helper()
	before := h.e.made.all.Load()
	err := h.e.store.Release(h.e.ctx, h.lease)
	if errors.Is(err, ports.ErrLeaseLost) && h.e.made.all.Load() > before {
		return // its first call has released it
	}
	h.e.must(err, "Release")
}

func (h *holder) renew() ports.RenewReply {
	h.e.tb.Helper()
	reply, err := h.e.store.Renew(h.e.ctx, ports.RenewRequest{Lease: h.lease, TTL: ttl})
	h.e.must(err, "Renew")
	return reply
}

// lost checks that the lease is over: its turn, renewal and release are refused.
func (h *holder) lost() {
	h.e.tb.Helper()
	h.refused("Turn of a lease that is over", h.request(1), ports.ErrLeaseLost)
	_, err := h.e.store.Renew(h.e.ctx, ports.RenewRequest{Lease: h.lease, TTL: ttl})
	h.e.refused("Renew of a lease that is over", err, ports.ErrLeaseLost)
	h.e.refused("Release of a lease that is over", h.e.store.Release(h.e.ctx, h.lease), ports.ErrLeaseLost)
}

// ids are the ids of claims, in their order.
func ids(claims []core.Claim) []string {
	out := make([]string, len(claims))
	for i := range claims {
		out[i] = claims[i].ID
	}
	return out
}
