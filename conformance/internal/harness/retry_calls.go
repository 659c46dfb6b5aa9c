package harness

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// The calls of a retrying handle that only read.

func (s *retrying) Heads(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
	return pass(ctx, s.Relay, "Heads", shards, s.ShardStore.Heads)
}

func (s *retrying) Nodes(ctx context.Context) ([]ports.Node, error) {
	return pass(ctx, s.Relay, "Nodes", nil, noRequest(s.ShardStore.Nodes))
}

func (s *retrying) Queues(ctx context.Context) ([]ports.Queue, error) {
	return pass(ctx, s.Relay, "Queues", nil, noRequest(s.ShardStore.Queues))
}

func noRequest[A any](call func(context.Context) (A, error)) func(context.Context, any) (A, error) {
	return func(ctx context.Context, _ any) (A, error) { return call(ctx) }
}

func (s *retrying) Stats(ctx context.Context, queues []string) ([]ports.QueueStats, error) {
	return pass(ctx, s.Relay, "Stats", queues, s.ShardStore.Stats)
}

func (s *retrying) History(ctx context.Context, r ports.HistoryRequest) ([]ports.MinuteStats, error) {
	return pass(ctx, s.Relay, "History", r, s.ShardStore.History)
}

func (s *retrying) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	return pass(ctx, s.Relay, "Jobs", r, s.ShardStore.Jobs)
}

func (s *retrying) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	return pass(ctx, s.Relay, "Claimed", r, s.ShardStore.Claimed)
}

func (s *retrying) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	return pass(ctx, s.Relay, "Morgue", r, s.ShardStore.Morgue)
}

func (s *retrying) Find(ctx context.Context, queue, id string) (ports.Found, error) {
	return pass(ctx, s.Relay, "Find", id, func(ctx context.Context, id string) (ports.Found, error) {
		return s.ShardStore.Find(ctx, queue, id)
	})
}
