package ticks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/internal/specs"
	"github.com/skeinq/skein/ports"
)

// Store is what a [Firer] needs of a store.
type Store interface {
	Ticks(ctx context.Context, r ports.TicksRequest) (ports.TicksReply, error)
	ChangeSchedules(ctx context.Context, r ports.ChangeSchedulesRequest) (ports.ChangeSchedulesReply, error)
}

// Shard is a shard whose schedules are fired, with the layout and the merge rule of its queue.
type Shard struct {
	ID         core.Shard
	Shards     int
	Generation int64
	Merge      core.MergeRule
}

// Config is how a [Firer] works. All fields are set, except Zone.
type Config struct {
	Store Store
	// Held returns the shards that the server holds now, and Acquired gets a signal when there are
	// more.
	Held     func() []Shard
	Acquired <-chan struct{}
	// PollInterval is how often the shards are looked at for schedules that were changed.
	PollInterval time.Duration
	// Call returns the context of one call to the store, and Look that of a look at all shards, which
	// may take less time.
	Call, Look func() (context.Context, context.CancelFunc)
	// Start runs f in a goroutine that group waits for.
	Start    func(group *sync.WaitGroup, f func())
	Log      *slog.Logger
	Observer ports.Observer
	Outages  *report.Outages
	// Pushed is called after ticks of a shard were pushed.
	Pushed func(id core.Shard)
	// Zone loads a time zone. nil means time.LoadLocation.
	Zone func(name string) (*time.Location, error)
}

// Firer fires the schedules of shards. Make it with [New].
type Firer struct {
	cfg   Config
	specs specs.Specs
	// status is that of looks at all shards.
	status *report.Loop
	// changed wakes the loop: a look or a firing has ended.
	changed chan struct{}
	calls   sync.WaitGroup

	mu sync.Mutex
	// looking is set while a look is under way. lookAt is when the next one begins.
	looking bool
	lookAt  time.Time
	// byShard are the shards that were held at the last look.
	byShard map[core.Shard]*shard
}

// shard is what is known of the ticks of one shard. Firer.mu guards it.
type shard struct {
	Shard
	// next is when the next tick is due, by the clock of this process. It is zero if there is none.
	next time.Time
	// busy is set while a goroutine fires the shard.
	busy bool
	// failing is the wait after failed calls.
	failing wait
	status  *report.Loop
}

// New returns a Firer.
func New(cfg Config) *Firer {
	return &Firer{
		cfg:     cfg,
		specs:   specs.Specs{Zone: cfg.Zone},
		status:  cfg.Outages.Loop("ticks", core.Shard{}),
		changed: make(chan struct{}, 1),
		byShard: make(map[core.Shard]*shard),
	}
}

// Run fires ticks until stop is closed, and returns when the last call has ended.
func (f *Firer) Run(stop <-chan struct{}) {
	defer f.calls.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-f.changed:
		case <-f.cfg.Acquired:
			f.lookSoon()
		case <-stop:
			return
		}
		now := time.Now()
		wait := f.startLook(now)
		wait = min(wait, f.startDue(now))
		timer.Reset(max(time.Millisecond, wait))
	}
}

// lookSoon makes the next look begin as soon as none is under way.
func (f *Firer) lookSoon() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lookAt = time.Time{}
}

// startLook looks at all shards if it is time to, and returns how long to wait until the next look.
// One look is under way at a time.
func (f *Firer) startLook(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.looking && !now.Before(f.lookAt) {
		f.looking = true
		f.lookAt = now.Add(f.cfg.PollInterval)
		f.cfg.Start(&f.calls, f.look)
	}
	if f.looking { // its end wakes the loop
		return f.cfg.PollInterval
	}
	return f.lookAt.Sub(now)
}

// look asks for the next ticks of all held shards, except those that are being fired. If the store
// does not answer in time, each shard is asked by itself, since one that hangs may be the cause.
func (f *Firer) look() {
	ids := f.idle()
	reply, err := f.ticksOf(ids)
	received := time.Now()

	f.mu.Lock()
	missing := reply.Unreached
	for i, id := range ids {
		s := f.byShard[id]
		switch {
		case !s.failing.reached(received):
		case errors.Is(err, context.DeadlineExceeded):
			s.next = received
		case err != nil:
		case len(missing) > 0 && id == missing[0]:
			missing = missing[1:]
		default:
			s.next = localTime(reply.Shards[i].Head, reply.Shards[i].Now, received)
		}
	}
	f.looking = false
	f.mu.Unlock()
	f.wake()
}

// ticksOf asks for the next ticks of shards.
func (f *Firer) ticksOf(ids []core.Shard) (reply ports.TicksReply, err error) {
	if len(ids) == 0 {
		return reply, nil
	}
	ctx, cancel := f.cfg.Look()
	defer cancel()
	reply, err = f.cfg.Store.Ticks(ctx, ports.TicksRequest{Shards: ids})
	if err == nil && len(reply.Shards) != len(ids) {
		err = errUnreached
	}
	if n := len(reply.Unreached); err == nil && n > 0 {
		f.status.Called(fmt.Errorf("%d of %d shards can't be reached, the first is %v",
			n, len(ids), reply.Unreached[0]))
		return reply, nil
	}
	f.status.Called(err)
	return reply, err
}

// wake wakes the loop.
func (f *Firer) wake() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// localTime returns the time of a head by the clock of this process, or the zero time if it is not
// OK. now is the store's time when the head was received.
func localTime(h core.Head, now core.Instant, received time.Time) time.Time {
	if !h.OK {
		return time.Time{}
	}
	return received.Add(max(0, h.Due.Sub(now)))
}

// idle returns the held shards that are not being fired. It forgets shards that are not held.
func (f *Firer) idle() (ids []core.Shard) {
	held := f.cfg.Held()
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.byShard
	f.byShard = make(map[core.Shard]*shard, len(held))
	for _, h := range held {
		s := known[h.ID]
		if s == nil {
			s = &shard{status: f.cfg.Outages.Loop("fire", h.ID)}
		}
		s.Shard = h
		f.byShard[h.ID] = s
		delete(known, h.ID)
		if !s.busy {
			ids = append(ids, h.ID)
		}
	}
	for _, s := range known {
		s.status.Left()
	}
	return ids
}

// startDue starts the firing of all shards with a due tick, and returns how long to wait until the
// next one is due.
func (f *Firer) startDue(now time.Time) time.Duration {
	wait := f.cfg.PollInterval
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.byShard {
		switch {
		case s.busy || s.next.IsZero():
		case s.next.After(now):
			wait = min(wait, s.next.Sub(now))
		default:
			s.busy = true
			f.cfg.Start(&f.calls, func() { f.fireShard(s) })
		}
	}
	return wait
}

// fireShard fires a shard, and notes when its next tick is due.
func (f *Firer) fireShard(s *shard) {
	f.mu.Lock()
	at := s.Shard
	f.mu.Unlock()
	next, err := f.Fire(at)
	s.status.Called(err)

	f.mu.Lock()
	defer f.mu.Unlock()
	s.busy, s.next = false, next
	if err != nil {
		s.next = s.failing.after(time.Now())
	} else {
		s.failing = wait{}
	}
	f.wake()
}

// wait is the wait between tries of a firing that fails. It doubles from firstWait to longestWait.
type wait struct {
	d     time.Duration
	until time.Time
}

const (
	firstWait   = 50 * time.Millisecond
	longestWait = 5 * time.Second
)

// after returns when to try again after a failure.
func (w *wait) after(now time.Time) time.Time {
	w.d = min(max(firstWait, 2*w.d), longestWait)
	w.until = now.Add(w.d)
	return w.until
}

// reached reports whether the wait is over.
func (w *wait) reached(now time.Time) bool { return !now.Before(w.until) }
