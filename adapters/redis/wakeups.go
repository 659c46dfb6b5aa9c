package redis

import (
	"context"
	"fmt"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// How long nothing may arrive on a connection until it is tested with PING, and how long
// a reply may take until the connection counts as lost.
const (
	idleTimeout  = 10 * time.Second
	replyTimeout = 5 * time.Second
)

// How long to wait before subscribing again, doubling until it succeeds.
const (
	firstResubscribe = 10 * time.Millisecond
	lastResubscribe  = 2 * time.Second
)

// Wakeups implements [ports.Notifier], by sharded publish and subscribe. It
// returns once all channels are subscribed to, or with the error of one. When a
// connection is lost or a slot has moved, it subscribes again, to servers that may be
// others by then, and then sends every shard once, since wake-ups may have been missed.
// So the channel is closed only when the context ends.
func (s *Store) Wakeups(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
	w := &wakeups{store: s, shards: make(map[string]core.Shard, len(shards)), reader: storekit.NewSubscriber(shards)}
	for _, shard := range shards {
		if err := s.checkShard(ctx, shard); err != nil {
			return nil, err
		}
		w.shards[s.channel(shard)] = shard
	}
	subs, err := w.start(ctx)
	if err != nil {
		return nil, err
	}
	var maintaining sync.WaitGroup
	maintaining.Go(func() { w.maintain(ctx, subs) })
	return w.reader.Channel(ctx, maintaining.Wait), nil
}

// checkShard returns an error for a shard that does not exist. The zero shard stands for the
// list of nodes.
func (s *Store) checkShard(ctx context.Context, shard core.Shard) error {
	if shard == (core.Shard{}) {
		return s.ready(ctx)
	}
	q, err := s.queue(ctx, shard.Queue)
	if err == nil && shard != ports.PermitsOf(q.Name) && (shard.Index < 0 || shard.Index >= q.Shards) {
		return storekit.NoSuchShard(shard)
	}
	return err
}

// wakeups is the subscriptions of one reader.
type wakeups struct {
	store *Store
	// shards are those asked for, by channel.
	shards map[string]core.Shard
	reader *storekit.Subscriber
}

// start subscribes for the first time, or returns when the context ends, whatever
// the servers do.
func (w *wakeups) start(ctx context.Context) ([]*goredis.PubSub, error) {
	var subs []*goredis.PubSub
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		subs, err = w.subscribeRetrying(ctx)
	}()
	select {
	case <-done:
		return subs, err
	case <-ctx.Done():
		go func() {
			<-done
			closeAll(subs)
		}()
		return nil, translate(ctx, ctx.Err())
	}
}

// subscribeRetrying subscribes, and tries again while a slot is moving.
func (w *wakeups) subscribeRetrying(ctx context.Context) ([]*goredis.PubSub, error) {
	for began, wait := time.Now(), firstBackoff; ; wait = min(2*wait, lastBackoff) {
		subs, err := w.subscribe(ctx)
		if err == nil {
			return subs, nil
		}
		if goredis.HasErrorPrefix(err, "NOPERM") { // the store is usable without
			return nil, fmt.Errorf("redis: the user may not subscribe to wake-ups (%v); grant it the channels %s*, or shards are polled", err, w.store.prefix)
		}
		if !retryable(err) || time.Since(began) > retryFor || !sleep(ctx, wait) {
			return nil, fmt.Errorf("redis: subscribe to wake-ups: %w", translate(ctx, err))
		}
		w.reload(ctx)
	}
}

// reload has the client ask a Cluster again which server has which slots.
func (w *wakeups) reload(ctx context.Context) {
	if cluster, ok := w.store.client.(*goredis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}

// maintain reads subscriptions until one is lost, and subscribes again, until the context
// ends.
func (w *wakeups) maintain(ctx context.Context, subs []*goredis.PubSub) {
	for wait := firstResubscribe; ; {
		w.readAll(ctx, subs)
		for subs = nil; subs == nil; wait = min(2*wait, lastResubscribe) {
			if !sleep(ctx, wait) {
				return
			}
			w.reload(ctx)
			subs, _ = w.subscribe(ctx)
		}
		wait = firstResubscribe
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
		if err := w.awaitConfirmations(ctx, p, channels[p]); err != nil {
			return fail(err)
		}
	}
	return subs, nil
}

// awaitConfirmations waits until the server has confirmed so many channels.
func (w *wakeups) awaitConfirmations(ctx context.Context, p *goredis.PubSub, channels int) error {
	for channels > 0 {
		message, err := p.ReceiveTimeout(ctx, replyTimeout)
		if err != nil {
			return err
		}
		if m, ok := message.(*goredis.Subscription); ok && m.Kind == "ssubscribe" {
			channels--
		}
		w.handle(message)
	}
	return nil
}

func closeAll(subs []*goredis.PubSub) {
	for _, p := range subs {
		_ = p.Close()
	}
}

// readAll reads the subscriptions until one of them or the context ends, and closes them.
func (w *wakeups) readAll(ctx context.Context, subs []*goredis.PubSub) {
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

// read handles messages until the connection or the context ends.
func (w *wakeups) read(ctx context.Context, p *goredis.PubSub) {
	wait, tried := idleTimeout, false
	for ctx.Err() == nil {
		message, err := p.ReceiveTimeout(ctx, wait)
		switch {
		case err == nil:
			wait, tried = idleTimeout, false
			if gone := w.handle(message); gone {
				return
			}
		case tried || !timedOut(err) || p.Ping(ctx) != nil:
			return
		default:
			wait, tried = replyTimeout, true
		}
	}
}

// handle wakes the shard of a message's channel. gone is true if a channel's slot has moved
// to another server.
func (w *wakeups) handle(message any) (gone bool) {
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
