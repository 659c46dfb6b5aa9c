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

// notifyLimit is how long a wake-up may take to be sent.
const notifyLimit = 5 * time.Second

// notifier sends wake-ups outside the transactions that cause them, since a NOTIFY in
// each makes commits wait for one another. It runs while there is something to send. The
// zero value is ready.
type notifier struct {
	mu      sync.Mutex
	running bool
	signal  chan struct{}               // holds a token when something was added
	pending map[core.Shard]core.Instant // when the first of what was added is due
	rests   map[core.Shard]time.Time    // until when not to look at a shard
}

// add adds a wake-up, and reports whether the caller must start sendWakeups.
func (n *notifier) add(shard core.Shard, due core.Instant) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.signal == nil {
		n.signal, n.pending = make(chan struct{}, 1), make(map[core.Shard]core.Instant)
	}
	if known, ok := n.pending[shard]; !ok || due < known {
		n.pending[shard] = due
	}
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
			s.notifier.sent(batch, s.notify(batch))
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
}

// take removes and returns the wake-ups of shards that do not rest, or else how long the next
// one rests. ok is false, and sending over, if there is nothing left.
func (n *notifier) take(now time.Time) (batch wakeupBatch, wait time.Duration, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	wait = restTime
	for shard, due := range n.pending {
		if rest := n.rests[shard].Sub(now); rest > 0 {
			wait = min(wait, rest)
			continue
		}
		delete(n.pending, shard)
		batch.shards = append(batch.shards, shard)
		batch.queues = append(batch.queues, shard.Queue)
		batch.indexes = append(batch.indexes, shard.Index)
		batch.dues = append(batch.dues, int64(due))
	}
	n.running = len(n.pending) > 0 || len(batch.shards) > 0
	return batch, wait, n.running
}

// sent makes the shards of a batch rest, except those at the notified positions.
func (n *notifier) sent(batch wakeupBatch, notified []int) {
	for i, shard := range batch.shards {
		if !slices.Contains(notified, i) {
			n.rest(shard)
		}
	}
}

// rest keeps a shard from being looked at for a while. For one that rests already nothing
// changes.
func (n *notifier) rest(shard core.Shard) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rests == nil {
		n.rests = make(map[core.Shard]time.Time)
	}
	if now := time.Now(); !n.rests[shard].After(now) {
		n.rests[shard] = now.Add(restTime)
	}
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
