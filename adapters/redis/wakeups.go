package redis

import (
	"context"
	"fmt"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports/storekit"
)

// How long a subscription may be silent until its connection is tried, and how
// long an answer may take until the connection counts as lost.
const (
	silence = 10 * time.Second
	patient = 5 * time.Second
)

// How long to wait before subscribing again, doubling until it succeeds.
const (
	firstReturn = 10 * time.Millisecond
	lastReturn  = 2 * time.Second
)

// Wakeups implements ports.Notifier, by sharded publish and subscribe. It
// returns once all subscriptions stand, or with the error of one. When a
// connection is lost or a slot has moved, it subscribes again, to servers that may
// be others by then, and then gives every shard once, since nobody knows what it
// missed. So the channel is closed only when the context ends.
func (s *Store) Wakeups(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
	w := &wakeups{store: s, shards: make(map[string]core.Shard, len(shards)), reader: storekit.NewSubscriber(shards)}
	for _, shard := range shards {
		q, err := s.queue(ctx, shard.Queue)
		if err == nil && (shard.Index < 0 || shard.Index >= q.Shards) {
			err = storekit.NoSuchShard(shard)
		}
		if err != nil {
			return nil, err
		}
		w.shards[s.channel(shard)] = shard
	}
	subs, err := w.begin(ctx)
	if err != nil {
		return nil, err
	}
	var keeper sync.WaitGroup
	keeper.Go(func() { w.keep(ctx, subs) })
	return w.reader.Channel(ctx, keeper.Wait), nil
}

// wakeups is the subscriptions of one reader.
type wakeups struct {
	store *Store
	// shards are those asked for, by channel.
	shards map[string]core.Shard
	reader *storekit.Subscriber
}

// begin subscribes for the first time, or returns when the context ends, whatever
// the servers do.
func (w *wakeups) begin(ctx context.Context) ([]*goredis.PubSub, error) {
	var subs []*goredis.PubSub
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		subs, err = w.follow(ctx)
	}()
	select {
	case <-done:
		return subs, err
	case <-ctx.Done():
		go func() {
			<-done
			closeAll(subs)
		}()
		return nil, translate(ctx.Err())
	}
}

// follow subscribes, again where a slot is moving.
func (w *wakeups) follow(ctx context.Context) ([]*goredis.PubSub, error) {
	for began, wait := time.Now(), firstBackoff; ; wait = min(2*wait, lastBackoff) {
		subs, err := w.subscribe(ctx)
		if err == nil {
			return subs, nil
		}
		if goredis.HasErrorPrefix(err, "NOPERM") { // the store is usable without
			return nil, fmt.Errorf("redis: the user may not subscribe to wake-ups (%v); grant it the channels %s*, or shards are polled", err, w.store.prefix)
		}
		if !refused(err) || time.Since(began) > refusedFor || !sleep(ctx, wait) {
			return nil, fmt.Errorf("redis: subscribe to wake-ups: %w", translate(err))
		}
		w.reload(ctx)
	}
}

// reload learns anew which server of a Cluster has what.
func (w *wakeups) reload(ctx context.Context) {
	if cluster, ok := w.store.client.(*goredis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}

// keep reads subscriptions until one is lost, and makes them anew, until the
// context ends.
func (w *wakeups) keep(ctx context.Context, subs []*goredis.PubSub) {
	for wait := firstReturn; ; {
		w.listen(ctx, subs)
		for subs = nil; subs == nil; wait = min(2*wait, lastReturn) {
			if !sleep(ctx, wait) {
				return
			}
			w.reload(ctx)
			subs, _ = w.subscribe(ctx)
		}
		wait = firstReturn
		w.reader.WakeAll()
	}
}

// subscribe makes the subscriptions, one for each server, and waits until each
// channel of them is confirmed.
func (w *wakeups) subscribe(ctx context.Context) ([]*goredis.PubSub, error) {
	servers := make(map[goredis.UniversalClient]*goredis.PubSub)
	channels := make(map[*goredis.PubSub]int)
	var subs []*goredis.PubSub
	fail := func(err error) ([]*goredis.PubSub, error) {
		closeAll(subs)
		return nil, err
	}
	for channel := range w.shards {
		server, err := w.store.master(ctx, channel)
		if err != nil {
			return fail(err)
		}
		p := servers[server]
		if p == nil {
			p = server.SSubscribe(ctx)
			servers[server], subs = p, append(subs, p)
		}
		// One channel a command: those of a Cluster are of different slots.
		if err := p.SSubscribe(ctx, channel); err != nil {
			return fail(err)
		}
		channels[p]++
	}
	for _, p := range subs {
		if err := w.confirmed(ctx, p, channels[p]); err != nil {
			return fail(err)
		}
	}
	return subs, nil
}

// confirmed waits for the answers to as many commands that subscribe.
func (w *wakeups) confirmed(ctx context.Context, p *goredis.PubSub, channels int) error {
	for channels > 0 {
		message, err := p.ReceiveTimeout(ctx, patient)
		if err != nil {
			return err
		}
		if m, ok := message.(*goredis.Subscription); ok && m.Kind == "ssubscribe" {
			channels--
		}
		w.take(message)
	}
	return nil
}

func closeAll(subs []*goredis.PubSub) {
	for _, p := range subs {
		_ = p.Close()
	}
}

// listen reads the subscriptions until one of them or the context ends, and
// closes them.
func (w *wakeups) listen(ctx context.Context, subs []*goredis.PubSub) {
	ctx, cancel := context.WithCancel(ctx)
	var readers sync.WaitGroup
	for _, p := range subs {
		readers.Go(func() {
			defer cancel()
			w.read(ctx, p)
		})
	}
	<-ctx.Done()
	closeAll(subs)
	cancel()
	readers.Wait()
}

// read takes messages until the connection or the context ends.
func (w *wakeups) read(ctx context.Context, p *goredis.PubSub) {
	wait, tried := silence, false
	for ctx.Err() == nil {
		message, err := p.ReceiveTimeout(ctx, wait)
		switch {
		case err == nil:
			wait, tried = silence, false
			if gone := w.take(message); gone {
				return
			}
		case tried || !timedOut(err) || p.Ping(ctx) != nil:
			return
		default:
			wait, tried = patient, true
		}
	}
}

// take wakes the shard that a message tells of, or reports that a channel's slot
// has gone to another server.
func (w *wakeups) take(message any) (gone bool) {
	switch m := message.(type) {
	case *goredis.Message:
		if shard, ok := w.shards[m.Channel]; ok {
			w.reader.Wake(shard)
		}
	case *goredis.Subscription:
		return m.Kind == "sunsubscribe"
	}
	return false
}

func timedOut(err error) bool {
	timeout, ok := err.(interface{ Timeout() bool })
	return ok && timeout.Timeout()
}
