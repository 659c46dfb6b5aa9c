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

// LateTicks returns the [LateTick] of each of these queues that has a schedule with a next tick, by
// the queue's name, with one call to the store for all ticks. Without names it reads all queues. A
// queue that is paused has no late tick. If shards can't be reached, it returns the values of the
// others and a *[PartialError]. For an unknown name it returns [ErrUnknownQueue].
func (i *Inspector) LateTicks(ctx context.Context, queues ...string) (late map[string]LateTick, err error) {
	if len(queues) > 0 {
		var shards []core.Shard
		for _, queue := range queues {
			count, err := i.shards(ctx, queue)
			if err != nil {
				return nil, err
			}
			shards = append(shards, core.Shards(queue, count)...)
		}
		return i.lateTicks(ctx, shards)
	}

	// A queue that is forgotten between the two calls is unknown to the second one.
	for range mostForgotten {
		all, failed := i.Queues(ctx)
		if failed != nil || len(all) == 0 {
			return nil, failed
		}
		var shards []core.Shard
		for at := range all {
			shards = append(shards, core.Shards(all[at].Name, all[at].Shards)...)
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
