package main

import "context"

// hotShard handles jobs that all belong to one of the queue's shards, so that at most one turn is
// in flight.
func hotShard() *probe {
	const setting = "5 lanes, all ids in one of 5 shards"
	return &probe{name: "hot-shard, skein", measure: func(ctx context.Context, l *lab) ([]reading, error) {
		s, err := l.system(ctx, skeinName)
		if err != nil {
			return nil, err
		}
		return handle(ctx, l, s, newHotJobs(l.jobs), reading{system: skeinName, setting: setting})
	}}
}
