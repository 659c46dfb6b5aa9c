package conformance

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func leaseCases() []namedCase {
	return []namedCase{
		{"renew makes it last from now", "Renew extends the lease to the TTL from now; repeating it renews again", leaseRenews},
		{"renew counts after the expiry", "Consumer: until somebody else acquires, a late call counts", leaseRenewsLate},
		{"renew takes the TTL it is given", "Renew extends the lease to the TTL from now", leaseRenewsShorter},
		{"renew refuses a bad request", "RenewRequest.Validate: ErrInvalidRequest", leaseRenewInvalid},
		{"release frees the shard at once", "Release ends the lease and its token at once: the shard is free", leaseReleases},
		{"release can't be repeated", "Release: ErrLeaseLost, also when it is repeated", leaseReleasesOnce},
		{"release leaves claimed jobs to the next owner", "Release: jobs still claimed stay claimed for the next owner", leaseReleaseLeaves},
		{"is shown by its shape", "Lease: all fields must match the shard's lease", leaseMustMatch},
		{"is seen with owner, token and expiry",
			"ShardStats: Owner and Token are those of the current lease, which ends at ExpiresAt; Owner is empty if nobody has the shard",
			leaseIsSeen},
	}
}

func leaseRenews(e *env) {
	h := e.acquire("n1")
	for range 3 {
		e.clock.Advance(20 * time.Second)
		e.same("the reply", h.renew(), ports.RenewReply{Now: e.now(), Remaining: ttl})
		_, err := e.store.Acquire(e.ctx, e.acquireRequest(e.shard, "n2"))
		e.refused("Acquire of the renewed lease", err, ports.ErrLeaseHeld)
	}
}

func leaseRenewsLate(e *env) {
	h := e.acquire("n1")
	e.clock.Advance(10 * ttl)
	h.renew()
	_, err := e.store.Acquire(e.ctx, e.acquireRequest(e.shard, "n2"))
	e.refused("Acquire of the renewed lease", err, ports.ErrLeaseHeld)
}

func leaseRenewsShorter(e *env) {
	h := e.acquire("n1")
	reply, err := e.store.Renew(e.ctx, ports.RenewRequest{Lease: h.lease, TTL: time.Millisecond})
	e.must(err, "Renew")
	e.same("how long it lasts", reply.Remaining, time.Millisecond)
	e.clock.Advance(time.Millisecond + time.Microsecond)
	e.acquire("n2")
}

func leaseRenewInvalid(e *env) {
	h := e.acquire("n1")
	e.unchanged("a refused Renew", func() {
		_, err := e.store.Renew(e.ctx, ports.RenewRequest{Lease: h.lease, TTL: time.Millisecond - 1})
		e.refused("Renew for less than 1ms", err, ports.ErrInvalidRequest)
	})
}

func leaseReleases(e *env) {
	h := e.acquire("n1")
	h.release()
	e.acquire("n2")
	h.checkLost()
}

func leaseReleasesOnce(e *env) {
	h := e.acquire("n1")
	h.release()
	h.checkLost()
}

func leaseReleaseLeaves(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	c := h.one()
	h.release()
	e.same("the claimed job", e.claimed("a"), c)
	e.same("the jobs left", e.acquire("n2").orphans(), []core.Claim{c})
}

func leaseMustMatch(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	for _, change := range []func(*ports.Lease){
		func(l *ports.Lease) { l.Owner = "n2" },
		func(l *ports.Lease) { l.Owner = "" },
		func(l *ports.Lease) { l.Token-- },
		func(l *ports.Lease) { l.Token++ },
		func(l *ports.Lease) { l.Token = 0 },
	} {
		other := *h
		change(&other.lease)
		e.unchanged("a call with a lease that does not match", other.checkLost)
	}
	h.one()
}

func leaseIsSeen(e *env) {
	want := func(owner string, token int64, expires core.Instant) {
		e.tb.Helper()
		s := e.stats(orders).Shards[0]
		e.same("the lease's owner", s.Owner, owner)
		if owner != "" {
			e.same("the lease's token", s.Token, token)
			e.same("the lease's expiry", s.ExpiresAt, expires)
		}
	}
	want("", 0, 0)
	h := e.acquire("n1")
	want("n1", h.lease.Token, start.Add(ttl))
	e.clock.Advance(time.Second)
	h.renew()
	want("n1", h.lease.Token, start.Add(ttl+time.Second))
	h.release()
	want("", 0, 0)
}
