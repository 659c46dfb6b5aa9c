package redis

import (
	"context"
	"fmt"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// How long a channel waits before it is subscribed to again. The wait doubles until that succeeds.
const (
	firstResubscribe = 10 * time.Millisecond
	lastResubscribe  = 2 * time.Second
)

const (
	// startPatience is how long Wakeups waits for the servers that have not answered once
	// another has.
	startPatience = time.Second
	// silentWait is the longest wait of a channel that is not logged.
	silentWait = 500 * time.Millisecond
)

// Wakeups implements [ports.Notifier], by sharded publish and subscribe, with one subscription per
// server. It returns when it has subscribed to all channels whose servers can be reached, or with
// an error if no server can be. If the connection of a subscription is lost, the store subscribes
// again after a pause, possibly to another server. If the slot of a channel has moved, it
// subscribes to that channel again. Each interrupted channel is then sent once, since wake-ups may
// have been missed. So the returned channel is closed only when the context ends.
func (s *Store) Wakeups(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
	if err := s.checkShards(ctx, shards); err != nil {
		return nil, err
	}

	w := newWakeups(s, shards)
	listening, cancel := context.WithCancel(ctx)
	w.running.Go(func() { w.maintain(listening) })
	if err := w.awaitStart(ctx); err != nil {
		cancel()
		return nil, err
	}

	return w.reader.Channel(ctx, func() {
		cancel()
		w.running.Wait()
	}), nil
}

// checkShards returns an error for a shard that does not exist. The zero shard stands for the list
// of nodes. A record that can't be read now is no error: wake-ups of the other shards still
// arrive.
func (s *Store) checkShards(ctx context.Context, shards []core.Shard) error {
	if err := s.ready(ctx); err != nil {
		return err
	}

	counts := make(map[string]int, 1) // of the queues' shards
	for _, shard := range shards {
		count, known := counts[shard.Queue]
		if !known && shard != (core.Shard{}) {
			q, err := s.knownQueue(ctx, shard.Queue)
			if err != nil && (ctx.Err() != nil || storekit.HasKnownOutcome(err)) {
				return err
			}
			count = q.Shards
			if err != nil {
				count = core.MaxShards
			}
			counts[shard.Queue] = count
		}

		listed := shard == core.Shard{} || shard == ports.PermitsOf(shard.Queue)
		if !listed && (shard.Index < 0 || shard.Index >= count) {
			return storekit.NoSuchShard(shard)
		}
	}
	return nil
}

// wakeups is the subscriptions of one reader. Each channel has a listener, or waits to be placed
// with one.
type wakeups struct {
	store *Store
	// shards are the requested ones, by channel.
	shards  map[string]core.Shard
	reader  *storekit.Subscriber
	running sync.WaitGroup
	// unplaced is ready when another channel waits. tried is ready when the first try of each has
	// ended.
	unplaced chan struct{}
	tried    chan struct{}

	mu        sync.Mutex
	listeners map[goredis.UniversalClient]*listener // by server
	waiting   map[string]time.Time                  // channels without a listener, until when
	waits     map[string]time.Duration              // the last waits of channels that are not subscribed to
	untried   map[string]bool
	confirmed int  // how often a channel was subscribed to
	started   bool // set once Wakeups has returned
	reported  bool // set once it is logged that some channels are not subscribed to
	failure   error
}

func newWakeups(s *Store, shards []core.Shard) *wakeups {
	w := &wakeups{
		store:     s,
		shards:    make(map[string]core.Shard, len(shards)),
		reader:    storekit.NewSubscriber(shards),
		unplaced:  make(chan struct{}, 1),
		tried:     make(chan struct{}),
		listeners: make(map[goredis.UniversalClient]*listener),
		waiting:   make(map[string]time.Time),
		waits:     make(map[string]time.Duration),
		untried:   make(map[string]bool),
	}

	for _, shard := range shards {
		channel := s.channel(shard)
		w.shards[channel], w.waiting[channel], w.untried[channel] = shard, time.Time{}, true
	}

	if len(shards) == 0 {
		close(w.tried)
	}
	return w
}

// awaitStart waits until the channels that can be subscribed to are. It returns an error if there
// are no such channels.
func (w *wakeups) awaitStart(ctx context.Context) error {
	began := time.Now()
	patience := time.NewTimer(startPatience)
	defer patience.Stop()

	for {
		ended := false
		select {
		case <-w.tried:
			ended = true
		case <-ctx.Done():
			return exchange.Translate(ctx, ctx.Err())
		case <-patience.C:
			patience.Reset(startPatience / 10)
			ended = time.Since(began) >= exchange.RetryFor
		}

		if done, err := w.start(ctx, ended); done {
			return err
		}
	}
}

// start reports whether a longer wait is of no use. err is the reason if no channel is subscribed
// to.
func (w *wakeups) start(ctx context.Context, ended bool) (done bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	switch {
	case w.confirmed > 0 || len(w.shards) == 0:
		w.started = true
		return true, nil
	case !ended:
		return false, nil
	case goredis.HasErrorPrefix(w.failure, "NOPERM"): // the store is usable without wake-ups
		return true, fmt.Errorf("redis: the user may not subscribe to wake-ups (%v); "+
			"grant it the channels %s*; until then shards are polled",
			w.failure, w.store.prefix)
	case w.failure == nil:
		return true, fmt.Errorf("redis: subscribe to wake-ups: no answer within %v", exchange.RetryFor)
	}
	return true, fmt.Errorf("redis: subscribe to wake-ups: %w", exchange.Translate(ctx, w.failure))
}

// maintain places the channels that wait, each when its time has come, until the context
// ends.
func (w *wakeups) maintain(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-w.unplaced:
		}

		due, wait := w.due(time.Now())
		w.place(ctx, due)
		timer.Reset(wait)
	}
}

// due takes the channels that have waited long enough. wait is the time until the next other
// channel is due.
func (w *wakeups) due(now time.Time) (channels []string, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()

	wait = time.Hour
	for channel, until := range w.waiting {
		if left := until.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		channels = append(channels, channel)
		delete(w.waiting, channel)
	}
	return channels, wait
}

// place passes each channel to the listener of the server that has it.
func (w *wakeups) place(ctx context.Context, channels []string) {
	groups := make(map[goredis.UniversalClient][]string)
	for _, channel := range channels {
		server, err := w.store.link.Master(ctx, channel)
		if err != nil {
			w.mu.Lock()
			w.retry(ctx, channel, err)
			w.mu.Unlock()
			continue
		}
		groups[server] = append(groups[server], channel)
	}

	for server, group := range groups {
		l := w.listenerFor(ctx, server)
		w.running.Go(func() { l.subscribe(ctx, group) })
	}
}

// listenerFor returns the listener of a server, and starts one if the server has none.
func (w *wakeups) listenerFor(ctx context.Context, server goredis.UniversalClient) *listener {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.listeners[server]
	if l == nil {
		l = &listener{wakeups: w, server: server, pubsub: server.SSubscribe(ctx), channels: make(map[string]bool)}
		w.listeners[server] = l
		w.running.Go(func() { l.read(ctx) })
	}
	return l
}

// retry has a channel placed again after a pause. The channel is not subscribed to, because of err
// or since its slot has moved. The caller holds w.mu.
func (w *wakeups) retry(ctx context.Context, channel string, err error) {
	wait := firstResubscribe
	if last := w.waits[channel]; last > 0 {
		wait = min(2*last, lastResubscribe)
	}
	w.waits[channel], w.waiting[channel] = wait, time.Now().Add(wait)

	if err != nil {
		w.failure = err
		w.endTry(channel, !exchange.Retryable(err))
		if wait > silentWait && !w.reported && ctx.Err() == nil {
			w.reported = true
			w.store.logger.Warn(
				"wake-ups are interrupted; until they are back, the shards of these channels are polled",
				"channels", len(w.waits), "one", channel, "error", err.Error())
		}
	}

	w.store.link.Reload(ctx)
	select {
	case w.unplaced <- struct{}{}:
	default:
	}
}

// confirm notes that a channel is subscribed to. The caller holds w.mu.
func (w *wakeups) confirm(channel string) {
	w.confirmed++
	delete(w.waits, channel)
	w.endTry(channel, true)
	if w.started {
		w.reader.Wake(w.shards[channel])
	}
	if w.reported && len(w.waits) == 0 {
		w.reported = false
		w.store.logger.Info("wake-ups are back")
	}
}

// endTry notes that the first try of a channel is over. The caller holds w.mu.
func (w *wakeups) endTry(channel string, over bool) {
	if over && w.untried[channel] {
		if delete(w.untried, channel); len(w.untried) == 0 {
			close(w.tried)
		}
	}
}
