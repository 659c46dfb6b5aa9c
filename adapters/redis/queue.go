package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// record is a queue as it is kept, by itself and by each shard, with the version
// of its last pause.
type record struct {
	ports.Queue
	text    string
	version int64
}

func parseRecord(name, text string) (record, error) {
	r := record{Queue: ports.Queue{Name: name}, text: text}
	var index, paused int
	n, err := fmt.Sscanf(text, "%d %d %d %d %d", &index, &paused, &r.Shards, &r.Generation, &r.version)
	if n != 5 || err != nil || r.Shards < 1 || r.Shards > core.MaxShards {
		return record{}, errRecord
	}
	r.IndexIDs, r.Paused = index == 1, paused == 1
	return r, nil
}

// flag is how scripts are told a truth.
func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// queue reads a queue's record.
func (s *Store) queue(ctx context.Context, name string) (record, error) {
	if err := s.ready(ctx); err != nil {
		return record{}, err
	}
	type found struct {
		text string
		err  error
	}
	f, err := await(ctx, s.crew, func() found {
		text, err := s.client.HGet(ctx, s.queuesKey(), name).Result()
		return found{text, translate(err)}
	})
	if err = cmp.Or(err, f.err); err != nil {
		return record{}, err
	}
	if f.text == "" {
		return record{}, storekit.UnknownQueue(name)
	}
	return parseRecord(name, f.text)
}

// layout is the queue's shards and generation.
func (r *record) layout() storekit.Layout {
	return storekit.Layout{Shards: r.Shards, Generation: r.Generation}
}

// check compares the layout that a caller asked for with the queue's.
func (r *record) check(asked storekit.Layout) error {
	if r.layout() == asked {
		return nil
	}
	return storekit.LayoutMismatch(r.Name, asked, r.layout())
}

// layoutText is a layout as scripts compare it.
func layoutText(l storekit.Layout) string {
	return strconv.Itoa(l.Shards) + " " + strconv.FormatInt(l.Generation, 10)
}

// mismatched reads the layout that a script has found instead of the one asked for.
func (r *reply) mismatched(queue string, asked storekit.Layout) error {
	var actual storekit.Layout
	if _, err := fmt.Sscanf(r.text(), "%d %d", &actual.Shards, &actual.Generation); err != nil {
		return errReply
	}
	return storekit.LayoutMismatch(queue, asked, actual)
}

// noShard returns why a shard has no record, for a caller that asked for a layout: that
// comes first.
func (s *Store) noShard(ctx context.Context, shard core.Shard, asked storekit.Layout) error {
	q, err := s.queue(ctx, shard.Queue)
	if err == nil {
		err = q.check(asked)
	}
	if err != nil {
		return err
	}
	return s.absent(ctx, shard)
}

// absent returns why a shard has no record: its queue has none, or not that shard,
// or a Declare has not come to its end.
func (s *Store) absent(ctx context.Context, shard core.Shard) error {
	q, err := s.queue(ctx, shard.Queue)
	if err != nil {
		return err
	}
	if shard.Index < 0 || shard.Index >= q.Shards {
		return storekit.NoSuchShard(shard)
	}
	return fmt.Errorf("%w: %v has no record; declare the queue again", ports.ErrUnknownQueue, shard)
}

// Declare implements ports.Producer. It writes the record of the queue, which
// decides, and then that of each shard, so that a Declare which broke off is
// completed by the next. A Forget in between leaves shards without a queue, so it looks
// whether the record is still there, and begins again if it is not.
func (s *Store) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	if err := r.Validate(); err != nil {
		return ports.DeclareReply{}, err
	}
	for {
		reply, err := s.declare(ctx, r)
		if err != nil {
			return ports.DeclareReply{}, err
		}
		q, err := s.queue(ctx, r.Queue)
		if err == nil {
			err = q.check(storekit.Layout{Shards: r.Shards, Generation: reply.Generation})
		}
		if !errors.Is(err, ports.ErrUnknownQueue) {
			return reply, err
		}
	}
}

func (s *Store) declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	value, err := s.run(ctx, call{script: declareScript, keys: []any{s.queuesKey()}, args: []any{r.Queue, r.Shards, flag(r.IndexIDs)}})
	if err != nil {
		return ports.DeclareReply{}, err
	}
	text, _ := value.(string)
	q, err := parseRecord(r.Queue, text)
	if err != nil {
		return ports.DeclareReply{}, err
	}
	if err := storekit.CheckDeclared(r, q.Queue); err != nil {
		return ports.DeclareReply{}, err
	}
	return ports.DeclareReply{Generation: q.Generation}, s.openShards(ctx, q)
}

// openShards makes the record of each shard that has none.
func (s *Store) openShards(ctx context.Context, q record) error {
	return s.eachShard(ctx, q, func(shard core.Shard) call {
		return call{script: declareShardScript, keys: s.someKeys(shard, keyMeta), args: []any{q.text}}
	}, nil)
}

// together is how many shards' scripts go in one exchange.
const together = 512

// eachShard runs a script on every shard of a queue and hands the replies on, in
// order. It ends with the first error.
func (s *Store) eachShard(ctx context.Context, q record, on func(core.Shard) call, use func(core.Shard, any) error) error {
	for shards := range slices.Chunk(core.Shards(q.Name, q.Shards), together) {
		calls := make([]call, len(shards))
		for i, shard := range shards {
			calls[i] = on(shard)
		}
		for i, o := range s.runAll(ctx, calls) {
			if o.err != nil {
				return o.err
			}
			if use == nil {
				continue
			}
			if err := use(shards[i], o.value); err != nil {
				return err
			}
		}
	}
	return nil
}

// Queues implements ports.Registry.
func (s *Store) Queues(ctx context.Context) ([]ports.Queue, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	type found struct {
		all map[string]string
		err error
	}
	f, err := await(ctx, s.crew, func() found {
		all, err := s.client.HGetAll(ctx, s.queuesKey()).Result()
		return found{all, translate(err)}
	})
	if err = cmp.Or(err, f.err); err != nil {
		return nil, err
	}
	queues := make([]ports.Queue, 0, len(f.all))
	for name, text := range f.all {
		q, err := parseRecord(name, text)
		if err != nil {
			return nil, err
		}
		queues = append(queues, q.Queue)
	}
	slices.SortFunc(queues, func(a, b ports.Queue) int { return cmp.Compare(a.Name, b.Name) })
	return queues, nil
}

// Pause implements ports.Operator.
func (s *Store) Pause(ctx context.Context, name string) error { return s.setPaused(ctx, name, true) }

// Resume implements ports.Operator.
func (s *Store) Resume(ctx context.Context, name string) error { return s.setPaused(ctx, name, false) }

// setPaused changes the queue's record, which orders such calls, and then the
// shards'.
func (s *Store) setPaused(ctx context.Context, name string, paused bool) error {
	value, err := s.run(ctx, call{script: pauseScript, keys: []any{s.queuesKey()}, args: []any{name, flag(paused)}})
	if err != nil {
		return err
	}
	text, ok := value.(string)
	if !ok {
		return storekit.UnknownQueue(name)
	}
	q, err := parseRecord(name, text)
	if err != nil {
		return err
	}
	return s.eachShard(ctx, q, func(shard core.Shard) call {
		return call{script: pauseShardScript, keys: s.someKeys(shard, keyMeta, keyReady), args: []any{q.text, q.version, s.channel(shard)}}
	}, nil)
}
