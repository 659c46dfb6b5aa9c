package engine_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func (l *link) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	var reply ports.DeclareReply // a late packet's is nobody's
	err := l.call(ctx, "Declare", func(ctx context.Context, s ports.ShardStore) (err error) {
		reply, err = s.Declare(ctx, r)
		return err
	})
	if err != nil {
		return ports.DeclareReply{}, err
	}
	return reply, nil
}

func (l *link) Ticks(ctx context.Context, r ports.TicksRequest) (ports.TicksReply, error) {
	var reply ports.TicksReply
	err := l.call(ctx, "Ticks", func(ctx context.Context, s ports.ShardStore) (err error) {
		if err := l.reach(ctx, r.Shards); err != nil {
			return err
		}
		reply, err = s.Ticks(ctx, r)
		return err
	})
	if err != nil {
		return ports.TicksReply{}, err
	}
	return reply, nil
}

func (l *link) ChangeSchedules(
	ctx context.Context,
	r ports.ChangeSchedulesRequest,
) (ports.ChangeSchedulesReply, error) {
	var reply ports.ChangeSchedulesReply
	err := l.call(ctx, "ChangeSchedules", func(ctx context.Context, s ports.ShardStore) (err error) {
		reply, err = s.ChangeSchedules(ctx, r)
		return err
	})
	if err != nil {
		return ports.ChangeSchedulesReply{}, err
	}
	return reply, nil
}

func (l *link) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	l.mu.Lock()
	l.acquires = append(l.acquires, r)
	l.mu.Unlock()
	var reply ports.AcquireReply
	err := l.call(ctx, "Acquire", func(ctx context.Context, s ports.ShardStore) (err error) {
		if reply, err = s.Acquire(ctx, r); err != nil {
			return err
		}
		return l.carry(ctx, sizeOf(reply.Claims))
	})
	if err != nil {
		return ports.AcquireReply{}, err
	}
	return reply, nil
}

// Turn keeps a copy of the request, since a late packet must not see the sender's later changes of
// its slices.
func (l *link) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	r.Settlements = slices.Clone(r.Settlements)
	if l.rejectRepeatedSettlement(r.Settlements) { // or the settlements that it resends would double for ever
		return ports.TurnReply{}, ports.ErrLeaseLost
	}
	record := turnRecord{at: time.Now(), request: r}
	var reply ports.TurnReply // a late packet's is nobody's
	record.err = l.call(ctx, "Turn", func(ctx context.Context, s ports.ShardStore) (err error) {
		reply, err = l.turn(ctx, s, r)
		return err
	})
	if record.err == nil {
		record.reply = reply
	}
	record.ended = time.Now()
	l.mu.Lock()
	l.turns = append(l.turns, record)
	l.mu.Unlock()
	return record.reply, record.err
}

// rejectRepeatedSettlement fails the test if a turn settles a claim twice.
func (l *link) rejectRepeatedSettlement(settle []core.Settlement) bool {
	seen := make(map[core.ClaimRef]bool, len(settle))
	for i := range settle {
		ref := core.ClaimRef{ID: settle[i].ID, Receipt: settle[i].Receipt}
		if seen[ref] {
			l.spin.t.Errorf("a turn settles %v twice", ref)
			return true
		}
		seen[ref] = true
	}
	return false
}

// turn leaves out the settlements that are to be deferred.
func (l *link) turn(ctx context.Context, s ports.ShardStore, r ports.TurnRequest) (ports.TurnReply, error) {
	l.beforeTurn(r)
	if err := l.reach(ctx, []core.Shard{r.Lease.Shard}); err != nil {
		return ports.TurnReply{}, err
	}

	var passed []core.Settlement
	var deferred, positions []int
	l.mu.Lock()
	for i := range r.Settlements {
		if l.deferSettlement(r.Settlements[i].ID) || l.deferReceipt(r.Settlements[i].Receipt) {
			deferred = append(deferred, i)
		} else {
			passed, positions = append(passed, r.Settlements[i]), append(positions, i)
		}
	}
	l.mu.Unlock()

	r.Settlements = passed
	reply, err := s.Turn(ctx, r)
	for k, at := range reply.Skipped {
		reply.Skipped[k] = positions[at]
	}
	for _, at := range reply.Deferred {
		deferred = append(deferred, positions[at])
	}
	reply.Deferred = slices.Sorted(slices.Values(deferred))

	if l.loseTurn(r) {
		return ports.TurnReply{}, errLost
	}

	if err == nil {
		err = l.carry(ctx, bytesOf(&reply))
	}
	if err != nil {
		return ports.TurnReply{}, err
	}
	return reply, nil
}

// carry waits for as long as the link takes for that many bytes of payload.
func (l *link) carry(ctx context.Context, bytes int) error {
	if l.rate == 0 || bytes == 0 {
		return nil
	}
	select {
	case <-time.After(time.Duration(bytes) * time.Second / time.Duration(l.rate)):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("link: %w", ctx.Err())
	}
}

// bytesOf returns the bytes of payload in a reply.
func bytesOf(r *ports.TurnReply) int { return sizeOf(r.Claims) + sizeOf(r.Orphans) }

// sizeOf returns the bytes of payload of claims.
func sizeOf(claims []core.Claim) (size int) {
	for i := range claims {
		for k := range claims[i].Payloads {
			size += len(claims[i].Payloads[k].Data)
		}
	}
	return size
}

// reach fails if one of the shards is broken, and hangs while one is stuck.
func (l *link) reach(ctx context.Context, shards []core.Shard) error {
	for {
		var broken error
		stuck := false
		l.mu.Lock()
		for _, shard := range shards {
			broken, stuck = cmp.Or(broken, l.broken[shard]), stuck || l.stuck[shard]
		}
		l.mu.Unlock()
		if broken != nil || !stuck {
			return broken
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return fmt.Errorf("link: %w", ctx.Err())
		}
	}
}

func (l *link) Renew(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
	var reply ports.RenewReply // a late packet's is nobody's
	err := l.call(ctx, "Renew", func(ctx context.Context, s ports.ShardStore) (err error) {
		reply, err = s.Renew(ctx, r)
		return err
	})
	if err != nil {
		return ports.RenewReply{}, err
	}
	return reply, nil
}

func (l *link) Release(ctx context.Context, lease ports.Lease) error {
	return l.call(ctx, "Release", func(ctx context.Context, s ports.ShardStore) error {
		return s.Release(ctx, lease)
	})
}

func (l *link) Heads(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
	shards = slices.Clone(shards)
	var reply ports.HeadsReply
	err := l.call(ctx, "Heads", func(ctx context.Context, s ports.ShardStore) (err error) {
		if err := l.reach(ctx, shards); err != nil {
			return err
		}
		reply, err = s.Heads(ctx, shards)
		return err
	})
	if err != nil {
		return ports.HeadsReply{}, err
	}
	return reply, nil
}

func (l *link) Permit(ctx context.Context, r ports.PermitRequest) (ports.PermitReply, error) {
	var reply ports.PermitReply // a late packet's is nobody's
	err := l.call(ctx, "Permit", func(ctx context.Context, s ports.ShardStore) (err error) {
		reply, err = s.Permit(ctx, r)
		return err
	})
	if err != nil {
		return ports.PermitReply{}, err
	}
	return reply, nil
}

func (l *link) Announce(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
	var reply ports.AnnounceReply // a late packet's is nobody's
	err := l.call(ctx, "Announce", func(ctx context.Context, s ports.ShardStore) (err error) {
		reply, err = s.Announce(ctx, r)
		return err
	})
	if err != nil {
		return ports.AnnounceReply{}, err
	}
	return reply, nil
}

func (l *link) Record(ctx context.Context, r ports.RecordRequest) error {
	return l.call(ctx, "Record", func(ctx context.Context, s ports.ShardStore) error {
		return s.Record(ctx, r)
	})
}

func (l *link) Retire(ctx context.Context, owner string) error {
	return l.call(ctx, "Retire", func(ctx context.Context, s ports.ShardStore) error {
		return s.Retire(ctx, owner)
	})
}

func (l *link) Nodes(ctx context.Context) (ports.NodesReply, error) {
	var reply ports.NodesReply // a late packet's is nobody's
	err := l.call(ctx, "Nodes", func(ctx context.Context, s ports.ShardStore) (err error) {
		reply, err = s.Nodes(ctx)
		return err
	})
	if err != nil {
		return ports.NodesReply{}, err
	}
	return reply, nil
}

func (l *link) Queues(ctx context.Context) ([]ports.Queue, error) {
	var queues []ports.Queue // a late packet's are nobody's
	err := l.call(ctx, "Queues", func(ctx context.Context, s ports.ShardStore) (err error) {
		queues, err = s.Queues(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return queues, nil
}

func (l *link) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	var stats []ports.QueueStats // a late packet's are nobody's
	err := l.call(ctx, "Stats", func(ctx context.Context, s ports.ShardStore) (err error) {
		stats, err = s.Stats(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return stats, nil
}

func (l *link) Take(ctx context.Context, r ports.TakeRequest) (ports.TakeReply, error) {
	var reply ports.TakeReply
	err := l.call(ctx, "Take", func(ctx context.Context, s ports.ShardStore) (err error) {
		reply, err = s.Take(ctx, r)
		return err
	})
	if err != nil {
		return ports.TakeReply{}, err
	}
	return reply, nil
}

func (l *link) Stop(ctx context.Context, r ports.StopRequest) error {
	return l.call(ctx, "Stop", func(ctx context.Context, s ports.ShardStore) error { return s.Stop(ctx, r) })
}

func (l *link) Purge(ctx context.Context, d ports.DeadLetterStep) (ports.StepReply, error) {
	var reply ports.StepReply
	err := l.call(ctx, "Purge", func(ctx context.Context, s ports.ShardStore) (err error) {
		reply, err = s.Purge(ctx, d)
		return err
	})
	if err != nil {
		return ports.StepReply{}, err
	}
	return reply, nil
}

// notifyingLink lets wake-ups through while the link is up.
type notifyingLink struct{ *link }

func (l notifyingLink) Wakeups(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
	var in <-chan core.Shard
	err := l.call(ctx, "Wakeups", func(ctx context.Context, s ports.ShardStore) (err error) {
		in, err = s.(ports.Notifier).Wakeups(ctx, shards)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make(chan core.Shard)
	go func() {
		defer close(out)
		for shard := range in {
			l.mu.Lock()
			lost := l.state != up
			l.mu.Unlock()
			if lost {
				continue
			}
			select {
			case out <- shard:
			case <-ctx.Done():
			}
		}
	}()
	return out, nil
}
