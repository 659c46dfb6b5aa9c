package conformance

import (
	"context"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// What an insistent handle does beside the calls that write.

func (s *insistent) Heads(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
	return pass(ctx, s.relay, "Heads", shards, s.ShardStore.Heads)
}

func (s *insistent) Nodes(ctx context.Context) ([]ports.Node, error) {
	return pass(ctx, s.relay, "Nodes", nil, askOnly(s.ShardStore.Nodes))
}

func (s *insistent) Queues(ctx context.Context) ([]ports.Queue, error) {
	return pass(ctx, s.relay, "Queues", nil, askOnly(s.ShardStore.Queues))
}

func askOnly[A any](call func(context.Context) (A, error)) func(context.Context, any) (A, error) {
	return func(ctx context.Context, _ any) (A, error) { return call(ctx) }
}

func (s *insistent) Stats(ctx context.Context, queues []string) ([]ports.QueueStats, error) {
	return pass(ctx, s.relay, "Stats", queues, s.ShardStore.Stats)
}

func (s *insistent) History(ctx context.Context, r ports.HistoryRequest) ([]ports.MinuteStats, error) {
	return pass(ctx, s.relay, "History", r, s.ShardStore.History)
}

func (s *insistent) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	return pass(ctx, s.relay, "Jobs", r, s.ShardStore.Jobs)
}

func (s *insistent) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	return pass(ctx, s.relay, "Claimed", r, s.ShardStore.Claimed)
}

func (s *insistent) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	return pass(ctx, s.relay, "Morgue", r, s.ShardStore.Morgue)
}

func (s *insistent) Find(ctx context.Context, queue, id string) (ports.Found, error) {
	return pass(ctx, s.relay, "Find", id, func(ctx context.Context, id string) (ports.Found, error) {
		return s.ShardStore.Find(ctx, queue, id)
	})
}

// listener is a caller of Wakeups that calls again when its channel is closed,
// and then takes every shard for one that it may have missed.
type listener struct{ store ports.Notifier }

// Wakeups implements ports.Notifier.
func (l listener) Wakeups(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
	in, err := l.again(ctx, shards)
	if err != nil {
		return nil, err
	}
	out := make(chan core.Shard)
	go func() {
		defer close(out)
		for forward(ctx, in, out) {
			if in, err = l.again(ctx, shards); err != nil {
				return
			}
			for _, s := range shards {
				hand(ctx, out, s)
			}
		}
	}()
	return out, nil
}

// again asks for wake-ups until the outcome is known.
func (l listener) again(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
	var ch <-chan core.Shard
	s := insistent{backend: &repeats{}}
	err := s.insist("Wakeups", func() (err error) {
		ch, err = l.store.Wakeups(ctx, shards)
		return err
	})
	return ch, err
}

// forward hands on what comes until the context ends or, as it reports, a moment
// after the channel was closed.
func forward(ctx context.Context, in <-chan core.Shard, out chan<- core.Shard) (closed bool) {
	for {
		select {
		case s, open := <-in:
			if open {
				hand(ctx, out, s)
				continue
			}
		case <-ctx.Done():
			return false
		}
		select {
		case <-time.After(firstPause):
			return true
		case <-ctx.Done():
			return false
		}
	}
}

func hand(ctx context.Context, out chan<- core.Shard, s core.Shard) {
	select {
	case out <- s:
	case <-ctx.Done():
	}
}
