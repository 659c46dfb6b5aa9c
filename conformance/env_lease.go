package conformance

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// ttl is the duration of leases.
const ttl = 30 * time.Second

// holder holds a lease and numbers its turns.
type holder struct {
	e     *env
	lease ports.Lease
	// number is the number of the last turn that was carried out.
	number int64
	// acquired is the request of Acquire, and reply is its reply. inherited are the jobs of earlier
	// leases that the store has handed over until now.
	acquired  ports.AcquireRequest
	reply     ports.AcquireReply
	inherited []core.Claim
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
		e:         e,
		lease:     ports.Lease{Shard: r.Shard, Owner: r.Owner, Token: reply.Token},
		acquired:  r,
		reply:     reply,
		inherited: reply.Claims,
	}
	if e.warm != nil {
		h.warmUp()
	}
	return h
}

// acquireRequest returns a new attempt at a shard.
func (e *env) acquireRequest(s core.Shard, owner string) ports.AcquireRequest {
	e.attempts++
	q := e.declared[s.Queue]
	return ports.AcquireRequest{
		Shard: s, Shards: q.Shards, Generation: q.Generation,
		Owner: owner, Attempt: e.attempts, TTL: ttl,
	}
}

// request returns the holder's next turn.
func (h *holder) request(want int, settle ...core.Settlement) ports.TurnRequest {
	return ports.TurnRequest{
		Lease: h.lease, Number: h.number + 1, TTL: ttl, Settlements: settle, Want: want,
		Node: "node of " + h.lease.Owner,
	}
}

// send makes a turn.
func (h *holder) send(r ports.TurnRequest) ports.TurnReply {
	h.e.tb.Helper()
	reply, err := h.e.store.Turn(h.e.ctx, r)
	h.e.must(err, "Turn")
	h.number = reply.Last
	h.inherited = append(h.inherited, reply.Orphans...)
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

// beginRequest returns the holder's next turn, which begins claimed jobs.
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

// one makes a turn that must claim one job.
func (h *holder) one(settle ...core.Settlement) core.Claim {
	h.e.tb.Helper()
	return h.only(h.request(1, settle...))
}

// cut claims one job with at most the given number of its payloads.
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
		h.e.tb.Fatalf("a turn with Want 1 claimed %d jobs, want 1\nthe rule: %s", len(claims), h.e.rule)
	}
	return claims[0]
}

// handOverTurns is the maximum number of turns in which a store hands over the claims that Acquire
// could not reach.
const handOverTurns = 8

// orphans returns the jobs that earlier leases left claimed, in order of id. It makes turns until
// one hands over no job.
func (h *holder) orphans() []core.Claim {
	h.e.tb.Helper()
	for range handOverTurns {
		if len(h.turn(0).Orphans) == 0 {
			break
		}
	}
	all := slices.Clone(h.inherited)
	slices.SortStableFunc(all, func(a, b core.Claim) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

func (h *holder) release() {
	h.e.tb.Helper()
	before := h.e.repeats.All.Load()
	err := h.e.store.Release(h.e.ctx, h.lease)
	if errors.Is(err, ports.ErrLeaseLost) && h.e.repeats.All.Load() > before {
		return // its first call has released it
	}
	h.e.must(err, "Release")
}

// reacquire repeats the acquire.
func (h *holder) reacquire() ports.AcquireReply {
	h.e.tb.Helper()
	reply, err := h.e.store.Acquire(h.e.ctx, h.acquired)
	h.e.must(err, "Acquire again")
	return reply
}

func (h *holder) renew() ports.RenewReply {
	h.e.tb.Helper()
	reply, err := harness.Renew(h.e.store, h.e.ctx, ports.RenewRequest{Lease: h.lease, TTL: ttl})
	h.e.must(err, "Renew")
	return reply
}

// checkLost checks that the lease is over: its turn, renewal and release are refused.
func (h *holder) checkLost() {
	h.e.tb.Helper()
	h.refused("Turn of a lease that is over", h.request(1), ports.ErrLeaseLost)
	_, err := h.e.store.Renew(h.e.ctx, ports.RenewRequest{Lease: h.lease, TTL: ttl})
	h.e.refused("Renew of a lease that is over", err, ports.ErrLeaseLost)
	h.e.refused("Release of a lease that is over", h.e.store.Release(h.e.ctx, h.lease), ports.ErrLeaseLost)
}

// ids returns the ids of claims, in their order.
func ids(claims []core.Claim) []string {
	out := make([]string, len(claims))
	for i := range claims {
		out[i] = claims[i].ID
	}
	return out
}

// warmUp claims and settles a job in the shard of orders, so that the case's turns are not the
// first ones of the shard. It leaves nothing behind, counts nothing, and uses up no token that the
// case would get without it. From then on each lease begins with a turn that only uses up its
// number, so that the case's turns follow a turn that wrote.
func (e *env) warmUp() {
	e.tb.Helper()
	e.clock.Advance(-time.Microsecond)
	defer e.clock.Advance(time.Microsecond)
	e.pushIDs("worked before")
	h := e.acquire("n0")
	h.settle(settleAll(h.claim(core.MaxTurnJobs), dropped)...)
	h.release()
	e.warm = map[ports.Lease]bool{}
}

// warmUp makes the first turn of a lease. The turn settles a job that is not claimed, so it writes
// and has no effect.
func (h *holder) warmUp() {
	h.e.tb.Helper()
	if h.e.warm[h.lease] {
		return // a repeated acquire has returned the same lease
	}
	h.e.warm[h.lease] = true
	h.settle(core.Settlement{ID: "not claimed", Receipt: core.Receipt{Token: h.lease.Token, Number: 1}})
}

func bytesTurn(h *holder, size int) ports.TurnReply {
	h.e.tb.Helper()
	r := h.request(10)
	r.Bytes = size
	return h.send(r)
}

// claimedJob returns a claim of a job with the payloads p1, p2 and p3, pushed at the start and
// claimed a second later.
func claimedJob(e *env) (*holder, core.Claim) {
	e.tb.Helper()
	e.push(entry("a", "p1", 1), entry("a", "p2", 2), entry("a", "p3", 3))
	e.clock.Advance(time.Second)
	h := e.acquire("n1")
	return h, h.one()
}

// claimAndCrash claims all due jobs for the owner, and lets the lease expire.
func claimAndCrash(e *env, owner string) []core.Claim {
	e.tb.Helper()
	claims := e.acquire(owner).claim(core.MaxTurnJobs)
	e.clock.Advance(ttl + time.Microsecond)
	return claims
}

// Settlements of a claim by its outcome, as core makes them.

func done(c core.Claim) core.Settlement { return outcome(c, core.Outcome{Kind: core.Done}) }

func dropped(c core.Claim) core.Settlement { return outcome(c, core.Outcome{Kind: core.Dropped}) }

func untouched(c core.Claim) core.Settlement { return outcome(c, core.Outcome{Kind: core.Untouched}) }

func snoozed(c core.Claim, d time.Duration) core.Settlement {
	return outcome(c, core.Outcome{Kind: core.Snoozed, Delay: d})
}

func awaiting(c core.Claim, d time.Duration) core.Settlement {
	return outcome(c, core.Outcome{Kind: core.Awaiting, Delay: d})
}

func buried(c core.Claim, reason string) core.Settlement {
	return outcome(c, core.Outcome{Kind: core.Buried, Error: reason})
}

func failed(c core.Claim, reason string, d time.Duration) core.Settlement {
	return outcome(c, core.Outcome{Kind: core.Failed, Error: reason, Delay: d, OwnDelay: true})
}

func recovered(c core.Claim) core.Settlement { return policy().Recover(&c) }

func outcome(c core.Claim, o core.Outcome) core.Settlement { return policy().Settlement(&c, &o, 0) }

// policy has more retries than any case uses.
func policy() core.RetryPolicy { return core.RetryPolicy{MaxRetries: 1000, MaxRecoveries: 1000} }

func settleAll(claims []core.Claim, how func(core.Claim) core.Settlement) []core.Settlement {
	out := make([]core.Settlement, len(claims))
	for i, c := range claims {
		out[i] = how(c)
	}
	return out
}
