package stored

import (
	"slices"
	"time"

	"github.com/skeinq/skein/inspect"
)

// sink receives the values of metrics of the table, with the values of their labels in order.
type sink func(name string, v float64, labels ...string)

func (put sink) bool(name string, v bool, labels ...string) {
	if v {
		put(name, 1, labels...)
		return
	}
	put(name, 0, labels...)
}

func (put sink) queues(v *view) {
	for i := range v.stats {
		q := &v.stats[i]
		name := q.Queue.Name
		for state, n := range map[string]int64{
			"fresh":       q.Fresh,
			"retry":       q.Retrying - q.Held,
			"claimed":     q.Claimed,
			"orphaned":    q.Orphaned,
			"held":        q.Held,
			"dead":        q.Dead,
			"quarantined": q.Quarantined,
		} {
			put("skein_queue_jobs", float64(n), name, state)
		}

		put("skein_queue_lag_seconds", q.Lag.Seconds(), name)
		put("skein_queue_processed_total", float64(q.Processed), name)
		put("skein_queue_failed_total", float64(q.Failed), name)
		put("skein_queue_superseded_total", float64(q.Superseded), name)
		put("skein_queue_stale_total", float64(q.Stale), name)
		put("skein_queue_repeated_total", float64(q.Repeated), name)
		put.bool("skein_queue_paused", q.Queue.Paused, name)
		put.settings(q)
		put.shards(q)
	}
}

// settings puts the settings that operators have set, as far as this version can read them.
func (put sink) settings(q *inspect.QueueStats) {
	set := func(name string, v float64, isSet bool) {
		if isSet {
			put("skein_queue_setting", v, q.Queue.Name, name)
		}
	}
	s := &q.Queue.Settings

	lanes, isSet := s.MaxLanes()
	set("max_lanes", float64(lanes), isSet)
	running, isSet := s.MaxRunning()
	set("max_running", float64(running), isSet)
	age, isSet := s.MorgueAge()
	set("morgue_age_seconds", age.Seconds(), isSet)
	count, isSet := s.MorgueCount()
	set("morgue_count", float64(count), isSet)
	rate, isSet := s.Rate()
	perSecond := 0.0
	if rate.Per > 0 {
		perSecond = float64(rate.Count) / rate.Per.Seconds()
	}
	set("rate_per_second", perSecond, isSet)
}

func (put sink) shards(q *inspect.QueueStats) {
	states := map[string]int{"owned": 0, "free": 0, "expired": 0, "unreached": max(0, q.Queue.Shards-len(q.Shards))}
	lags := make([]time.Duration, 0, len(q.Shards)+1)
	var longest int64
	for i := range q.Shards {
		shard := &q.Shards[i]
		states[leaseState(shard, q.Now)]++
		lags = append(lags, shard.Lag)
		longest = max(longest, shard.Waiting())
	}

	for state, n := range states {
		put("skein_queue_shards", float64(n), q.Queue.Name, state)
	}

	// A queue that has no reachable shard keeps its gauges.
	if len(lags) == 0 {
		lags = append(lags, 0)
	}
	slices.Sort(lags)

	put("skein_queue_shard_lag_seconds", lags[len(lags)-1].Seconds(), q.Queue.Name, "max")
	put("skein_queue_shard_lag_seconds", lags[len(lags)/2].Seconds(), q.Queue.Name, "median")
	put("skein_queue_shard_jobs_max", float64(longest), q.Queue.Name)
}

func leaseState(s *inspect.ShardStats, now time.Time) string {
	switch {
	case s.Owner == "":
		return "free"
	case !s.ExpiresAt.After(now):
		return "expired"
	}
	return "owned"
}

func (put sink) servers(v *view) {
	states := map[string]int{inspect.NodeAlive.String(): 0, inspect.NodeDraining.String(): 0}
	serving := make(map[string]int)
	began := make(map[string]time.Time) // of the handler that runs longest

	for i := range v.nodes {
		n := &v.nodes[i]
		if n.State == inspect.NodeGone {
			continue
		}
		states[n.State.String()]++
		for _, job := range n.Status.Longest {
			if at, known := began[job.Shard.Queue]; !known || job.Began.Time().Before(at) {
				began[job.Shard.Queue] = job.Began.Time()
			}
		}
		if n.State == inspect.NodeAlive {
			for _, queue := range n.Queues {
				serving[queue]++
			}
		}
	}

	for state, n := range states {
		put("skein_nodes", float64(n), state)
	}

	for i := range v.stats {
		name := v.stats[i].Queue.Name
		put("skein_queue_nodes", float64(serving[name]), name)
		longest := time.Duration(0)
		if at, running := began[name]; running {
			longest = max(0, v.stats[i].Now.Sub(at))
		}
		put("skein_queue_longest_run_seconds", longest.Seconds(), name)
	}
}

func (put sink) checks(checks []inspect.Check) {
	worst := make(map[string]inspect.CheckStatus)
	for _, check := range checks {
		worst[check.Name] = max(worst[check.Name], check.Status)
	}
	for name, status := range worst {
		put("skein_store_check", float64(status), name)
	}
}

func (put sink) schedules(late map[string]inspect.LateTick) {
	for queue, tick := range late {
		put("skein_schedule_late_seconds", tick.Late.Seconds(), queue)
	}
}

func (put sink) rates(waits map[string]inspect.RateWait) {
	for queue, wait := range waits {
		put("skein_rate_wait_seconds", wait.Wait.Seconds(), queue)
	}
}
