package redis

import (
	"context"
	"fmt"
	"sync"

	goredis "github.com/redis/go-redis/v9"
)

// sendDurably sends calls as send does, and then waits for the replicas of each server on the same
// connection: WAIT counts only the writes of its connection.
func (s *Store) sendDurably(ctx context.Context, calls []call, open []int, outcomes []outcome, full bool) {
	groups := make(map[goredis.UniversalClient][]int)
	for _, i := range open {
		server, err := s.master(ctx, calls[i].keys[0].(string))
		if err != nil {
			outcomes[i] = outcome{err: err}
			continue
		}
		groups[server] = append(groups[server], i)
	}
	var sent sync.WaitGroup
	for server, group := range groups {
		sent.Go(func() { s.sendAndWait(ctx, server, calls, group, outcomes, full) })
	}
	sent.Wait()
}

// master returns the client that connects to the server of a key.
func (s *Store) master(ctx context.Context, key string) (goredis.UniversalClient, error) {
	if cluster, ok := s.client.(*goredis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key)
	}
	return s.client, nil
}

// sendAndWait sends calls to one server. A call that too few replicas have confirmed fails.
func (s *Store) sendAndWait(
	ctx context.Context, server goredis.UniversalClient, calls []call, group []int, outcomes []outcome, full bool,
) {
	pipe := server.Pipeline()
	cmds := make([]*goredis.Cmd, len(group))
	for k, i := range group {
		cmds[k] = command(ctx, &calls[i], full)
		_ = pipe.Process(ctx, calls[i].cmder(cmds[k]))
	}
	wait := goredis.NewIntCmd(ctx, "wait", s.replicas, s.waitTimeout.Milliseconds())
	_ = pipe.Process(ctx, wait)
	_, _ = pipe.Exec(ctx)
	for k, i := range group {
		outcomes[i].value, outcomes[i].err = cmds[k].Result()
		if have, err := wait.Result(); outcomes[i].err == nil && (err != nil || have < int64(s.replicas)) {
			outcomes[i].err = fmt.Errorf("the master has stored the write, but only %d of %d replicas confirmed it within %v; a failover may lose it",
				have, s.replicas, s.waitTimeout)
			if err != nil {
				outcomes[i].err = fmt.Errorf("%w: %v", outcomes[i].err, err)
			}
		}
	}
}
