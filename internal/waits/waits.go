// Package waits waits until ids are settled (docs/rules.md 15). It asks the store again and again,
// with one read for all waits of a queue.
//
// A store sends no wake-up when a job ends, so that an end costs nothing if nobody waits. The
// design note docs/design/records.md has the reasons and the figures.
package waits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Times of reads.
const (
	// shortest and longest are the limits of the time from one read of an id to the next. In between
	// it is a quarter of the time that its wait has lasted.
	shortest = time.Millisecond
	longest  = time.Second
	// gap is the shortest time between two reads of a queue. It is also at least four times that of
	// the read, so a queue's reads keep a slow store busy for at most a fifth of the time.
	gap = time.Millisecond
	// failureGap is the shortest time from a failed read to the next.
	failureGap = 50 * time.Millisecond
	// patience is how long a read may take.
	patience = 5 * time.Second
)

// Store is what a Poller needs of a store.
type Store interface {
	Pending(ctx context.Context, r ports.PendingRequest) (ports.PendingReply, error)
}

// Poller reads what is pending of the ids that goroutines wait for. It is safe for concurrent use.
// It has a goroutine for each queue while somebody waits there, and none otherwise.
type Poller struct {
	store Store

	mu     sync.Mutex
	queues map[string]*queue
}

// New returns a Poller of a store.
func New(store Store) *Poller {
	return &Poller{store: store, queues: make(map[string]*queue)}
}

// Seen is what the reads for one wait have seen of its id.
type Seen struct {
	// Read is true after the first read.
	Read bool
	// Until is the instant up to which pushes are waited for: the store's clock at the first read.
	Until core.Instant
	// Waited is true if a read has seen a job that is waited for. Since is then its FirstPush, or the
	// smaller one of two.
	Waited bool
	Since  core.Instant
	// Last is the last read.
	Last ports.Pending
	// Err is the error of the last read, if it failed.
	Err error
}

// queue is the waits for ids of one queue, at least one until its context ends.
type queue struct {
	name    string
	waiting map[*wait]struct{} // guarded by Poller.mu
	changed chan struct{}      // of one place: a wait came
	ctx     context.Context    // of the reads
	cancel  context.CancelFunc
}

// wait is one wait for an id. Once it is in a queue, only the queue's goroutine uses its fields,
// until ended is closed.
type wait struct {
	id    string
	seen  *Seen
	began time.Time
	// due is when the id is to be read next, and pause is how long it was until then.
	due   time.Time
	pause time.Duration

	ended chan struct{}
	err   error
}

// Wait returns nil once everything that was pushed for the id up to its first read is settled or
// held. seen is zero for a new wait, or that of an earlier call, which this one continues. If the
// store refuses the read, or has a damaged record of the id, Wait returns an error. If ctx ends
// first, Wait returns its error. While reads fail in another way, it tries again.
func (p *Poller) Wait(ctx context.Context, name, id string, seen *Seen) error {
	now := time.Now()
	// The goroutine of the queue may still use the wait after ctx has ended, so it has a copy.
	own := *seen
	w := &wait{id: id, seen: &own, began: now, due: now, ended: make(chan struct{})}
	q := p.enlist(name, w)

	select {
	case <-w.ended:
		*seen = own
		return w.err
	case <-ctx.Done():
	}

	// The goroutine of the queue changes what was seen only while it has the lock.
	p.mu.Lock()
	defer p.mu.Unlock()
	p.remove(q, w)
	*seen = own
	return ctx.Err()
}

// enlist adds a wait to its queue, and starts the queue's goroutine with the first.
func (p *Poller) enlist(name string, w *wait) *queue {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[name]
	if q == nil {
		q = &queue{name: name, waiting: make(map[*wait]struct{}), changed: make(chan struct{}, 1)}
		q.ctx, q.cancel = context.WithCancel(context.Background())
		p.queues[name] = q
		go p.run(q)
	}
	q.waiting[w] = struct{}{}
	select {
	case q.changed <- struct{}{}:
	default:
	}
	return q
}

// remove removes a wait, and the queue with the last one. The caller has the lock.
func (p *Poller) remove(q *queue, w *wait) {
	delete(q.waiting, w)
	if len(q.waiting) == 0 && p.queues[q.name] == q {
		delete(p.queues, q.name)
		q.cancel()
	}
}

// run reads for the waits of a queue until there are none.
func (p *Poller) run(q *queue) {
	var earliest time.Time // of the next read
	for {
		due, ok := p.nextDue(q)
		if !ok {
			return
		}
		if pause := time.Until(later(due, earliest)); pause > 0 {
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-q.changed:
				timer.Stop()
				continue
			case <-q.ctx.Done():
				timer.Stop()
				return
			}
		}

		began := time.Now()
		failed := p.read(q)
		now := time.Now()
		earliest = now.Add(max(gap, min(4*now.Sub(began), longest)))
		if failed {
			earliest = later(earliest, now.Add(failureGap))
		}
	}
}

// nextDue returns when the next wait of a queue is due. ok is false if there is no wait.
func (p *Poller) nextDue(q *queue) (due time.Time, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range q.waiting {
		if !ok || w.due.Before(due) {
			due, ok = w.due, true
		}
	}
	return due, ok
}

// read reads the ids of the waits that are due, and ends those that are over. It reports whether
// the read has failed.
func (p *Poller) read(q *queue) (failed bool) {
	batch := p.dueNow(q)
	if len(batch) == 0 {
		return false // those that were due have left
	}

	r := ports.PendingRequest{Queue: q.name, IDs: make([]string, len(batch))}
	for i, w := range batch {
		r.IDs[i] = w.id
	}
	ctx, cancel := context.WithTimeout(q.ctx, patience)
	reply, err := p.store.Pending(ctx, r)
	cancel()
	if err == nil && len(reply.IDs) != len(batch) {
		err = fmt.Errorf("the store returned %d entries for %d ids", len(reply.IDs), len(batch))
	}

	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, w := range batch {
		over := false
		switch {
		case err != nil:
			over = w.fail(err)
		case slices.Contains(reply.Unreached, reply.IDs[i].Shard):
			over = w.fail(fmt.Errorf("shard %v can't be reached now", reply.IDs[i].Shard))
		default:
			over = w.see(reply.IDs[i])
		}

		if over {
			p.remove(q, w)
			close(w.ended)
			continue
		}
		w.pause = min(max(shortest, now.Sub(w.began)/4), longest)
		w.due = now.Add(w.pause)
	}
	return err != nil
}

// dueNow returns the waits of a queue to read now: those that are due, and those that will be
// within a quarter of their pause, so that waits of about the same age are read together. The first
// due come first, if there are more than one read may have.
func (p *Poller) dueNow(q *queue) []*wait {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var batch []*wait
	for w := range q.waiting {
		if !w.due.Add(-w.pause / 4).After(now) {
			batch = append(batch, w)
		}
	}
	if len(batch) > ports.MaxPending {
		slices.SortFunc(batch, func(a, b *wait) int { return cmp.Compare(a.due.UnixNano(), b.due.UnixNano()) })
		batch = batch[:ports.MaxPending]
	}
	return batch
}

// fail notes that a read has failed, and reports whether the wait is over.
func (w *wait) fail(err error) (over bool) {
	w.seen.Err = err
	if Lasts(err) {
		w.err = err
		return true
	}
	return false
}

// Lasts reports whether the error of a read does not go away by waiting.
func Lasts(err error) bool {
	return ports.FailureOf(err) == ports.FailureRefused &&
		!errors.Is(err, ports.ErrReadOnly) && !errors.Is(err, ports.ErrNotBegun)
}

// see notes what a read has seen of the id, and reports whether the wait is over.
func (w *wait) see(p ports.Pending) (over bool) {
	s := w.seen
	if !s.Read {
		// After a step back of the clock, a job that is there may have been pushed later than now.
		s.Read, s.Until = true, max(p.Now, p.FirstPush)
	}
	s.Last, s.Err = p, nil

	switch {
	case p.Damaged:
		w.err = errDamaged
		return true
	case p.Settled(s.Until):
		return true
	}
	if !s.Waited {
		s.Waited, s.Since = true, p.FirstPush
	}
	return p.Stopped()
}

// errDamaged is the error of a wait for an id with a damaged record.
var errDamaged = errors.New("whether it is settled is unknown: the store can't read a record of the id; " +
	"the next turn sets it aside, then see Inspector.Quarantined")

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
