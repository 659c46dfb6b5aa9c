package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// step runs an operator's script on a shard; the script names the given number of entries. The
// client does not repeat it: a second run would not count the entries that the first has handled.
func (s *Store) step(ctx context.Context, shard core.Shard, named int, c exchange.Call) (ports.StepReply, error) {
	c.NoRetry = true
	value, err := s.run(ctx, c)
	if err != nil {
		return ports.StepReply{}, err
	}

	r := record.ReplyOf(value)
	switch r.Text() {
	case "ok":
		reply := ports.StepReply{Now: core.Instant(r.Int()), Handled: int(r.Int()), More: r.Int() == 1, Reached: named}
		if r.More() && named > 0 {
			reply.Reached = int(r.Int())
			reply.More = false
			if r.More() {
				reply.Stale = int(r.Int())
			}
		}
		return reply, r.Err()
	case "unknown":
		return ports.StepReply{}, s.absent(ctx, shard)
	}
	return ports.StepReply{}, record.ErrReply
}

// jobStep runs a script whose first arguments are those of every step on jobs, unless the step is
// invalid.
func (s *Store) jobStep(
	ctx context.Context,
	r *ports.JobStep,
	invalid error,
	c *exchange.Script,
	keys int,
	more ...any,
) (ports.StepReply, error) {
	if invalid != nil {
		return ports.StepReply{}, invalid
	}

	args := append([]any{s.now(), int64(r.Before), kindArg(r)}, more...)
	for i, id := range r.IDs {
		args = append(args, id)
		if r.First != nil {
			args = append(args, r.First[i])
		}
	}

	return s.step(ctx, r.Shard, len(r.IDs), exchange.Call{
		Script: c,
		Keys:   s.firstKeys(r.Shard, keys),
		Args:   args,
	})
}

// kindArg is the argument of a step on jobs that limits it to some of them.
func kindArg(r *ports.JobStep) int {
	switch {
	case r.Held:
		return 2
	case r.Failed:
		return 1
	}
	return 0
}

// Expedite implements [ports.Operator].
func (s *Store) Expedite(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return s.jobStep(ctx, &r, r.ValidateWhole(), expediteScript, queueKeys)
}

// Bury implements [ports.Operator].
func (s *Store) Bury(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return s.jobStep(ctx, &r, r.ValidateBury(), buryScript, deadKeys,
		core.BuriedByHand, record.Failures(core.Failures{{Text: core.BuriedByHand}}), boolArg(r.First != nil))
}

// Delete implements [ports.Operator].
func (s *Store) Delete(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	if r.Payloads != nil {
		return s.deletePayloads(ctx, &r)
	}
	return s.jobStep(ctx, &r, r.Validate(), deleteScript, queueKeys, boolArg(r.First != nil))
}

// deletePayloads is Delete of payloads.
func (s *Store) deletePayloads(ctx context.Context, r *ports.JobStep) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}

	args := []any{s.now(), int64(r.Before), kindArg(r)}
	for i, id := range r.IDs {
		args = append(args, id, len(r.Payloads[i]))
		for _, p := range r.Payloads[i] {
			args = append(args, scoreArg(p.Score), p.Data)
		}
	}

	return s.step(ctx, r.Shard, len(r.IDs), exchange.Call{
		Script: deletePayloadsScript,
		Keys:   s.firstKeys(r.Shard, queueKeys),
		Args:   args,
	})
}

// scoreArg returns a score as the argument of a script, which reads it back unchanged.
func scoreArg(score float64) string { return strconv.FormatFloat(core.NormalScore(score), 'g', -1, 64) }

// Cancel implements [ports.Operator].
func (s *Store) Cancel(ctx context.Context, r ports.CancelRequest) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}

	args := []any{s.now(), boolArg(r.Drop), s.channel(r.Shard)}
	for _, id := range r.IDs {
		args = append(args, id)
	}
	return s.step(ctx, r.Shard, len(r.IDs), exchange.Call{
		Script: cancelScript,
		Keys:   s.someKeys(r.Shard, keyMeta, keyClaims, keyCancels, keyLease),
		Args:   args,
	})
}

// Revive implements [ports.Operator].
func (s *Store) Revive(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return s.deadLetterStep(ctx, &r, reviveScript, true)
}

// Purge implements [ports.Operator].
func (s *Store) Purge(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return s.deadLetterStep(ctx, &r, purgeScript, false)
}

func (s *Store) deadLetterStep(
	ctx context.Context,
	r *ports.DeadLetterStep,
	c *exchange.Script,
	revive bool,
) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}

	args := []any{s.now(), boolArg(revive), r.Size(), int64(r.Before), r.Group, boolArg(r.DeadLetters != nil), r.Keep,
		staleArg(r)}
	for _, ref := range r.DeadLetters {
		if ref.Payloads == nil {
			args = append(args, ref.ID, -1)
			continue
		}
		args = append(args, ref.ID, len(ref.Payloads))
		for _, data := range ref.Payloads {
			args = append(args, data)
		}
	}

	return s.step(ctx, r.Shard, len(r.DeadLetters), exchange.Call{
		Script: c,
		Keys:   s.firstKeys(r.Shard, deadKeys),
		Args:   args,
	})
}

// staleArg returns what becomes of stale dead letters, as lua/step/revive_purge.lua takes it.
func staleArg(r *ports.DeadLetterStep) int {
	switch {
	case r.Fresh:
		return 1
	case r.Unmark:
		return 2
	}
	return 0
}

// Edit implements [ports.Operator].
func (s *Store) Edit(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
	if err := r.Validate(); err != nil {
		return ports.StepReply{}, err
	}
	script, keys := editScript, deadKeys
	if r.Queued {
		script, keys = editQueuedScript, queueKeys
	}
	return s.step(ctx, r.Shard, 0, exchange.Call{
		Script: script,
		Keys:   s.firstKeys(r.Shard, keys),
		Args:   []any{s.now(), r.ID, r.Old, r.New},
	})
}

// Recount implements [ports.Operator]. Stats counts by lists that scripts write together with the
// jobs, so the counts are wrong only after a fault of Redis or of an operator. After such a fault
// the first step also stores two lost records again: that of the queue, if its shards have kept it,
// and that of the shard, unless another master of a Cluster has keys of the shard. A shard that a
// Pause, Resume or SetMerge did not reach gets the queue's record, and a queue that has lost such a
// change the shard's. Recount returns
// [ports.ErrUnusable] for a key that another program has overwritten.
func (s *Store) Recount(ctx context.Context, r ports.RecountRequest) (ports.RecountReply, error) {
	if err := r.Validate(); err != nil {
		return ports.RecountReply{}, err
	}

	var restored restoredRecords
	if r.After == "" {
		var err error
		if restored, err = s.restore(ctx, r.Shard); err != nil {
			s.logRestored(r.Shard.Queue, restored.shards) // there is no reply that could report it
			return ports.RecountReply{}, cmp.Or(s.recordOverwritten(ctx, r.Shard), err)
		}
	}

	all, faults, err := s.recount(ctx, &r)
	for range mostSetAside {
		if err != nil || len(faults) == 0 {
			break
		}
		if err = s.setAllAside(ctx, s.keys(r.Shard)[keyMeta].(string), faults); err != nil {
			break
		}
		before := all.Before
		all, faults, err = s.recount(ctx, &r)
		all.Before = before
	}

	if err != nil {
		s.logRestored(r.Shard.Queue, restored.shards)
		return ports.RecountReply{}, err
	}

	all.RestoredShards, all.RestoredQueue = restored.shards, restored.queue
	return all, nil
}

// restoredRecords are the lost records that a call has written anew: those of a number of shards,
// and that of their queue.
type restoredRecords struct {
	shards int
	queue  bool
}

// restore stores the record of a shard's queue and that of the shard if they are lost. If one of
// them lacks changes that the other has, it gets them. Like Declare, it then reads the queue's
// record again: a Pause or a Forget may have come in between.
func (s *Store) restore(ctx context.Context, shard core.Shard) (restored restoredRecords, err error) {
	q, err := s.queueOrKept(ctx, shard.Queue, exchange.LongestPatience)
	if err == nil && (shard.Index < 0 || shard.Index >= q.Shards) {
		err = storekit.NoSuchShard(shard)
	}
	if err != nil {
		return restored, err
	}

	record, found, err := s.readRecord(ctx, shard)
	switch {
	case err != nil || q.forgetting:
		return restored, err
	case found && record.layout() != q.layout():
		return restored, q.check(record.layout())
	case found && !q.kept && record.text == q.text:
		return restored, nil
	case found && !q.kept && record.version >= q.version:
		if q, err = s.adopt(ctx, record, q); err != nil {
			return restored, err
		}
	}

	for lost, made := q.kept, false; ; {
		madeNow := false
		switch {
		case lost:
			if q, err = s.declareKept(ctx, q); err == nil {
				restored.queue = true
				var shards int
				shards, err = s.declareShards(ctx, q)
				restored.shards += shards
			}
		case found:
			_, err = s.run(ctx, s.alterShard(q, shard))
		default:
			if madeNow, err = s.restoreShard(ctx, q, shard); madeNow && (q.whole || q.kept) {
				restored.shards++
			}
		}
		if err != nil {
			return restored, err
		}
		made = made || madeNow

		again, err := s.queue(ctx, shard.Queue)
		switch {
		case made && (again.forgetting || errors.Is(err, ports.ErrUnknownQueue)):
			// A Forget has skipped the shards that were made since, so this removes the shard.
			_, failed := s.run(ctx, exchange.Call{
				Script: forgetShardScript,
				Keys:   s.firstKeys(shard, allKeys),
				Args:   []any{s.now(), boolArg(true)},
			})
			return restoredRecords{}, cmp.Or(err, failed)
		case err != nil || again.version == q.version:
			return restored, err
		}
		q = again
	}
}

// restoreShard stores the queue's record in a shard that has lost its own, unless another master of
// a Cluster has keys of the shard. made reports whether the shard had no record.
func (s *Store) restoreShard(ctx context.Context, q queueRecord, shard core.Shard) (made bool, err error) {
	meta := s.keys(shard)[keyMeta].(string)
	owner, others, err := s.mastersWith(ctx, meta)
	if err != nil || others > 0 {
		return false, cmp.Or(err, fmt.Errorf(
			"redis: %w: %d masters have keys of %v, which only the owner of its slot should have",
			ErrTorn, owner+others, shard))
	}

	value, err := s.run(ctx, exchange.Call{
		Script: declareShardScript,
		Keys:   []any{meta},
		Args:   []any{q.text, boolArg(false)},
	})
	if err != nil {
		return false, err
	}

	switch r := record.ReplyOf(value); r.Text() {
	case "layout":
		return false, mismatched(&r, q.Name, q.layout())
	case "new":
		return true, nil
	}
	return false, nil
}

// recount takes a step that corrects what can be corrected, and returns the records that can't be
// read. Places begin with the key of the shard's record, as they mean nothing to another shard.
func (s *Store) recount(
	ctx context.Context,
	r *ports.RecountRequest,
) (step ports.RecountReply, faults []*exchange.DamagedError, err error) {
	of := s.keys(r.Shard)[keyMeta].(string) + " "
	after, ok := strings.CutPrefix(r.After, of)
	if !ok && r.After != "" || ok && after == "" {
		return step, nil, storekit.NoSuchStep(r)
	}

	value, err := s.run(ctx, exchange.Call{
		Script:  recountScript,
		Keys:    s.firstKeys(r.Shard, allKeys),
		Args:    []any{s.now(), after, r.Size()},
		NoRetry: true,
	})
	if err != nil {
		return step, nil, err
	}

	reply := record.ReplyOf(value)
	switch reply.Text() {
	case "ok":
		before, after := reply.List(), reply.List()
		step = ports.RecountReply{
			Before:  parseCounts(&before),
			After:   parseCounts(&after),
			Counted: int(reply.Int()),
			Next:    reply.Text(),
		}
		if step.Next != "" {
			step.Next = of + step.Next
		}

		damaged := reply.List()
		for damaged.More() {
			faults = append(faults, &exchange.DamagedError{
				Place: damaged.Text(),
				ID:    damaged.Text(),
				Text:  "a recount could not read it",
			})
		}
		schedules := reply.List()
		for schedules.More() {
			field, text := schedules.Text(), schedules.Text()
			if _, err := parseSchedule(field, text); err != nil {
				faults = append(faults, unreadable(field, text, err))
			}
		}
		return step, faults, errors.Join(reply.Err(), before.Err(), after.Err(), damaged.Err(), schedules.Err())
	case "type":
		key, kind := reply.Text(), reply.Text()
		return step, nil, cmp.Or(reply.Err(), overwritten(key, kind))
	case "place":
		return step, nil, storekit.NoSuchStep(r)
	case "unknown":
		return step, nil, s.absent(ctx, r.Shard)
	}
	return step, nil, record.ErrReply
}

// overwritten returns [ports.ErrUnusable] for a key that does not have the type that it should
// have.
func overwritten(key, kind string) error {
	what := "the recount then writes it again"
	switch suffix := key[strings.LastIndexByte(key, '}')+1:]; suffix {
	case ":j", ":c", ":l", ":k", ":t", ":x", ":xm", ":q", ":s":
		what = "the data that Skein kept in it is lost"
	}
	return fmt.Errorf(
		"%w: the key %s is not a %s, so another program has overwritten it; delete or rename it with redis-cli, "+
			"and run skein repair recount again: %s",
		ports.ErrUnusable, key, kind, what)
}

// recordOverwritten returns [ports.ErrUnusable] if the record of a shard, or the list of queues,
// has another type than it should have. It returns nil if not, or if that can't be found out.
func (s *Store) recordOverwritten(ctx context.Context, shard core.Shard) error {
	meta := s.keys(shard)[keyMeta]
	for _, k := range []struct {
		key           any
		kind, command string
	}{{s.queuesKey(), "hash", "hlen"}, {meta, "string", "get"}} {
		if _, err := exchange.Ask(ctx, s.link, goredis.NewCmd(ctx, k.command, k.key)); err != nil &&
			strings.Contains(err.Error(), "WRONGTYPE ") {
			return overwritten(fmt.Sprint(k.key), k.kind)
		}
	}
	return nil
}
