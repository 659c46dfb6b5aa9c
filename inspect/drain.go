package inspect

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// drain is an action on all dead letters, which the store selects by itself. It ends even while
// jobs are buried, since it handles only dead letters that existed when it began.
type drain struct {
	inspector *Inspector
	*action
	step deadLetterStep
}

func (d *drain) run(ctx context.Context, queue string) (Result, error) {
	if d.invalid != nil {
		return d.end(d.invalid)
	}
	stats, err := d.inspector.queueStats(ctx, queue)
	if err != nil {
		return d.end(err)
	}
	g := d.going
	if err := g.begin(&stats); err != nil {
		return d.end(err)
	}
	if !g.continued() {
		d.progress.Total = int(stats.Dead)
	}
	if err := g.note(d.action, g.next, g.from); err != nil {
		return d.end(err)
	}
	for at := range stats.Shards {
		s := &stats.Shards[at]
		if s.Shard.Index < g.next {
			continue
		}
		limited, err := d.shard(ctx, s.Shard, int(s.Dead))
		if err != nil {
			return d.end(fmt.Errorf("shard %v: %w", s.Shard, err))
		}
		if limited {
			return d.limited()
		}
	}
	return d.end(partial(d.going.missed))
}

// partSteps is the number of consecutive steps without a finished entry after which an action gives
// up. Then either the store makes no progress, or an entry has ten million payloads.
const partSteps = 10_000

// shard repeats the step until no dead letter is left, or until it has handled left dead letters,
// the number that the shard held. limited reports whether Limit or Stop has ended the action.
func (d *drain) shard(ctx context.Context, shard core.Shard, left int) (limited bool, err error) {
	unfinished := 0
	for more := true; more && left > 0; unfinished++ {
		if unfinished == partSteps {
			return false, fmt.Errorf("%d steps have not finished %d large entries; call the action again", unfinished, left)
		}
		limit := d.going.room(min(left, ports.MaxStep))
		if limit == 0 {
			return true, nil
		}
		reply, err := persist(ctx, d.inspector, func(s Store) (ports.StepReply, error) {
			return d.step(s, ctx, ports.DeadLetterStep{Shard: shard, Before: d.going.at.Before, Limit: limit, Group: d.going.at.Group})
		})
		if err != nil {
			return false, err
		}
		d.met += reply.Handled
		d.pass(reply.Handled, reply.Handled)
		left -= reply.Handled
		if err := d.going.step(ctx, d.action, reply.Handled, shard.Index, ports.Cursor{}); err != nil {
			return false, err
		}
		more = reply.More
		if reply.Handled > 0 {
			unfinished = -1
		}
	}
	d.pass(left, 0)
	return false, nil
}

// endOf returns the end of the microsecond in which an action began. Dead letters that were buried
// in the same microsecond, before the action began, belong to the action.
func endOf(began core.Instant) core.Instant { return began + 1 }
