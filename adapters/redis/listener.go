package redis

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// How long a connection may be silent until it is tested with PING, and how long a reply may take
// until the connection counts as lost.
const (
	idleTimeout  = 10 * time.Second
	replyTimeout = 5 * time.Second
)

// listener is the subscription to the channels of one server. It ends when its connection does;
// its channels are then placed again.
type listener struct {
	wakeups *wakeups
	server  goredis.UniversalClient
	pubsub  *goredis.PubSub
	writing sync.Mutex // commands are written in the order of pending

	// wakeups.mu guards the fields below.
	ended    bool
	channels map[string]bool // subscribed to
	pending  []string        // requested and not answered, in order
}

// subscribe requests channels.
func (l *listener) subscribe(ctx context.Context, channels []string) {
	l.writing.Lock()
	defer l.writing.Unlock()
	for _, channel := range channels {
		if !l.expect(ctx, channel) {
			continue
		}
		// One channel a command: those of a Cluster are of different slots.
		if err := l.pubsub.SSubscribe(ctx, channel); err != nil {
			l.end(ctx, err)
		}
	}
}

// expect notes that a channel is requested. It returns false, and has the channel placed again, if
// the listener has ended.
func (l *listener) expect(ctx context.Context, channel string) bool {
	l.wakeups.mu.Lock()
	defer l.wakeups.mu.Unlock()
	if l.ended {
		l.wakeups.retry(ctx, channel, nil)
		return false
	}
	l.pending = append(l.pending, channel)
	return true
}

// end closes the connection and has the channels placed again.
func (l *listener) end(ctx context.Context, err error) {
	w := l.wakeups
	w.mu.Lock()
	if !l.ended {
		l.ended = true
		delete(w.listeners, l.server)
		for channel := range l.channels {
			w.retry(ctx, channel, err)
		}
		for _, channel := range l.pending {
			w.retry(ctx, channel, err)
		}
	}
	w.mu.Unlock()

	_ = l.pubsub.Close()
}

// read handles messages until the connection or the context ends.
func (l *listener) read(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = l.pubsub.Close() })
	defer stop()

	wait, tried := idleTimeout, false
	for {
		message, err := l.pubsub.ReceiveTimeout(ctx, wait)
		switch {
		case ctx.Err() != nil:
			l.end(ctx, ctx.Err())
			return
		case err == nil:
			wait, tried = idleTimeout, false
			if l.handle(ctx, message) {
				continue
			}
			l.end(ctx, nil)
			return
		case l.refused(ctx, err):
		case !tried && timedOut(err) && l.pubsub.Ping(ctx) == nil:
			wait, tried = replyTimeout, true
		default:
			l.end(ctx, err)
			return
		}
	}
}

// handle takes a message. It returns false once the listener has no channel left.
func (l *listener) handle(ctx context.Context, message any) (listens bool) {
	w := l.wakeups
	switch m := message.(type) {
	case *goredis.Message:
		if shard, ok := w.shards[m.Channel]; ok {
			w.reader.Wake(shard)
		}
	case *goredis.Subscription:
		w.mu.Lock()
		defer w.mu.Unlock()

		if m.Kind == "ssubscribe" {
			if i := slices.Index(l.pending, m.Channel); i >= 0 {
				l.pending = slices.Delete(l.pending, i, i+1)
				l.channels[m.Channel] = true
				w.confirm(m.Channel)
			}
		} else if l.channels[m.Channel] { // its slot has moved to another server
			delete(l.channels, m.Channel)
			w.retry(ctx, m.Channel, nil)
			return len(l.channels)+len(l.pending) > 0
		}
	}
	return true
}

// refused reports whether err is the server's refusal of the channel that was requested first.
// That channel is then placed again: its slot has moved, or is about to.
func (l *listener) refused(ctx context.Context, err error) bool {
	var reply goredis.Error
	if !errors.As(err, &reply) || timedOut(err) {
		return false
	}

	l.wakeups.mu.Lock()
	defer l.wakeups.mu.Unlock()
	if len(l.pending) == 0 {
		return false
	}
	l.wakeups.retry(ctx, l.pending[0], err)
	l.pending = l.pending[1:]
	return true
}

func timedOut(err error) bool {
	timeout, ok := err.(interface{ Timeout() bool })
	return ok && timeout.Timeout()
}
