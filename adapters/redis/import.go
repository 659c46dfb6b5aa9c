package redis

import (
	"context"
	"strconv"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Import implements [ports.Operator]. If dead letters join existing ones whose records have more
// than 8 MiB together, it handles only the first of them.
func (s *Store) Import(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	asked := storekit.Layout{Shards: r.Shards, Generation: r.Generation}
	args := []any{s.now(), layoutText(asked)}
	for i := range r.DeadLetters {
		args = appendDeadLetter(args, &r.DeadLetters[i])
	}
	value, err := s.run(ctx, call{script: importScript, keys: s.firstKeys(r.Shard, deadKeys), args: args, noRetry: true, durable: true})
	if err != nil {
		return ports.StepReply{}, err
	}
	reply := replyOf(value)
	switch reply.text() {
	case "ok":
		now, handled, _, reached := core.Instant(reply.int()), reply.int(), reply.int(), reply.int()
		return ports.StepReply{Now: now, Handled: int(handled), Reached: int(reached)}, reply.err()
	case "mismatch":
		return ports.StepReply{}, reply.mismatched(r.Shard.Queue, asked)
	case "unknown":
		return ports.StepReply{}, s.noShard(ctx, r.Shard, asked)
	}
	return ports.StepReply{}, errReply
}

// appendDeadLetter appends a dead letter as arguments of the import script.
func appendDeadLetter(args []any, d *core.DeadLetter) []any {
	args = append(args, d.ID, int64(d.ChangedAt), d.Error, d.Group, len(d.Payloads))
	for _, p := range d.Payloads {
		args = append(args, strconv.FormatFloat(core.NormalScore(p.Score), 'g', -1, 64), p.Data, p.Meta)
	}
	return args
}
