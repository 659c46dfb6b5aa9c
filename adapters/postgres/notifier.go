package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
)

// restTime is how long a shard is not looked at after it had a job that was due before, as
// one with a backlog has, or while its holder in this process is given time to take the
// job. A shard for which a wake-up was sent is looked at again at once, in the one statement
// at a time that a store sends.
const restTime = 20 * time.Millisecond

// longestLookPause is the last pause between looks at a shard for a caller's transaction that did not
// notify. They begin at restTime and double: the transaction may take two seconds and a half.
const longestLookPause = 64 * restTime

// notifyLimit is how long a wake-up may take to be sent.
const notifyLimit = 5 * time.Second

// notifier sends wake-ups outside the transactions that cause them, since a NOTIFY in
// each makes commits wait for one another. It runs while there is something to send. The
// zero value is ready.
type notifier struct {
	mu      sync.Mutex
	running bool
	signal  chan struct{} // holds a token when something was added
	pending map[core.Shard]pendingLook
	rests   map[core.Shard]time.Time // until when not to look at a shard
}

// pendingLook is a look at a shard that decides whether a wake-up is sent.
type pendingLook struct {
	due core.Instant // when the first of what was added is due
	at  time.Time    // not before
	// pause is how long after the look it is repeated, since a transaction may not have committed
	// by then. 0 is not at all.
	pause time.Duration
}

// add adds a look at a shard, pause after now, to be repeated after pauses that double unless that
// is 0. It reports whether the caller must start sendWakeups.
func (n *notifier) add(shard core.Shard, due core.Instant, now time.Time, pause time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.addLocked(shard, pendingLook{due: due, at: now.Add(pause), pause: pause})
}

func (n *notifier) addLocked(shard core.Shard, look pendingLook) bool {
	if n.signal == nil {
		n.signal, n.pending = make(chan struct{}, 1), make(map[core.Shard]pendingLook)
	}
	if known, ok := n.pending[shard]; ok {
		look.due = min(look.due, known.due)
		if known.at.Before(look.at) {
			look.at = known.at
		}
		if look.pause == 0 || known.pause > 0 && known.pause < look.pause {
			look.pause = known.pause
		}
	}
	n.pending[shard] = look
	select {
	case n.signal <- struct{}{}:
	default:
	}
	start := !n.running
	n.running = true
	return start
}

// sendWakeups sends what was added until nothing is left.
func (s *Store) sendWakeups() {
	for {
		batch, wait, ok := s.notifier.take(time.Now())
		switch {
		case !ok:
			return
		case len(batch.shards) > 0:
			notified := s.notify(batch)
			s.notifier.sent(batch, notified, time.Now())
		default:
			select {
			case <-s.notifier.signal:
			case <-time.After(wait):
			}
		}
	}
}

// wakeupBatch is what one statement sends.
type wakeupBatch struct {
	shards  []core.Shard
	queues  []string
	indexes []int
	dues    []int64
	pauses  []time.Duration
}

// take removes and returns the looks that are due at shards that do not rest, or else how long it
// is until the next. ok is false, and sending over, if there is nothing left.
func (n *notifier) take(now time.Time) (batch wakeupBatch, wait time.Duration, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	wait = longestLookPause
	for shard, look := range n.pending {
		if rest := max(n.rests[shard].Sub(now), look.at.Sub(now)); rest > 0 {
			wait = min(wait, rest)
			continue
		}
		delete(n.pending, shard)
		batch.shards = append(batch.shards, shard)
		batch.queues = append(batch.queues, shard.Queue)
		batch.indexes = append(batch.indexes, shard.Index)
		batch.dues = append(batch.dues, int64(look.due))
		batch.pauses = append(batch.pauses, look.pause)
	}
	n.running = len(n.pending) > 0 || len(batch.shards) > 0
	return batch, wait, n.running
}

// sent makes the shards of a batch rest, except those at the notified positions, and adds the looks
// that are to be repeated.
func (n *notifier) sent(batch wakeupBatch, notified []int, now time.Time) {
	for i, shard := range batch.shards {
		if !slices.Contains(notified, i) {
			n.rest(shard, now)
		}
		if pause := 2 * batch.pauses[i]; pause > 0 && pause <= longestLookPause {
			n.add(shard, core.Instant(batch.dues[i]), now, pause)
		}
	}
}

// rest keeps a shard from being looked at for a while, and reports whether it did not rest. For one
// that rests already nothing changes.
func (n *notifier) rest(shard core.Shard, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rests == nil {
		n.rests = make(map[core.Shard]time.Time)
	}
	if n.rests[shard].After(now) {
		return false
	}
	n.rests[shard] = now.Add(restTime)
	return true
}

// notify sends a batch, and returns the positions of the shards for which it has sent a
// wake-up. What fails is lost, as wake-ups may be: polling finds the work.
func (s *Store) notify(batch wakeupBatch) (notified []int) {
	ctx, cancel := context.WithTimeout(context.Background(), notifyLimit)
	defer cancel()
	err := s.query(ctx, ifRolledBack, func(rows pgx.Rows) error {
		notified = nil
		return eachRow(rows, func() error {
			var i int
			err := rows.Scan(&i)
			notified = append(notified, i)
			return err
		})
	}, `SELECT * FROM {schema}.notify_wakeups($1, $2, $3, $4)`, s.channel(), batch.queues, batch.indexes, batch.dues)
	if err != nil {
		return nil
	}
	return notified
}
