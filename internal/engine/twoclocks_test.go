package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// twoServers is a store on two servers, whose clocks may differ: the second has all shards but the
// first.
type twoServers struct {
	*memory.Store
	second *memory.Store
}

func (s twoServers) of(shard core.Shard) *memory.Store {
	if shard.Index == 0 {
		return s.Store
	}
	return s.second
}

func (s twoServers) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	if _, err := s.second.Declare(ctx, r); err != nil {
		return ports.DeclareReply{}, err
	}
	return s.Store.Declare(ctx, r)
}

func (s twoServers) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	return s.of(r.Shard).Acquire(ctx, r)
}

func (s twoServers) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	return s.of(r.Lease.Shard).Turn(ctx, r)
}

func (s twoServers) Renew(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
	return s.of(r.Lease.Shard).Renew(ctx, r)
}

func (s twoServers) Release(ctx context.Context, l ports.Lease) error {
	return s.of(l.Shard).Release(ctx, l)
}

func (s twoServers) Heads(ctx context.Context, shards []core.Shard) (all ports.HeadsReply, err error) {
	for _, shard := range shards {
		r, err := s.of(shard).Heads(ctx, []core.Shard{shard})
		if err != nil {
			return all, err
		}
		all.Now, all.Heads = r.Now, append(all.Heads, r.Heads...)
	}
	return all, nil
}

// A shard's jobs are due by the clock of its own server. Replies of another server, whose clock
// differs, cause no turns that find nothing.
func TestHeadsAreExpectedByTheClocksOfTheirServers(t *testing.T) {
	for _, ahead := range []time.Duration{0, 200 * time.Millisecond, -200 * time.Millisecond} {
		t.Run(fmt.Sprint(ahead), func(t *testing.T) {
			inWorld(t, func(w *world) {
				const delayed, stream = 20, 5000
				second := memory.New(memory.Options{Clock: func() time.Time { return time.Now().Add(ahead) }})

				a := w.audit()
				n := w.start(a.watch(lasting(10*time.Millisecond)), shards(2), lanes(2),
					roundTrip(2*time.Millisecond), func(s *setup) {
						s.link.ShardStore = twoServers{w.store, second}
					})

				w.sleep(poll)
				late := idsIn(0, 2, delayed)
				pushed := w.elapsed()
				for i, id := range late {
					w.pushEntries(core.Entry{ID: id, When: core.In(time.Duration(i+1) * time.Second)})
				}

				r := ports.PushRequest{Queue: queueName, Shards: 2, Generation: 1}
				for _, id := range idsIn(1, 2, stream) {
					r.Entries = append(r.Entries, entry(id))
				}
				_, err := second.Push(w.Context(), r)
				w.must(err)

				w.sleep((delayed + 2) * time.Second)
				for i, id := range late {
					due := pushed + time.Duration(i+1)*time.Second
					w.within(id, a.wantRuns(id, 1)[0].at, due, due+30*time.Millisecond)
				}

				turns, empty := 0, 0
				for _, turn := range n.link.turnsSent() {
					if turn.request.Lease.Shard.Index == 0 && turn.request.Want > 0 {
						turns++
						if len(turn.reply.Claims) == 0 {
							empty++
						}
					}
				}
				if empty > 2 {
					w.Errorf("%d of %d turns of the first server found nothing for its %d delayed jobs, want at most 2",
						empty, turns, delayed)
				}
			})
		})
	}
}

// A shard of a Cluster fails over from a master whose clock is ahead to one whose clock is right.
// Jobs that wait, fresh ones too, are due once the new clock has reached their times, so the queue
// empties later by the difference. New jobs run at once, and so do waiting ones that are expedited.
func TestJobsOfAClockAheadWaitForTheClockBehind(t *testing.T) {
	inWorld(t, func(w *world) {
		const ahead = 2 * time.Minute
		clock := &jumpingClock{}
		w.store = memory.New(memory.Options{Clock: clock.now})
		w.declare(1)
		clock.ahead.Store(int64(ahead))
		w.push("old", "x")
		w.push("expedited", "x")
		clock.ahead.Store(0) // the failover
		a := w.audit()
		w.start(a.watch(succeed))
		w.push("new", "x")
		w.sleep(poll)
		w.within("a job that was pushed since", a.wantRuns("new", 1)[0].at, 0, poll)

		_, err := w.store.Expedite(w.Context(), ports.JobStep{Shard: shardOfQueue(0), IDs: []string{"expedited"}})
		w.must(err)
		w.sleep(5 * poll)
		w.within("a job that was expedited", a.wantRuns("expedited", 1)[0].at, poll, 6*poll)

		w.sleepUntil(ahead - poll)
		a.wantRuns("old", 0)
		w.sleepUntil(ahead + poll)
		w.within("a job of the clock ahead", a.wantRuns("old", 1)[0].at, ahead, ahead+poll)
	})
}
