package postgres

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
)

// restTime is how long a shard is not looked at after it had a job that was due
// before, as one that is behind has, or while its holder in this process is given
// time to take the job. One that gave news is looked at again at once, in the one
// statement at a time that a store sends.
const restTime = 20 * time.Millisecond

// notifyLimit is how long a wake-up may take to be sent.
const notifyLimit = 5 * time.Second

// regardless is an instant before every floor: there is news whatever the head is.
const regardless core.Instant = -1

// crier sends wake-ups outside the transactions that cause them, since a NOTIFY in
// each makes commits wait for one another. It works while there is something to
// tell. The zero value is ready.
type crier struct {
	mu      sync.Mutex
	running bool
	signal  chan struct{}               // holds a token when news came
	news    map[core.Shard]core.Instant // when the first of what came is due
	rests   map[core.Shard]time.Time    // not to be looked at before
}

// wake has those who listen told of a shard, soon, unless it then has no job to give
// or one that is due before the given instant. It never blocks.
func (s *Store) wake(shard core.Shard, due core.Instant) {
	if !s.options.NoWakeups && s.crier.add(shard, due) {
		go s.cry()
	}
}

// add reports whether somebody must start to work on it.
func (c *crier) add(shard core.Shard, due core.Instant) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.signal == nil {
		c.signal, c.news = make(chan struct{}, 1), make(map[core.Shard]core.Instant)
	}
	if known, ok := c.news[shard]; !ok || due < known {
		c.news[shard] = due
	}
	select {
	case c.signal <- struct{}{}:
	default:
	}
	start := !c.running
	c.running = true
	return start
}

// cry works until there is nothing to tell.
func (s *Store) cry() {
	for {
		batch, wait, ok := s.crier.take(time.Now())
		switch {
		case !ok:
			return
		case len(batch.shards) > 0:
			s.crier.told(batch, s.notify(batch))
		default:
			select {
			case <-s.crier.signal:
			case <-time.After(wait):
			}
		}
	}
}

// newsBatch is what one statement tells.
type newsBatch struct {
	shards  []core.Shard
	queues  []string
	indexes []int
	dues    []int64
}

// take is the news of shards that do not rest, or how long the next one does. It is
// not ok, and the work at its end, if there is none.
func (c *crier) take(now time.Time) (batch newsBatch, wait time.Duration, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait = restTime
	for shard, due := range c.news {
		if rest := c.rests[shard].Sub(now); rest > 0 {
			wait = min(wait, rest)
			continue
		}
		delete(c.news, shard)
		batch.shards = append(batch.shards, shard)
		batch.queues = append(batch.queues, shard.Queue)
		batch.indexes = append(batch.indexes, shard.Index)
		batch.dues = append(batch.dues, int64(due))
	}
	c.running = len(c.news) > 0 || len(batch.shards) > 0
	return batch, wait, c.running
}

// told has the shards rest that gave no news. told are the positions of the others.
func (c *crier) told(batch newsBatch, told []int) {
	for i, shard := range batch.shards {
		if !slices.Contains(told, i) {
			c.rest(shard)
		}
	}
}

// rest has a shard not looked at for a while. One that rests already does so no longer.
func (c *crier) rest(shard core.Shard) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rests == nil {
		c.rests = make(map[core.Shard]time.Time)
	}
	if now := time.Now(); !c.rests[shard].After(now) {
		c.rests[shard] = now.Add(restTime)
	}
}

// notify gives the positions of the shards that it told of. What fails is lost,
// as wake-ups may be: polling finds the work.
func (s *Store) notify(batch newsBatch) (told []int) {
	ctx, cancel := context.WithTimeout(context.Background(), notifyLimit)
	defer cancel()
	err := s.query(ctx, ifRefused, func(rows pgx.Rows) error {
		told = nil
		return eachRow(rows, func() error {
			var i int
			err := rows.Scan(&i)
			told = append(told, i)
			return err
		})
	}, `SELECT * FROM {schema}.tell($1, $2, $3, $4)`, s.channel(), batch.queues, batch.indexes, batch.dues)
	if err != nil {
		return nil
	}
	return told
}
