package inspect

import (
	"context"
	"errors"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// LateTicks returns the [LateTick] of each queue that has a schedule with a next tick, by the
// queue's name, with one call to the store for the ticks of all queues. If shards can't be reached,
// it returns the values of the others and a *[PartialError].
func (i *Inspector) LateTicks(ctx context.Context) (late map[string]LateTick, err error) {
	for range mostForgotten {
		queues, failed := i.Queues(ctx)
		if failed != nil || len(queues) == 0 {
			return nil, failed
		}
		late, err = i.lateTicks(ctx, queues)
		if !errors.Is(err, ErrUnknownQueue) {
			break
		}
	}
	return late, err
}

// lateTicks returns the values of the given queues.
func (i *Inspector) lateTicks(ctx context.Context, queues []Queue) (map[string]LateTick, error) {
	var r ports.TicksRequest
	for at := range queues {
		r.Shards = append(r.Shards, core.Shards(queues[at].Name, queues[at].Shards)...)
	}
	reply, err := ask(i, func(s Store) (ports.TicksReply, error) { return s.Ticks(ctx, r) })
	if err != nil {
		return nil, err
	}

	late := make(map[string]LateTick)
	for at := range reply.Shards {
		ticks, queue := &reply.Shards[at], r.Shards[at].Queue
		if ticks.Head.OK {
			late[queue] = LateTick{Late: max(late[queue].Late, ticks.Head.Lag(ticks.Now)), Scheduled: true}
		}
	}
	return late, partial(reply.Unreached)
}
