package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// orphanKeeper recovers the jobs that dead nodes left in queues that no node serves, so that none
// of them seems to run. It belongs to one goroutine.
type orphanKeeper struct {
	node *node
	// owner owns the leases under which it settles. It differs from the node's own, since the node may
	// begin to serve such a queue at any time and an acquire would end a lease of the same owner.
	owner   string
	attempt int64
	status  *report.Loop
}

// recoverOrphans looks for orphans of queues that no node serves, once per TTL, until the node is
// to stop. It first looks after a TTL, when all running nodes have announced themselves.
func (n *node) recoverOrphans() {
	if !n.cfg.RecoverOrphans {
		return
	}
	k := orphanKeeper{node: n, owner: n.cfg.Owner + "/orphans", status: n.outages.Loop("orphans", core.Shard{})}
	for pause(n.cfg.LeaseTTL, n.stop) {
		k.status.Called(k.look())
	}
}

// look recovers what it finds. A queue or shard that fails does not keep it from the others.
func (k *orphanKeeper) look() error {
	queues, err := k.unserved()
	if err != nil {
		return err
	}
	errs := make([]error, 0, len(queues))
	for _, name := range queues {
		errs = append(errs, k.queue(name))
	}
	return errors.Join(errs...)
}

// unserved lists the queues of the store that no announced node serves, including this one.
func (k *orphanKeeper) unserved() ([]string, error) {
	nodes := k.node.nodes.Load()
	if nodes == nil { // the node has not announced itself yet
		return nil, nil
	}

	served := make(map[string]bool)
	for i := range *nodes {
		if n := &(*nodes)[i]; !n.Draining { // a draining node takes no shard, so it recovers no orphans
			for _, name := range n.Queues {
				served[name] = true
			}
		}
	}

	ctx, cancel := k.node.callContext()
	defer cancel()
	queues, err := k.node.store.Queues(ctx)

	var names []string
	for i := range queues {
		if !served[queues[i].Name] {
			names = append(names, queues[i].Name)
		}
	}
	return names, err
}

// queue recovers the orphans of a queue.
func (k *orphanKeeper) queue(name string) error {
	ctx, cancel := k.node.callContext()
	defer cancel()
	stats, err := k.node.store.Stats(ctx, ports.StatsRequest{Queues: []string{name}})
	if errors.Is(err, ports.ErrUnknownQueue) { // forgotten since it was listed
		return nil
	}
	if err != nil {
		return err
	}

	q := &stats[0]
	recovered := 0
	var errs []error
	for i := range q.Shards {
		if q.Shards[i].Orphaned(q.Now) == 0 || k.node.stopping() {
			continue
		}
		jobs, err := k.shard(q.Queue, q.Shards[i].Shard)
		recovered += jobs
		errs = append(errs, err)
	}

	if recovered > 0 {
		k.node.log.Warn("put back the jobs of dead servers in a queue that no server runs; the jobs wait for a server",
			"queue", name, "jobs", recovered)
	}
	if len(q.Unreached) > 0 {
		errs = append(errs, fmt.Errorf("%d shards of %q can't be reached, the first is %v",
			len(q.Unreached), name, q.Unreached[0]))
	}

	return errors.Join(errs...)
}

// shard takes a shard's lease for as long as it takes to settle the orphans, and returns how many
// were settled. A shard that another owner has taken meanwhile is left to that owner.
func (k *orphanKeeper) shard(q ports.Queue, id core.Shard) (jobs int, err error) {
	ctx, cancel := context.WithTimeout(k.node.storeCtx, k.node.longAcquire())
	defer cancel()

	k.attempt++
	reply, err := k.node.store.Acquire(ctx, ports.AcquireRequest{
		Shard:      id,
		Shards:     q.Shards,
		Generation: q.Generation,
		Owner:      k.owner,
		Attempt:    k.attempt,
		TTL:        k.node.cfg.LeaseTTL,
	})
	switch {
	case errors.Is(err, ports.ErrLeaseHeld):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("shard %v: %w", id, err)
	}

	k.node.observer.LeaseChanged(ports.LeaseEvent{
		Shard:   id,
		Change:  ports.LeaseAcquired,
		Token:   reply.Token,
		Orphans: len(reply.Claims),
	})

	lease := ports.Lease{Shard: id, Owner: k.owner, Token: reply.Token}
	jobs, err = k.settle(lease, recoveries(reply.Claims, reply.Cancellations, reply.Now))
	if err = errors.Join(err, k.release(lease)); err != nil {
		return jobs, fmt.Errorf("shard %v: %w", id, err)
	}
	return jobs, nil
}

// recoveries returns the settlements of orphans. Only a server of the queue knows its
// MaxRecoveries, so nothing is buried here: the next server that claims a job that was recovered
// too often buries it.
func recoveries(orphans []core.Claim, cancels []ports.Cancellation, now core.Instant) []core.Settlement {
	unbounded := core.RetryPolicy{MaxRecoveries: math.MaxInt}
	settlements := make([]core.Settlement, len(orphans))
	for i := range orphans {
		settlements[i] = orphanSettlement(unbounded, &orphans[i], cancels, now)
	}
	return settlements
}

// settle sends settlements, and those of orphans that the store hands over meanwhile, and returns
// how many were carried out. Settlements that do not fit a turn come with the next one. Those that
// the store defers for another reason, or can't reach, stay claimed for a later look. A turn that
// fails is not repeated: once the lease is released, it can have no effect if it has not been
// carried out.
func (k *orphanKeeper) settle(lease ports.Lease, pending []core.Settlement) (jobs int, err error) {
	for number := int64(1); ; {
		now := pending[:min(len(pending), core.MaxTurnJobs)]
		reply, err := k.turn(lease, number, now)
		if err != nil {
			return jobs, err
		}

		jobs += len(now) - len(reply.Skipped) - len(reply.Deferred)
		unfit, _ := splitDeferred(now, &reply)
		pending = slices.Concat(
			settlementsAt(now, unfit),
			pending[len(now):],
			recoveries(reply.Orphans, reply.Cancellations, reply.Now),
		)

		if len(pending) == 0 {
			return jobs, nil
		}
		number = reply.Last + 1
	}
}

// turn makes one turn that claims nothing.
func (k *orphanKeeper) turn(lease ports.Lease, number int64, settlements []core.Settlement) (ports.TurnReply, error) {
	ctx, cancel := k.node.callContext()
	defer cancel()

	sent := time.Now()
	reply, err := k.node.store.Turn(ctx, ports.TurnRequest{
		Lease:       lease,
		Number:      number,
		TTL:         k.node.cfg.LeaseTTL,
		Settlements: settlements,
		Bytes:       leastClaimBytes,
		Node:        k.node.cfg.Node,
	})

	k.node.observer.TurnEnd(ports.TurnEvent{
		Shard:     lease.Shard,
		Settled:   len(settlements),
		Recovered: len(reply.Orphans),
		Took:      time.Since(sent),
		Err:       err,
	})

	return reply, err
}

// release ends a lease, even while the node stops. A lease that it can't release expires.
func (k *orphanKeeper) release(lease ports.Lease) error {
	ctx, cancel := k.node.lastContext()
	defer cancel()
	event := ports.LeaseEvent{Shard: lease.Shard, Change: ports.LeaseReleased, Token: lease.Token}
	err := k.node.store.Release(ctx, lease)
	if err != nil {
		event.Change, event.Err = ports.LeaseDropped, err
	}
	k.node.observer.LeaseChanged(event)
	return err
}

// orphanSettlement returns the settlement of a job that an earlier lease left claimed. If an
// operator has cancelled the job, it ends as the operator chose, else by rules 4.
func orphanSettlement(
	policy core.RetryPolicy,
	c *core.Claim,
	cancels []ports.Cancellation,
	now core.Instant,
) core.Settlement {
	at := cancelled(c, cancels)
	switch {
	case at < 0:
		return policy.Recover(c, now)
	case cancels[at].Drop:
		return policy.Settlement(c, &core.Outcome{Kind: core.Dropped}, 0)
	}
	return policy.Settlement(c, &core.Outcome{Kind: core.Untouched}, 0)
}

// cancelled returns the position of the cancellation of a claim, or -1.
func cancelled(c *core.Claim, cancels []ports.Cancellation) int {
	return slices.IndexFunc(cancels, func(k ports.Cancellation) bool { return k.ID == c.ID && k.Receipt == c.Receipt })
}

// uncancelled returns the orphans that are recovered: an operator's cancellation ends the others.
func uncancelled(orphans []core.Claim, cancels []ports.Cancellation) []core.Claim {
	if len(cancels) == 0 {
		return orphans
	}
	return slices.DeleteFunc(slices.Clone(orphans), func(c core.Claim) bool { return cancelled(&c, cancels) >= 0 })
}
