package bulk

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Repeat carries out a run on all dead letters by a step for which the store selects them, at most
// limit of a shard. It ends even while jobs are buried, since it handles only dead letters that
// existed when it began.
func Repeat(
	ctx context.Context,
	r *Run,
	stats *ports.QueueStats,
	step func(shard core.Shard, limit int) (ports.StepReply, error),
) error {
	dead := func(c *ports.Counts) int64 { return c.Dead }
	return r.shards(stats, dead, func(shard core.Shard, left int, _ ports.Cursor) error {
		if err := r.repeat(ctx, shard, left, step); err != nil {
			return fmt.Errorf("shard %v: %w", shard, err)
		}
		return nil
	})
}

// repeat repeats the step until no dead letter is left, or until it has handled left dead letters,
// the number that the shard held.
func (r *Run) repeat(
	ctx context.Context,
	shard core.Shard,
	left int,
	step func(core.Shard, int) (ports.StepReply, error),
) error {
	unfinished := 0
	for more := true; more && left > 0; unfinished++ {
		if unfinished == partSteps {
			return errUnfinished(left)
		}

		limit := r.room(min(left, ports.MaxStep))
		if limit == 0 {
			return nil
		}

		reply, err := step(shard, limit)
		if err != nil {
			return err
		}

		r.Met += reply.Handled
		r.Pass(reply.Handled, reply.Handled)
		left -= reply.Handled
		if err := r.step(ctx, reply.Handled, shard.Index, ports.Cursor{}); err != nil {
			return err
		}

		more = reply.More
		if reply.Handled > 0 {
			unfinished = -1
		}
	}
	// The remaining dead letters no longer exist.
	r.Pass(left, 0)
	return nil
}
