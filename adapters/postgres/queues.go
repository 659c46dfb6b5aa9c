package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Declare implements [ports.Producer].
func (s *Store) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	if err := r.Validate(); err != nil {
		return ports.DeclareReply{}, err
	}

	var record ports.Queue
	var rule mergeRule
	err := s.queryOne(ctx, idempotent,
		[]any{&record.Shards, &record.Generation, &record.IndexIDs, &rule.code, &rule.samePush},
		`SELECT shards, generation, index_ids, merge_rule, same_push FROM {schema}.declare($1, $2, $3, $4, $5)`,
		r.Queue, int32(r.Shards), r.IndexIDs, int32(storekit.MergeCode(r.Merge)), r.Merge.Same == core.SamePush)

	if err == nil {
		record.Merge, err = rule.rule()
	}
	if err == nil {
		err = storekit.CheckDeclared(r, record)
	}
	if err != nil {
		return ports.DeclareReply{}, err
	}
	return ports.DeclareReply{Generation: record.Generation}, nil
}

// mergeRule is a merge rule as a queue's record has it.
type mergeRule struct {
	code     int
	samePush bool
}

func (r mergeRule) rule() (core.MergeRule, error) {
	same := core.SameData
	if r.samePush {
		same = core.SamePush
	}
	return storekit.MergeRuleOf(r.code, same)
}

// queuesSQL lists all queues, or the one named by $1. All shards of a queue are paused at once, so
// the first one shows it.
const queuesSQL = `
SELECT q.name, q.shards, q.generation, q.index_ids, q.merge_rule, q.same_push, s.paused,
  q.settings_version, q.settings::text
FROM {schema}.queues q JOIN {schema}.shards s ON s.id = {schema}.first_shard(q.id)
WHERE $1::text IS NULL OR q.name = $1
ORDER BY q.name`

// Queues implements [ports.Registry].
func (s *Store) Queues(ctx context.Context) ([]ports.Queue, error) {
	return s.queues(ctx, nil)
}

func (s *Store) queues(ctx context.Context, name *string) ([]ports.Queue, error) {
	var queues []ports.Queue
	err := s.query(ctx, idempotent, func(rows pgx.Rows) error {
		queues = nil
		return eachRow(rows, func() error {
			var q ports.Queue
			var rule mergeRule
			var stored storedSettings
			err := rows.Scan(
				&q.Name, &q.Shards, &q.Generation, &q.IndexIDs, &rule.code, &rule.samePush, &q.Paused,
				&stored.version, &stored.text,
			)
			if err == nil {
				q.Settings = s.settingsOf(q.Name, stored)
				q.Merge, err = rule.rule()
			}
			queues = append(queues, q)
			return err
		})
	}, queuesSQL, name)
	return queues, err
}

// queue returns the record of a queue.
func (s *Store) queue(ctx context.Context, name string) (ports.Queue, error) {
	known := textOrNone(name)
	queues, err := s.queues(ctx, &known)
	if err == nil && len(queues) == 0 {
		err = storekit.UnknownQueue(name)
	}
	if err != nil {
		return ports.Queue{}, err
	}
	return queues[0], nil
}

// checkShards returns an error for shards that do not exist. The zero shard stands for the list
// of nodes.
func (s *Store) checkShards(ctx context.Context, shards []core.Shard) error {
	known := make(map[string]int)
	for _, shard := range shards {
		if shard == (core.Shard{}) {
			continue
		}

		if _, ok := known[shard.Queue]; !ok {
			q, err := s.queue(ctx, shard.Queue)
			if err != nil {
				return err
			}
			known[q.Name] = q.Shards
		}

		if shard == ports.PermitsOf(shard.Queue) {
			continue
		}
		if shard.Index < 0 || shard.Index >= known[shard.Queue] {
			return storekit.NoSuchShard(shard)
		}
	}
	return nil
}

// Pause implements [ports.Operator].
func (s *Store) Pause(ctx context.Context, queue string) error {
	_, err := s.setPaused(ctx, queue, true)
	return err
}

// Resume implements [ports.Operator].
func (s *Store) Resume(ctx context.Context, queue string) error {
	shards, err := s.setPaused(ctx, queue, false)
	if err != nil {
		return err
	}
	for _, shard := range core.Shards(queue, shards) {
		s.wake(shard, wakeAlways)
	}
	return nil
}

// setPaused pauses or resumes a queue, and returns the number of its shards.
func (s *Store) setPaused(ctx context.Context, queue string, paused bool) (shards int, err error) {
	err = s.queryOne(ctx, idempotent|operated, []any{&shards},
		`SELECT {schema}.set_paused($1, $2)`, textOrNone(queue), paused)
	if err == nil && shards == 0 {
		err = storekit.UnknownQueue(queue)
	}
	if err != nil {
		return 0, err
	}
	return shards, nil
}

// SetMerge implements [ports.Operator]. What transactions have left until then merges by the former
// rule first.
func (s *Store) SetMerge(ctx context.Context, r ports.SetMergeRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if err := s.mergeInboxes(ctx, r.Queue, nil); err != nil {
		return err
	}

	var was mergeRule
	var shards int
	err := s.queryOne(ctx, idempotent|operated, []any{&was.code, &was.samePush, &shards},
		`SELECT merge_rule, same_push, shards FROM {schema}.set_merge($1, $2, $3)`,
		textOrNone(r.Queue), int32(storekit.MergeCode(r.Merge)), r.Merge.Same == core.SamePush)
	if err == nil && shards == 0 {
		err = storekit.UnknownQueue(r.Queue)
	}

	var rule core.MergeRule
	if err == nil {
		rule, err = was.rule()
	}
	if err != nil {
		return err
	}
	return storekit.CheckMerge(r.Queue, rule, r.Merge)
}

// Forget implements [ports.Operator]. It is atomic for the queue. Pushes wait for it, and it waits
// for pushes in progress. While a caller's transaction that has pushed stays open, it returns an
// error.
func (s *Store) Forget(ctx context.Context, queue string) error {
	if err := s.mergeInboxes(ctx, queue, nil); err != nil {
		return err
	}

	var (
		st        status
		at        = core.Shard{Queue: queue}
		owner     string
		remaining int64
	)

	err := s.queryOne(ctx, ifRolledBack|operated, []any{&st, &at.Index, &owner, &remaining},
		`SELECT status, coalesce(index, 0), coalesce(owner, ''), coalesce(remaining, 0) FROM {schema}.forget($1, $2)`,
		textOrNone(queue), s.now())

	switch {
	case err != nil:
		return fmt.Errorf("forget %q, which waits for open transactions that have pushed: %w", queue, err)
	case st == statusLeaseHeld:
		return &ports.HeldError{Shard: at, Owner: owner, Remaining: micros(remaining)}
	case st == statusNotEmpty:
		return storekit.NotEmpty(at)
	}
	return st.err(at)
}
