package engine

import (
	"cmp"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/skeinq/skein/ports"
)

// Self returns the node as it would announce itself now; zero before Run or RunDue has begun.
func (e *Engine) Self() ports.Node {
	if e.served.Load() == nil {
		return ports.Node{}
	}
	return e.self()
}

// self is what the node announces about itself.
func (e *Engine) self() ports.Node {
	now := e.served.Load()
	n := ports.Node{
		Owner: e.cfg.Owner, Name: e.cfg.Node, Host: e.cfg.Host, PID: e.cfg.PID, Version: e.cfg.Version,
		Lanes: now.lanes, Draining: e.stopping(),
	}
	for _, q := range now.queues {
		if !q.refused.Load() { // or others would leave it shards that it can't have
			n.Queues = append(n.Queues, q.Name)
		}
	}
	n.Status = e.doing(now, n.Queues)
	return n
}

// doing returns what the node is doing.
func (e *Engine) doing(now *served, queues []string) ports.NodeStatus {
	st := ports.NodeStatus{
		Memory:     processMemory(),
		Goroutines: runtime.NumGoroutine(),
		StartedAt:  e.clock.Steady(e.clock.Start),
		ClockAhead: e.clock.Ahead(time.Now()),
		LastChance: e.lastChance.job(),
	}

	for _, q := range now.queues {
		if slices.Contains(queues, q.Name) {
			bounds := q.inForce.Load()
			st.Queues = append(st.Queues, ports.QueueStatus{
				Queue:         q.Name,
				Merge:         q.Merge,
				MaxRetries:    q.Policy.MaxRetries,
				MaxRecoveries: q.Policy.MaxRecoveries,
				MaxRunning:    bounds.Total,
				MaxLanes:      bounds.Lanes,
				Parallel:      q.Parallel,
				BatchSize:     q.BatchSize,
				Rate:          q.rateText(),

				Code:            q.inCode(),
				SettingsVersion: q.following.Load(),
			})
		}
	}

	for _, s := range now.shards {
		part, running := s.doing()
		st.Shards, st.Running, st.Busy, st.Claimed =
			st.Shards+part.Shards, st.Running+part.Running, st.Busy+part.Busy, st.Claimed+part.Claimed

		if i := slices.IndexFunc(st.Queues, func(q ports.QueueStatus) bool { return q.Queue == s.ID.Queue }); i >= 0 {
			q := &st.Queues[i]
			q.Shards, q.Running, q.Busy, q.Claimed =
				q.Shards+part.Shards, q.Running+part.Running, q.Busy+part.Busy, q.Claimed+part.Claimed
			if part.Shards > 0 && s.laneBusy() {
				q.LaneBusy = append(q.LaneBusy, s.ID.Index)
			}
		}

		for _, b := range running {
			st.Longest = b.AppendRunning(st.Longest)
		}
	}

	for i := range st.Queues {
		q := &st.Queues[i]
		slices.Sort(q.LaneBusy)
		q.LaneBusy = q.LaneBusy[:min(len(q.LaneBusy), ports.MaxLaneBusy)]
	}

	slices.SortStableFunc(st.Longest, func(a, b ports.RunningJob) int { return cmp.Compare(a.Began, b.Began) })
	st.Longest = st.Longest[:min(len(st.Longest), ports.MaxLongest)]

	return st
}

// doing returns what the shard is doing, and the batches that run.
func (s *shard) doing() (status ports.QueueStatus, running []*runningBatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease.held {
		status.Shards = 1
	}
	status.Busy = len(s.claims.running)
	for _, b := range s.claims.running {
		status.Running += len(b.Claims)
	}
	status.Claimed = s.claims.unstarted()
	return status, slices.Clone(s.claims.running)
}

// laneBusy reports whether the shard is pinned to a lane that runs a batch, or is about to.
func (s *shard) laneBusy() bool {
	return !s.pool.shared && s.pool.full()
}

// processMemory returns how many bytes the process has from the operating system for the Go
// runtime, without what it has returned.
func processMemory() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	for _, s := range samples {
		if s.Value.Kind() != metrics.KindUint64 {
			return 0 // of a Go version that does not have this metric
		}
	}
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
