package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	// recordsPerLook is how many records of shards one exchange reads.
	recordsPerLook = 256
	// recordsNamed is how many records a row names that are wrong.
	recordsNamed = 5
)

// recordsRow reads the records of all queues and their shards, which other looks do not: they only ask whether
// they are there. It looks twice before it says that some are wrong, since a queue may just be forgotten and
// declared anew. Those that are not there are not its matter.
func (s *Store) recordsRow(ctx context.Context) ports.Check {
	const name = "records"
	ctx, stop := context.WithTimeout(ctx, checkPatience)
	defer stop()
	var wrong []string
	var read int
	for range 2 {
		var err error
		if wrong, read, err = s.wrongRecords(ctx); err != nil {
			return ports.Check{Name: name, Status: ports.CheckUnknown, Value: err.Error(), Advice: "see the other rows, or look again"}
		}
		if len(wrong) == 0 {
			return ports.Check{Name: name, Value: fmt.Sprintf("those of queues and shards can be read, %d in all", read)}
		}
	}
	value := strings.Join(wrong[:min(len(wrong), recordsNamed)], "; ")
	if more := len(wrong) - recordsNamed; more > 0 {
		value += fmt.Sprintf("; and %d more", more)
	}
	return ports.Check{
		Name: name, Status: ports.CheckFail, Refuses: true, Value: value,
		Advice: "run skein repair recount with the queue's name, which stores them anew; if it finds another shard count, put the record back by hand as the queue's other shards have it",
	}
}

// wrongRecords returns what is wrong with which records, in order, and how many it has read.
func (s *Store) wrongRecords(ctx context.Context) (wrong []string, read int, err error) {
	queues, unread, err := s.readQueues(ctx)
	if err != nil {
		return nil, 0, err
	}
	read = len(queues) + len(unread)
	for _, name := range slices.Sorted(maps.Keys(unread)) {
		wrong = append(wrong, fmt.Sprintf("that of the queue %s can't be read: %q", name, core.CutText(unread[name], 40)))
	}
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		q := queues[name]
		if q.forgetting {
			continue
		}
		for shards := range slices.Chunk(core.Shards(name, q.Shards), recordsPerLook) {
			replies, err := s.getRecords(ctx, shards)
			if err != nil {
				return nil, 0, err
			}
			for i, reply := range replies {
				if errors.Is(reply.Err(), goredis.Nil) {
					continue
				}
				read++
				if why := wrongRecord(&q, reply); why != "" {
					wrong = append(wrong, fmt.Sprintf("that of %v %s", shards[i], why))
				}
			}
		}
	}
	return wrong, read, nil
}

// wrongRecord returns what is wrong with the record of a shard of a queue, "" if nothing is.
func wrongRecord(q *queueRecord, reply *goredis.StringCmd) string {
	if err := reply.Err(); err != nil {
		return "can't be read: " + err.Error()
	}
	record, err := parseQueueRecord(q.Name, reply.Val())
	switch {
	case err != nil:
		return fmt.Sprintf("can't be read: %q", core.CutText(reply.Val(), 40))
	case record.layout() != q.layout():
		return fmt.Sprintf("says %d shards in generation %d, and its queue's %d in %d",
			record.Shards, record.Generation, q.Shards, q.Generation)
	}
	return ""
}

// getRecords reads the records of some shards. It fails if one is not answered.
func (s *Store) getRecords(ctx context.Context, shards []core.Shard) ([]*goredis.StringCmd, error) {
	replies := make([]*goredis.StringCmd, len(shards))
	failed, err := await(ctx, s.workers, func() error {
		pipe := s.client.Pipeline()
		for i, shard := range shards {
			replies[i] = pipe.Get(ctx, s.keys(shard)[keyMeta].(string))
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
		for i, reply := range replies {
			if err := reply.Err(); err != nil && !errors.Is(err, goredis.Nil) && !goredis.HasErrorPrefix(err, "WRONGTYPE") {
				return fmt.Errorf("%v: %w", shards[i], translate(ctx, err))
			}
		}
		return nil
	})
	if err == nil {
		err = failed
	}
	return replies, err
}
