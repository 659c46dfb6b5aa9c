package inspect

import (
	"context"
	"errors"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// LateTick is the queue's tick that has been due longest.
type LateTick struct {
	// Late is how long the tick has been due, by the store's clock. It is 0 if none is due.
	Late time.Duration
	// Scheduled is true if the queue has a schedule with a next tick.
	Scheduled bool
}

// LateTick returns how late the ticks of a queue are. A queue that is paused has none. If shards
// can't be reached, it returns the value of the others and a *[PartialError].
func (i *Inspector) LateTick(ctx context.Context, queue string) (LateTick, error) {
	shards, err := i.shards(ctx, queue)
	if err != nil {
		return LateTick{}, err
	}
	late, err := i.lateTicks(ctx, core.Shards(queue, shards))
	return late[queue], err
}

// LateTicks returns the [LateTick] of each queue that has a schedule with a next tick, by the
// queue's name, with one call to the store for the ticks of all queues. If shards can't be reached,
// it returns the values of the others and a *[PartialError].
func (i *Inspector) LateTicks(ctx context.Context) (late map[string]LateTick, err error) {
	for range mostForgotten {
		queues, failed := i.Queues(ctx)
		if failed != nil || len(queues) == 0 {
			return nil, failed
		}
		var shards []core.Shard
		for at := range queues {
			shards = append(shards, core.Shards(queues[at].Name, queues[at].Shards)...)
		}
		late, err = i.lateTicks(ctx, shards)
		if !errors.Is(err, ErrUnknownQueue) {
			break
		}
	}
	return late, err
}

// lateTicks returns the values of the queues of shards, by the queue's name.
func (i *Inspector) lateTicks(ctx context.Context, shards []core.Shard) (map[string]LateTick, error) {
	reply, err := ask(i, func(s Store) (ports.TicksReply, error) {
		return s.Ticks(ctx, ports.TicksRequest{Shards: shards})
	})
	if err != nil {
		return nil, err
	}

	late := make(map[string]LateTick)
	for at := range reply.Shards {
		ticks, queue := &reply.Shards[at], shards[at].Queue
		if ticks.Head.OK {
			late[queue] = LateTick{Late: max(late[queue].Late, ticks.Head.Lag(ticks.Now)), Scheduled: true}
		}
	}
	return late, partial(reply.Unreached)
}
