package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const loopName = "bare loop"

// loopSystem is Skein's store without its engine. It has as many goroutines as Skein has lanes,
// shared by the shards that have jobs, and for each of these shards a loop that makes one turn
// after another. It has no retries, wake-ups, schedulers, observers, contexts of handlers or lost
// leases.
type loopSystem struct {
	system // which fills and counts
	store  ports.ShardStore
	queue  string
	// goroutines is the number of goroutines of all shards.
	goroutines int
	shards     []int
}

// withLoop returns the bare loop on the shards of a queue of default size, or on the
// first alone.
func withLoop(goroutines int, hot bool) opener {
	return func(ctx context.Context, l *lab) (system, error) {
		s, err := withSkein(skeinSetting{})(ctx, l)
		if err != nil {
			return nil, err
		}

		loop := &loopSystem{system: s, goroutines: goroutines, shards: []int{0}}
		for i := 1; i < skein.DefaultShards && !hot; i++ {
			loop.shards = append(loop.shards, i)
		}

		switch s := s.(type) {
		case *skeinSystem:
			loop.store, loop.queue = s.store, s.queue.Name()
		case *skeinOnPostgres:
			loop.store, loop.queue = s.store, s.queue.Name()
		}
		return loop, nil
	}
}

// serve runs the loops. The returned function lets each end the jobs that it has claimed.
func (s *loopSystem) serve(ctx context.Context, handle func([]byte)) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	owner := rand.Text()
	var group sync.WaitGroup
	failures := make([]error, len(s.shards))

	for i, index := range s.shards {
		goroutines := s.goroutines / len(s.shards)
		if i < s.goroutines%len(s.shards) {
			goroutines++
		}
		most := goroutines + goroutines/2
		l := &shardLoop{
			store:      s.store,
			handle:     handle,
			goroutines: goroutines,
			most:       most,
			lease:      ports.Lease{Shard: core.Shard{Queue: s.queue, Index: index}, Owner: owner},
			claims:     make(chan core.Claim, most),
			ended:      make(chan core.Settlement, most),
		}

		group.Go(func() { failures[i] = l.run(ctx) })
	}

	return func() error {
		cancel()
		group.Wait()
		return errors.Join(failures...)
	}, nil
}

// shardLoop works a shard by as many goroutines as there are handlers at once, and
// one more that turns.
type shardLoop struct {
	store      ports.ShardStore
	lease      ports.Lease
	handle     func([]byte)
	goroutines int
	// most is how many jobs are claimed at once: half as many again as there are
	// goroutines, so that none waits for a turn.
	most   int
	claims chan core.Claim
	ended  chan core.Settlement
}

func (l *shardLoop) run(ctx context.Context) error {
	settled := context.WithoutCancel(ctx) // claimed jobs are settled in any case
	if err := l.acquire(settled); err != nil {
		return err
	}
	var group sync.WaitGroup
	for range l.goroutines {
		group.Go(l.work)
	}
	err := l.turns(settled, ctx.Done())
	close(l.claims)
	group.Wait()
	return errors.Join(err, l.store.Release(settled, l.lease))
}

func (l *shardLoop) acquire(ctx context.Context) error {
	queue := ports.DeclareRequest{Queue: l.lease.Shard.Queue, Shards: skein.DefaultShards}
	declared, err := l.store.Declare(ctx, queue)
	if err != nil {
		return err
	}
	reply, err := l.store.Acquire(ctx, ports.AcquireRequest{
		Shard: l.lease.Shard, Shards: queue.Shards, Generation: declared.Generation,
		Owner: l.lease.Owner, Attempt: 1, TTL: skein.DefaultLeaseTTL,
	})
	l.lease.Token = reply.Token
	return err
}

// work handles claimed jobs.
func (l *shardLoop) work() {
	for c := range l.claims {
		for _, p := range c.Payloads {
			l.handle(p.Data)
		}
		l.ended <- core.Settlement{ID: c.ID, Receipt: c.Receipt, Rest: core.Discard, Processed: true}
	}
}

// turns settles ended jobs and claims as many jobs as there is room for, as soon as one has ended.
// Once stop is closed it claims no more, and returns when all are settled.
func (l *shardLoop) turns(ctx context.Context, stop <-chan struct{}) error {
	request := ports.TurnRequest{Lease: l.lease, Number: 1, TTL: skein.DefaultLeaseTTL, Node: loopName}
	for claimed := 0; ; {
		request.Settlements = l.finished(claimed)
		claimed -= len(request.Settlements)
		request.Want = l.most - claimed

		if isClosed(stop) {
			request.Want = 0
			if claimed == 0 && len(request.Settlements) == 0 {
				return nil
			}
		}

		reply, err := l.store.Turn(ctx, request)
		if err != nil {
			return err
		}
		if n := len(reply.Skipped) + len(reply.Deferred); n > 0 {
			return fmt.Errorf("%d of %d jobs were not settled", n, len(request.Settlements))
		}

		request.Number = reply.Last + 1
		claimed += len(reply.Claims)
		for _, c := range reply.Claims {
			l.claims <- c
		}
	}
}

// finished waits until a claimed job has ended, and returns all jobs that have ended by then, as
// many as fit in a turn. If nothing is claimed it waits a millisecond.
func (l *shardLoop) finished(claimed int) []core.Settlement {
	if claimed == 0 {
		time.Sleep(time.Millisecond)
		return nil
	}

	all := []core.Settlement{<-l.ended}
	for len(all) < core.MaxTurnJobs {
		select {
		case s := <-l.ended:
			all = append(all, s)
		default:
			return slices.Clip(all)
		}
	}
	return all
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
