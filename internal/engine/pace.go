package engine

import (
	"time"

	"github.com/skeinq/skein/core"
)

// ahead is how far a claim looks: what will start within it is claimed early.
const lookAhead = 50 * time.Millisecond

// pace is the moving average of what a job takes.
type pace struct {
	known   bool
	average time.Duration
}

// weight is the share of the newest batch in the average: 1/weight.
const averageWeight = 8

func (p *pace) observe(took time.Duration, jobs int) {
	each := took / time.Duration(jobs)
	if !p.known {
		p.known, p.average = true, each
		return
	}
	p.average += (each - p.average) / averageWeight
}

// mostAhead is the most jobs that a buffer holds: those of one turn are worked while
// the next is under way, so that it can be as large.
const maxBuffered = 2 * core.MaxTurnJobs

// want is how many jobs the buffer should hold. A lane that waits gets at least
// a batch. One that runs for so long gets more only if it will start on them
// within the time ahead.
func (p *pace) want(batch, prefetch int, running bool, since time.Duration) int {
	soon := min(p.jobsWithin(lookAhead, since/time.Duration(batch)), prefetch)
	if running && soon < batch {
		return 0
	}
	return min(max(batch, soon), maxBuffered)
}

// jobsWithin is how many jobs of the average, or of the one that has taken longer
// already, fit into a time.
func (p *pace) jobsWithin(d, already time.Duration) int {
	if !p.known {
		return 0
	}
	each := max(p.average, already, 1)
	return int(d / each)
}

// statsEvery is how often a shard sends its statistics.
const statsEvery = time.Second

// statsBuffer collects a shard's statistics until a turn takes them along.
type statsBuffer struct {
	pending core.Stats
	any     bool
	sent    time.Time
}

// observe takes a closed batch that took so long: of each job how long it waited and
// how long it ran by itself.
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

// count adds a job that ended so.
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

// take hands the statistics over.
func (b *statsBuffer) take(now time.Time) *core.Stats {
	stats := b.pending
	*b = statsBuffer{sent: now}
	return &stats
}
