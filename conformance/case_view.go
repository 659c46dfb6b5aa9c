package conformance

import (
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// allPayloads is more payloads than any job of the suite has.
const allPayloads = 1 << 20

// find looks an id of orders up.
func (e *env) find(id string) ports.Found {
	e.tb.Helper()
	return e.findIn(orders, id)
}

func (e *env) findIn(queue, id string) ports.Found {
	e.tb.Helper()
	found, err := e.store.Find(e.ctx, queue, id)
	e.must(err, "Find")
	return found
}

// queued is the queued job of an id, or an empty one.
func (e *env) queued(id string) core.Job {
	e.tb.Helper()
	if j := e.find(id).Queued; j != nil {
		return *j
	}
	return core.Job{}
}

// dead is the morgue entry of an id, or an empty one.
func (e *env) dead(id string) core.DeadLetter {
	e.tb.Helper()
	if d := e.find(id).DeadLetter; d != nil {
		return *d
	}
	return core.DeadLetter{}
}

// claimed is the claimed job of an id, or an empty one.
func (e *env) claimed(id string) core.Claim {
	e.tb.Helper()
	if c := e.find(id).Claim; c != nil {
		return c.Claim
	}
	return core.Claim{}
}

// jobs are all queued jobs of orders, by time.
func (e *env) jobs() []core.Job {
	e.tb.Helper()
	return e.jobsOf(orders)
}

func (e *env) jobsOf(queue string) []core.Job {
	e.tb.Helper()
	page, err := e.store.Jobs(e.ctx, ports.JobsRequest{PageRequest: wholePage(queue)})
	e.must(err, "Jobs")
	out := make([]core.Job, len(page.Jobs))
	for i := range page.Jobs {
		out[i] = page.Jobs[i].Job
	}
	return out
}

func wholePage(queue string) ports.PageRequest {
	return ports.PageRequest{Queue: queue, Limit: ports.MaxPage, Payloads: allPayloads}
}

// queuedIDs are the ids of the queued jobs of orders, by time.
func (e *env) queuedIDs() []string {
	e.tb.Helper()
	jobs := e.jobs()
	out := make([]string, len(jobs))
	for i := range jobs {
		out[i] = jobs[i].ID
	}
	return out
}

func (e *env) stats(queue string) ports.QueueStats {
	e.tb.Helper()
	all, err := e.store.Stats(e.ctx, []string{queue})
	e.must(err, "Stats")
	if len(all) != 1 {
		e.tb.Fatalf("Stats of one queue gave %d, want 1\nthe rule: %s", len(all), e.rule)
	}
	return all[0]
}

func (e *env) counts() ports.Counts {
	e.tb.Helper()
	return e.stats(orders).Counts
}

// snapshot is all of a queue that can be seen. It takes no time.
type snapshot struct {
	Stats  ports.QueueStats
	Jobs   []core.Job
	Claims []ports.ClaimView
	Dead   []ports.DeadLetterView
	Heads  []core.Head
}

func (e *env) snapshot(queue string) snapshot {
	e.tb.Helper()
	claims, err := e.store.Claimed(e.ctx, wholePage(queue))
	e.must(err, "Claimed")
	dead, err := e.store.Morgue(e.ctx, ports.MorgueRequest{PageRequest: wholePage(queue)})
	e.must(err, "Morgue")
	return snapshot{
		Stats: e.stats(queue), Jobs: e.jobsOf(queue), Claims: claims.Claims, Dead: dead.DeadLetters,
		Heads: e.heads(core.Shards(queue, e.declared[queue].Shards)...),
	}
}

// heads are those of the shards; a head that is none has no time.
func (e *env) heads(shards ...core.Shard) []core.Head {
	e.tb.Helper()
	reply, err := e.store.Heads(e.ctx, shards)
	e.must(err, "Heads")
	out := make([]core.Head, len(reply.Heads))
	for i, h := range reply.Heads {
		out[i] = plain(h)
	}
	return out
}

// head is that of the shard of orders.
func (e *env) head() core.Head {
	e.tb.Helper()
	return e.heads(e.shard)[0]
}

func plain(h core.Head) core.Head {
	if !h.OK {
		return core.Head{}
	}
	return h
}

func due(at core.Instant) core.Head { return core.Head{Due: at, OK: true} }

// idsOf are n ids, in order, that live in one shard of a queue of so many.
func idsOf(s core.Shard, shards, n int) []string {
	var out []string
	for i := 0; len(out) < n; i++ {
		if id := fmt.Sprintf("%06d", i); core.ShardOf(id, shards) == s.Index {
			out = append(out, id)
		}
	}
	return out
}

// statsLag is how long, in real time, a store may take to show statistics that
// a turn brought: the contract lets them lag.
const statsLag = 5 * time.Second

// history checks the minutes that were counted.
func (e *env) history(r ports.HistoryRequest, want ...ports.MinuteStats) {
	e.tb.Helper()
	for end := time.Now().Add(statsLag); ; time.Sleep(statsLag / 500) {
		got, err := e.store.History(e.ctx, r)
		e.must(err, "History")
		if cmp.Equal(want, got, cmpopts.EquateEmpty()) {
			return
		}
		if time.Now().After(end) {
			e.same("the minutes", got, want)
			return
		}
	}
}
