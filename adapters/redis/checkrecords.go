package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	// recordsPerLook is the maximum number of shards' records that one exchange reads.
	recordsPerLook = 256
	// recordsNamed is the maximum number of wrong records that a row names.
	recordsNamed = 5
)

// recordsRow reads the records of all queues and shards. Other read-only calls check only whether a
// record exists, and the row leases names missing ones. A wrong record is read twice, because its
// queue may have just been forgotten and declared anew.
func (s *Store) recordsRow(ctx context.Context) ports.Check {
	row := ports.Check{Name: "records"}
	ctx, stop := context.WithTimeout(ctx, checkPatience)
	defer stop()
	found, err := s.readRecords(ctx, nil)
	if err == nil && len(found.wrong) > 0 {
		var again recordsFound
		if again, err = s.readRecords(ctx, found.wrong); err == nil {
			found.wrong, found.unread = again.wrong, max(found.unread, again.unread)
		}
	}
	switch {
	case len(found.wrong) > 0:
		names := slices.Sorted(maps.Keys(found.wrong))
		for i, name := range names {
			names[i] = "the record of " + name + " " + found.wrong[name]
		}
		row.Value = strings.Join(names[:min(len(names), recordsNamed)], "; ")
		if more := len(names) - recordsNamed; more > 0 {
			row.Value += fmt.Sprintf("; and %d more", more)
		}
		row.Status, row.Refuses = ports.CheckFail, true
		row.Advice = "run skein repair recount with the queue's name: it writes the records again, or names a key to delete or rename first; " +
			"if it reports another shard count, copy the record of another shard of the queue by hand"
	case err != nil:
		row.Status, row.Value, row.Advice = ports.CheckUnknown, err.Error(), "see the other checks, or run the checks again"
	case found.unread > 0:
		row.Status, row.Advice = ports.CheckUnknown, "see the other checks, or run the checks again"
		row.Value = fmt.Sprintf("%d could not be read; the other %d are correct", found.unread, found.read)
	default:
		row.Value = fmt.Sprintf("all %d records of queues and shards can be read", found.read)
	}
	return row
}

// recordsFound is the result of reading records.
type recordsFound struct {
	// wrong describes, for queues and shards, what is wrong with their records.
	wrong map[string]string
	// read is the number of records that were read, and unread the number of those that could not
	// be read.
	read, unread int
}

// readRecords reads the records of queues and their shards, or only the given ones. Together with
// an error it returns what it has found so far.
func (s *Store) readRecords(ctx context.Context, among map[string]string) (recordsFound, error) {
	found := recordsFound{wrong: make(map[string]string)}
	queues, unread, err := s.readQueues(ctx)
	if err != nil {
		return found, err
	}
	found.read = len(queues) + len(unread)
	for name, record := range unread {
		found.wrong["the queue "+name] = fmt.Sprintf("can't be read: %q", core.CutText(record, 40))
	}
	var all []core.Shard
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		if q := queues[name]; !q.forgetting {
			all = append(all, core.Shards(name, q.Shards)...)
		}
	}
	if among != nil {
		all = slices.DeleteFunc(all, func(shard core.Shard) bool { return among[shard.String()] == "" })
	}
	for shards := range slices.Chunk(all, recordsPerLook) {
		replies, err := s.getRecords(ctx, shards)
		if err != nil {
			return found, err
		}
		for i, reply := range replies {
			q := queues[shards[i].Queue]
			why, err := wrongRecord(&q, reply)
			switch {
			case errors.Is(err, goredis.Nil):
			case err != nil:
				found.unread++
			default:
				found.read++
				if why != "" {
					found.wrong[shards[i].String()] = why
				}
			}
		}
	}
	return found, nil
}

// wrongRecord returns what is wrong with the record of a queue's shard, or "" if it is correct. It
// returns an error if the record was not read.
func wrongRecord(q *queueRecord, reply *goredis.StringCmd) (string, error) {
	switch err := reply.Err(); {
	case goredis.HasErrorPrefix(err, "WRONGTYPE"):
		return "can't be read: " + err.Error(), nil
	case err != nil:
		return "", err
	}
	record, err := parseQueueRecord(q.Name, reply.Val())
	switch {
	case err != nil:
		return fmt.Sprintf("can't be read: %q", core.CutText(reply.Val(), 40)), nil
	case record.layout() != q.layout():
		return fmt.Sprintf("has %d shards in generation %d, but its queue has %d in generation %d",
			record.Shards, record.Generation, q.Shards, q.Generation), nil
	}
	return "", nil
}

// getRecords reads the records of some shards; each reply has its own error. It fails if ctx ends
// first.
func (s *Store) getRecords(ctx context.Context, shards []core.Shard) ([]*goredis.StringCmd, error) {
	return exchange.Await(ctx, s.link.Workers, func() []*goredis.StringCmd {
		replies := make([]*goredis.StringCmd, len(shards))
		pipe := s.client.Pipeline()
		for i, shard := range shards {
			replies[i] = pipe.Get(ctx, s.keys(shard)[keyMeta].(string))
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
		return replies
	})
}
