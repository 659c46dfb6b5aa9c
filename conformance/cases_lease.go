package conformance

import (
	"errors"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func leaseCases() []namedCase {
	return []namedCase{
		{"renew extends it from now", "Renew extends the lease to the TTL from now; repeating it renews again", leaseRenews},
		{"renew works after the expiry", "Consumer: a late call works until another owner acquires the shard", leaseRenewsLate},
		{"renew uses the given TTL", "Renew extends the lease to the TTL from now", leaseRenewsShorter},
		{"renew refuses a bad request", "RenewRequest.Validate: ErrInvalidRequest", leaseRenewInvalid},
		{"release frees the shard at once", "Release ends the lease and its token at once: the shard is free", leaseReleases},
		{"release can't be repeated", "Release: ErrLeaseLost, also when it is repeated", leaseReleasesOnce},
		{"release leaves claimed jobs to the next owner", "Release: jobs still claimed stay claimed for the next owner", leaseReleaseLeaves},
		{"must match in all fields", "Lease: all its fields must match the shard's lease", leaseMustMatch},
		{"is shown with owner, token and expiry",
			"ShardStats: Owner and Token are those of the current lease, which ends at ExpiresAt; Owner is empty if the shard is free",
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

const (
	ruleToken  = "Consumer: each Acquire that starts a lease returns a new fencing token: max(last token + 1, the store's clock in µs)"
	ruleRepeat = "Acquire: the owner's last attempt again, while that lease lasts, returns the same token, renews the lease and resets nothing"
)

func acquireCases() []namedCase {
	return []namedCase{
		{"leases a free shard", "Acquire makes the caller the owner of a shard if the shard is free", acquireFree},
		{"refuses a held shard", "HeldError: Owner holds the lease; Remaining is how long it lasts unless it is renewed", acquireHeld},
		{"takes over a lease that has expired", "Acquire makes the caller the owner of a shard if its lease has expired", acquireExpired},
		{"repeats an attempt with the same token", ruleRepeat, acquireRepeats},
		{"resets nothing when it is repeated after turns", "Acquire: resets nothing, also after turns", acquireResetsNothing},
		{"starts a new lease with a larger attempt",
			"Acquire: a larger attempt always starts a new lease, also over the owner's own",
			acquireOverOwn},
		{"starts a new lease if the attempt's lease has expired",
			"Acquire: after the lease has expired, the owner's last attempt starts a new one",
			acquireSameAfterExpiry},
		{"refuses an older attempt", "Acquire: ErrStaleAttempt for an attempt below the owner's last", acquireOlder},
		{"refuses the last attempt after its release",
			"Acquire: ErrStaleAttempt for the last attempt after its Release",
			acquireReleased},
		{"forgets attempts when somebody else acquires",
			"Acquire: the owner's attempts are forgotten when another owner acquires the shard",
			acquireForgets},
		{"returns tokens that only grow", ruleToken, acquireTokensGrow},
		{"returns tokens of at least the clock", ruleToken, acquireTokensClock},
		{"returns larger tokens even if the clock stepped back", ruleToken, acquireTokensBack},
		{"shortens a lease to its TTL if the clock stepped back",
			"Acquire: a lease whose expiry is further away than its own TTL, because the clock stepped back, expires that TTL from now; a refused Acquire stores the new expiry",
			acquireClamps},
		{"refuses another shard count or generation", "Acquire: ErrShardCountMismatch, nothing was written", acquireLayout},
		{"refuses a bad request", "AcquireRequest.Validate: ErrInvalidRequest", acquireInvalid},
		{"leases each shard by itself", "Consumer: a shard has at most one owner by its lease", acquireApart},
	}
}

func acquireFree(e *env) {
	reply := e.acquire("n1").reply
	e.same("the reply", reply, ports.AcquireReply{Token: int64(start), Now: start, Remaining: ttl})
}

func acquireHeld(e *env) {
	h := e.acquire("n1")
	e.clock.Advance(10 * time.Second)
	e.unchanged("a refused Acquire", func() {
		_, err := e.store.Acquire(e.ctx, e.acquireRequest(e.shard, "n2"))
		e.refused("Acquire of a held shard", err, ports.ErrLeaseHeld)
		var held *ports.HeldError
		if !errors.As(err, &held) {
			e.errorf("Acquire of a held shard returned %#v, want a *HeldError", err)
			return
		}
		e.same("the error", *held, ports.HeldError{Shard: e.shard, Owner: "n1", Remaining: ttl - 10*time.Second})
	})
	h.renew()
}

func acquireExpired(e *env) {
	h := e.acquire("n1")
	e.clock.Advance(ttl - time.Microsecond)
	_, err := e.store.Acquire(e.ctx, e.acquireRequest(e.shard, "n2"))
	e.refused("Acquire a moment before the end", err, ports.ErrLeaseHeld)
	e.clock.Advance(2 * time.Microsecond)
	e.acquire("n2")
	h.checkLost()
}

func acquireRepeats(e *env) {
	r := e.acquireRequest(e.shard, "n1")
	first := e.acquireBy(r).reply
	e.clock.Advance(10 * time.Second)
	again := e.acquireBy(r).reply
	e.same("the second reply", again, ports.AcquireReply{Token: first.Token, Now: e.now(), Remaining: ttl})
}

func acquireResetsNothing(e *env) {
	e.pushIDs("a", "b")
	r := e.acquireRequest(e.shard, "n1")
	h := e.acquireBy(r)
	first := h.request(1)
	claims := h.send(first).Claims
	again := e.acquireBy(r)
	e.same("the token", again.lease.Token, h.lease.Token)
	e.same("jobs left by earlier leases", again.inherited, nil)
	e.same("the turn repeated after it", h.send(first).Claims, claims)
	e.same("the next turn", ids(h.claim(1)), []string{"b"})
	h.refused("the turn before", first, ports.ErrStaleTurn)
}

func acquireOverOwn(e *env) {
	e.pushIDs("a")
	h := e.acquire("n1")
	c := h.one()
	next := e.acquire("n1")
	e.same("the new token", next.lease.Token, h.lease.Token+1)
	e.same("the jobs left", next.orphans(), []core.Claim{c})
	h.checkLost()
}

func acquireSameAfterExpiry(e *env) {
	e.pushIDs("a")
	r := e.acquireRequest(e.shard, "n1")
	h := e.acquireBy(r)
	c := h.one()
	e.clock.Advance(ttl + time.Microsecond)
	next := e.acquireBy(r)
	e.same("the new token", next.lease.Token, int64(e.now()))
	e.same("the jobs left", next.orphans(), []core.Claim{c})
	h.checkLost()
}

func acquireOlder(e *env) {
	r := e.acquireRequest(e.shard, "n1")
	h := e.acquire("n1")
	e.unchanged("a refused Acquire", func() {
		_, err := e.store.Acquire(e.ctx, r)
		e.refused("Acquire by an older attempt", err, ports.ErrStaleAttempt)
	})
	h.release()
	_, err := e.store.Acquire(e.ctx, r)
	e.refused("Acquire by an older attempt after the release", err, ports.ErrStaleAttempt)
}

func acquireReleased(e *env) {
	r := e.acquireRequest(e.shard, "n1")
	e.acquireBy(r).release()
	_, err := e.store.Acquire(e.ctx, r)
	e.refused("Acquire by the attempt that was released", err, ports.ErrStaleAttempt)
	e.acquire("n1")
}

func acquireForgets(e *env) {
	old := e.acquireRequest(e.shard, "n1")
	e.acquire("n1").release()
	e.acquire("n2").release()
	e.acquireBy(old)
}

func acquireTokensGrow(e *env) {
	last := e.acquire("n1").lease.Token
	for range 3 {
		h := e.acquire("n1")
		e.same("the token over the owner's own lease", h.lease.Token, last+1)
		h.release()
		h = e.acquire("n2")
		e.same("the token after a release", h.lease.Token, last+2)
		h.release()
		last = h.lease.Token
	}
}

func acquireTokensClock(e *env) {
	e.acquire("n1").release()
	e.clock.Advance(time.Hour)
	e.same("the token an hour on", e.acquire("n2").lease.Token, int64(e.now()))
}

func acquireTokensBack(e *env) {
	h := e.acquire("n1")
	h.release()
	e.clock.Advance(-24 * time.Hour)
	e.same("the token a day back", e.acquire("n2").lease.Token, h.lease.Token+1)
}

func acquireClamps(e *env) {
	h := e.acquire("n1")
	e.clock.Advance(-time.Hour)
	held := func(remaining time.Duration) {
		_, err := e.store.Acquire(e.ctx, e.acquireRequest(e.shard, "n2"))
		var held *ports.HeldError
		if !errors.As(err, &held) {
			e.errorf("Acquire of a held shard returned %v, want a *HeldError", err)
			return
		}
		e.same("how long the lease lasts", held.Remaining, remaining)
	}
	held(ttl)
	e.clock.Advance(10 * time.Second)
	held(ttl - 10*time.Second)
	e.clock.Advance(ttl - 10*time.Second + time.Microsecond)
	e.acquire("n2")
	h.checkLost()
}

func acquireLayout(e *env) {
	for _, change := range []func(*ports.AcquireRequest){
		func(r *ports.AcquireRequest) { r.Shards++ },
		func(r *ports.AcquireRequest) { r.Generation++ },
		func(r *ports.AcquireRequest) { r.Generation = 0 },
	} {
		r := e.acquireRequest(e.shard, "n1")
		change(&r)
		e.unchanged("a refused Acquire", func() {
			_, err := e.store.Acquire(e.ctx, r)
			e.refused("Acquire with another layout", err, ports.ErrShardCountMismatch)
		})
	}
	e.acquire("n2")
}

func acquireInvalid(e *env) {
	for _, change := range []func(*ports.AcquireRequest){
		func(r *ports.AcquireRequest) { r.Owner = "" },
		func(r *ports.AcquireRequest) { r.Attempt = 0 },
		func(r *ports.AcquireRequest) { r.TTL = 0 },
		func(r *ports.AcquireRequest) { r.TTL = time.Millisecond - 1 },
		func(r *ports.AcquireRequest) { r.TTL = -time.Second },
	} {
		r := e.acquireRequest(e.shard, "n1")
		change(&r)
		e.unchanged("a refused Acquire", func() {
			_, err := e.store.Acquire(e.ctx, r)
			e.refused("Acquire of a bad request", err, ports.ErrInvalidRequest)
		})
	}
}

func acquireApart(e *env) {
	e.declare("wide", 2)
	shards := core.Shards("wide", 2)
	e.acquireBy(e.acquireRequest(shards[0], "n1"))
	e.acquireBy(e.acquireRequest(shards[1], "n2"))
	_, err := e.store.Acquire(e.ctx, e.acquireRequest(shards[0], "n2"))
	e.refused("Acquire of the other's shard", err, ports.ErrLeaseHeld)
}
