package racing

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	dayQueue  = "day"
	dayShards = 2
	// dayIDs is the number of ids of each kind.
	dayIDs = 3
	// dayHours is the number of rounds in which all goroutines act at once.
	dayHours = 60
)

// workingDay lets producers, workers that crash, and an operator act at once. It proceeds hour by
// hour, so that a slow goroutine takes part in each. Then it verifies the audit.
func workingDay(e *env.Env) {
	e.Declare(dayQueue, dayShards)
	d := &day{e: e, audit: newAudit(e)}
	var people []func(hour int)
	for _, kind := range kindsOfIDs {
		store := e.Open()
		people = append(people, func(hour int) { d.produce(store, kind, hour) })
	}
	d.work(people, nil)
}

// work lets people, three workers and an operator act at once in each hour, and atEnd at the end of
// the hour. Then it verifies the audit.
func (d *day) work(people, atEnd []func(hour int)) {
	e := d.e

	for n := range 3 {
		w := &worker{day: d, store: e.Open(), owner: "n" + strconv.Itoa(n), rand: rand.New(rand.NewPCG(1, uint64(n)))}
		people = append(people, w.work)
	}

	store, random := e.Open(), rand.New(rand.NewPCG(2, 0))
	people = append(people, func(int) { d.operate(store, random) })

	for hour := range dayHours {
		for _, together := range [][]func(int){people, atEnd} {
			var wg sync.WaitGroup
			for _, person := range together {
				wg.Go(func() { person(hour) })
			}
			wg.Wait()
		}
	}

	d.audit.verify(dayQueue)
}

type day struct {
	e     *env.Env
	audit *audit
	// transacts is true if workers settle some of their jobs in transactions.
	transacts bool
}

// produce pushes for the ids of a kind, with rising scores. No other goroutine pushes for them.
func (d *day) produce(store ports.ShardStore, kind string, hour int) {
	for _, id := range idsOfKind(kind) {
		data := strconv.Itoa(hour)
		ctx, repeats := harness.CountRepeats(d.e.Ctx)
		_, err := store.Push(ctx, d.e.PushRequest(dayQueue, env.Entry(id, data, float64(hour))))
		if d.e.Check(err, "Push") {
			d.audit.accepted(id, data, repeats.All.Load() > 0)
		}
	}
}

// operate makes a few steps of an operator. Each id gets only what its kind allows.
func (d *day) operate(store ports.ShardStore, random *rand.Rand) {
	for range 3 {
		d.e.Check(d.step(store, random), "an operator's step")
	}
}

func (d *day) step(store ports.ShardStore, random *rand.Rand) error {
	ctx, at := d.e.Ctx, core.Shard{Queue: dayQueue, Index: random.IntN(dayShards)}
	canDelete := idsOfKind(deletable)
	canBury := append(idsOfKind(buriable), canDelete...)
	var err error

	switch random.IntN(14) {
	case 0:
		err = store.Pause(ctx, dayQueue)
	case 1:
		_, err = store.Expedite(ctx, ports.JobStep{Shard: at, IDs: append(idsOfKind(plainID), canBury...)})
	case 2:
		_, err = store.Bury(ctx, ports.JobStep{Shard: at, IDs: canBury})
	case 3:
		_, err = store.Delete(ctx, ports.JobStep{Shard: at, IDs: canDelete})
	case 4, 7, 8, 9:
		_, err = store.Cancel(ctx, ports.CancelRequest{Shard: at, IDs: canDelete, Drop: random.IntN(2) == 0})
	case 5:
		_, err = store.Revive(ctx, ports.DeadLetterStep{Shard: at, DeadLetters: refsTo(canBury)})
	case 6:
		_, err = store.Purge(ctx, ports.DeadLetterStep{Shard: at, DeadLetters: refsTo(canDelete)})
	default:
		err = store.Resume(ctx, dayQueue)
	}
	return err
}

func idsOfKind(kind string) []string {
	ids := make([]string, dayIDs)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s-%d", kind, i)
	}
	return ids
}

func refsTo(ids []string) []ports.DeadLetterRef {
	refs := make([]ports.DeadLetterRef, len(ids))
	for i, id := range ids {
		refs[i] = env.Whole(id)
	}
	return refs
}

// worker is a process that works any shard that it can acquire.
type worker struct {
	*day
	store ports.ShardStore
	owner string
	rand  *rand.Rand
	// paused is the lease with which it continues after a pause.
	paused *leaseState
}

func (w *worker) work(hour int) {
	if s := w.paused; s != nil {
		w.paused = nil
		w.hold(s)
		return
	}

	at := core.Shard{Queue: dayQueue, Index: w.rand.IntN(dayShards)}
	q := w.e.Declared[dayQueue]
	floor := w.audit.floor(at)

	reply, err := w.store.Acquire(w.e.Ctx, ports.AcquireRequest{
		Shard:      at,
		Shards:     q.Shards,
		Generation: q.Generation,
		Owner:      w.owner,
		Attempt:    int64(hour + 1),
		TTL:        env.TTL,
	})

	w.e.Clock.Advance(time.Second)
	switch {
	case err == nil:
		w.audit.acquired(at, floor, reply.Token)
		w.hold(&leaseState{
			lease:   ports.Lease{Shard: at, Owner: w.owner, Token: reply.Token},
			claims:  reply.Claims,
			cancels: reply.Cancellations,
		})
	case !errors.Is(err, ports.ErrLeaseHeld):
		w.e.Errorf("Acquire: %v", err)
	}
}

// leaseState is a worker's knowledge of its lease.
type leaseState struct {
	lease   ports.Lease
	number  int64
	claims  []core.Claim
	cancels []ports.Cancellation
}

// hold works a shard for some turns. Then it does one of three things: it crashes, with its jobs
// claimed, and the lease expires; it pauses, and continues in the next hour as if nothing had
// happened; or it settles and releases. A crash advances the clock by a TTL, so the leases of other
// workers expire too.
func (w *worker) hold(s *leaseState) {
	for range 1 + w.rand.IntN(6) {
		if !w.turn(s, w.rand.IntN(5)) {
			return
		}
	}

	switch w.rand.IntN(4) {
	case 0:
		if w.transacts {
			w.settleApart(s) // no turn merges it until the shard is acquired again
		}
		w.e.Clock.Advance(env.TTL)
		return
	case 1:
		w.paused = s
		return
	}

	if !w.turn(s, 0) {
		return
	}
	if err := w.store.Release(w.e.Ctx, s.lease); err != nil {
		w.e.Refused("Release", err, ports.ErrLeaseLost)
	}
}

// turn settles claimed jobs, or lets them run on, and claims more. It reports whether the lease is
// still held.
func (w *worker) turn(s *leaseState, want int) bool {
	r := ports.TurnRequest{
		Lease:  s.lease,
		Number: s.number + 1,
		TTL:    env.TTL,
		Want:   want,
		PerJob: w.rand.IntN(3),
	}

	if w.transacts {
		w.settleApart(s)
	}

	claims := s.claims
	if w.rand.IntN(4) > 0 {
		r.Settlements, s.claims = w.settle(s), nil
	}

	ctx, repeats := harness.CountRepeats(w.e.Ctx)
	reply, err := w.store.Turn(ctx, r)
	if errors.Is(err, ports.ErrLeaseLost) && repeats.All.Load() > 0 {
		w.audit.outcomeLost()
	}
	if errors.Is(err, ports.ErrLeaseLost) || !w.e.Check(err, "Turn") {
		return false
	}

	s.cancels = reply.Cancellations
	if reply.Last == s.number {
		return true
	}

	w.audit.turned(r, reply)
	w.repeat(r, reply)
	for _, position := range reply.Deferred {
		s.claims = append(s.claims, claims[position])
	}

	s.number, s.claims = reply.Last, slices.Concat(s.claims, reply.Claims, reply.Orphans)
	return true
}

// repeat sends some turns again, like a worker that got no reply.
func (w *worker) repeat(r ports.TurnRequest, first ports.TurnReply) {
	if w.rand.IntN(4) > 0 {
		return
	}
	again, err := w.store.Turn(w.e.Ctx, r)
	if errors.Is(err, ports.ErrLeaseLost) || !w.e.Check(err, "a repeated Turn") {
		return
	}
	w.e.Same("the claims of a repeated turn", again.Claims, first.Claims)
}

// settle settles all claims, each by an outcome that its kind of id may have.
func (w *worker) settle(s *leaseState) []core.Settlement {
	var all []core.Settlement
	for _, c := range s.claims {
		toDrop := ports.Cancellation{ID: c.ID, Receipt: c.Receipt, Drop: true}
		switch {
		case slices.Contains(s.cancels, toDrop):
			all = append(all, env.Dropped(c))
		case c.Receipt.Token != s.lease.Token:
			all = append(all, env.Recovered(c))
		default:
			all = append(all, w.end(c))
		}
	}
	return all
}

func (w *worker) end(c core.Claim) core.Settlement {
	switch n := w.rand.IntN(8); {
	case n == 0:
		return env.Failed(c, "boom", 2*time.Second)
	case n == 1:
		return env.Snoozed(c, time.Second)
	case n == 2:
		return env.Untouched(c)
	case n == 3 && kindOf(c.ID) != plainID:
		return env.Buried(c, "bad")
	}
	return env.Done(c)
}
