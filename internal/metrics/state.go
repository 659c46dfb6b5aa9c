package metrics

// ofServer are gauges of the servers of a process.
func ofServer() []Metric {
	return []Metric{
		{Name: "skein_lanes", Type: Gauge, Source: Server, By: "Lanes", Unit: "lanes", Help: "Batches that the servers of this process run at once at most."},
		{Name: "skein_lanes_busy", Type: Gauge, Source: Server, By: "Status.Busy", Unit: "lanes", Help: "Lanes that run a batch."},
		{Name: "skein_jobs_running", Type: Gauge, Source: Server, By: "Status.Queues[].Running", Unit: "jobs",
			Labels: []Label{queue()}, Help: "Jobs in batches that run."},
		{Name: "skein_jobs_buffered", Type: Gauge, Source: Server, By: "Status.Queues[].Claimed", Unit: "jobs",
			Labels: []Label{queue()}, Help: "Jobs claimed that have not started."},
		{Name: "skein_leases_held", Type: Gauge, Source: Server, By: "Status.Queues[].Shards", Unit: "leases",
			Labels: []Label{queue()}, Help: "Shards that the servers of this process work."},
	}
}

// ofStore are values of the store, the same whichever process asks.
func ofStore() []Metric {
	return append(ofQueues(), []Metric{
		{Name: "skein_nodes", Type: Gauge, Source: Store, By: "Nodes", Unit: "nodes",
			Labels: []Label{one("state", "alive", "draining")}, Help: "Servers that announce themselves."},
		{Name: "skein_store_check", Type: Gauge, Source: Store, By: "Checks", Unit: "",
			Labels: []Label{{Name: "check"}}, Help: "The worst of each check of the store's servers: 0 ok, 1 unknown, 2 warn, 3 fail."},
		{Name: "skein_exporter_up", Type: Gauge, Source: Store, By: "Stats", Unit: "",
			Help: "1 if the last look at the store succeeded, 0 if it failed and what is shown is older."},
		{Name: "skein_exporter_age_seconds", Type: Gauge, Source: Store, By: "Stats", Unit: "seconds",
			Help: "How long ago the store was looked at for the values shown; absent before the first look that succeeds."},
		{Name: "skein_exporter_look_seconds", Type: Gauge, Source: Store, By: "Stats", Unit: "seconds",
			Help: "How long the last look took; the next is 99 times as long after it, and at least 5 s."},
	}...)
}

// ofQueues are those that each queue of the store has.
func ofQueues() []Metric {
	return []Metric{
		{Name: "skein_queue_jobs", Type: Gauge, Source: Store, By: "Stats", Unit: "jobs",
			Labels: []Label{queue(), one("state", "fresh", "retry", "claimed", "orphaned", "dead", "quarantined")},
			Help:   "Jobs of a queue. Fresh, retry and orphaned ones wait for a server. Orphaned ones are claimed too: by a server that is gone. Dead ones are ids in the morgue."},
		{Name: "skein_queue_lag_seconds", Type: Gauge, Source: Store, By: "Stats", Unit: "seconds",
			Labels: []Label{queue()}, Help: "How long the job that has waited longest for a server has waited, since it was due or since its server's lease ended."},
		{Name: "skein_queue_processed_total", Type: Counter, Source: Store, By: "Stats", Unit: "jobs",
			Labels: []Label{queue()}, Help: "Jobs done since the queue began, on all servers."},
		{Name: "skein_queue_failed_total", Type: Counter, Source: Store, By: "Stats", Unit: "jobs",
			Labels: []Label{queue()}, Help: "Jobs that failed or were buried since the queue began, on all servers."},
		{Name: "skein_queue_paused", Type: Gauge, Source: Store, By: "Stats", Unit: "",
			Labels: []Label{queue()}, Help: "1 if an operator has paused the queue."},
		{Name: "skein_queue_shards", Type: Gauge, Source: Store, By: "Stats", Unit: "shards",
			Labels: []Label{queue(), one("state", "owned", "free", "expired", "unreached")},
			Help:   "Shards by their lease: owned; free, since it was given back or never taken; expired, its owner is gone; or unreached, not in the queue's other values."},
		{Name: "skein_queue_shard_lag_seconds", Type: Gauge, Source: Store, By: "Stats", Unit: "seconds",
			Labels: []Label{queue(), one("of", "max", "median")}, Help: "Lag of the shard with the most of it, and of the one in the middle."},
		{Name: "skein_queue_shard_jobs_max", Type: Gauge, Source: Store, By: "Stats", Unit: "jobs",
			Labels: []Label{queue()}, Help: "Jobs that wait for a server in the shard with the most of them."},
		{Name: "skein_queue_nodes", Type: Gauge, Source: Store, By: "Nodes", Unit: "nodes",
			Labels: []Label{queue()}, Help: "Servers that serve the queue and don't drain."},
	}
}
