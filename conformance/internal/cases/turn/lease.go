package turn

import (
	"errors"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func leaseCases() []env.Case {
	return []env.Case{
		{
			Name:  "renew extends it from now",
			Rule:  "Renew extends the lease to the TTL from now; repeating it renews again",
			Check: leaseRenews,
		},
		{
			Name:  "renew works after the expiry",
			Rule:  "Consumer: a late call works until another owner acquires the shard",
			Check: leaseRenewsLate,
		},
		{
			Name:  "renew uses the given TTL",
			Rule:  "Renew extends the lease to the TTL from now",
			Check: leaseRenewsShorter,
		},
		{
			Name:  "renew refuses a bad request",
			Rule:  "RenewRequest.Validate: ErrInvalidRequest",
			Check: leaseRenewInvalid,
		},
		{
			Name:  "release frees the shard at once",
			Rule:  "Release ends the lease and its token at once: the shard is free",
			Check: leaseReleases,
		},
		{
			Name:  "release can't be repeated",
			Rule:  "Release: ErrLeaseLost, also when it is repeated",
			Check: leaseReleasesOnce,
		},
		{
			Name:  "release leaves claimed jobs to the next owner",
			Rule:  "Release: jobs still claimed stay claimed for the next owner",
			Check: leaseReleaseLeaves,
		},
		{
			Name:  "must match in all fields",
			Rule:  "Lease: all its fields must match the shard's lease",
			Check: leaseMustMatch,
		},
		{Name: "is shown with owner, token and expiry",
			Rule: "ShardStats: Owner and Token are those of the current lease, which ends at ExpiresAt; " +
				"Owner is empty if the shard is free",
			Check: leaseIsSeen},
	}
}

func leaseRenews(e *env.Env) {
	h := e.Acquire("n1")
	for range 3 {
		e.Clock.Advance(20 * time.Second)
		e.Same("the reply", h.Renew(), ports.RenewReply{Now: e.Now(), Remaining: env.TTL})
		_, err := e.Store.Acquire(e.Ctx, e.AcquireRequest(e.Shard, "n2"))
		e.Refused("Acquire of the renewed lease", err, ports.ErrLeaseHeld)
	}
}

func leaseRenewsLate(e *env.Env) {
	h := e.Acquire("n1")
	e.Clock.Advance(10 * env.TTL)
	h.Renew()
	_, err := e.Store.Acquire(e.Ctx, e.AcquireRequest(e.Shard, "n2"))
	e.Refused("Acquire of the renewed lease", err, ports.ErrLeaseHeld)
}

func leaseRenewsShorter(e *env.Env) {
	h := e.Acquire("n1")
	reply, err := e.Store.Renew(e.Ctx, ports.RenewRequest{Lease: h.Lease, TTL: time.Millisecond})
	e.Must(err, "Renew")
	e.Same("how long it lasts", reply.Remaining, time.Millisecond)
	e.Clock.Advance(time.Millisecond + time.Microsecond)
	e.Acquire("n2")
}

func leaseRenewInvalid(e *env.Env) {
	h := e.Acquire("n1")
	e.Unchanged("a refused Renew", func() {
		_, err := e.Store.Renew(e.Ctx, ports.RenewRequest{Lease: h.Lease, TTL: time.Millisecond - 1})
		e.Refused("Renew for less than 1ms", err, ports.ErrInvalidRequest)
	})
}

func leaseReleases(e *env.Env) {
	h := e.Acquire("n1")
	h.Release()
	e.Acquire("n2")
	checkLost(h)
}

func leaseReleasesOnce(e *env.Env) {
	h := e.Acquire("n1")
	h.Release()
	checkLost(h)
}

func leaseReleaseLeaves(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	c := h.One()
	h.Release()
	e.Same("the claimed job", e.Claimed("a"), c)
	e.Same("the jobs left", e.Acquire("n2").Orphans(), []core.Claim{c})
}

func leaseMustMatch(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")

	for _, change := range []func(*ports.Lease){
		func(l *ports.Lease) { l.Owner = "n2" },
		func(l *ports.Lease) { l.Owner = "" },
		func(l *ports.Lease) { l.Token-- },
		func(l *ports.Lease) { l.Token++ },
		func(l *ports.Lease) { l.Token = 0 },
	} {
		other := *h
		change(&other.Lease)
		e.Unchanged("a call with a lease that does not match", func() { checkLost(&other) })
	}

	h.One()
}

func leaseIsSeen(e *env.Env) {
	want := func(owner string, token int64, expires core.Instant) {
		e.TB.Helper()
		s := e.Stats(env.Orders).Shards[0]
		e.Same("the lease's owner", s.Owner, owner)
		if owner != "" {
			e.Same("the lease's token", s.Token, token)
			e.Same("the lease's expiry", s.ExpiresAt, expires)
		}
	}

	want("", 0, 0)
	h := e.Acquire("n1")
	want("n1", h.Lease.Token, env.Start.Add(env.TTL))

	e.Clock.Advance(time.Second)
	h.Renew()
	want("n1", h.Lease.Token, env.Start.Add(env.TTL+time.Second))

	h.Release()
	want("", 0, 0)
}

const (
	ruleToken = "Consumer: each Acquire that starts a lease returns a new fencing token: " +
		"max(last token + 1, the store's clock in µs)"
	ruleRepeat = "Acquire: the owner's last attempt again, while that lease lasts, " +
		"returns the same token, renews the lease and resets nothing"
)

func acquireCases() []env.Case {
	return []env.Case{
		{
			Name:  "leases a free shard",
			Rule:  "Acquire makes the caller the owner of a shard if the shard is free",
			Check: acquireFree,
		},
		{
			Name:  "refuses a held shard",
			Rule:  "HeldError: Owner holds the lease; Remaining is how long it lasts unless it is renewed",
			Check: acquireHeld,
		},
		{
			Name:  "takes over a lease that has expired",
			Rule:  "Acquire makes the caller the owner of a shard if its lease has expired",
			Check: acquireExpired,
		},
		{Name: "repeats an attempt with the same token", Rule: ruleRepeat, Check: acquireRepeats},
		{
			Name:  "resets nothing when it is repeated after turns",
			Rule:  "Acquire: resets nothing, also after turns",
			Check: acquireResetsNothing,
		},
		{Name: "starts a new lease with a larger attempt",
			Rule:  "Acquire: a larger attempt always starts a new lease, also over the owner's own",
			Check: acquireOverOwn},
		{Name: "starts a new lease if the attempt's lease has expired",
			Rule:  "Acquire: after the lease has expired, the owner's last attempt starts a new one",
			Check: acquireSameAfterExpiry},
		{
			Name:  "refuses an older attempt",
			Rule:  "Acquire: ErrStaleAttempt for an attempt below the owner's last",
			Check: acquireOlder,
		},
		{Name: "refuses the last attempt after its release",
			Rule:  "Acquire: ErrStaleAttempt for the last attempt after its Release",
			Check: acquireReleased},
		{Name: "forgets attempts when somebody else acquires",
			Rule:  "Acquire: the owner's attempts are forgotten when another owner acquires the shard",
			Check: acquireForgets},
		{Name: "returns tokens that only grow", Rule: ruleToken, Check: acquireTokensGrow},
		{Name: "returns tokens of at least the clock", Rule: ruleToken, Check: acquireTokensClock},
		{Name: "returns larger tokens even if the clock stepped back", Rule: ruleToken, Check: acquireTokensBack},
		{Name: "shortens a lease to its TTL if the clock stepped back",
			Rule: "Acquire: a lease whose expiry is further away than its own TTL, " +
				"because the clock stepped back, expires that TTL from now; a refused Acquire stores the new expiry",
			Check: acquireClamps},
		{
			Name:  "refuses another shard count or generation",
			Rule:  "Acquire: ErrShardCountMismatch, nothing was written",
			Check: acquireLayout,
		},
		{Name: "refuses a bad request", Rule: "AcquireRequest.Validate: ErrInvalidRequest", Check: acquireInvalid},
		{
			Name:  "leases each shard by itself",
			Rule:  "Consumer: a shard has at most one owner by its lease",
			Check: acquireApart,
		},
	}
}

func acquireFree(e *env.Env) {
	reply := e.Acquire("n1").Reply
	e.Same("the reply", reply, ports.AcquireReply{Token: int64(env.Start), Now: env.Start, Remaining: env.TTL})
}

func acquireHeld(e *env.Env) {
	h := e.Acquire("n1")
	e.Clock.Advance(10 * time.Second)
	e.Unchanged("a refused Acquire", func() {
		_, err := e.Store.Acquire(e.Ctx, e.AcquireRequest(e.Shard, "n2"))
		e.Refused("Acquire of a held shard", err, ports.ErrLeaseHeld)
		var held *ports.HeldError
		if !errors.As(err, &held) {
			e.Errorf("Acquire of a held shard returned %#v, want a *HeldError", err)
			return
		}
		e.Same("the error", *held, ports.HeldError{Shard: e.Shard, Owner: "n1", Remaining: env.TTL - 10*time.Second})
	})
	h.Renew()
}

func acquireExpired(e *env.Env) {
	h := e.Acquire("n1")
	e.Clock.Advance(env.TTL - time.Microsecond)
	_, err := e.Store.Acquire(e.Ctx, e.AcquireRequest(e.Shard, "n2"))
	e.Refused("Acquire a moment before the end", err, ports.ErrLeaseHeld)
	e.Clock.Advance(2 * time.Microsecond)
	e.Acquire("n2")
	checkLost(h)
}

func acquireRepeats(e *env.Env) {
	r := e.AcquireRequest(e.Shard, "n1")
	first := e.AcquireBy(r).Reply
	e.Clock.Advance(10 * time.Second)
	again := e.AcquireBy(r).Reply
	e.Same("the second reply", again, ports.AcquireReply{Token: first.Token, Now: e.Now(), Remaining: env.TTL})
}

func acquireResetsNothing(e *env.Env) {
	e.PushIDs("a", "b")
	r := e.AcquireRequest(e.Shard, "n1")
	h := e.AcquireBy(r)
	first := h.Request(1)
	claims := h.Send(first).Claims
	again := e.AcquireBy(r)
	e.Same("the token", again.Lease.Token, h.Lease.Token)
	e.Same("jobs left by earlier leases", again.Inherited, nil)
	e.Same("the turn repeated after it", h.Send(first).Claims, claims)
	e.Same("the next turn", env.IDs(h.Claim(1)), []string{"b"})
	h.Refused("the turn before", first, ports.ErrStaleTurn)
}

func acquireOverOwn(e *env.Env) {
	e.PushIDs("a")
	h := e.Acquire("n1")
	c := h.One()
	next := e.Acquire("n1")
	e.Same("the new token", next.Lease.Token, h.Lease.Token+1)
	e.Same("the jobs left", next.Orphans(), []core.Claim{c})
	checkLost(h)
}

func acquireSameAfterExpiry(e *env.Env) {
	e.PushIDs("a")
	r := e.AcquireRequest(e.Shard, "n1")
	h := e.AcquireBy(r)
	c := h.One()
	e.Clock.Advance(env.TTL + time.Microsecond)
	next := e.AcquireBy(r)
	e.Same("the new token", next.Lease.Token, int64(e.Now()))
	e.Same("the jobs left", next.Orphans(), []core.Claim{c})
	checkLost(h)
}

func acquireOlder(e *env.Env) {
	r := e.AcquireRequest(e.Shard, "n1")
	h := e.Acquire("n1")
	e.Unchanged("a refused Acquire", func() {
		_, err := e.Store.Acquire(e.Ctx, r)
		e.Refused("Acquire by an older attempt", err, ports.ErrStaleAttempt)
	})
	h.Release()
	_, err := e.Store.Acquire(e.Ctx, r)
	e.Refused("Acquire by an older attempt after the release", err, ports.ErrStaleAttempt)
}

func acquireReleased(e *env.Env) {
	r := e.AcquireRequest(e.Shard, "n1")
	e.AcquireBy(r).Release()
	_, err := e.Store.Acquire(e.Ctx, r)
	e.Refused("Acquire by the attempt that was released", err, ports.ErrStaleAttempt)
	e.Acquire("n1")
}

func acquireForgets(e *env.Env) {
	old := e.AcquireRequest(e.Shard, "n1")
	e.Acquire("n1").Release()
	e.Acquire("n2").Release()
	e.AcquireBy(old)
}

func acquireTokensGrow(e *env.Env) {
	last := e.Acquire("n1").Lease.Token
	for range 3 {
		h := e.Acquire("n1")
		e.Same("the token over the owner's own lease", h.Lease.Token, last+1)
		h.Release()
		h = e.Acquire("n2")
		e.Same("the token after a release", h.Lease.Token, last+2)
		h.Release()
		last = h.Lease.Token
	}
}

func acquireTokensClock(e *env.Env) {
	e.Acquire("n1").Release()
	e.Clock.Advance(time.Hour)
	e.Same("the token an hour on", e.Acquire("n2").Lease.Token, int64(e.Now()))
}

func acquireTokensBack(e *env.Env) {
	h := e.Acquire("n1")
	h.Release()
	e.Clock.Advance(-24 * time.Hour)
	e.Same("the token a day back", e.Acquire("n2").Lease.Token, h.Lease.Token+1)
}

func acquireClamps(e *env.Env) {
	h := e.Acquire("n1")
	e.Clock.Advance(-time.Hour)

	held := func(remaining time.Duration) {
		_, err := e.Store.Acquire(e.Ctx, e.AcquireRequest(e.Shard, "n2"))
		var held *ports.HeldError
		if !errors.As(err, &held) {
			e.Errorf("Acquire of a held shard returned %v, want a *HeldError", err)
			return
		}
		e.Same("how long the lease lasts", held.Remaining, remaining)
	}

	held(env.TTL)
	e.Clock.Advance(10 * time.Second)
	held(env.TTL - 10*time.Second)

	e.Clock.Advance(env.TTL - 10*time.Second + time.Microsecond)
	e.Acquire("n2")
	checkLost(h)
}

func acquireLayout(e *env.Env) {
	for _, change := range []func(*ports.AcquireRequest){
		func(r *ports.AcquireRequest) { r.Shards++ },
		func(r *ports.AcquireRequest) { r.Generation++ },
		func(r *ports.AcquireRequest) { r.Generation = 0 },
	} {
		r := e.AcquireRequest(e.Shard, "n1")
		change(&r)
		e.Unchanged("a refused Acquire", func() {
			_, err := e.Store.Acquire(e.Ctx, r)
			e.Refused("Acquire with another layout", err, ports.ErrShardCountMismatch)
		})
	}
	e.Acquire("n2")
}

func acquireInvalid(e *env.Env) {
	for _, change := range []func(*ports.AcquireRequest){
		func(r *ports.AcquireRequest) { r.Owner = "" },
		func(r *ports.AcquireRequest) { r.Attempt = 0 },
		func(r *ports.AcquireRequest) { r.TTL = 0 },
		func(r *ports.AcquireRequest) { r.TTL = time.Millisecond - 1 },
		func(r *ports.AcquireRequest) { r.TTL = -time.Second },
	} {
		r := e.AcquireRequest(e.Shard, "n1")
		change(&r)

		e.Unchanged("a refused Acquire", func() {
			_, err := e.Store.Acquire(e.Ctx, r)
			e.Refused("Acquire of a bad request", err, ports.ErrInvalidRequest)
		})
	}
}

func acquireApart(e *env.Env) {
	e.Declare("wide", 2)
	shards := core.Shards("wide", 2)
	e.AcquireBy(e.AcquireRequest(shards[0], "n1"))
	e.AcquireBy(e.AcquireRequest(shards[1], "n2"))
	_, err := e.Store.Acquire(e.Ctx, e.AcquireRequest(shards[0], "n2"))
	e.Refused("Acquire of the other's shard", err, ports.ErrLeaseHeld)
}

// checkLost checks that the lease is over: its turn, renewal and release are refused.
func checkLost(h *env.Holder) {
	h.Env.TB.Helper()
	h.Refused("Turn of a lease that is over", h.Request(1), ports.ErrLeaseLost)
	_, err := h.Env.Store.Renew(h.Env.Ctx, ports.RenewRequest{Lease: h.Lease, TTL: env.TTL})
	h.Env.Refused("Renew of a lease that is over", err, ports.ErrLeaseLost)
	h.Env.Refused("Release of a lease that is over", h.Env.Store.Release(h.Env.Ctx, h.Lease), ports.ErrLeaseLost)
}
