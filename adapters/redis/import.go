package redis

import (
	"context"

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
	c := exchange.Call{
		Script:  importScript,
		Keys:    s.firstKeys(r.Shard, deadKeys),
		Args:    []any{s.now(), layoutText(asked), boolArg(r.OnlyPaused)},
		NoRetry: true,
		Durable: true,
	}
	switch {
	case len(r.Jobs) > 0:
		c.Script, c.Keys = importJobsScript, s.firstKeys(r.Shard, queueKeys)
	case len(r.Past)+len(r.Marks) > 0:
		c.Script = importPastScript
		c.Keys = s.someKeys(r.Shard, keyMeta, keyLease, keyPast, keyPastByTime, keyResults)
		c.Args = append(c.Args, core.ImportedKeepAge.Microseconds(), boolArg(len(r.Marks) > 0))
	}

	for i := range r.DeadLetters {
		d := &r.DeadLetters[i]
		c.Args = append(c.Args, d.ID, int64(d.ChangedAt), record.AppendDeadLetter(nil, d))
	}
	for i := range r.Jobs {
		j := r.Jobs[i]
		j.Slot = "" // of another queue
		c.Args = append(c.Args, j.ID, int64(j.PerformAt), record.AppendJob(nil, &j))
	}

	for i := range r.Past {
		p := r.Past[i].Stored(r.Past[i].ID, r.Past[i].DoneAt)
		c.Args = append(c.Args, p.ID, record.PastText(&p), p.Result)
	}
	for i := range r.Marks {
		m := core.ImportMark(nil, r.Marks[i])
		c.Args = append(c.Args, m.ID, record.PastText(&m), "")
	}

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
