package exchange

import (
	"context"
	"fmt"
	"sync"

	goredis "github.com/redis/go-redis/v9"
)

// sendDurably sends calls as send does, and then waits for the replicas of each server on the same
// connection: WAIT counts only the writes of its connection.
func (s *Link) sendDurably(ctx context.Context, calls []Call, open []int, outcomes []Outcome, full bool) {
	groups := make(map[goredis.UniversalClient][]int)
	for _, i := range open {
		server, err := s.Master(ctx, calls[i].Keys[0].(string))
		if err != nil {
			outcomes[i] = Outcome{Err: err}
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

// Master returns the client that connects to the server of a key.
func (s *Link) Master(ctx context.Context, key string) (goredis.UniversalClient, error) {
	if cluster, ok := s.client.(*goredis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key)
	}
	return s.client, nil
}

// sendAndWait sends calls to one server. A call that too few replicas have confirmed fails.
func (s *Link) sendAndWait(
	ctx context.Context, server goredis.UniversalClient, calls []Call, group []int, outcomes []Outcome, full bool,
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
		outcomes[i].Value, outcomes[i].Err = cmds[k].Result()
		if have, err := wait.Result(); outcomes[i].Err == nil && (err != nil || have < int64(s.replicas)) {
			outcomes[i].Err = fmt.Errorf("the master has stored the write, "+
				"but only %d of %d replicas confirmed it within %v; "+
				"a failover may lose it",
				have, s.replicas, s.waitTimeout)
			if err != nil {
				outcomes[i].Err = fmt.Errorf("%w: %v", outcomes[i].Err, err)
			}
		}
	}
}
