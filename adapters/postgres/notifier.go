package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
)

// restTime is the time for which a shard is not looked at again, after a look has found a job there
// that was due already. A shard with a backlog has such a job, and the holder of the shard in this
// process needs time to take it. A shard that got a wake-up may be looked at again at once. A store
// sends one such statement at a time.
const restTime = 20 * time.Millisecond

// longestLookPause is the last pause between looks at a shard for a caller's transaction that did
// not notify. The pauses begin at restTime and double, so the transaction may take two and a half
// seconds.
const longestLookPause = 64 * restTime

// notifyLimit is the maximum duration of the statement that sends wake-ups.
const notifyLimit = 5 * time.Second

// notifier sends wake-ups outside the transactions that cause them, since a NOTIFY in each makes
// commits wait for one another. It runs while wake-ups wait. The zero value is ready.
type notifier struct {
	mu      sync.Mutex
	running bool
	signal  chan struct{}               // holds a token when a wake-up was added
	pending map[core.Shard]core.Instant // when the first added job is due
	awaited map[core.Shard]awaitedLook
	rests   map[core.Shard]time.Time // until when not to look at a shard
}

// awaitedLook is the next look at a shard into which transactions have pushed that may not have
// committed yet.
type awaitedLook struct {
	due   core.Instant // when the first of their jobs is due
	at    time.Time
	pause time.Duration // before the look
}

// add adds a wake-up, and reports whether the caller must start sendWakeups.
func (n *notifier) add(shard core.Shard, due core.Instant) bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	if known, ok := n.pending[shard]; !ok || due < known {
		if n.pending == nil {
			n.pending = make(map[core.Shard]core.Instant)
		}
		n.pending[shard] = due
	}

	return n.start()
}

// await adds looks at a shard for a transaction that has just pushed, and reports whether the
// caller must start sendWakeups.
func (n *notifier) await(shard core.Shard, due core.Instant, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	look := awaitedLook{due: due, at: now.Add(restTime), pause: restTime}
	if known, ok := n.awaited[shard]; ok {
		look.due = min(look.due, known.due)
		if known.at.Before(look.at) {
			look.at = known.at
		}
	}

	if n.awaited == nil {
		n.awaited = make(map[core.Shard]awaitedLook)
	}
	n.awaited[shard] = look
	return n.start()
}

// start signals sendWakeups that a wake-up was added, and reports whether it must be started.
func (n *notifier) start() bool {
	if n.signal == nil {
		n.signal = make(chan struct{}, 1)
	}
	select {
	case n.signal <- struct{}{}:
	default:
	}
	start := !n.running
	n.running = true
	return start
}

// sendWakeups sends the added wake-ups until none is left.
func (s *Store) sendWakeups() {
	for {
		batch, wait, ok := s.notifier.take(time.Now())
		switch {
		case !ok:
			return
		case len(batch.shards) > 0:
			s.notifier.sent(batch, s.notify(batch))
		default:
			select {
			case <-s.notifier.signal:
			case <-time.After(wait):
			}
		}
	}
}

// wakeupBatch is the wake-ups that one statement sends.
type wakeupBatch struct {
	shards  []core.Shard
	queues  []string
	indexes []int
	dues    []int64
}

// take removes and returns the due looks at shards that do not rest, or else the time until the
// next look. ok is false, and sending ends, if nothing is left.
func (n *notifier) take(now time.Time) (batch wakeupBatch, wait time.Duration, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()

	wait = longestLookPause
	ready := make(map[core.Shard]core.Instant)
	for shard, due := range n.pending {
		if remaining := n.rests[shard].Sub(now); remaining > 0 {
			wait = min(wait, remaining)
			continue
		}
		delete(n.pending, shard)
		ready[shard] = due
	}

	for shard, look := range n.awaited {
		if remaining := max(n.rests[shard].Sub(now), look.at.Sub(now)); remaining > 0 {
			wait = min(wait, remaining)
			continue
		}

		if due, plain := ready[shard]; !plain || look.due < due {
			ready[shard] = look.due
		}

		look.pause *= 2
		look.at = now.Add(look.pause)
		n.awaited[shard] = look
		if look.pause > longestLookPause {
			delete(n.awaited, shard)
		}
	}

	for shard, due := range ready {
		batch.shards = append(batch.shards, shard)
		batch.queues = append(batch.queues, shard.Queue)
		batch.indexes = append(batch.indexes, shard.Index)
		batch.dues = append(batch.dues, int64(due))
	}

	n.running = len(n.pending)+len(n.awaited)+len(batch.shards) > 0
	return batch, wait, n.running
}

// sent makes the shards of a batch rest, except those at the notified positions.
func (n *notifier) sent(batch wakeupBatch, notified []int) {
	for i, shard := range batch.shards {
		if !slices.Contains(notified, i) {
			n.rest(shard, time.Now())
		}
	}
}

// rest keeps a shard from being looked at for a while, and reports whether it did not rest before.
// A shard that already rests is left unchanged.
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

// notify sends a batch, and returns the positions of the shards that got a wake-up. Failed
// wake-ups are lost, as wake-ups may be: polling finds the work.
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
