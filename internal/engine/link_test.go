package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

var (
	errDown = errors.New("link: connection refused")
	errLost = errors.New("link: the reply was lost")
)

// linkState is how a link treats calls.
type linkState uint8

const (
	up        linkState = iota
	down                // calls fail at once
	hanging             // calls wait until the link is up again or their context ends
	leaseLost           // calls report that the lease is lost
)

// link is one node's connection to a store, which can fail in every way a
// network can. It embeds the port, so it is no ports.Notifier.
type link struct {
	ports.ShardStore

	mu      sync.Mutex
	state   linkState
	changed chan struct{}
	// delay is how long a packet takes each way. linger is how much longer the reply of a method
	// takes, although its call's context has ended.
	delay  time.Duration
	linger map[string]time.Duration
	// rate is how many bytes of payload of a reply come back in a second, or 0 for no limit.
	rate int
	// connections are those that calls use, or nil if each call has its own.
	connections *connections
	// refuse reports whether a call fails, and lose whether its reply is lost.
	refuse func(method string) bool
	lose   func(method string) bool
	// deferSettlement reports whether the store defers a settlement.
	deferSettlement func(id string) bool
	// deferReceipt reports whether the store defers a settlement with that receipt.
	deferReceipt func(r core.Receipt) bool
	// beforeTurn is called before a turn reaches the store. It may take its time.
	beforeTurn func(r ports.TurnRequest)
	// loseTurn reports whether the reply of a turn is lost.
	loseTurn func(r ports.TurnRequest) bool
	// broken are errors of the turns of some shards, and stuck are the shards whose
	// turns get no answer. The same is true of looks at several heads with such a
	// shard among them.
	broken   map[core.Shard]error
	stuck    map[core.Shard]bool
	late     map[string]chan func() error
	calls    map[string]int
	spin     spinGuard
	turns    []turnRecord
	acquires []ports.AcquireRequest
}

// turnRecord is a turn that was sent, and how it ended for the sender.
type turnRecord struct {
	at      time.Time
	ended   time.Time
	request ports.TurnRequest
	reply   ports.TurnReply
	err     error
}

func newLink(store ports.ShardStore) *link {
	return &link{
		ShardStore:      store,
		changed:         make(chan struct{}),
		refuse:          func(string) bool { return false },
		lose:            func(string) bool { return false },
		deferSettlement: func(string) bool { return false },
		deferReceipt:    func(core.Receipt) bool { return false },
		beforeTurn:      func(ports.TurnRequest) {},
		loseTurn:        func(ports.TurnRequest) bool { return false },
		broken:          make(map[core.Shard]error),
		stuck:           make(map[core.Shard]bool),
		linger:          make(map[string]time.Duration),
		late:            make(map[string]chan func() error),
		calls:           make(map[string]int),
	}
}

// set changes the link's state at once.
func (l *link) set(state linkState) {
	l.change(func() { l.state = state })
}

// change changes any of the link's settings.
func (l *link) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
	close(l.changed)
	l.changed = make(chan struct{})
}

// swap puts another store behind the link.
func (l *link) swap(store ports.ShardStore) {
	l.change(func() { l.ShardStore = store })
}

// delayNext makes the next call of a method hang for the caller, and hands over
// the packet, which a test delivers when it likes.
func (l *link) delayNext(method string) <-chan func() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late[method] = make(chan func() error, 1)
	return l.late[method]
}

// count is how often a method was called.
func (l *link) count(method string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[method]
}

// turnsSent lists all turns so far.
func (l *link) turnsSent() []turnRecord {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.turns)
}

// acquiresSent lists all requests for a lease so far.
func (l *link) acquiresSent() []ports.AcquireRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.acquires)
}

func (l *link) store() ports.ShardStore {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ShardStore
}

// call takes one call over the link and back.
func (l *link) call(
	ctx context.Context, method string, perform func(ctx context.Context, s ports.ShardStore) error,
) error {
	l.spin.count()
	l.mu.Lock()
	l.calls[method]++
	refused, lost, late := l.refuse(method), l.lose(method), l.late[method]
	delete(l.late, method)
	l.mu.Unlock()
	if refused {
		return errDown
	}
	if late != nil {
		late <- func() error { return perform(context.Background(), l.store()) }
		<-ctx.Done()
		return fmt.Errorf("link: %w", ctx.Err())
	}
	exchange := func() error { return l.exchange(ctx, method, lost, perform) }
	if l.connections != nil {
		return l.connections.call(ctx, method, exchange)
	}
	return exchange()
}

// exchange takes a request over, has the store perform it, and takes the reply back.
func (l *link) exchange(
	ctx context.Context, method string, lost bool, perform func(ctx context.Context, s ports.ShardStore) error,
) error {
	if err := l.cross(ctx); err != nil {
		return err
	}
	err := perform(ctx, l.store())
	time.Sleep(l.get(func() time.Duration { return l.linger[method] }))
	if l.cross(ctx) != nil || lost {
		return errLost
	}
	return err
}

// cross takes a packet over to the other side.
func (l *link) cross(ctx context.Context) error {
	if d := l.get(func() time.Duration { return l.delay }); d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return fmt.Errorf("link: %w", ctx.Err())
		}
	}
	for {
		l.mu.Lock()
		state, changed := l.state, l.changed
		l.mu.Unlock()
		switch state {
		case up:
			return nil
		case down:
			return errDown
		case leaseLost:
			return ports.ErrLeaseLost
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("link: %w", ctx.Err())
		}
	}
}

func (l *link) get(setting func() time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return setting()
}

func (l *link) heal() {
	l.change(func() {
		clear(l.broken)
		clear(l.stuck)
	})
}
