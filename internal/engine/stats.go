package engine

import (
	"time"

	"github.com/skeinq/skein/core"
)

// statsEvery is how often a shard sends its statistics.
const statsEvery = time.Second

// statsBuffer collects a shard's statistics until a turn takes them along.
type statsBuffer struct {
	pending core.Stats
	any     bool
	sent    time.Time
}

// observe takes a closed batch that took so long: of each job how long it waited and how long it
// ran by itself.
func (b *statsBuffer) observe(batch *Batch, took time.Duration, settled []core.Settlement) {
	b.any = true
	clock := batch.shard.node.clock
	for i := range batch.Claims {
		if run, began := batch.jobRun(i, took); began {
			b.pending.Wait.Observe(max(0, clock.at(run.began).Sub(batch.Claims[i].PerformAt)))
			b.pending.Run.Observe(run.took)
		}
		if _, later := batch.transacted[i]; !later {
			b.count(settled[i].Processed, settled[i].Failed)
		}
	}
}

// count adds the end of a job.
func (b *statsBuffer) count(processed, failed bool) {
	b.any = true
	if processed {
		b.pending.Processed++
	}
	if failed {
		b.pending.Failed++
	}
}

// due reports whether statistics may go with a turn now.
func (b *statsBuffer) due(now time.Time) bool {
	return b.any && now.Sub(b.sent) >= statsEvery
}

// take returns the statistics and starts anew.
func (b *statsBuffer) take(now time.Time) *core.Stats {
	stats := b.pending
	*b = statsBuffer{sent: now}
	return &stats
}
