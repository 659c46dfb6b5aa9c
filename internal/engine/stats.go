package engine

import (
	"context"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/clock"
	"github.com/skeinq/skein/ports"
)

const (
	// tallyKept is how long a node keeps counting in a minute that it has sent. A store's clock may
	// step back, and a record with smaller counts than an earlier one is ignored.
	tallyKept = 10 * time.Minute
	// tallyUnsent is how long it tries to send a minute.
	tallyUnsent = time.Hour
)

// tallies are a node's counts of its queues, by minute of the store's clock. The zero value is
// empty. It is safe for concurrent use.
type tallies struct {
	mu      sync.Mutex
	minutes map[tallyKey]*tally
}

type tallyKey struct {
	queue  string
	minute core.Instant
}

// tally has the counts of a queue in a minute.
type tally struct {
	stats core.Stats
	// sent is the part of it that the store has.
	sent uint64
	// last is when something was last counted.
	last time.Time
}

// at returns the tally of a queue in the minute of now. The caller holds the lock.
func (t *tallies) at(queue string, clock *clock.Clock) *tally {
	local := clock.Local()
	key := tallyKey{queue, clock.At(local).Minute()}
	one := t.minutes[key]
	if one == nil {
		if t.minutes == nil {
			t.minutes = make(map[tallyKey]*tally)
		}
		one = &tally{}
		t.minutes[key] = one
	}
	one.last = local
	return one
}

// observe counts a batch: for each job how long it waited, how long it ran by itself,
// and how it ended. It leaves out ends that the handler's own transaction decides.
func (t *tallies) observe(s *shard, batch *runningBatch, took time.Duration, settled []core.Settlement) {
	clock := s.node.clock
	t.mu.Lock()
	defer t.mu.Unlock()
	stats := &t.at(s.ID.Queue, clock).stats
	for i := range batch.Claims {
		if began, ran, ok := batch.Execution(i, took); ok {
			stats.ObserveWait(clock.At(began).Sub(batch.Claims[i].WaitsFrom()))
			stats.ObserveRun(ran)
		}
		if !batch.EndsLater(i) {
			countEnd(stats, settled[i].Processed, settled[i].Failed)
		}
	}
}

// count counts the end of a job.
func (t *tallies) count(queue string, clock *clock.Clock, processed, failed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	countEnd(&t.at(queue, clock).stats, processed, failed)
}

func countEnd(stats *core.Stats, processed, failed bool) {
	if processed {
		stats.Processed++
	}
	if failed {
		stats.Failed++
	}
}

// unsent returns the counts that the store lacks, and forgets old minutes.
func (t *tallies) unsent(now time.Time) (records []ports.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, one := range t.minutes {
		all, idle := one.stats.Counted() <= one.sent, now.Sub(one.last)
		switch {
		case all && idle > tallyKept, idle > tallyUnsent:
			delete(t.minutes, key)
		case !all:
			records = append(records, ports.Record{Queue: key.queue, Minute: key.minute, Stats: one.stats})
		}
	}
	return records
}

// sent notes that the store has records.
func (t *tallies) sent(records []ports.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range records {
		r := &records[i]
		if one := t.minutes[tallyKey{r.Queue, r.Minute}]; one != nil {
			one.sent = max(one.sent, r.Stats.Counted())
		}
	}
}

// recordAll sends the counts, as often as the node announces itself, until stop is closed.
func (n *node) recordAll(stop <-chan struct{}) {
	status := n.outages.Loop("record", core.Shard{})
	for pause(n.announceInterval(), stop) {
		ctx, cancel := n.callContext()
		status.Called(n.sendTallies(ctx))
		cancel()
	}
}

// sendTallies sends the counts that the store lacks.
func (n *node) sendTallies(ctx context.Context) error {
	records := n.tallies.unsent(n.clock.Local())
	for len(records) > 0 {
		some := records[:min(len(records), ports.MaxRecords)]
		if err := n.store.Record(ctx, ports.RecordRequest{Owner: n.cfg.Owner, Records: some}); err != nil {
			return err
		}
		n.tallies.sent(some)
		records = records[len(some):]
	}
	return nil
}

// sendLastTallies sends the counts since the last time, after counting has ended.
func (n *node) sendLastTallies(ctx context.Context) {
	if err := n.sendTallies(ctx); err != nil {
		n.log.Warn("the store did not accept the last counts; they are missing in the history of this minute",
			"error", err)
	}
}
