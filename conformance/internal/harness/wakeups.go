package harness

import (
	"context"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// keepSubscribed subscribes again when the channel of wake-ups is closed, and then wakes every
// shard, since it may have missed some.
func keepSubscribed(ctx context.Context, store ports.Notifier, shards []core.Shard) (<-chan core.Shard, error) {
	in, err := subscribe(ctx, store, shards)
	if err != nil {
		return nil, err
	}

	out := make(chan core.Shard)
	go func() {
		defer close(out)
		for forward(ctx, in, out) {
			if in, err = subscribe(ctx, store, shards); err != nil {
				return
			}

			for _, s := range shards {
				send(ctx, out, s)
			}
		}
	}()

	return out, nil
}

// subscribe subscribes, and repeats that until the outcome is known.
func subscribe(ctx context.Context, store ports.Notifier, shards []core.Shard) (wakeups <-chan core.Shard, err error) {
	err = repeat(func() (err error) {
		wakeups, err = store.Wakeups(ctx, shards)
		return err
	}, func() {})
	return wakeups, err
}

// forward passes wake-ups on until in is closed or the context ends. If in was closed, it waits for
// a short time and returns true.
func forward(ctx context.Context, in <-chan core.Shard, out chan<- core.Shard) (closed bool) {
	for {
		select {
		case s, open := <-in:
			if open {
				send(ctx, out, s)
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

// send sends s unless the context ends first.
func send(ctx context.Context, out chan<- core.Shard, s core.Shard) {
	select {
	case out <- s:
	case <-ctx.Done():
	}
}
