package redis

import (
	"context"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports/storekit"
)

// How long who looks waits for the Cluster's server that has the list of queues, and how many of a
// queue's shards it asks instead.
const (
	listPatience  = 200 * time.Millisecond
	shardsToAsk   = 16
	errNoRegistry = "redis: the Cluster's server that has the list of queues can't be reached, nor a shard that says what it knows of the queue"
)

// knownQueue returns a queue's record for who looks: that of the list, or where the list is on a
// server of a Cluster that can't be reached, that of a shard, which has a copy.
func (s *Store) knownQueue(ctx context.Context, name string) (queueRecord, error) {
	if _, cluster := s.client.(*goredis.ClusterClient); !cluster {
		return s.queue(ctx, name)
	}
	brief, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	q, err := s.queue(brief, name)
	if err == nil || storekit.HasKnownOutcome(err) || ctx.Err() != nil {
		return q, err
	}
	var calls []call
	for _, shard := range core.Shards(name, shardsToAsk) {
		calls = append(calls, call{command: "get", keys: s.someKeys(shard, keyMeta)})
	}
	for _, o := range s.runApartBy(ctx, apart{most: shardsToAsk, patience: listPatience / 2}, calls) {
		if text, ok := o.value.(string); ok && o.err == nil {
			return parseQueueRecord(name, text)
		}
	}
	if ctx.Err() != nil {
		return queueRecord{}, translate(ctx, ctx.Err())
	}
	return queueRecord{}, fmt.Errorf("%s: %v", errNoRegistry, err)
}
