package redis

import (
	"context"
	"errors"
	"slices"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

var errStraggler = errors.New("redis: no answer long after another server's")

// How calls for each server by themselves are sent, and how long they wait.
type apart struct {
	// most is the most calls of one exchange.
	most int
	// patience is how long a server may take when another has answered.
	patience time.Duration
}

// How what is looked at is read: plain commands, of which a server answers others in between, and
// scripts. Who looks waits less for a server than who works.
var (
	plainApart  = apart{most: 1000, patience: lookPatience}
	scriptApart = apart{most: shardsPerExchange, patience: lookPatience}
)

const lookPatience = 400 * time.Millisecond

// runApart runs scripts, those for each server by themselves, in any order. A server that
// does not answer in time, though another does, holds up nothing: its calls alone fail.
func (s *Store) runApart(ctx context.Context, calls []call) []outcome {
	return s.runApartBy(ctx, apart{most: shardsPerExchange, patience: longestPatience}, calls)
}

// runApartBy is runApart in exchanges of another size, and with another patience.
func (s *Store) runApartBy(ctx context.Context, by apart, calls []call) []outcome {
	if len(calls) == 0 {
		return nil
	}
	if err := s.ready(ctx); err != nil {
		return failed(len(calls), err)
	}
	if ctx.Err() != nil {
		return failed(len(calls), translate(ctx, ctx.Err()))
	}
	groups := s.byServer(ctx, calls)
	type part struct {
		group    []int
		outcomes []outcome
	}
	parts := make(chan part, len(groups)) // room for all, so that a late one is dropped
	for _, group := range groups {
		s.workers.do(func() { parts <- part{group, s.exchangeSome(ctx, by.most, calls, group)} })
	}
	outcomes := failed(len(calls), errStraggler)
	late := time.NewTimer(time.Hour)
	defer late.Stop()
	for range groups {
		select {
		case p := <-parts:
			for k, i := range p.group {
				outcomes[i] = p.outcomes[k]
			}
			late.Reset(patience(ctx, by.patience))
		case <-late.C:
			return outcomes
		case <-ctx.Done():
			for i := range outcomes {
				if outcomes[i].err == errStraggler {
					outcomes[i].err = translate(ctx, ctx.Err())
				}
			}
			return outcomes
		}
	}
	return outcomes
}

// byServer returns the positions of the calls that go to each server of a Cluster. Those whose
// server is not known are a group of their own.
func (s *Store) byServer(ctx context.Context, calls []call) [][]int {
	byServer := make(map[goredis.UniversalClient][]int)
	for i := range calls {
		server, err := s.master(ctx, calls[i].keys[0].(string))
		if err != nil {
			server = nil
		}
		byServer[server] = append(byServer[server], i)
	}
	groups := make([][]int, 0, len(byServer))
	for _, group := range byServer {
		groups = append(groups, group)
	}
	return groups
}

// exchangeSome runs some of the calls, so many at once, and returns their outcomes in the group's order.
func (s *Store) exchangeSome(ctx context.Context, most int, calls []call, group []int) []outcome {
	outcomes := make([]outcome, 0, len(group))
	for some := range slices.Chunk(group, most) {
		sent := make([]call, len(some))
		for k, i := range some {
			sent[k] = calls[i]
		}
		outcomes = append(outcomes, s.exchange(ctx, sent)...)
	}
	return outcomes
}
