package redis

import (
	"context"
	"strconv"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Import implements [ports.Operator]. If dead letters or jobs join existing ones whose records have
// more than 8 MiB together, it handles only the first of them.
func (s *Store) Import(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}

	asked := storekit.Layout{Shards: r.Shards, Generation: r.Generation}
	args := []any{s.now(), layoutText(asked), boolArg(r.OnlyPaused)}
	for i := range r.DeadLetters {
		args = appendDeadLetter(args, &r.DeadLetters[i])
	}

	c := exchange.Call{Script: importScript, Keys: s.firstKeys(r.Shard, deadKeys), NoRetry: true, Durable: true}
	if len(r.Jobs) > 0 {
		c.Script, c.Keys = importJobsScript, s.firstKeys(r.Shard, queueKeys)
	}
	for i := range r.Jobs {
		args = appendJob(args, &r.Jobs[i])
	}

	c.Args = args
	value, err := s.run(ctx, c)
	if err != nil {
		return ports.StepReply{}, err
	}

	reply := record.ReplyOf(value)
	switch reply.Text() {
	case "ok":
		now, handled, _, reached := core.Instant(reply.Int()), reply.Int(), reply.Int(), reply.Int()
		return ports.StepReply{Now: now, Handled: int(handled), Reached: int(reached)}, reply.Err()
	case "mismatch":
		return ports.StepReply{}, mismatched(&reply, r.Shard.Queue, asked)
	case "running":
		return ports.StepReply{}, storekit.NotPaused(r.Shard)
	case "unknown":
		return ports.StepReply{}, s.noShard(ctx, r.Shard, asked)
	}
	return ports.StepReply{}, record.ErrReply
}

// appendDeadLetter appends a dead letter as arguments of the import script.
func appendDeadLetter(args []any, d *core.DeadLetter) []any {
	return appendPayloads(
		append(args, d.ID, int64(d.ChangedAt), storekit.WithTags(d.Tags, d.Error), d.Group),
		d.Payloads,
	)
}

// appendJob appends a job as arguments of the script that imports jobs.
func appendJob(args []any, j *core.Job) []any {
	return appendPayloads(append(
		args,
		j.ID,
		int64(j.PerformAt),
		int64(j.FirstPush),
		j.RetryCount,
		j.Recoveries,
		storekit.WithTags(j.Tags, j.Error),
	), j.Payloads)
}

func appendPayloads(args []any, payloads []core.Payload) []any {
	args = append(args, len(payloads))
	for _, p := range payloads {
		args = append(args, scoreArg(p.Score), p.Data, p.Meta)
	}
	return args
}

// scoreArg returns a score as the argument of a script, which reads it back unchanged.
func scoreArg(score float64) string { return strconv.FormatFloat(core.NormalScore(score), 'g', -1, 64) }
