package redis

import (
	"context"
	"fmt"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/core"
)

// How long a subscription may be silent until its connection is tried, and how
// long the answer may take until it counts as lost.
const (
	silence = 10 * time.Second
	patient = 5 * time.Second
)

// Wakeups implements ports.Notifier, by sharded publish and subscribe. The channel
// is closed when a connection is lost, so that the caller asks again, of servers
// that may be others by then.
func (s *Store) Wakeups(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
	for _, shard := range shards {
		q, err := s.queue(ctx, shard.Queue)
		if err == nil && (shard.Index < 0 || shard.Index >= q.Shards) {
			err = s.absent(ctx, shard)
		}
		if err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &wakeups{out: make(chan core.Shard), pending: make(map[core.Shard]bool), signal: make(chan struct{}, 1)}
	subscriptions, err := await(ctx, func() subscribed { return s.subscribe(ctx, shards) })
	if err == nil {
		err = subscriptions.err
	}
	if err != nil {
		cancel()
		return nil, err
	}
	w.listen(ctx, cancel, subscriptions)
	return w.out, nil
}

// subscribed are the subscriptions to a set of channels: one for each server.
type subscribed struct {
	list   []*goredis.PubSub
	shards map[string]core.Shard
	err    error
}

func (s *Store) subscribe(ctx context.Context, shards []core.Shard) subscribed {
	sub := subscribed{shards: make(map[string]core.Shard, len(shards))}
	servers := make(map[*goredis.Client]*goredis.PubSub)
	for _, shard := range shards {
		channel := s.channel(shard)
		if _, twice := sub.shards[channel]; twice {
			continue
		}
		sub.shards[channel] = shard
		var server *goredis.Client
		if cluster, ok := s.client.(*goredis.ClusterClient); ok {
			var err error
			if server, err = cluster.MasterForKey(ctx, channel); err != nil {
				return sub.failed(err)
			}
		}
		p := servers[server]
		if p == nil {
			if p = s.client.SSubscribe(ctx); server != nil {
				p = server.SSubscribe(ctx)
			}
			servers[server] = p
			sub.list = append(sub.list, p)
		}
		// One channel a command: those of a Cluster are of different slots.
		if err := p.SSubscribe(ctx, channel); err != nil {
			return sub.failed(err)
		}
	}
	return sub
}

func (sub subscribed) failed(err error) subscribed {
	sub.close()
	return subscribed{err: fmt.Errorf("redis: subscribe to wake-ups: %w", translate(err))}
}

func (sub subscribed) close() {
	for _, p := range sub.list {
		_ = p.Close()
	}
}

// wakeups is one caller's: what it has not taken yet is kept as a set.
type wakeups struct {
	out    chan core.Shard
	signal chan struct{}

	mu      sync.Mutex
	pending map[core.Shard]bool
	order   []core.Shard
}

// listen starts to forward what the subscriptions tell until the context ends or
// one of them does.
func (w *wakeups) listen(ctx context.Context, cancel context.CancelFunc, sub subscribed) {
	var readers sync.WaitGroup
	for _, p := range sub.list {
		readers.Go(func() {
			defer cancel()
			w.read(ctx, p, sub.shards)
		})
	}
	go func() {
		<-ctx.Done()
		sub.close()
	}()
	go func() {
		defer close(w.out)
		w.forward(ctx)
		cancel()
		readers.Wait()
	}()
}

// read takes messages until the connection or the context ends.
func (w *wakeups) read(ctx context.Context, p *goredis.PubSub, shards map[string]core.Shard) {
	wait, tried := silence, false
	for ctx.Err() == nil {
		message, err := p.ReceiveTimeout(ctx, wait)
		switch m := message.(type) {
		case *goredis.Message:
			if shard, ok := shards[m.Channel]; ok {
				w.wake(shard)
			}
		case *goredis.Subscription:
			if m.Kind == "sunsubscribe" { // its slot has gone to another server
				return
			}
		}
		if err == nil {
			wait, tried = silence, false
			continue
		}
		if tried || !timedOut(err) || p.Ping(ctx) != nil {
			return
		}
		wait, tried = patient, true
	}
}

func timedOut(err error) bool {
	timeout, ok := err.(interface{ Timeout() bool })
	return ok && timeout.Timeout()
}

func (w *wakeups) wake(shard core.Shard) {
	w.mu.Lock()
	if !w.pending[shard] {
		w.pending[shard] = true
		w.order = append(w.order, shard)
	}
	w.mu.Unlock()
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

func (w *wakeups) next() (shard core.Shard, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.order) == 0 {
		return shard, false
	}
	shard, w.order = w.order[0], w.order[1:]
	delete(w.pending, shard)
	return shard, true
}

// forward hands on what is pending until the context ends.
func (w *wakeups) forward(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.signal:
		}
		for shard, ok := w.next(); ok; shard, ok = w.next() {
			select {
			case <-ctx.Done():
				return
			case w.out <- shard:
			}
		}
	}
}
