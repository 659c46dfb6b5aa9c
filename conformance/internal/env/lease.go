package env

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// TTL is the duration of leases.
const TTL = 30 * time.Second

// Holder holds a lease and numbers its turns.
type Holder struct {
	Env   *Env
	Lease ports.Lease
	// Number is the number of the last turn that was carried out.
	Number int64
	// acquired is the request of Acquire, and Reply is its reply. Inherited are the jobs of earlier
	// leases that the store has handed over until now.
	acquired  ports.AcquireRequest
	Reply     ports.AcquireReply
	Inherited []core.Claim
}

// Acquire takes the shard of orders with a new attempt.
func (e *Env) Acquire(owner string) *Holder {
	e.TB.Helper()
	return e.AcquireBy(e.AcquireRequest(e.Shard, owner))
}

// AcquireAt takes any shard with a new attempt.
func (e *Env) AcquireAt(s core.Shard, owner string) *Holder {
	e.TB.Helper()
	return e.AcquireBy(e.AcquireRequest(s, owner))
}

// AcquireBy sends an acquire and returns the holder of the lease.
func (e *Env) AcquireBy(r ports.AcquireRequest) *Holder {
	e.TB.Helper()
	reply, err := e.Store.Acquire(e.Ctx, r)
	e.Must(err, "Acquire")

	h := &Holder{
		Env:       e,
		Lease:     ports.Lease{Shard: r.Shard, Owner: r.Owner, Token: reply.Token},
		acquired:  r,
		Reply:     reply,
		Inherited: reply.Claims,
	}

	if e.warm != nil {
		h.warmUp()
	}

	return h
}

// AcquireRequest returns a new attempt at a shard.
func (e *Env) AcquireRequest(s core.Shard, owner string) ports.AcquireRequest {
	e.attempts++
	q := e.Declared[s.Queue]
	return ports.AcquireRequest{
		Shard:      s,
		Shards:     q.Shards,
		Generation: q.Generation,
		Owner:      owner,
		Attempt:    e.attempts,
		TTL:        TTL,
	}
}

// Request returns the holder's next turn.
func (h *Holder) Request(want int, settle ...core.Settlement) ports.TurnRequest {
	return ports.TurnRequest{
		Lease:       h.Lease,
		Number:      h.Number + 1,
		TTL:         TTL,
		Settlements: settle,
		Want:        want,
		Node:        "node of " + h.Lease.Owner,
	}
}

// Send makes a turn.
func (h *Holder) Send(r ports.TurnRequest) ports.TurnReply {
	h.Env.TB.Helper()
	reply, err := h.Env.Store.Turn(h.Env.Ctx, r)
	h.Env.Must(err, "Turn")
	h.Number = reply.Last
	h.Inherited = append(h.Inherited, reply.Orphans...)
	return reply
}

// Refused sends a turn that must fail.
func (h *Holder) Refused(what string, r ports.TurnRequest, sentinel error) {
	h.Env.TB.Helper()
	_, err := h.Env.Store.Turn(h.Env.Ctx, r)
	h.Env.Refused(what, err, sentinel)
}

// Turn makes a turn that settles and claims.
func (h *Holder) Turn(want int, settle ...core.Settlement) ports.TurnReply {
	h.Env.TB.Helper()
	return h.Send(h.Request(want, settle...))
}

// Settle makes a turn that settles and claims nothing.
func (h *Holder) Settle(settle ...core.Settlement) ports.TurnReply {
	h.Env.TB.Helper()
	return h.Turn(0, settle...)
}

// Begin marks claimed jobs as begun.
func (h *Holder) Begin(claims ...core.Claim) ports.TurnReply {
	h.Env.TB.Helper()
	return h.Send(h.BeginRequest(claims...))
}

// BeginRequest returns the holder's next turn, which begins claimed jobs.
func (h *Holder) BeginRequest(claims ...core.Claim) ports.TurnRequest {
	r := h.Request(0)
	for i := range claims {
		r.Begin = append(r.Begin, claims[i].Ref())
	}
	return r
}

// Claim makes a turn that claims up to want jobs.
func (h *Holder) Claim(want int) []core.Claim {
	h.Env.TB.Helper()
	return h.Turn(want).Claims
}

// One makes a turn that must claim one job.
func (h *Holder) One(settle ...core.Settlement) core.Claim {
	h.Env.TB.Helper()
	return h.Only(h.Request(1, settle...))
}

// Cut claims one job with at most the given number of its payloads.
func (h *Holder) Cut(payloads int) core.Claim {
	h.Env.TB.Helper()
	r := h.Request(1)
	r.PerJob = payloads
	return h.Only(r)
}

// Only makes the turn r, which must claim one job.
func (h *Holder) Only(r ports.TurnRequest) core.Claim {
	h.Env.TB.Helper()
	claims := h.Send(r).Claims
	if len(claims) != 1 {
		h.Env.TB.Fatalf("a turn with Want 1 claimed %d jobs, want 1\nthe rule: %s", len(claims), h.Env.Rule)
	}
	return claims[0]
}

// handOverTurns is the maximum number of turns in which a store hands over the claims that Acquire
// could not reach.
const handOverTurns = 8

// Orphans returns the jobs that earlier leases left claimed, in order of id. It makes turns until
// one hands over no job.
func (h *Holder) Orphans() []core.Claim {
	h.Env.TB.Helper()
	for range handOverTurns {
		if len(h.Turn(0).Orphans) == 0 {
			break
		}
	}
	all := slices.Clone(h.Inherited)
	slices.SortStableFunc(all, func(a, b core.Claim) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Release releases the lease.
func (h *Holder) Release() {
	h.Env.TB.Helper()
	before := h.Env.Repeats.All.Load()
	err := h.Env.Store.Release(h.Env.Ctx, h.Lease)
	if errors.Is(err, ports.ErrLeaseLost) && h.Env.Repeats.All.Load() > before {
		return // its first call has released it
	}
	h.Env.Must(err, "Release")
}

// Reacquire repeats the acquire.
func (h *Holder) Reacquire() ports.AcquireReply {
	h.Env.TB.Helper()
	reply, err := h.Env.Store.Acquire(h.Env.Ctx, h.acquired)
	h.Env.Must(err, "Acquire again")
	return reply
}

// Renew renews the lease.
func (h *Holder) Renew() ports.RenewReply {
	h.Env.TB.Helper()
	reply, err := harness.Renew(h.Env.Store, h.Env.Ctx, ports.RenewRequest{Lease: h.Lease, TTL: TTL})
	h.Env.Must(err, "Renew")
	return reply
}

// SameHead checks the heads in the replies of Heads, of a turn that has nothing to do, of a
// renewal and of a repeated acquire.
func (e *Env) SameHead(what string, h *Holder, want core.Head) {
	e.TB.Helper()
	e.Same(what+": Heads", e.Head(), want)
	e.Same(what+": the turn's Head", Plain(h.Turn(0).Head), want)
	e.Same(what+": the renewal's Head", Plain(h.Renew().Head), want)
	e.Same(what+": the repeated acquire's Head", Plain(h.Reacquire().Head), want)
}

// IDs returns the ids of claims, in their order.
func IDs(claims []core.Claim) []string {
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
func (e *Env) warmUp() {
	e.TB.Helper()
	e.Clock.Advance(-time.Microsecond)
	defer e.Clock.Advance(time.Microsecond)
	e.PushIDs("worked before")
	h := e.Acquire("n0")
	h.Settle(SettleAll(h.Claim(core.MaxTurnJobs), Dropped)...)
	h.Release()
	e.warm = map[ports.Lease]bool{}
}

// warmUp makes the first turn of a lease. The turn settles a job that is not claimed, so it writes
// and has no effect.
func (h *Holder) warmUp() {
	h.Env.TB.Helper()
	if h.Env.warm[h.Lease] {
		return // a repeated acquire has returned the same lease
	}
	h.Env.warm[h.Lease] = true
	h.Settle(core.Settlement{ID: "not claimed", Receipt: core.Receipt{Token: h.Lease.Token, Number: 1}})
}

// ClaimedJob returns a claim of a job with the payloads p1, p2 and p3, pushed at the start and
// claimed a second later.
func (e *Env) ClaimedJob() (*Holder, core.Claim) {
	e.TB.Helper()
	e.Push(Entry("a", "p1", 1), Entry("a", "p2", 2), Entry("a", "p3", 3))
	e.Clock.Advance(time.Second)
	h := e.Acquire("n1")
	return h, h.One()
}

// ClaimAndCrash claims all due jobs for the owner, and lets the lease expire.
func (e *Env) ClaimAndCrash(owner string) []core.Claim {
	e.TB.Helper()
	claims := e.Acquire(owner).Claim(core.MaxTurnJobs)
	e.Clock.Advance(TTL + time.Microsecond)
	return claims
}

// FailedAt and FailedOn are when and where jobs fail here. No store may make the time of it.
const (
	FailedAt = Start + 123_456
	FailedOn = "web-1"
)

// Failure is a failure with an error.
func Failure(text string) core.Failure { return core.Failure{At: FailedAt, Node: FailedOn, Text: text} }

// Failures is a list of failures with these errors, the newest first.
func Failures(texts ...string) core.Failures {
	var list core.Failures
	for _, text := range texts {
		list = append(list, Failure(text))
	}
	return list
}

// Settlements of a claim by its outcome, as core makes them.

// Done settles a claim as done.
func Done(c core.Claim) core.Settlement { return Outcome(c, core.Outcome{Kind: core.Done}) }

// Dropped settles a claim as dropped by an operator.
func Dropped(c core.Claim) core.Settlement { return Outcome(c, core.Outcome{Kind: core.Dropped}) }

// Untouched puts a claim back as it was claimed.
func Untouched(c core.Claim) core.Settlement { return Outcome(c, core.Outcome{Kind: core.Untouched}) }

// Snoozed puts a claim back for later.
func Snoozed(c core.Claim, d time.Duration) core.Settlement {
	return Outcome(c, core.Outcome{Kind: core.Snoozed, Delay: d})
}

// Awaiting puts a claim back until the next push, or for d.
func Awaiting(c core.Claim, d time.Duration) core.Settlement {
	return Outcome(c, core.Outcome{Kind: core.Awaiting, Delay: d})
}

// Buried moves a claim to the morgue.
func Buried(c core.Claim, reason string) core.Settlement {
	return Outcome(c, core.Outcome{Kind: core.Buried, Error: reason, At: FailedAt, Node: FailedOn})
}

// BuriedAs buries a claim in a group.
func BuriedAs(c core.Claim, group string) core.Settlement {
	return Outcome(c, core.Outcome{Kind: core.Buried, Error: "no use", Group: group, At: FailedAt, Node: FailedOn})
}

// Failed settles a claim as failed. Its job is due again after d.
func Failed(c core.Claim, reason string, d time.Duration) core.Settlement {
	return Outcome(c, core.Outcome{
		Kind:     core.Failed,
		Error:    reason,
		Delay:    d,
		OwnDelay: true,
		At:       FailedAt,
		Node:     FailedOn,
	})
}

// Recovered settles a job that an earlier lease left claimed.
func Recovered(c core.Claim) core.Settlement { return policy().Recover(&c, Start) }

// Outcome settles a claim by an outcome.
func Outcome(c core.Claim, o core.Outcome) core.Settlement { return policy().Settlement(&c, &o, 0) }

// policy has more retries than any case uses.
func policy() core.RetryPolicy { return core.RetryPolicy{MaxRetries: 1000, MaxRecoveries: 1000} }

// SettleAll settles each claim in the same way.
func SettleAll(claims []core.Claim, how func(core.Claim) core.Settlement) []core.Settlement {
	out := make([]core.Settlement, len(claims))
	for i, c := range claims {
		out[i] = how(c)
	}
	return out
}
